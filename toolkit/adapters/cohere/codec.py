"""Decodes the JSON of Cohere's v2 chat, or the SDK's objects, into the neutral format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolkit.adapters.answers.finish_reasons import COHERE, choose_finish_reason
from toolkit.adapters.answers.query_results import count, error_result, keep_usage
from toolkit.adapters.answers.surrogates import mend
from toolkit.adapters.cohere.content import decode_parts, decode_text
from toolkit.adapters.cohere.encode import CHOICES, PROVIDER, encode_call, encode_definition, encode_message
from toolkit.adapters.conversation import decode_with_call_names
from toolkit.adapters.lossless import has_native_parts, keep_difference
from toolkit.adapters.media.moved import IN_PLACE
from toolkit.adapters.plain_json import JsonDict, plain_object, plain_objects, plain_text
from toolkit.adapters.requests import decode_definitions, decode_function
from toolkit.adapters.streaming.calls import refuse_last
from toolkit.adapters.tool_choice import decode_tool_choice
from toolkit.adapters.values import call_from_text
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import ToolChoice
from toolkit.wire.definition import AnyDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, Role, TextMessage, ToolResultMessage
from toolkit.wire.query import QueryResult, Reasoning, Usage
from toolkit.wire.result import ToolResult

_ROLES: Final[dict[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant"}


def decode_tools(tools: object) -> list[AnyDefinition]:
    return decode_definitions(tools, PROVIDER, decode_function, encode_definition)


def decode_choice(choice: object) -> ToolChoice:
    return decode_tool_choice(choice, PROVIDER, CHOICES, lambda _: None)


def decode_messages(messages: object) -> list[ChatMessage]:
    return decode_with_call_names(plain_objects(messages), _decode_message)


def _decode_message(raw: JsonDict, names: Mapping[str, str]) -> ChatMessage:
    content = raw.get("content")
    made: ChatMessage
    if raw.get("role") == "assistant" and raw.get("tool_calls"):
        text, kept = decode_text(content)
        made = AssistantToolCallMessage(text, _decode_calls(raw["tool_calls"]), {PROVIDER: {**kept, **_keep_plan(raw)}})
        return keep_difference(made, PROVIDER, raw, encode_message(made))
    blocks, kept = decode_parts(content) if isinstance(content, list) else ([], {})
    if raw.get("role") != "user" and any(block.text is None for block in blocks):
        kept |= IN_PLACE
    text = content if isinstance(content, str) else ""
    if raw.get("role") == "tool":
        id = str(raw.get("tool_call_id") or "")
        value: Any = tuple(blocks) if isinstance(content, list) else text
        kind: Any = "multimodal" if isinstance(content, list) else "text"
        made = ToolResultMessage(ToolResult(id, names.get(id, ""), kind, value), {PROVIDER: kept})
    else:
        role = _ROLES.get(str(raw.get("role")), "user")
        made = TextMessage(role, blocks if isinstance(content, list) else text, {PROVIDER: kept})
    return keep_difference(made, PROVIDER, raw, encode_message(made))


def _keep_plan(message: JsonDict) -> JsonDict:
    """What must be kept of the plan that a model may write before its calls."""
    plan = message.get("tool_plan")
    return {"tool_plan": plan} if isinstance(plan, str) and plan else {}


def _decode_calls(calls: object) -> list[ToolCall]:
    return [_decode_call(raw, number) for number, raw in enumerate(plain_objects(calls))]


def _decode_call(raw: JsonDict, number: int) -> ToolCall:
    function = plain_object(raw.get("function"))
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else None
    made = call_from_text(plain_text(raw.get("id")) or f"call_{number}", plain_text(function.get("name")), text)
    return keep_difference(made, PROVIDER, raw, encode_call(made))


def decode_response(response: object) -> QueryResult:
    """An answer without a message is ``finish_reason="error"``."""
    raw = mend(plain_object(response))
    message = raw.get("message")
    if not isinstance(message, dict):
        error = raw.get("message", raw.get("error", raw))
        return error_result(PROVIDER, error, decode_usage(raw.get("usage")))
    calls = _decode_calls(message.get("tool_calls"))
    return build_result(message, calls, raw.get("finish_reason"), raw.get("usage"))


def build_result(message: JsonDict, calls: list[ToolCall], reported: object, usage: object) -> QueryResult:
    """The result, with the plan and the thinking, which are sent back, and citations, which are not, in its metadata."""
    content = message.get("content")
    text, around = decode_text(plain_objects(content) if isinstance(content, list) else content)
    kept = {"finish_reason": reported, **(around if has_native_parts(around) else {}), **_keep_plan(message)}
    if message.get("citations"):
        kept["citations"] = message["citations"]
    reason = choose_finish_reason(reported, COHERE, calls)
    calls = refuse_last(calls) if reason == "length" else calls
    metadata = {PROVIDER: {**kept, **keep_usage(usage)}}
    return QueryResult(text, calls, reason, decode_usage(usage), metadata, _decode_reasoning(message))


def _decode_reasoning(message: JsonDict) -> list[Reasoning]:
    """The plan before the calls, and thinking."""
    content = message.get("content")
    parts = plain_objects(content) if isinstance(content, list) else []
    texts = [plain_text(message.get("tool_plan")), *(plain_text(part.get("thinking")) for part in parts)]
    return [Reasoning(text) for text in texts if text]


def decode_usage(usage: object) -> Usage:
    """All tokens the model read and wrote, which may be more than the billed ones."""
    found = plain_object(usage)
    tokens = plain_object(found.get("tokens")) or plain_object(found.get("billed_units"))
    return Usage(
        count(tokens.get("input_tokens")), count(tokens.get("output_tokens")), count(found.get("cached_tokens"))
    )
