"""LangChain's messages and tools, as JSON or as objects, into the neutral format."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Final

from toolkit.adapters.argument_text import call_from_text
from toolkit.adapters.langchain.content import decode_blocks, decode_layout, text_of
from toolkit.adapters.langchain.encode import PROVIDER, encode_call, encode_message, encode_tools
from toolkit.adapters.lossless import own, residue
from toolkit.adapters.plain_json import JsonDict, plain, plain_object
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import NamedTool, NativeChoice, ToolChoice
from toolkit.wire.definition import AnyDefinition, NativeTool, ToolDefinition
from toolkit.wire.json_types import JsonObject
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, Role, TextMessage, ToolResultMessage
from toolkit.wire.query import FinishReason, QueryResult, Usage
from toolkit.wire.result import ToolResult

_ROLES: Final[dict[str, Role]] = {
    "system": "system", "developer": "system",
    "human": "user", "user": "user",
    "ai": "assistant", "assistant": "assistant",
}  # fmt: skip
# The words of the providers behind LangChain, and where their integrations leave them.
_WORD_KEYS: Final = ("finish_reason", "stop_reason", "done_reason", "stopReason", "finishReason")
_LENGTH: Final = frozenset(
    {"length", "max_tokens", "model_length", "model_context_window_exceeded", "max_output_tokens"}
)
_ERROR: Final = frozenset({"error", "malformed_function_call", "error_toxic"})


def decode_tools(tools: object) -> list[AnyDefinition]:
    """Of what ``bind_tools`` takes: dicts, LangChain's tools, pydantic models and functions."""
    return [_definition(tool) for tool in (tools if isinstance(tools, Iterable) else ())]


def _definition(tool: Any) -> AnyDefinition:
    if isinstance(tool, Mapping):
        raw = plain_object(tool)
    else:
        from langchain_core.utils.function_calling import convert_to_openai_tool

        raw = convert_to_openai_tool(tool)
    function = raw.get("function")
    if raw.get("type", "function") != "function" or not isinstance(function, dict) or "name" not in function:
        return NativeTool(PROVIDER, JsonObject(raw))
    made = ToolDefinition(
        function["name"],
        function.get("description") or "",
        JsonObject(function.get("parameters") or {}),
        function.get("strict"),
    )
    left = residue(raw, encode_tools([made])[0])
    return made if left is None else dataclasses.replace(made, metadata={PROVIDER: {"residue": left}})


def decode_choice(choice: object) -> ToolChoice:
    """``required`` and ``True`` are other spellings of ``any``, OpenAI's object one of a tool's name."""
    found = plain(choice)
    if found is None or found == "auto":
        return "auto"
    if found == "none":
        return "none"
    if found is True or found in ("any", "required"):
        return "required"
    if isinstance(found, str):
        return NamedTool(found)
    function = found.get("function") if isinstance(found, dict) else None
    if isinstance(function, dict) and found == {"type": "function", "function": {"name": function.get("name")}}:
        return NamedTool(function["name"])
    return NativeChoice(PROVIDER, found)


def message_json(message: object) -> JsonDict:
    """A message as ``message_to_dict`` writes it; what is no message is empty."""
    if isinstance(message, Mapping):
        raw = plain_object(message)
        return raw if isinstance(raw.get("data"), dict) else {}
    type, dump = getattr(message, "type", None), getattr(message, "model_dump", None)
    return {"type": type, "data": plain(dump())} if isinstance(type, str) and callable(dump) else {}


def decode_messages(messages: object) -> list[ChatMessage]:
    names: dict[str, str] = {}
    decoded = []
    for given in messages if isinstance(messages, Iterable) else ():
        message = _message(message_json(given), names)
        if isinstance(message, AssistantToolCallMessage):
            names.update((call.id, call.name) for call in message.tool_calls)
        decoded.append(message)
    return decoded


