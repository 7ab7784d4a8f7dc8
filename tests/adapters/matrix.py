"""What each adapter supports, found out by running it: the table in ``docs/adapters.md``.

Every adapter exports the same names, and each probe here uses only those, so the table shows what the code does.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from tests.adapters import settings
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

NO: Final = "–"
THOUGHT: Final = "first I think"


@dataclasses.dataclass(frozen=True)
class Adapter:
    """A column: its module, a native tool of the provider, and an answer in which its model thinks and calls a tool."""

    module: str
    title: str
    native: dict[str, Any]
    thinking: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(f"toolkit.adapters.{self.module}"), name)


_FUNCTION: Final = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ADAPTERS: Final = [
    Adapter("openai_chat", "OpenAI chat", {"type": "web_search"}, {"choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "reasoning_content": THOUGHT, "tool_calls": [_FUNCTION]}}]}),
    Adapter("openai_responses", "OpenAI Responses", {"type": "web_search"}, {"status": "completed", "output": [{"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": THOUGHT}]}, {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"}]}),
    Adapter("anthropic", "Anthropic", {"type": "web_search_20250305", "name": "web_search"}, {"role": "assistant", "stop_reason": "tool_use", "content": [{"type": "thinking", "thinking": THOUGHT, "signature": "s"}, {"type": "tool_use", "id": "c1", "name": "f", "input": {}}]}),
    Adapter("gemini", "Gemini, Vertex", {"googleSearch": {}}, {"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [{"text": THOUGHT, "thought": True}, {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}]}}]}),
    Adapter("ollama", "Ollama", {"type": "browser"}, {"done": True, "done_reason": "stop", "message": {"role": "assistant", "content": "", "thinking": THOUGHT, "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}}),
    Adapter("bedrock", "Bedrock Converse", {"systemTool": {"name": "nova_grounding"}}, {"stopReason": "tool_use", "output": {"message": {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": THOUGHT, "signature": "s"}}}, {"toolUse": {"toolUseId": "c1", "name": "f", "input": {}}}]}}}),
    Adapter("cohere", "Cohere v2", {"type": "connector", "id": "web-search"}, {"finish_reason": "TOOL_CALL", "message": {"role": "assistant", "tool_plan": THOUGHT, "tool_calls": [_FUNCTION]}}),
    Adapter("langchain", "LangChain", {"type": "web_search_20250305", "name": "web_search"}, {"type": "ai", "data": {"type": "ai", "content": [{"type": "thinking", "thinking": THOUGHT}], "tool_calls": [{"name": "f", "args": {}, "id": "c1", "type": "tool_call"}]}}),
]  # fmt: skip

DEFINITION: Final = ToolDefinition(
    "f", "Do it.", JsonObject({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
)
QUESTION: Final = TextMessage("user", "please")
PICTURE: Final = ContentBlock("image", "image/png", data="aW1n")


def _code(value: object) -> str:
    return f"`{json.dumps(value, ensure_ascii=False, separators=(',', ':'))}`"


def _there_and_back(adapter: Adapter, messages: list[ChatMessage]) -> list[ChatMessage]:
    sent = json.loads(json.dumps(adapter.encode_messages(messages)))
    back: list[ChatMessage] = adapter.decode_messages(sent)
    return back


# -- tools and choices -----------------------------------------------------------------------------------------------------


def tools(adapter: Adapter) -> str:
    [back] = adapter.decode_tools(json.loads(json.dumps(adapter.encode_tools([DEFINITION]))))
    same = (back.name, back.description, back.parameters) == (DEFINITION.name, DEFINITION.description, DEFINITION.parameters)  # fmt: skip
    return "yes" if same else "the schema is rewritten"


def strict(adapter: Adapter) -> str:
    return "yes" if '"strict": true' in json.dumps(adapter.encode_tools([DEFINITION], strict=True)) else NO


def native_tools(adapter: Adapter) -> str:
    [back] = adapter.decode_tools([adapter.native])
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
        return _code(said)

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


def media(block: ContentBlock) -> Callable[[Adapter], str]:
    def probe(adapter: Adapter) -> str:
        turn = AssistantToolCallMessage("", [ToolCall("c1", "f", {})])
        answer = ToolResultMessage(ToolResult("c1", "f", "multimodal", (block,)))
        told = json.dumps(adapter.encode_messages([QUESTION, turn, answer]))
        if "omitted, this model does not accept it" in told:
            return "a note instead"
        return "yes" if str(block.data or block.url) in told else NO

    return probe


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
    "result: image": media(PICTURE),
    "result: image by URL": media(ContentBlock("image", url="https://example.com/a.png")),
    "result: audio": media(ContentBlock("audio", "audio/wav", data="d2F2")),
    "result: document": media(ContentBlock("document", "application/pdf", data="cGRm")),
    "reasoning": reasoning,
    "streams, also when cut": streaming,
    "driver": driver(""),
    "driver, async": driver("Async"),
}

HEAD: Final = """# What each adapter supports

Generated by `tests/adapters/matrix.py`, which runs the adapters; `pytest tests/adapters/test_matrix.py --update-snapshots`
regenerates it. "–" means that the provider cannot express it.

"""
NOTES: Final = """
- Results are decoded again from what was sent. Where data or an error comes back as text, the provider has only text: data
  is JSON text, and an error is the JSON text of `{"error": ...}`.
- Where a choice cannot be expressed, `encode_choice` raises a `ValueError` that says what to do instead; a driver returns a
  result with `finish_reason="error"`.
- "a note instead": the model gets a line of text that says what was left out. "yes" means that the adapter sends it; whether
  the model can use it depends on the model.
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
    return HEAD + table + NOTES + settings.document()
