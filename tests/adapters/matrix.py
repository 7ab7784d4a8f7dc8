"""What each adapter supports, found out by running it: the table in ``docs/adapters.md``.

Every adapter exports the same names, and each probe here uses only those, so the table shows what the code does. Whatever a
probe writes must be taken by the types of the provider's SDK; so the table also shows what the provider takes.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from tests.adapters import ends_table, settings
from tests.adapters.sdk_types import refusals
from toolkit import (
    AssistantToolCallMessage,
    ChatMessage,
    ContentBlock,
    JsonObject,
    NamedTool,
    NativeTool,
    TextMessage,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolResultMessage,
)
from toolkit.testing.laws import BLOCKS, in_result

NO: Final = "–"
THOUGHT: Final = "first I think"


@dataclasses.dataclass(frozen=True)
class Adapter:
    """A column: its module, a native tool of the provider if it has any, and an answer in which its model thinks and calls a
    tool.
    """

    module: str
    title: str
    native: dict[str, Any] | None
    thinking: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(f"toolkit.adapters.{self.module}"), name)


_FUNCTION: Final = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ADAPTERS: Final = [
    Adapter("openai_chat", "OpenAI chat", {"type": "custom", "custom": {"name": "shell"}}, {"choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "reasoning_content": THOUGHT, "tool_calls": [_FUNCTION]}}]}),
    Adapter("openai_responses", "OpenAI Responses", {"type": "web_search"}, {"status": "completed", "output": [{"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": THOUGHT}]}, {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"}]}),
    Adapter("anthropic", "Anthropic", {"type": "web_search_20250305", "name": "web_search"}, {"role": "assistant", "stop_reason": "tool_use", "content": [{"type": "thinking", "thinking": THOUGHT, "signature": "s"}, {"type": "tool_use", "id": "c1", "name": "f", "input": {}}]}),
    Adapter("gemini", "Gemini, Vertex", {"googleSearch": {}}, {"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [{"text": THOUGHT, "thought": True}, {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}]}}]}),
    Adapter("ollama", "Ollama", None, {"done": True, "done_reason": "stop", "message": {"role": "assistant", "content": "", "thinking": THOUGHT, "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}}),
    Adapter("bedrock", "Bedrock Converse", {"systemTool": {"name": "nova_grounding"}}, {"stopReason": "tool_use", "output": {"message": {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": THOUGHT, "signature": "s"}}}, {"toolUse": {"toolUseId": "c1", "name": "f", "input": {}}}]}}}),
    Adapter("cohere", "Cohere v2", None, {"finish_reason": "TOOL_CALL", "message": {"role": "assistant", "tool_plan": THOUGHT, "tool_calls": [_FUNCTION]}}),
    Adapter("langchain", "LangChain", {"type": "web_search_20250305", "name": "web_search"}, {"type": "ai", "data": {"type": "ai", "content": [{"type": "thinking", "thinking": THOUGHT}], "tool_calls": [{"name": "f", "args": {}, "id": "c1", "type": "tool_call"}]}}),
]  # fmt: skip

DEFINITION: Final = ToolDefinition(
    "f", "Do it.", JsonObject({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
)
QUESTION: Final = TextMessage("user", "please")


def _code(value: object) -> str:
    return f"`{json.dumps(value, ensure_ascii=False, separators=(',', ':'))}`"


def _taken(adapter: Adapter, part: str, written: Any) -> Any:
    """What was written, if the types of the provider's SDK take it."""
    refused = refusals(adapter.module, part, written)
    assert not refused, (adapter.module, refused)
    return written


def _there_and_back(adapter: Adapter, messages: list[ChatMessage]) -> list[ChatMessage]:
    sent = json.loads(json.dumps(_taken(adapter, "messages", adapter.encode_messages(messages))))
    back: list[ChatMessage] = adapter.decode_messages(sent)
    return back


# -- tools and choices -----------------------------------------------------------------------------------------------------


def tools(adapter: Adapter) -> str:
    [back] = adapter.decode_tools(json.loads(json.dumps(_taken(adapter, "tools", adapter.encode_tools([DEFINITION])))))
    same = (back.name, back.description, back.parameters) == (DEFINITION.name, DEFINITION.description, DEFINITION.parameters)  # fmt: skip
    return "yes" if same else "the schema is rewritten"