def _message(raw: JsonDict, names: dict[str, str]) -> ChatMessage:
    data = plain_object(raw.get("data"))
    content = data.get("content")
    type = _bare_type(raw)
    made: ChatMessage
    if type in ("tool", "function"):
        made = _result(data, names)
    elif type == "ai" and (calls := decode_calls(data)):
        kept = decode_layout(content) if isinstance(content, list) else {}
        made = AssistantToolCallMessage(text_of(content), calls, {PROVIDER: kept})
    else:
        role = _ROLES.get(str(data.get("role")) if type == "chat" else type, "user")
        blocks, kept = decode_blocks(content) if isinstance(content, list) else ([], {})
        made = TextMessage(role, blocks if isinstance(content, list) else text_of(content), {PROVIDER: kept})
    return _with_residue(made, raw)


def _bare_type(raw: JsonDict) -> str:
    """Chunks are messages, too."""
    type = str(raw.get("type"))
    return type.removesuffix("MessageChunk").lower() if type.endswith("MessageChunk") else type


def _result(data: JsonDict, names: dict[str, str]) -> ToolResultMessage:
    id, content = str(data.get("tool_call_id") or ""), data.get("content")
    name = names.get(id) or str(data.get("name") or "")
    if data.get("status") == "error":
        return ToolResultMessage(ToolResult(id, name, "error", text_of(content)))
    if isinstance(content, list):
        blocks, kept = decode_blocks(content)
        return ToolResultMessage(ToolResult(id, name, "multimodal", tuple(blocks)), {PROVIDER: kept})
    return ToolResultMessage(ToolResult(id, name, "text", text_of(content)))


def _with_residue(made: ChatMessage, raw: JsonDict) -> ChatMessage:
    kept = own(made.metadata, PROVIDER)
    left = residue(raw, encode_message(made))
    whole = {**kept, "residue": left} if left is not None else kept
    return dataclasses.replace(made, metadata={PROVIDER: whole} if whole else {})


def decode_calls(data: JsonDict) -> list[ToolCall]:
    """The calls of a message; those whose arguments LangChain could not read come last, as it keeps them apart."""
    raws = [*(data.get("tool_calls") or ()), *(data.get("invalid_tool_calls") or ())]
    return [_call(raw, number) for number, raw in enumerate(raws)]


def _call(raw: JsonDict, number: int) -> ToolCall:
    id, name, arguments = raw.get("id") or f"call_{number}", raw.get("name") or "", raw.get("args")
    made = ToolCall(id, name, arguments) if isinstance(arguments, dict) else call_from_text(id, name, arguments)
    left = residue(raw, encode_call(made))
    if left is None:
        return made
    return ToolCall(made.id, made.name, made.arguments, {PROVIDER: {"residue": left}}, made.raw_arguments)


def decode_response(response: object) -> QueryResult:
    """An ``AIMessage``, or its JSON; anything else is ``finish_reason="error"``."""
    raw = message_json(response)
    if _bare_type(raw) != "ai":
        return QueryResult("", (), "error", metadata={PROVIDER: {"error": plain(response)}})
    return finished(raw, decode_calls(raw["data"]))


def finished(raw: JsonDict, calls: list[ToolCall]) -> QueryResult:
    """The result of a whole ``ai`` message, so kept that it can be written again."""
    data: JsonDict = raw["data"]
    content, told = data.get("content"), plain_object(data.get("response_metadata"))
    kept = decode_layout(content) if isinstance(content, list) else {}
    word = next((told[key] for key in _WORD_KEYS if told.get(key)), None)
    made = QueryResult(text_of(content), calls, _reason(word, calls), _usage(data), {PROVIDER: kept})
    whole = {"finish_reason": word, **own(_with_residue(made.message(), raw).metadata, PROVIDER)}
    return dataclasses.replace(made, metadata={PROVIDER: whole})


def _reason(word: object, calls: list[ToolCall]) -> FinishReason:
    said = str(word).lower()
    if said in _LENGTH or said in _ERROR:
        return "length" if said in _LENGTH else "error"
    return "tool_calls" if calls else "stop"


def _usage(data: JsonDict) -> Usage:
    found = plain_object(data.get("usage_metadata"))
    return Usage(
        found.get("input_tokens"),
        found.get("output_tokens"),
        plain_object(found.get("input_token_details")).get("cache_read"),
        plain_object(found.get("output_token_details")).get("reasoning"),
    )
