"""Decodes LangChain's messages and tools, as JSON or as objects, into the neutral format."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from toolkit.adapters.answers.finish_reasons import LANGCHAIN, choose_finish_reason
from toolkit.adapters.answers.query_results import count, error_result
from toolkit.adapters.answers.surrogates import mend
from toolkit.adapters.conversation import decode_with_call_names
from toolkit.adapters.langchain.content import content_text, decode_blocks, decode_layout
from toolkit.adapters.langchain.encode import (
    CHOICES,
    PROVIDER,
    encode_call,
    encode_definition,
    encode_message,
    sent_name,
)
from toolkit.adapters.lossless import keep_difference, provider_metadata
from toolkit.adapters.plain_json import JsonDict, plain, plain_object, plain_objects, plain_text
from toolkit.adapters.requests import decode_definitions, decode_strict_function
from toolkit.adapters.streaming.calls import refuse_last
from toolkit.adapters.strict.adapter import mark_as_sent, original_calls
from toolkit.adapters.strict.rules import OPENAI
from toolkit.adapters.tool_choice import decode_tool_choice, function_choice_name
from toolkit.adapters.values import call_from_arguments
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import ToolChoice
from toolkit.wire.definition import AnyDefinition, ToolDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, Role, TextMessage, ToolResultMessage
from toolkit.wire.query import FinishReason, QueryResult, Reasoning, Usage
from toolkit.wire.result import ToolResult

_ROLES: Final[dict[str, Role]] = {
    "system": "system", "developer": "system",
    "human": "user", "user": "user",
    "ai": "assistant", "assistant": "assistant",
}  # fmt: skip
# The keys under which the integrations store the finish reason of the provider behind them.
_REASON_KEYS: Final = ("finish_reason", "stop_reason", "done_reason", "stopReason", "finishReason", "status")


def decode_tools(tools: object) -> list[AnyDefinition]:
    """Tools in any form that ``bind_tools`` takes: dicts, LangChain's tools, pydantic models and functions."""
    raw = [_tool_json(tool) for tool in (tools if isinstance(tools, Iterable) else ())]
    return decode_definitions(raw, PROVIDER, _decode_definition, encode_definition)


def _decode_definition(tool: JsonDict) -> ToolDefinition | None:
    made = decode_strict_function(tool)
    return None if made is None else mark_as_sent(made, PROVIDER, OPENAI)


def _tool_json(tool: Any) -> JsonDict:
    if isinstance(tool, Mapping):
        return plain_object(tool)
    from langchain_core.utils.function_calling import convert_to_openai_tool

    converted: JsonDict = convert_to_openai_tool(tool)
    return converted


def decode_strict_calls(
    calls: Sequence[ToolCall], definitions: Iterable[AnyDefinition], strict: bool | None = None
) -> list[ToolCall]:
    """Calls of tools that ``encode_tools`` sent in strict mode, given the same arguments, in the form of the tools' schemas.

    Call it for the calls of each answer. In the history, a call is still sent as the model wrote it.
    """
    return original_calls(calls, definitions, strict, PROVIDER, OPENAI, sent_name, encode_call)


def decode_choice(choice: object) -> ToolChoice:
    """``required`` and ``True`` mean ``any``; a tool is given by its name or in OpenAI's form."""
    is_required = choice is True or choice == "required"
    return decode_tool_choice("any" if is_required else choice, PROVIDER, CHOICES, _decode_named_choice)


def _decode_named_choice(found: Any) -> str | None:
    return found if isinstance(found, str) else function_choice_name(found)


def message_json(message: object) -> JsonDict:
    """A message as ``message_to_dict`` writes it; empty if it is not a message."""
    if isinstance(message, Mapping):
        raw = plain_object(message)
        return raw if isinstance(raw.get("data"), dict) else {}
    type, dump = getattr(message, "type", None), getattr(message, "model_dump", None)
    return {"type": type, "data": plain(dump())} if isinstance(type, str) and callable(dump) else {}


def decode_messages(messages: object) -> list[ChatMessage]:
    given = messages if isinstance(messages, Iterable) else ()
    return decode_with_call_names(map(message_json, given), _decode_message)


def _decode_message(raw: JsonDict, names: Mapping[str, str]) -> ChatMessage:
    data = plain_object(raw.get("data"))
    content = data.get("content")
    type = _message_type(raw)
    made: ChatMessage
    if type in ("tool", "function"):
        made = _decode_result(data, names)
    elif type == "ai" and (calls := _decode_calls(data)):
        kept = decode_layout(content) if isinstance(content, list) else {}
        made = AssistantToolCallMessage(content_text(content), calls, {PROVIDER: kept})
    else:
        role = _ROLES.get(str(data.get("role")) if type == "chat" else type, "user")
        blocks, kept = decode_blocks(content) if isinstance(content, list) else ([], {})
        made = TextMessage(role, blocks if isinstance(content, list) else content_text(content), {PROVIDER: kept})
    return keep_difference(made, PROVIDER, raw, encode_message(made))


