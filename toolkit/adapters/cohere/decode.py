"""The JSON of Cohere's v2 chat, or the SDK's objects, into the neutral format."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, Final

from toolkit.adapters.argument_text import call_from_text
from toolkit.adapters.cohere.content import decode_parts, decode_said
from toolkit.adapters.cohere.encode import PROVIDER, encode_call, encode_message, encode_tools
from toolkit.adapters.lossless import own, residue
from toolkit.adapters.plain_json import JsonDict, plain, plain_list, plain_object
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import NativeChoice, ToolChoice
from toolkit.wire.definition import AnyDefinition, NativeTool, ToolDefinition
from toolkit.wire.json_types import JsonObject
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, Role, TextMessage, ToolResultMessage
from toolkit.wire.query import FinishReason, QueryResult, Usage
from toolkit.wire.result import ToolResult

_ROLES: Final[dict[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant"}
_CHOICES: Final[dict[object, ToolChoice]] = {None: "auto", "REQUIRED": "required", "NONE": "none"}
_REASONS: Final[dict[str, FinishReason]] = {"MAX_TOKENS": "length", "ERROR": "error", "TIMEOUT": "error"}


def decode_tools(tools: object) -> list[AnyDefinition]:
    return [_definition(tool) for tool in plain_list(tools)]


def _definition(tool: JsonDict) -> AnyDefinition:
    function = tool.get("function")
    if tool.get("type", "function") != "function" or not isinstance(function, dict) or "name" not in function:
        return NativeTool(PROVIDER, JsonObject(tool))
    parameters = JsonObject(function.get("parameters") or {})
    made = ToolDefinition(function["name"], function.get("description") or "", parameters)
    left = residue(tool, encode_tools([made])[0])
    return made if left is None else dataclasses.replace(made, metadata={PROVIDER: {"residue": left}})


def decode_choice(choice: object) -> ToolChoice:
    found = plain(choice)
    if found is None or isinstance(found, str) and found in _CHOICES:
        return _CHOICES[found]
    return NativeChoice(PROVIDER, found)


def decode_messages(messages: object) -> list[ChatMessage]:
    names: dict[str, str] = {}
    decoded = []
    for raw in plain_list(messages):
        message = _message(raw, names)
        if isinstance(message, AssistantToolCallMessage):
            names.update((call.id, call.name) for call in message.tool_calls)
        decoded.append(message)
    return decoded


def _message(raw: JsonDict, names: dict[str, str]) -> ChatMessage:
    content = raw.get("content")
    made: ChatMessage
    if raw.get("role") == "assistant" and raw.get("tool_calls"):
        text, kept = decode_said(content)
        made = AssistantToolCallMessage(text, decode_calls(raw["tool_calls"]), {PROVIDER: {**kept, **plan_of(raw)}})
        return _with_residue(made, raw)
    blocks, kept = decode_parts(content) if isinstance(content, list) else ([], {})
    text = content if isinstance(content, str) else ""
    if raw.get("role") == "tool":
        id = str(raw.get("tool_call_id") or "")
        value: Any = tuple(blocks) if isinstance(content, list) else text
        kind: Any = "multimodal" if isinstance(content, list) else "text"
        made = ToolResultMessage(ToolResult(id, names.get(id, ""), kind, value), {PROVIDER: kept})
    else:
        role = _ROLES.get(str(raw.get("role")), "user")
        made = TextMessage(role, blocks if isinstance(content, list) else text, {PROVIDER: kept})
    return _with_residue(made, raw)


def _with_residue(made: ChatMessage, raw: JsonDict) -> ChatMessage:
    kept = own(made.metadata, PROVIDER)
    left = residue(raw, encode_message(made))
    whole = {**kept, "residue": left} if left is not None else kept
    return dataclasses.replace(made, metadata={PROVIDER: whole} if whole else {})


def plan_of(message: JsonDict) -> JsonDict:
    """What the model thinks of doing, as far as it says so."""
    plan = message.get("tool_plan")
    return {"tool_plan": plan} if isinstance(plan, str) and plan else {}


def decode_calls(calls: Iterable[JsonDict]) -> list[ToolCall]:
    return [_call(raw, number) for number, raw in enumerate(calls)]


def _call(raw: JsonDict, number: int) -> ToolCall:
    function = plain_object(raw.get("function"))
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else None
    made = call_from_text(raw.get("id") or f"call_{number}", function.get("name") or "", text)
    left = residue(raw, encode_call(made))
    if left is None:
        return made
    return ToolCall(made.id, made.name, made.arguments, {PROVIDER: {"residue": left}}, made.raw_arguments)


def decode_response(response: object) -> QueryResult:
    """An answer without a message is ``finish_reason="error"``."""
    raw = plain_object(response)
    message = raw.get("message")
    if not isinstance(message, dict):
        told = raw.get("message", raw.get("error", raw))
        return QueryResult("", (), "error", decode_usage(raw.get("usage")), {PROVIDER: {"error": told}})
    return finished(message, decode_calls(message.get("tool_calls") or ()), raw.get("finish_reason"), raw.get("usage"))


def finished(message: JsonDict, calls: list[ToolCall], word: object, usage: object) -> QueryResult:
    """The result, with what goes back to Cohere with it: its plan and its thinking. Citations are only for reading."""
    text, around = decode_said(message.get("content"))
    kept = {"finish_reason": word, **(around if "native_parts" in around else {}), **plan_of(message)}
    if message.get("citations"):
        kept["citations"] = message["citations"]
    reason = _REASONS.get(str(word)) or ("tool_calls" if calls else "stop")
    return QueryResult(text, calls, reason, decode_usage(usage), {PROVIDER: kept})


def decode_usage(usage: object) -> Usage:
    """The tokens the model saw, which are more than those that are billed."""
    found = plain_object(usage)
    tokens = plain_object(found.get("tokens")) or plain_object(found.get("billed_units"))
    counts = [tokens.get("input_tokens"), tokens.get("output_tokens"), found.get("cached_tokens")]
    return Usage(*(int(count) if isinstance(count, int | float) else None for count in counts))
