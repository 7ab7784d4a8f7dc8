"""What the page shows, as JSON: the tools and what the policy says about them, results, the Python code of a call, the audit
log as a timeline, and what definitions cost.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from toolkit.adapters.values import result_blocks, result_text
from toolkit.cli.signature import example_arguments, python_signature
from toolkit.errors import InvalidArguments, InvalidArgumentsType, SetupError, ToolkitError
from toolkit.guard.policy.rule import describe_hints
from toolkit.runtime.arguments import parse_arguments
from toolkit.runtime.audit.log import join_records
from toolkit.runtime.audit.verification import read_records, verify
from toolkit.runtime.signatures import ToolSignature, first_sentence
from toolkit.wire.call import ToolResult
from toolkit.wire.content import ContentBlock
from toolkit.wire.definition import ToolDefinition

if TYPE_CHECKING:
    from toolkit.guard.policy.policy import SecurityPolicy, Verdict
    from toolkit.runtime.catalog import ToolInfo
    from toolkit.runtime.toolkit import Core


def list_tools(core: Core) -> list[dict[str, Any]]:
    """A line for each tool. Tools that no call can use are listed, with the reason."""
    return [_summary(core, info) for info in core.catalog.tools.values()]


def describe_tool(core: Core, name: str) -> dict[str, Any]:
    """Everything about one tool that somebody needs to call it."""
    info, row = core.catalog.tools[name], core.catalog.definitions[name]
    signature = core.catalog.signatures.of(name)
    return {
        **_summary(core, info),
        "documentation": core.define(info).description,
        "signature": python_signature(row) if "parameters" in row else _code_first_signature(signature),
        "classes": [one.line for one in signature.types],
        "inputSchema": row["inputSchema"],
        "outputSchema": row.get("outputSchema"),
        "example": example_arguments(row),
    }


def _code_first_signature(signature: ToolSignature) -> str:
    return f"{signature.call} -> {signature.output}"


def _summary(core: Core, info: ToolInfo) -> dict[str, Any]:
    row = core.catalog.definitions[info.name]
    decision, because = _decide_by_name(core, info)
    return {
        "name": info.name,
        "title": row.get("title"),
        "description": first_sentence(row["description"]),
        "permissions": list(info.required),
        "optional": list(info.optional),
        "hints": describe_hints(core.catalog.annotations(info.name)),
        "origin": _origin(row),
        "decision": decision,
        "because": because,
    }


def _decide_by_name(core: Core, info: ToolInfo) -> tuple[str, str]:
    """The decision about every call of a tool, or ``depends``: on what the call touches."""
    refusal = core.why_not_offered(info)
    if refusal is not None:
        return "deny", refusal
    verdict = core.policy._admit(info.name, info.required)
    if verdict is None:
        return "depends", "the decision depends on what the call touches"
    return verdict.decision, verdict.because


def _origin(row: Mapping[str, Any]) -> str | None:
    origin = row.get("origin")
    return f"{origin['name']} ({origin['kind']})" if origin else None


# ----------------------------------------------------------------------------------------------------------------------
# The result of a call: the typed output for a program beside the text that a model reads.

MAX_SHOWN: Final = 200_000
"""The most characters of each that the page shows."""
_MAX_TEXT: Final = 20_000
_MAX_ITEMS: Final = 200
_WIDTH: Final = 88


def describe_result(result: ToolResult, duration_ms: float) -> dict[str, Any]:
    """The last event of a call."""
    text = _model_text(result)
    is_error = result.kind == "error"
    typed = None if is_error else _typed(result.output)
    return {
        "event": "result",
        "kind": result.kind,
        "durationMs": duration_ms,
        "error": str(result.value) if is_error else None,
        "type": None if is_error else type(result.output).__name__,
        "typed": None if typed is None else typed[:MAX_SHOWN],
        "text": text[:MAX_SHOWN],
        "dropped": max(0, len(text) - MAX_SHOWN),
        "media": [_describe_block(block) for block in result_blocks(result) or () if block.type != "text"],
    }


def _model_text(result: ToolResult) -> str:
    blocks = result_blocks(result)
    if blocks is None:
        return str(result_text(result))
    return "\n".join(block.text for block in blocks if block.text is not None)


def _typed(output: object) -> str:
    """The output as Python shows it, a field on each line."""
    from rich.pretty import pretty_repr

    return pretty_repr(output, max_width=_WIDTH, max_length=_MAX_ITEMS, max_string=_MAX_TEXT)


def _describe_block(block: ContentBlock) -> str:
    size = f", {len(block.data) * 3 // 4:,} bytes" if block.data is not None else ""
    return f"{block.type}{f' {block.media_type}' if block.media_type else ''}{size}"


# ----------------------------------------------------------------------------------------------------------------------
# The Python code that makes the same call as the form.


def python_line(row: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """A call of the tool with these arguments; ``row`` is its definition in the catalog.

    >>> row = {"name": "read_file", "attribute": "read_file", "parameters": [{"wire": "path", "name": "path"}]}
    >>> python_line(row, {"path": "README.md"})
    "tk.tools.read_file(path='README.md')"
    >>> python_line(row, {"no such": 1})
    "tk.invoke('read_file', {'no such': 1})"
    """
    names = {one["wire"]: one["name"] for one in row.get("parameters", ())}
    if "parameters" not in row or not names.keys() >= arguments.keys():
        # A code-first tool has no method, and further properties have no parameter.
        return f"tk.invoke({row['name']!r}, {_literal(arguments)})"
    given = [f"{names[wire]}={_literal(value)}" for wire, value in arguments.items()]
    function = f"tk.tools.{row['attribute']}"
    line = f"{function}({', '.join(given)})"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"{function}(", *(f"    {one}," for one in given), ")"])


def _literal(value: object) -> str:
    """A JSON value as Python. ``repr`` shows hidden characters as escapes."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, float) and not math.isfinite(value):  # 1e999 is JSON
        return f"float('{value}')"
    return repr(value)


