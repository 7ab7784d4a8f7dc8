"""Decodes the items of Responses, or the SDK's objects, into the neutral format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from toolkit.adapters.answers.finish_reasons import openai_error_reason
from toolkit.adapters.answers.query_results import count, error_result, keep_usage
from toolkit.adapters.answers.surrogates import mend
from toolkit.adapters.callers import decode_callers
from toolkit.adapters.lossless import add_difference, keep_difference
from toolkit.adapters.openai_responses.content import content_text, decode_parts
from toolkit.adapters.openai_responses.encode import (
    CHOICES,
    PROGRAM,
    PROVIDER,
    encode_call,
    encode_definition,
    encode_result,
    encode_text,
    sent_name,
)
from toolkit.adapters.openai_responses.ends import decode_finish_reason, find_actions, reported_word
from toolkit.adapters.plain_json import JsonDict, plain, plain_list, plain_object, plain_objects, plain_text
from toolkit.adapters.requests import decode_definitions
from toolkit.adapters.streaming.calls import refuse_last
from toolkit.adapters.strict.adapter import mark_as_sent, original_calls
from toolkit.adapters.strict.rules import OPENAI
from toolkit.adapters.text_tools import CUSTOM, name_arguments, without_text_tools
from toolkit.adapters.tool_choice import decode_tool_choice
from toolkit.adapters.values import call_from_arguments
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import ToolChoice
from toolkit.wire.definition import AnyDefinition, ToolDefinition
from toolkit.wire.json_types import JsonObject
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, Role, TextMessage, ToolResultMessage
from toolkit.wire.query import QueryResult, Reasoning, Usage
from toolkit.wire.result import ToolResult

_RESULTS: Final = ("function_call_output", "custom_tool_call_output")
_ROLES: Final[dict[str, Role]] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
# What a caller may want to know about an answer, or must send with the next request (the state of the conversation).
_KEPT: Final = (
    "id", "model", "status", "conversation", "previous_response_id", "incomplete_details", "service_tier", "error",
)  # fmt: skip


def decode_tools(tools: object) -> list[AnyDefinition]:
    return decode_definitions(tools, PROVIDER, _decode_definition, encode_definition)


def _decode_definition(tool: JsonDict) -> ToolDefinition | None:
    if tool.get("type") != "function" or "name" not in tool:
        return None
    parameters = JsonObject(tool.get("parameters") or {})
    made = ToolDefinition(
        tool["name"],
        tool.get("description") or "",
        parameters,
        tool.get("strict"),
        defer_loading=tool.get("defer_loading") is True,
        callers=decode_callers(tool, PROGRAM),
    )
    return mark_as_sent(made, PROVIDER, OPENAI)


def decode_strict_calls(
    calls: Sequence[ToolCall], definitions: Iterable[AnyDefinition], strict: bool | None = None
) -> list[ToolCall]:
    """Calls of tools that ``encode_tools`` sent in strict mode or as custom tools, given the same arguments, in the form of
    the tools' schemas.

    Drivers do this themselves. In the history, a call is still sent as the model wrote it.
    """
    listed = list(definitions)
    named = name_arguments(calls, listed, PROVIDER, sent_name)
    return original_calls(named, without_text_tools(listed), strict, PROVIDER, OPENAI, sent_name, encode_call)


def decode_choice(choice: object) -> ToolChoice:
    return decode_tool_choice(choice, PROVIDER, CHOICES, _decode_named_choice)


def _decode_named_choice(found: Any) -> str | None:
    name = found.get("name") if isinstance(found, dict) else None
    return name if found == {"type": "function", "name": name} else None


def decode_messages(items: object) -> list[ChatMessage]:
    """A whole input; a bare text is the user's."""
    raw = plain(items)
    if isinstance(raw, str):
        return [TextMessage("user", raw)]
    reader = _ItemReader()
    for item in plain_list(raw):
        if isinstance(item, dict):
            reader.read(item)
    return reader.finish()


