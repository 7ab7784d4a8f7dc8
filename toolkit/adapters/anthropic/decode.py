"""The JSON of Anthropic's messages, or the SDK's objects, into the neutral format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from toolkit.adapters.anthropic.content import decode_part
from toolkit.adapters.anthropic.encode import PROVIDER, WRITER, encode_tools
from toolkit.adapters.argument_text import call_from_text, compact
from toolkit.adapters.blocks.decode import BlockReader, decode_turns, read_answer, read_said, to_send_again
from toolkit.adapters.lossless import residue
from toolkit.adapters.plain_json import JsonDict, plain, plain_list, plain_object
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import NamedTool, NativeChoice, ToolChoice
from toolkit.wire.definition import AnyDefinition, NativeTool, ToolDefinition
from toolkit.wire.json_types import JsonObject
from toolkit.wire.message import ChatMessage
from toolkit.wire.query import FinishReason, QueryResult, Usage
from toolkit.wire.result import ToolResult

_REASONS: Final[dict[str, FinishReason]] = {"max_tokens": "length", "model_context_window_exceeded": "length"}
# What a caller may want to know of an answer, or must send again with the next request (the container).
_TOLD: Final = ("id", "model", "stop_sequence", "stop_details", "container", "context_management", "usage")
_CHOICES: Final[dict[str, ToolChoice]] = {"auto": "auto", "none": "none", "any": "required"}


def decode_tools(tools: object) -> list[AnyDefinition]:
    return [_definition(tool) for tool in plain_list(tools)]


def _definition(tool: JsonDict) -> AnyDefinition:
    schema = tool.get("input_schema")
    if tool.get("type") not in (None, "custom") or not isinstance(schema, dict) or "name" not in tool:
        return NativeTool(PROVIDER, JsonObject(tool))
    made = ToolDefinition(tool["name"], tool.get("description") or "", JsonObject(schema), tool.get("strict"))
    left = residue(tool, encode_tools([made])[0])
    return made if left is None else replace(made, metadata={PROVIDER: {"residue": left}})


def decode_choice(choice: object) -> ToolChoice:
    found = plain(choice)
    if found is None:
        return "auto"
    if isinstance(found, dict):
        if found.keys() == {"type"} and found["type"] in _CHOICES:
            return _CHOICES[found["type"]]
        if found.keys() == {"type", "name"} and found["type"] == "tool":
            return NamedTool(found["name"])
    return NativeChoice(PROVIDER, found)


def decode_messages(messages: object) -> list[ChatMessage]:
    """The list ``messages``; what stands in the field ``system`` is read by ``decode_system``."""
    return decode_turns(READER, [_as_request(message) for message in plain_list(messages)])


def _as_request(message: object) -> object:
    """An answer put into the list as the SDK gave it has fields that requests may not have."""
    if isinstance(message, dict) and message.get("type") == "message":
        return {key: message[key] for key in ("role", "content") if key in message}
    return message


def decode_system(system: object) -> list[ChatMessage]:
    """The field ``system``, a text or blocks, as a message for the front of the conversation."""
    found = plain(system)
    return [] if not found else decode_turns(READER, [{"role": "system", "content": found}])


def decode_response(response: object) -> QueryResult:
    """The answer; one that is an error becomes ``finish_reason="error"``."""
    raw = plain_object(response)
    if not isinstance(raw.get("content"), list):
        return QueryResult("", (), "error", metadata={PROVIDER: {"error": raw.get("error", raw)}})
    return answered(raw)


def answered(message: JsonDict, texts: Mapping[int, str] | None = None) -> QueryResult:
    """The result for a whole message; ``texts`` has the argument texts of a stream, by the place of their block."""
    blocks = [block for block in message["content"] if isinstance(block, dict)]
    content, calls, kept = read_answer(READER, blocks, texts)
    word = message.get("stop_reason")
    reason = _REASONS.get(str(word)) or ("tool_calls" if calls else "stop")
    told = {key: message[key] for key in _TOLD if message.get(key) is not None}
    metadata = {PROVIDER: {"finish_reason": word, **told, **to_send_again(kept)}}
    return QueryResult(content, calls, reason, _usage(message.get("usage")), metadata)


def _usage(usage: object) -> Usage:
    found = plain_object(usage)
    return Usage(
        found.get("input_tokens"),
        found.get("output_tokens"),
        found.get("cache_read_input_tokens"),
        plain_object(found.get("output_tokens_details")).get("thinking_tokens"),
    )


def _text(block: JsonDict) -> str | None:
    text = block.get("text")
    return text if block.get("type") == "text" and isinstance(text, str) else None


def _call(block: JsonDict) -> ToolCall | None:
    if block.get("type") != "tool_use":
        return None
    id, name, given = str(block.get("id") or ""), str(block.get("name") or ""), block.get("input")
    if isinstance(given, dict):
        return ToolCall(id, name, given)
    return call_from_text(id, name, given if isinstance(given, str) or given is None else compact(given))


def _result(block: JsonDict, names: Mapping[str, str]) -> tuple[ToolResult, JsonDict] | None:
    if block.get("type") != "tool_result":
        return None
    id, content = str(block.get("tool_use_id") or ""), block.get("content")
    failed = block.get("is_error") is True
    if not isinstance(content, list):
        text = content if isinstance(content, str) else ""
        return ToolResult(id, names.get(id, ""), "error" if failed else "text", text), {}
    value, kept = read_said(READER, [part for part in content if isinstance(part, dict)], media=not failed)
    if isinstance(value, str):
        return ToolResult(id, names.get(id, ""), "error" if failed else "text", value), kept
    return ToolResult(id, names.get(id, ""), "multimodal", tuple(value)), kept


READER: Final = BlockReader(writer=WRITER, text=_text, part=decode_part, call=_call, result=_result)