def _message_type(raw: JsonDict) -> str:
    """The type of a message; chunks are messages too."""
    type = str(raw.get("type"))
    return type.removesuffix("MessageChunk").lower() if type.endswith("MessageChunk") else type


def _decode_result(data: JsonDict, names: Mapping[str, str]) -> ToolResultMessage:
    id, content = str(data.get("tool_call_id") or ""), data.get("content")
    name = names.get(id) or str(data.get("name") or "")
    if data.get("status") == "error":
        return ToolResultMessage(ToolResult(id, name, "error", content_text(content)))
    if isinstance(content, list):
        blocks, kept = decode_blocks(content)
        return ToolResultMessage(ToolResult(id, name, "multimodal", tuple(blocks)), {PROVIDER: kept})
    return ToolResultMessage(ToolResult(id, name, "text", content_text(content)))


def _decode_calls(data: JsonDict) -> list[ToolCall]:
    """The calls of a message; those that LangChain could not read, which it keeps in a list of their own, come last."""
    raws = [*plain_objects(data.get("tool_calls")), *plain_objects(data.get("invalid_tool_calls"))]
    return [_decode_call(raw, number) for number, raw in enumerate(raws)]


def _decode_call(raw: JsonDict, number: int) -> ToolCall:
    made = call_from_arguments(
        plain_text(raw.get("id")) or f"call_{number}", plain_text(raw.get("name")), raw.get("args")
    )
    return keep_difference(made, PROVIDER, raw, encode_call(made))


def decode_response(response: object) -> QueryResult:
    """An ``AIMessage``, or its JSON; anything else is ``finish_reason="error"``."""
    raw = mend(message_json(response))
    if _message_type(raw) != "ai":
        return error_result(PROVIDER, plain(response))
    return build_result(raw, _decode_calls(raw["data"]))


def build_result(raw: JsonDict, calls: list[ToolCall]) -> QueryResult:
    """The result of a whole ``ai`` message, with what is needed to write it again in its metadata."""
    data: JsonDict = raw["data"]
    content = data.get("content")
    kept = decode_layout(content) if isinstance(content, list) else {}
    reason = decode_finish_reason(data, calls)
    made = QueryResult(
        content_text(content),
        refuse_last(calls) if reason == "length" else calls,
        reason,
        decode_usage(data),
        {PROVIDER: kept},
        decode_reasoning(data),
    )
    message = keep_difference(made.message(), PROVIDER, raw, encode_message(made.message()))
    whole = {"finish_reason": _reported_word(data), **provider_metadata(message.metadata, PROVIDER)}
    return dataclasses.replace(made, metadata={PROVIDER: whole})


def _reported_word(data: JsonDict) -> Any:
    found = plain_object(data.get("response_metadata"))
    incomplete = plain_object(found.get("incomplete_details")).get("reason")
    return incomplete or next((found[key] for key in _REASON_KEYS if found.get(key)), None)


def decode_finish_reason(data: JsonDict, calls: list[ToolCall]) -> FinishReason:
    refused: FinishReason | None = "refused" if plain_object(data.get("additional_kwargs")).get("refusal") else None
    return choose_finish_reason(str(_reported_word(data)).lower(), LANGCHAIN, calls, refused)


def decode_reasoning(data: JsonDict) -> list[Reasoning]:
    """What a message, or a piece of one, shows of the reasoning. Integrations differ in where they put it."""
    content = data.get("content")
    parts = plain_objects(content) if isinstance(content, list) else []
    texts = [plain_text(plain_object(data.get("additional_kwargs")).get("reasoning_content"))]
    for part in parts:
        texts += [plain_text(part.get(key)) for key in ("thinking", "reasoning")]
        texts.append(plain_text(plain_object(part.get("reasoning_content")).get("text")))
        texts += [plain_text(item.get("text")) for item in plain_objects(part.get("summary"))]
    hidden = [Reasoning(is_hidden=True) for part in parts if part.get("type") == "redacted_thinking"]
    return [*(Reasoning(text) for text in texts if text), *hidden]


def decode_usage(data: JsonDict) -> Usage:
    found = plain_object(data.get("usage_metadata"))
    details = plain_object(found.get("input_token_details"))
    return Usage(
        count(found.get("input_tokens")),
        count(found.get("output_tokens")),
        count(details.get("cache_read")),
        count(plain_object(found.get("output_token_details")).get("reasoning")),
        count(details.get("cache_creation")),
    )
