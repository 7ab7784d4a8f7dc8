"""Decodes the JSON of chat completions, or the SDK's objects, into the neutral format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from toolkit.adapters.answers.finish_reasons import OPENAI_CHAT, choose_finish_reason, openai_error_reason
from toolkit.adapters.answers.query_results import count, error_result, keep_usage
from toolkit.adapters.answers.surrogates import mend
from toolkit.adapters.conversation import decode_with_call_names
from toolkit.adapters.lossless import keep_difference
from toolkit.adapters.media.moved import IN_PLACE
from toolkit.adapters.openai_chat.content import content_text, decode_parts
from toolkit.adapters.openai_chat.encode import (
    CHOICES,
    PROVIDER,
    encode_call,
    encode_definition,
    encode_message,
    sent_name,
)
from toolkit.adapters.plain_json import JsonDict, plain_object, plain_objects, plain_text
from toolkit.adapters.requests import decode_definitions, decode_strict_function
from toolkit.adapters.streaming.calls import refuse_last
from toolkit.adapters.strict.adapter import mark_as_sent, original_calls
from toolkit.adapters.strict.rules import OPENAI
from toolkit.adapters.text_tools import CUSTOM, name_arguments, without_text_tools
from toolkit.adapters.tool_choice import decode_tool_choice, function_choice_name
from toolkit.adapters.values import call_from_arguments
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import ToolChoice
from toolkit.wire.definition import AnyDefinition, ToolDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, Role, TextMessage, ToolResultMessage
from toolkit.wire.query import FinishReason, QueryResult, Reasoning, Usage
from toolkit.wire.result import ToolResult

_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
# Where servers that do not use OpenAI's details count what was read from a cache.
_CACHED: Final = ("prompt_cache_hit_tokens", "num_cached_tokens", "cached_tokens")
# Keys of an answer that a request may not have, or that are encoded from neutral fields.
_ONLY_IN_ANSWERS: Final = frozenset({"role", "content", "tool_calls", "annotations", "audio", "function_call"})


def decode_tools(tools: object) -> list[AnyDefinition]:
    return decode_definitions(tools, PROVIDER, _decode_definition, encode_definition)


def _decode_definition(tool: JsonDict) -> ToolDefinition | None:
    made = decode_strict_function(tool)
    return None if made is None else mark_as_sent(made, PROVIDER, OPENAI)


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
    return decode_tool_choice(choice, PROVIDER, CHOICES, function_choice_name)


def decode_messages(messages: object) -> list[ChatMessage]:
    return decode_with_call_names(plain_objects(messages), _decode_message)


def _decode_message(raw: JsonDict, names: Mapping[str, str]) -> ChatMessage:
    content = raw.get("content")
    parts, kept = decode_parts(content) if isinstance(content, list) else ([], {})
    if raw.get("role") != "user" and any(part.text is None for part in parts):
        kept |= IN_PLACE
    made: ChatMessage
    if raw.get("role") in ("tool", "function"):
        id = str(raw.get("tool_call_id") or _last_call(raw.get("name"), names))
        value: Any = tuple(parts) if isinstance(content, list) else content_text(content)
        kind: Any = "multimodal" if isinstance(content, list) else "text"
        result = ToolResult(id, names.get(id, str(raw.get("name") or "")), kind, value)
        made = ToolResultMessage(result, {PROVIDER: kept})
    elif raw.get("role") == "assistant" and (calls := _decode_calls(raw, len(names))):
        made = AssistantToolCallMessage(content_text(content), calls)
    else:
        role = _ROLES.get(str(raw.get("role")), "user")
        made = TextMessage(role, parts if isinstance(content, list) else content_text(content), {PROVIDER: kept})
    return keep_difference(made, PROVIDER, raw, encode_message(made))


def _last_call(name: object, names: Mapping[str, str]) -> str:
    """The id of the last call of a tool: results in the form of 2023 have no id."""
    return next((id for id in reversed(list(names)) if names[id] == name), "")


def _decode_calls(message: JsonDict, number: int = 0) -> list[ToolCall]:
    """The calls of a message. ``function_call`` is the form of 2023, or a copy of a call for clients that only know that;
    it has no id and gets one with ``number``. Some servers always send one, without a name if there is no call.
    """
    calls = [_decode_call(raw, at) for at, raw in enumerate(plain_objects(message.get("tool_calls")))]
    function = plain_object(message.get("function_call"))
    name = plain_text(function.get("name"))
    if calls or not name:
        return calls
    return [call_from_arguments(f"call_{number}", name, function.get("arguments"))]


def _decode_call(raw: JsonDict, number: int) -> ToolCall:
    id = plain_text(raw.get("id")) or f"call_{number}"
    custom = raw.get("custom")
    if raw.get("type") == "custom" and isinstance(custom, dict):
        rest = {key: value for key, value in custom.items() if key != "name"}
        made = ToolCall(id, plain_text(custom.get("name")), rest, {PROVIDER: dict(CUSTOM)})
    else:
        function = plain_object(raw.get("function"))
        # Some servers send the arguments as an object instead of text.
        made = call_from_arguments(id, plain_text(function.get("name")), function.get("arguments"))
    return keep_difference(made, PROVIDER, raw, encode_call(made))


def decode_response(response: object) -> QueryResult:
    """The first choice of an answer; an answer that is an error becomes ``finish_reason="error"``."""
    raw = mend(plain_object(response))
    choices = plain_objects(raw.get("choices"))
    if not choices:
        error = raw.get("error", raw)
        return error_result(PROVIDER, error, decode_usage(raw.get("usage")), openai_error_reason(error))
    message = plain_object(choices[0].get("message"))
    calls = _decode_calls(message)
    text = content_text(message.get("content"))
    reasoning = reasoning_text(message)
    return build_result(text, calls, choices[0].get("finish_reason"), raw.get("usage"), message, reasoning)


def build_result(
    content: str, calls: list[ToolCall], reported: object, usage: object, message: JsonDict, reasoning: str
) -> QueryResult:
    """The result, with what the provider wants back in later requests (reasoning, signatures) in its metadata."""
    extra = {
        key: value for key, value in message.items() if key not in _ONLY_IN_ANSWERS and value not in (None, [], {})
    }
    kept: JsonDict = {"finish_reason": reported, **({"extra": extra} if extra else {}), **keep_usage(usage)}
    only_read = {key: message[key] for key in ("annotations", "audio") if message.get(key)}
    refused: FinishReason | None = "refused" if message.get("refusal") else None
    reason = choose_finish_reason(reported, OPENAI_CHAT, calls, refused)
    is_hidden = not reasoning and bool(message.get("reasoning_details"))
    return QueryResult(
        content,
        refuse_last(calls) if reason == "length" else calls,
        reason,
        decode_usage(usage),
        {PROVIDER: {**kept, **only_read}},
        [Reasoning(reasoning, is_hidden)] if reasoning or is_hidden else [],
    )


def reasoning_text(message: JsonDict) -> str:
    """What a message, or a piece of one, shows of the model's reasoning. Servers differ in where they put it."""
    for key in ("reasoning_content", "reasoning"):
        if isinstance(message.get(key), str) and message[key]:
            return str(message[key])
    details = [one.get("text") or one.get("summary") for one in plain_objects(message.get("reasoning_details"))]
    content = message.get("content")
    parts = plain_objects(content) if isinstance(content, list) else []
    thoughts = [content_text(part.get("thinking")) for part in parts if part.get("type") == "thinking"]
    return "".join(text for text in (*details, *thoughts) if isinstance(text, str))


def decode_usage(usage: object) -> Usage:
    """Some servers count the reasoning in the total only; it is part of the output."""
    found = plain_object(usage)
    details = plain_object(found.get("prompt_tokens_details"))
    read, written = count(found.get("prompt_tokens")), count(found.get("completion_tokens"))
    reasoning = count(plain_object(found.get("completion_tokens_details")).get("reasoning_tokens"))
    uncounted = (count(found.get("total_tokens")) or 0) - (read or 0) - (written or 0)
    if read is not None and written is not None and uncounted > 0 and reasoning in (None, uncounted):
        written, reasoning = written + uncounted, uncounted
    cached = next((found[key] for key in _CACHED if key in found), details.get("cached_tokens"))
    return Usage(read, written, count(cached), reasoning, count(details.get("cache_write_tokens")))