def strict(adapter: Adapter) -> str:
    return "yes" if '"strict": true' in json.dumps(adapter.encode_tools([DEFINITION], strict=True)) else NO


def native_tools(adapter: Adapter) -> str:
    if adapter.native is None:
        return NO
    [back] = adapter.decode_tools(_taken(adapter, "tools", [adapter.native]))
    unchanged = isinstance(back, NativeTool) and adapter.encode_tools([back]) == [adapter.native]
    return "unchanged" if unchanged else NO


def choice(wanted: Any) -> Callable[[Adapter], str]:
    def probe(adapter: Adapter) -> str:
        try:
            said = adapter.encode_choice(wanted)
        except ValueError:
            return NO
        if said is None:
            return "no tools are sent" if wanted == "none" else "field left out"
        return _code(_taken(adapter, "choice", said))

    return probe


# -- calls and results -----------------------------------------------------------------------------------------------------


def parallel_calls(adapter: Adapter) -> str:
    """Whether each result is matched to its call, if two calls of one tool have their results in the wrong order."""
    calls = [ToolCall("c1", "f", {"a": 1}), ToolCall("c2", "f", {"a": 2})]
    results = [ToolResultMessage(ToolResult(f"c{a}", "f", "text", f"for {a}")) for a in (2, 1)]
    back = _there_and_back(adapter, [QUESTION, AssistantToolCallMessage("", calls), *results])
    made = [call for message in back if isinstance(message, AssistantToolCallMessage) for call in message.tool_calls]
    told = {one.result.tool_call_id: one.result.value for one in back if isinstance(one, ToolResultMessage)}
    return "yes" if [told.get(call.id) for call in made] == ["for 1", "for 2"] else NO


def ids(adapter: Adapter) -> str:
    back = _there_and_back(adapter, [QUESTION, AssistantToolCallMessage("", [ToolCall("c1", "f", {})])])
    [call] = [call for message in back if isinstance(message, AssistantToolCallMessage) for call in message.tool_calls]
    return "kept" if call.id == "c1" else "none: matched by order"


def _result_back(adapter: Adapter, kind: Any, value: Any) -> ToolResult:
    turn = AssistantToolCallMessage("", [ToolCall("c1", "f", {})])
    back = _there_and_back(adapter, [QUESTION, turn, ToolResultMessage(ToolResult("c1", "f", kind, value))])
    [result] = [message.result for message in back if isinstance(message, ToolResultMessage)]
    return result


def result(kind: str, value: Any) -> Callable[[Adapter], str]:
    """How the result comes back when the request is decoded again."""

    def probe(adapter: Adapter) -> str:
        back = _result_back(adapter, kind, value)
        if (back.kind, back.value) == (kind, value):
            return f"as {kind}"
        return f"as {back.kind}: {_code(back.value)}"

    return probe


def user_media(name: str) -> Callable[[Adapter], str]:
    def probe(adapter: Adapter) -> str:
        written = _taken(adapter, "messages", adapter.encode_messages([TextMessage("user", [BLOCKS[name]])]))
        return _how_it_went(written, BLOCKS[name], "yes")

    return probe


def result_media(name: str) -> Callable[[Adapter], str]:
    def probe(adapter: Adapter) -> str:
        written = _taken(adapter, "messages", adapter.encode_messages(in_result(BLOCKS[name])))
        moved = "attached in the next user message" in json.dumps(written)
        return _how_it_went(written, BLOCKS[name], "in the next message" if moved else "in the result")

    return probe


def _how_it_went(written: Any, block: ContentBlock, as_media: str) -> str:
    told = json.dumps(written)
    if "omitted, this model does not accept it" in told:
        return "a note"
    return as_media if str(block.data or block.url or block.file_id) in told else "as text"


# -- answers ---------------------------------------------------------------------------------------------------------------


def reasoning(adapter: Adapter) -> str:
    result = adapter.decode_response(adapter.thinking)
    assert len(result.tool_calls) == 1 and THOUGHT not in result.content, adapter.module
    return "kept and sent back" if THOUGHT in json.dumps(adapter.encode_messages([result.message()])) else NO


def streaming(adapter: Adapter) -> str:
    """An empty stream must not look like an empty answer."""
    return "yes" if adapter.Accumulator().result().finish_reason == "error" else NO