class _ItemReader:
    """Reads items in order; those of an assistant's turn are collected until the turn is over."""

    def __init__(self) -> None:
        self._messages: list[ChatMessage] = []
        self._turn: list[JsonDict] = []
        self._names: dict[str, str] = {}
        self._calls: dict[str, JsonDict] = {}

    def read(self, item: JsonDict) -> None:
        kind = item.get("type", "message")
        if kind in _RESULTS:
            self._end_turn()
            self._messages.append(self._decode_result(item))
        elif kind == "message" and item.get("role") != "assistant":
            self._end_turn()
            self._messages.append(_decode_text(item))
        else:
            self._turn.append(item)

    def finish(self) -> list[ChatMessage]:
        self._end_turn()
        return self._messages

    def _end_turn(self) -> None:
        if not self._turn:
            return
        content, calls, layout = decode_turn(self._turn)
        self._names.update((call.id, call.name) for call in calls)
        self._calls.update((call.id, encode_call(call)) for call in calls)
        metadata: dict[str, object] = {PROVIDER: {"layout": layout}}
        if calls:
            self._messages.append(AssistantToolCallMessage(content, calls, metadata))
        else:
            self._messages.append(TextMessage("assistant", content, metadata))
        self._turn = []

    def _decode_result(self, item: JsonDict) -> ToolResultMessage:
        id, output = str(item.get("call_id", "")), item.get("output")
        blocks, kept = decode_parts(output) if isinstance(output, list) else ([], {})
        value: Any = tuple(blocks) if isinstance(output, list) else content_text(output)
        made = ToolResult(id, self._names.get(id, ""), "multimodal" if isinstance(output, list) else "text", value)
        kept = add_difference(kept, item, encode_result(made, kept, self._calls))
        return ToolResultMessage(made, {PROVIDER: kept} if kept else {})


def _decode_text(item: JsonDict) -> TextMessage:
    role = _ROLES.get(str(item.get("role")), "user")
    content = item.get("content")
    blocks, kept = decode_parts(content) if isinstance(content, list) else ([], {})
    made = TextMessage(role, blocks if isinstance(content, list) else content_text(content), {PROVIDER: kept})
    return keep_difference(made, PROVIDER, item, encode_text(made))


def decode_turn(items: Sequence[JsonDict]) -> tuple[str, list[ToolCall], list[JsonDict]]:
    """The text and the calls of an assistant in these items, and their layout."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    layout: list[JsonDict] = []
    for item in items:
        kind = item.get("type", "message")
        if is_call(item):
            call = decode_call(item, len(calls))
            calls.append(call)
            layout.append({"call": call.id})
        elif kind == "message":
            texts.append(content_text(item.get("content")))
            layout.append({"text": item})
        else:
            layout.append({"native": item})
    return "".join(texts), calls, layout


def is_call(item: JsonDict) -> bool:
    return item.get("type") in ("function_call", "custom_tool_call")


def decode_call(item: JsonDict, number: int) -> ToolCall:
    id = plain_text(item.get("call_id")) or plain_text(item.get("id")) or f"call_{number}"
    name = plain_text(item.get("name"))
    if item.get("type") == "custom_tool_call":
        made = ToolCall(id, name, {"input": item.get("input", "")}, {PROVIDER: dict(CUSTOM)})
    else:
        # Some servers send the arguments as an object instead of text.
        made = call_from_arguments(id, name, item.get("arguments"))
    return keep_difference(made, PROVIDER, item, encode_call(made))


def decode_response(response: object) -> QueryResult:
    """An answer that failed, or is an error, becomes ``finish_reason="error"``."""
    raw = mend(plain_object(response))
    usage = decode_usage(raw.get("usage"))
    if not isinstance(raw.get("output"), list):
        error = raw.get("error", raw)
        return error_result(PROVIDER, error, usage, openai_error_reason(error))
    items = plain_objects(raw["output"])
    content, calls, layout = decode_turn(items)
    actions = find_actions(items)
    reason = decode_finish_reason(raw, items, calls, actions)
    kept: JsonDict = {"layout": layout, "finish_reason": reported_word(raw)}
    kept |= {key: raw[key] for key in _KEPT if raw.get(key) is not None} | keep_usage(raw.get("usage"))
    kept |= {"needs_action": actions} if actions else {}
    if reason == "length" and items and is_call(items[-1]):
        calls = refuse_last(calls)
    return QueryResult(content, calls, reason, usage, {PROVIDER: kept}, decode_reasoning(items))


def decode_reasoning(items: Sequence[JsonDict]) -> list[Reasoning]:
    """What the reasoning items show: the texts themselves, or their summaries. Encrypted reasoning is hidden."""
    found: list[Reasoning] = []
    for item in items:
        if item.get("type") == "reasoning":
            parts = [*plain_objects(item.get("summary")), *plain_objects(item.get("content"))]
            texts = [part["text"] for part in parts if isinstance(part.get("text"), str) and part["text"]]
            found += [Reasoning(text) for text in texts] or [Reasoning(is_hidden=True)]
    return found


def decode_usage(usage: object) -> Usage:
    found = plain_object(usage)
    details = plain_object(found.get("input_tokens_details"))
    return Usage(
        count(found.get("input_tokens")),
        count(found.get("output_tokens")),
        count(details.get("cached_tokens")),
        count(plain_object(found.get("output_tokens_details")).get("reasoning_tokens")),
        count(details.get("cache_write_tokens")),
    )