# ----------------------------------------------------------------------------------------------------------------------
# The audit log as a timeline: the latest calls with their durations, and the state of the chain.

MAX_CALLS_SHOWN: Final = 200
_SHOWN: Final = (
    "event", "call", "call_id", "program", "line", "tool", "time", "decision", "rule", "answer", "sandbox", "outcome",
    "reason", "arguments_bytes", "output_bytes", "duration_ms",
)  # fmt: skip


def describe_audit(path: str, session_id: str) -> dict[str, Any]:
    """The latest calls, and what is wrong with the chain. A log may hold earlier sessions and those of other programs."""
    report = verify(path)
    calls = join_records(read_records(path))
    return {
        "records": report.head.lines,
        "head": str(report.head),
        "openCalls": report.open_calls,
        "problems": report.problems[:20],
        "total": len(calls),
        "calls": [_describe_call(call, session_id) for call in calls[-MAX_CALLS_SHOWN:]],
    }


def _describe_call(call: Mapping[str, Any], session_id: str) -> dict[str, Any]:
    return {**{key: call.get(key) for key in _SHOWN}, "isOwn": call.get("session") == session_id}


# ----------------------------------------------------------------------------------------------------------------------
# What it costs to tell a model about the tools: the size of the definitions, as each provider's adapter writes them.
#
# No tokenizer is used: providers do not publish all of theirs. Tokens are estimated as a quarter of the bytes, which the page
# says. Sizes are exact, so comparisons between tools and forms hold.

BYTES_PER_TOKEN: Final = 4
Encode: TypeAlias = Callable[[Sequence[ToolDefinition]], Any]


