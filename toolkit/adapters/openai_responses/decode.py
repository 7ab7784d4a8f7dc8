"""The items of Responses, or the SDK's objects, into the neutral format."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, Final

from toolkit.adapters.argument_text import call_from_text
from toolkit.adapters.lossless import own, residue
from toolkit.adapters.openai_responses.encode import (
    PROVIDER,
    encode_call,
    encode_result,
    encode_text,
    encode_tools,
    sent_name,
)
from toolkit.adapters.openai_responses.parts import decode_parts, text_of
from toolkit.adapters.plain_json import JsonDict, plain, plain_list, plain_object
from toolkit.adapters.strict.adapter import mark_as_sent, original_calls
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import NamedTool, NativeChoice, ToolChoice
from toolkit.wire.definition import AnyDefinition, NativeTool, ToolDefinition
from toolkit.wire.json_types import JsonObject
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, Role, TextMessage, ToolResultMessage
from toolkit.wire.query import FinishReason, QueryResult, Usage
from toolkit.wire.result import ToolResult

_CALLS: Final = frozenset({"function_call", "custom_tool_call"})
_RESULTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
_ROLES: Final[dict[str, Role]] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_FAILED: Final = frozenset({"failed", "cancelled"})


def decode_tools(tools: object) -> list[AnyDefinition]:
    return [_definition(tool) for tool in plain_list(tools)]


def _definition(tool: JsonDict) -> AnyDefinition:
    if tool.get("type") != "function" or "name" not in tool:
        return NativeTool(PROVIDER, JsonObject(tool))
    parameters = JsonObject(tool.get("parameters") or {})
    made = ToolDefinition(tool["name"], tool.get("description") or "", parameters, tool.get("strict"))
    made = mark_as_sent(made, PROVIDER)
    left = residue(tool, encode_tools([made])[0])
    if left is None:
        return made
    return dataclasses.replace(made, metadata={PROVIDER: {**own(made.metadata, PROVIDER), "residue": left}})


def decode_strict_calls(
    calls: Sequence[ToolCall], definitions: Iterable[AnyDefinition], strict: bool | None = None
) -> list[ToolCall]:
    """Calls of tools that ``encode_tools`` with the same arguments sent in strict mode, as the tools themselves want them.

    Drivers do this by themselves. What the model wrote still is what goes into the history.
    """
    return original_calls(calls, definitions, strict, PROVIDER, sent_name, encode_call)


def decode_choice(choice: object) -> ToolChoice:
    found = plain(choice)
    if found == "none":
        return "none"
    if found == "required":
        return "required"
    if found == "auto" or found is None:
        return "auto"
    if isinstance(found, dict) and found == {"type": "function", "name": found.get("name")}:
        return NamedTool(found["name"])
    return NativeChoice(PROVIDER, found)


def decode_messages(items: object) -> list[ChatMessage]:
    """A whole input: a text alone is what the user says."""
    raw = plain(items)
    if isinstance(raw, str):
        return [TextMessage("user", raw)]
    reader = _Reader()
    for item in plain_list(raw):
        if isinstance(item, dict):
            reader.read(item)
    return reader.done()


class _Reader:
    """Goes through items; those of an assistant's turn wait until the turn is over."""

    def __init__(self) -> None:
        self._messages: list[ChatMessage] = []
        self._turn: list[JsonDict] = []
        self._names: dict[str, str] = {}
        self._custom: set[str] = set()

    def read(self, item: JsonDict) -> None:
        kind = item.get("type", "message")
        if kind in _RESULTS:
            self._end_turn()
            self._messages.append(self._result(item))
        elif kind == "message" and item.get("role") != "assistant":
            self._end_turn()
            self._messages.append(_text(item))
        else:
            self._turn.append(item)

    def done(self) -> list[ChatMessage]:
        self._end_turn()
        return self._messages

    def _end_turn(self) -> None:
        if not self._turn:
            return
        content, calls, layout = turn_of(self._turn)
        self._names.update((call.id, call.name) for call in calls)
        self._custom.update(call.id for call in calls if own(call.metadata, PROVIDER).get("type") == "custom")
        metadata: dict[str, object] = {PROVIDER: {"layout": layout}}
        if calls:
            self._messages.append(AssistantToolCallMessage(content, calls, metadata))
        else:
            self._messages.append(TextMessage("assistant", content, metadata))
        self._turn = []

    def _result(self, item: JsonDict) -> ToolResultMessage:
        id, output = str(item.get("call_id", "")), item.get("output")
        blocks, kept = decode_parts(output) if isinstance(output, list) else ([], {})
        value: Any = tuple(blocks) if isinstance(output, list) else text_of(output)
        made = ToolResult(id, self._names.get(id, ""), "multimodal" if isinstance(output, list) else "text", value)
        left = residue(item, encode_result(made, kept, self._custom))
        whole = {**kept, "residue": left} if left is not None else kept
        return ToolResultMessage(made, {PROVIDER: whole} if whole else {})


