"""The catalog: what each tool is, and whether the policy may allow a call of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolkit.cli.signature import example_arguments, python_signature
from toolkit.guard.policy.hints import describe_hints
from toolkit.runtime.call.offers import define, why_not_offered
from toolkit.runtime.signatures.signature import ToolSignature, first_sentence

if TYPE_CHECKING:
    from toolkit.runtime.catalog.catalog import ToolInfo
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
        "documentation": define(core, info).description,
        "signature": python_signature(row) if "parameters" in row else _code_first_signature(signature),
        "classes": list(signature.classes),
        "inputSchema": row["inputSchema"],
        "outputSchema": row.get("outputSchema"),
        "example": example_arguments(row),
    }


def _code_first_signature(signature: ToolSignature) -> str:
    return f"{signature.attribute}({signature.parameters}) -> {signature.output}"


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
    refusal = why_not_offered(core, info)
    if refusal is not None:
        return "deny", refusal
    verdict = core.policy.admit(info.name, info.required)
    if verdict is None:
        return "depends", "the decision depends on what the call touches"
    return verdict.decision, verdict.because


def _origin(row: Mapping[str, Any]) -> str | None:
    origin = row.get("origin")
    return f"{origin['name']} ({origin['kind']})" if origin else None