def measure_tools(definitions: Sequence[ToolDefinition], signatures: str) -> dict[str, Any]:
    """Bytes and estimated tokens for each provider, and for the tools as Python signatures; then of each tool alone."""
    encoders = _encoders()
    forms = [_measure(name, encode, definitions) for name, encode in encoders.items()]
    size = len(signatures.encode("utf-8", "surrogatepass"))
    forms.append({"name": "Python signatures (text)", "bytes": size, "tokens": _estimate(size), "problem": None})
    reference, encode = next(iter(encoders.items()))
    tools = [{**_measure(reference, encode, [one]), "name": one.name} for one in definitions]
    return {
        "count": len(definitions),
        "bytesPerToken": BYTES_PER_TOKEN,
        "forms": forms,
        "reference": reference,
        "tools": sorted(tools, key=lambda tool: -int(tool["bytes"] or 0)),
    }


def _measure(name: str, encode: Encode, definitions: Sequence[ToolDefinition]) -> dict[str, Any]:
    try:
        made = encode(definitions)
    except (SetupError, ValueError) as error:  # a provider cannot be told about one of the tools
        return {"name": name, "bytes": None, "tokens": None, "problem": str(error)}
    size = len(json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
    return {"name": name, "bytes": size, "tokens": _estimate(size), "problem": None}


def _estimate(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)


def _encoders() -> dict[str, Encode]:
    from toolkit.adapters.anthropic import codec as anthropic
    from toolkit.adapters.bedrock import codec as bedrock
    from toolkit.adapters.cohere import codec as cohere
    from toolkit.adapters.gemini import codec as gemini
    from toolkit.adapters.ollama import codec as ollama
    from toolkit.adapters.openai_chat import codec as openai_chat
    from toolkit.adapters.openai_responses import codec as openai_responses

    return {
        "OpenAI Chat Completions": openai_chat.encode_tools,
        "OpenAI Responses": openai_responses.encode_tools,
        "Anthropic Messages": anthropic.encode_tools,
        "Gemini": gemini.encode_tools,
        "Bedrock Converse": bedrock.encode_tools,
        "Cohere": cohere.encode_tools,
        "Ollama": ollama.encode_tools,
    }


# ----------------------------------------------------------------------------------------------------------------------
# What the policy says about a call that somebody is still writing.


def explain_call(core: Core, policy: SecurityPolicy[Any], name: str, text: str) -> dict[str, Any]:
    """The verdict and the lines of the policy behind it, what is wrong with the arguments, and the call in Python.

    As in a call, a tool that is refused by name is refused whatever its arguments are. Nothing runs.
    """
    refusal = core.why_not_offered(core.catalog.tools[name])
    verdict = None if refusal is None else {"decision": "deny", "because": refusal, "considered": [], "unbound": []}
    try:
        arguments = parse_arguments(text if text.strip() else "{}")
        found = policy.explain(name, arguments)
    except (InvalidArguments, InvalidArgumentsType) as error:
        return {"verdict": verdict, "problems": _problems(error), "python": None}
    except ToolkitError as error:
        return {"verdict": verdict, "problems": [{"path": [], "message": str(error)}], "python": None}
    shown = _describe_verdict(found)
    if verdict is not None and found.decision != "deny":
        # Refused for another reason than the policy: a permission, the sandbox, a read-only workspace.
        shown = verdict
    return {"verdict": shown, "problems": [], "python": python_line(core.catalog.definitions[name], arguments)}


def _describe_verdict(verdict: Verdict) -> dict[str, Any]:
    considered = [
        {"place": one.place, "decision": one.decision, "rule": one.text, "outcome": one.outcome}
        for one in verdict.considered
    ]
    return {
        "decision": verdict.decision,
        "because": verdict.because,
        "considered": considered,
        "unbound": verdict.unbound,
    }


def _problems(error: ToolkitError) -> list[dict[str, Any]]:
    """Each mistake with the path of the argument; rejected values are not repeated."""
    listed = error.details.get("errors")
    if not isinstance(listed, list | tuple) or not listed:
        return [{"path": [], "message": error.message}]
    return [{"path": [str(step) for step in one["loc"]], "message": _sentence(one)} for one in listed]


def _sentence(problem: Mapping[str, Any]) -> str:
    words = {"missing": "This is required.", "extra_forbidden": "There is no argument of this name."}
    return words.get(problem["type"]) or f"{problem['msg']}."