def _text(item: JsonDict) -> TextMessage:
    role = _ROLES.get(str(item.get("role")), "user")
    content = item.get("content")
    blocks, kept = decode_parts(content, role=role) if isinstance(content, list) else ([], {})
    made = TextMessage(role, blocks if isinstance(content, list) else text_of(content), {PROVIDER: kept})
    left = residue(item, encode_text(made))
    whole = {**kept, "residue": left} if left is not None else kept
    return dataclasses.replace(made, metadata={PROVIDER: whole} if whole else {})


def turn_of(items: Sequence[JsonDict]) -> tuple[str, list[ToolCall], list[JsonDict]]:
    """What an assistant said and called in these items, and their layout."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    layout: list[JsonDict] = []
    for item in items:
        kind = item.get("type", "message")
        if kind in _CALLS:
            call = _call(item, len(calls))
            calls.append(call)
            layout.append({"call": call.id})
        elif kind == "message":
            texts.append(text_of(item.get("content")))
            layout.append({"text": item})
        else:
            layout.append({"native": item})
    return "".join(texts), calls, layout


def _call(item: JsonDict, number: int) -> ToolCall:
    id, name = item.get("call_id") or item.get("id") or f"call_{number}", item.get("name") or ""
    if item.get("type") == "custom_tool_call":
        made = ToolCall(id, name, {"input": item.get("input", "")}, {PROVIDER: {"type": "custom"}})
        kept: JsonDict = {"type": "custom"}
    else:
        arguments, kept = item.get("arguments"), {}
        # Some servers forget to make it a text.
        made = ToolCall(id, name, arguments) if isinstance(arguments, dict) else call_from_text(id, name, arguments)
    left = residue(item, encode_call(made))
    whole = {**kept, "residue": left} if left is not None else kept
    return ToolCall(id, name, made.arguments, {PROVIDER: whole} if whole else None, made.raw_arguments)


def decode_response(response: object) -> QueryResult:
    """An answer that failed, or is an error, becomes ``finish_reason="error"``."""
    raw = plain_object(response)
    if not isinstance(raw.get("output"), list):
        return QueryResult("", (), "error", _usage(raw.get("usage")), {PROVIDER: {"error": raw.get("error", raw)}})
    content, calls, layout = turn_of([plain_object(item) for item in raw["output"]])
    status, details = raw.get("status"), plain_object(raw.get("incomplete_details"))
    reason: FinishReason = "tool_calls" if calls else "stop"
    if status in _FAILED or raw.get("error"):
        reason = "error"
    elif status == "incomplete" and details.get("reason") != "content_filter":
        reason = "length"
    kept = {"layout": layout, "finish_reason": details.get("reason") or status, "id": raw.get("id")}
    if raw.get("error"):
        kept["error"] = raw["error"]
    return QueryResult(content, calls, reason, _usage(raw.get("usage")), {PROVIDER: kept})


def _usage(usage: object) -> Usage:
    found = plain_object(usage)
    return Usage(
        found.get("input_tokens"),
        found.get("output_tokens"),
        plain_object(found.get("input_tokens_details")).get("cached_tokens"),
        plain_object(found.get("output_tokens_details")).get("reasoning_tokens"),
    )
