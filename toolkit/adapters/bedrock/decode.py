"""The JSON of Bedrock's Converse, or what boto3 makes of it, into the neutral format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from toolkit.adapters.argument_text import call_from_text, compact
from toolkit.adapters.bedrock.content import decode_part
from toolkit.adapters.bedrock.encode import PROVIDER, WRITER, encode_tools
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

_REASONS: Final[dict[str, FinishReason]] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
}
_TOLD: Final = ("additionalModelResponseFields", "metrics", "trace", "usage")
_CHOICES: Final[dict[str, ToolChoice]] = {"auto": "auto", "any": "required"}


def decode_tools(tools: object) -> list[AnyDefinition]:
    """The list ``toolConfig.tools``."""
    return [_definition(tool) for tool in plain_list(tools)]


def _definition(tool: JsonDict) -> AnyDefinition:
    spec = tool.get("toolSpec")
    schema = plain_object(spec.get("inputSchema")).get("json") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(schema, dict) or "name" not in spec:
        return NativeTool(PROVIDER, JsonObject(tool))
    made = ToolDefinition(spec["name"], spec.get("description") or "", JsonObject(schema), spec.get("strict"))
    left = residue(tool, encode_tools([made])[0])
    return made if left is None else replace(made, metadata={PROVIDER: {"residue": left}})


def decode_choice(choice: object) -> ToolChoice:
    found = plain(choice)
    if found is None:
        return "auto"
    if isinstance(found, dict) and len(found) == 1:
        [(kind, value)] = found.items()
        if kind in _CHOICES and value == {}:
            return _CHOICES[kind]
        if kind == "tool" and isinstance(value, dict) and value.keys() == {"name"}:
            return NamedTool(value["name"])
    return NativeChoice(PROVIDER, found)


def decode_messages(messages: object) -> list[ChatMessage]:
    """The list ``messages``; what stands in the field ``system`` is read by ``decode_system``."""
    return decode_turns(READER, messages)


def decode_system(system: object) -> list[ChatMessage]:
    """The field ``system`` as a message for the front of the conversation."""
    found = plain_list(system)
    return decode_turns(READER, [{"role": "system", "content": found}]) if found else []


def decode_response(response: object) -> QueryResult:
    """The answer; one that is an error becomes ``finish_reason="error"``."""
    raw = plain_object(response)
    message = plain_object(plain_object(raw.get("output")).get("message"))
    if not isinstance(message.get("content"), list):
        return QueryResult("", (), "error", metadata={PROVIDER: {"error": raw}})
    return answered(raw)


def answered(response: JsonDict, texts: Mapping[int, str] | None = None) -> QueryResult:
    """The result for a whole answer; ``texts`` has the argument texts of a stream, by the place of their block."""
    blocks = [_sendable(block) for block in response["output"]["message"]["content"] if isinstance(block, dict)]
    content, calls, kept = read_answer(READER, blocks, texts)
    word = response.get("stopReason")
    reason = _REASONS.get(str(word)) or ("tool_calls" if calls else "stop")
    told = {key: response[key] for key in _TOLD if response.get(key) is not None}
    metadata = {PROVIDER: {"finish_reason": word, **told, **to_send_again(kept)}}
    return QueryResult(content, calls, reason, _usage(response.get("usage")), metadata)


def _sendable(block: JsonDict) -> JsonDict:
    """A block of an answer as requests may have it: without the type answers give to plain texts and calls."""
    use = block.get("toolUse")
    if isinstance(use, dict) and use.get("type") == "tool_use":
        return {**block, "toolUse": {key: value for key, value in use.items() if key != "type"}}
    return {key: value for key, value in block.items() if (key, value) != ("type", "text")}


def _usage(usage: object) -> Usage:
    found = plain_object(usage)
    return Usage(found.get("inputTokens"), found.get("outputTokens"), found.get("cacheReadInputTokens"))


def _text(block: JsonDict) -> str | None:
    """Text, also where citations are around it."""
    text = block.get("text")
    if isinstance(text, str):
        return text
    cited = plain_object(block.get("citationsContent")).get("content")
    if not isinstance(cited, list):
        return None
    return "".join(part["text"] for part in cited if isinstance(part, dict) and isinstance(part.get("text"), str))


def _call(block: JsonDict) -> ToolCall | None:
    raw = block.get("toolUse")
    if not isinstance(raw, dict) or raw.get("type") == "server_tool_use":  # the latter is run by Bedrock itself
        return None
    id, name, given = str(raw.get("toolUseId") or ""), str(raw.get("name") or ""), raw.get("input")
    if isinstance(given, dict):
        return ToolCall(id, name, given)
    return call_from_text(id, name, given if isinstance(given, str) or given is None else compact(given))


def _result(block: JsonDict, names: Mapping[str, str]) -> tuple[ToolResult, JsonDict] | None:
    raw = block.get("toolResult")
    if not isinstance(raw, dict):
        return None
    id = str(raw.get("toolUseId") or "")
    name, failed = names.get(id, ""), raw.get("status") == "error"
    parts = [part for part in plain_list(raw.get("content")) if isinstance(part, dict)]
    data = parts[0]["json"] if len(parts) == 1 and "json" in parts[0] else None
    if isinstance(data, dict):
        return ToolResult(id, name, "error" if failed else "data", compact(data) if failed else data), {}
    value, kept = read_said(READER, parts, media=not failed)
    if isinstance(value, str):
        return ToolResult(id, name, "error" if failed else "text", value), kept
    return ToolResult(id, name, "multimodal", tuple(value)), kept


READER: Final = BlockReader(writer=WRITER, text=_text, part=decode_part, call=_call, result=_result)
