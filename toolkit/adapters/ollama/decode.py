"""Ollama's chat messages, or the client's objects, into the neutral format."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from toolkit.adapters.lossless import residue
from toolkit.adapters.ollama.encode import PROVIDER, encode_call, encode_message, encode_tools
from toolkit.adapters.plain_json import JsonDict, plain, plain_list, plain_object
from toolkit.adapters.provider_names import MADE_ID
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import NativeChoice, ToolChoice
from toolkit.wire.content import ContentBlock
from toolkit.wire.definition import AnyDefinition, NativeTool, ToolDefinition
from toolkit.wire.json_types import JsonObject
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, Role, TextMessage, ToolResultMessage
from toolkit.wire.query import FinishReason, QueryResult, Usage
from toolkit.wire.result import ToolResult

_ROLES: Final[dict[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant"}
_REASONS: Final[dict[str, FinishReason]] = {"length": "length"}


def decode_tools(tools: object) -> list[AnyDefinition]:
    return [_definition(tool) for tool in plain_list(tools)]


def _definition(tool: JsonDict) -> AnyDefinition:
    function = tool.get("function")
    if not isinstance(function, dict) or "name" not in function:
        return NativeTool(PROVIDER, JsonObject(tool))
    parameters = JsonObject(function.get("parameters") or {})
    made = ToolDefinition(function["name"], function.get("description") or "", parameters)
    left = residue(tool, encode_tools([made])[0])
    return made if left is None else dataclasses.replace(made, metadata={PROVIDER: {"residue": left}})


def decode_choice(choice: object) -> ToolChoice:
    found = plain(choice)
    return "auto" if found is None or found == "auto" else NativeChoice(PROVIDER, found)


def decode_messages(messages: object) -> list[ChatMessage]:
    """Calls get ids from their place; a result belongs to the first call of its tool that still waits for one."""
    decoded: list[ChatMessage] = []
    waiting: list[ToolCall] = []
    for turn, raw in enumerate(plain_list(messages)):
        if raw.get("role") == "tool":
            call = _awaited(waiting, raw.get("tool_name"))
            decoded.append(_result(raw, call, turn))
            continue
        message = _message(raw, f"{MADE_ID}{turn}")
        waiting = list(message.tool_calls) if isinstance(message, AssistantToolCallMessage) else []
        decoded.append(message)
    return decoded


def _awaited(waiting: list[ToolCall], name: object) -> ToolCall | None:
    for call in waiting:
        if not name or call.name == name:
            waiting.remove(call)
            return call
    return None


def _result(raw: JsonDict, call: ToolCall | None, turn: int) -> ToolResultMessage:
    id = call.id if call is not None else f"{MADE_ID}{turn}"
    name = str(raw.get("tool_name") or (call.name if call is not None else ""))
    value: Any = raw.get("content") or ""
    images = [ContentBlock("image", data=image) for image in raw.get("images") or ()]
    if images:
        lead = [ContentBlock("text", text=value)] if value else []
        made = ToolResultMessage(ToolResult(id, name, "multimodal", (*lead, *images)))
    else:
        made = ToolResultMessage(ToolResult(id, name, "text", value))
    left = residue(raw, encode_message(made))
    return made if left is None else dataclasses.replace(made, metadata={PROVIDER: {"residue": left}})


def _message(raw: JsonDict, made_id: str) -> TextMessage | AssistantToolCallMessage:
    content = raw.get("content") or ""
    kept: JsonDict = {"thinking": raw["thinking"]} if isinstance(raw.get("thinking"), str) else {}
    made: TextMessage | AssistantToolCallMessage
    calls = decode_calls(raw.get("tool_calls") or (), made_id)
    if calls:
        made = AssistantToolCallMessage(content, calls, {PROVIDER: kept})
    else:
        images = [ContentBlock("image", data=image) for image in raw.get("images") or ()]
        lead = [ContentBlock("text", text=content)] if content else []
        said = [*lead, *images] if images else content
        made = TextMessage(_ROLES.get(str(raw.get("role")), "user"), said, {PROVIDER: kept})
    left = residue(raw, encode_message(made))
    whole = {**kept, "residue": left} if left is not None else kept
    return dataclasses.replace(made, metadata={PROVIDER: whole} if whole else {})


def decode_calls(calls: Any, made_id: str) -> list[ToolCall]:
    return [_call(raw, f"{made_id}-{number}") for number, raw in enumerate(calls)]


def _call(raw: JsonDict, made_id: str) -> ToolCall:
    function = plain_object(raw.get("function"))
    made = ToolCall(made_id, function.get("name") or "", plain_object(function.get("arguments")))
    left = residue(raw, encode_call(made))
    if left is None:
        return made
    return ToolCall(made.id, made.name, made.arguments, {PROVIDER: {"residue": left}})


def decode_response(response: object) -> QueryResult:
    """An answer without a message is ``finish_reason="error"``."""
    raw = plain_object(response)
    usage = Usage(raw.get("prompt_eval_count"), raw.get("eval_count"))
    message = raw.get("message")
    if not isinstance(message, dict):
        return QueryResult("", (), "error", usage, {PROVIDER: {"error": raw.get("error", raw)}})
    calls = decode_calls(message.get("tool_calls") or (), f"{MADE_ID}{raw.get('created_at', '')}")
    word = raw.get("done_reason")
    kept: JsonDict = {"finish_reason": word}
    if message.get("thinking"):
        kept["thinking"] = message["thinking"]
    reason = _REASONS.get(str(word)) or ("tool_calls" if calls else "stop")
    return QueryResult(message.get("content") or "", calls, reason, usage, {PROVIDER: kept})