def driver(prefix: str) -> Callable[[Adapter], str]:
    def probe(adapter: Adapter) -> str:
        names = [name for name in adapter.__all__ if name.endswith("Driver")]
        found = [name for name in names if name.startswith("Async") == bool(prefix)]
        return f"`{found[0]}`" if found else NO

    return probe


SHOWN: Final = (
    "image", "image by URL", "image by file id", "SVG", "PDF", "PDF by URL", "PDF by file id", "text document", "spreadsheet",
    "video", "audio", "audio by URL",
)  # fmt: skip
FEATURES: Final[dict[str, Callable[[Adapter], str]]] = {
    "tools": tools,
    "strict mode of a tool": strict,
    "native tools": native_tools,
    "choice: auto": choice("auto"),
    "choice: none": choice("none"),
    "choice: required": choice("required"),
    "choice: one tool": choice(NamedTool("f")),
    "parallel calls": parallel_calls,
    "ids of calls": ids,
    "result: text": result("text", "7"),
    "result: data": result("data", {"n": 7}),
    "result: error": result("error", "CODE: no"),
    **{f"user: {name}": user_media(name) for name in SHOWN},
    **{f"result: {name}": result_media(name) for name in SHOWN},
    "reasoning": reasoning,
    "streams, also when cut": streaming,
    "driver": driver(""),
    "driver, async": driver("Async"),
}

HEAD: Final = """# What each adapter supports

Generated by `tests/adapters/matrix.py`, which runs the adapters and has what they write checked by the types of the
providers' own SDKs; `pytest tests/adapters/test_matrix.py --update-snapshots` regenerates it. "–" means that the provider
cannot express it.

"""
NOTES: Final = """
- Results are decoded again from what was sent. Where data or an error comes back as text, the provider has only text: data
  is JSON text, and an error is the JSON text of `{"error": ...}`.
- Where a choice cannot be expressed, `encode_choice` raises a `ValueError` that says what to do instead; a driver returns a
  result with `finish_reason="error"`.
- Media go where the provider takes them. "in the next message": the result keeps a note, and the media follow in a message of
  the user, after all results of the turn. "as text": a file that is text is sent as text. "a note": the model gets a line
  that says what was left out. Whether a model can use what it gets depends on the model.
- Media in a message of the model follow in a message of the user, too; Gemini, Ollama and LangChain take them in place.
  What a model made itself (an image of Gemini) is in the metadata of its answer and goes back to that provider only.
- Gemini takes media in results from version 3 on, and only images, PDF and plain text; for `encode_messages(messages, model)`
  with an older model, and for other media, they follow in the next message.
- `ContentBlock.filename` is sent where the provider has a place for it. OpenAI demands a name, so files without one are called
  `document.pdf` and the like. Bedrock's names are made different from each other.
- A file id belongs to the provider that `ContentBlock.provider` names: any other gets a note. OpenAI's two APIs share their files.
- A `NativeTool` or `NativeChoice` goes only to the provider that it names; any other adapter raises a `ValueError` that says
  what to do. LangChain takes all, because the model behind it decides.
- Ids of calls that are too long for OpenAI (40 and 64 characters) or Bedrock (64), or have characters that Anthropic or Bedrock
  refuse, are shortened or rewritten: those of calls and results alike, in what is sent, not in your messages.
- Gemini 3 refuses calls without a signature. Calls of other models get the value that Google documents for them,
  `skip_thought_signature_validator`.
- Ollama's own API has no ids: calls and results are matched by tool and order, and ambiguous histories are refused. Its
  Python client keeps only `type`, `items`, `description` and `enum` of a property's schema.
- Bedrock and Cohere have adapters but no drivers; a LangChain chat model already is a driver.
"""


def document() -> str:
    """The whole of ``docs/adapters.md``."""
    head = ["", *(adapter.title for adapter in ADAPTERS)]
    rows = [[feature, *(probe(adapter) for adapter in ADAPTERS)] for feature, probe in FEATURES.items()]
    lines = [head, ["---"] * len(head), *rows]
    table = "".join(f"| {' | '.join(cell.replace('|', '¦') for cell in line)} |\n" for line in lines)
    return HEAD + table + NOTES + ends_table.section() + settings.document()
