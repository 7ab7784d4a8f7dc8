"""Decodes Ollama's chat messages, or the client's objects, into the neutral format."""

from __future__ import annotations

from typing import Final

from toolkit.adapters.answers.finish_reasons import OLLAMA, choose_finish_reason
from toolkit.adapters.answers.query_results import count, error_result
from toolkit.adapters.answers.surrogates import mend
from toolkit.adapters.lossless import keep_difference
from toolkit.adapters.ollama.content import decode_images
from toolkit.adapters.ollama.encode import PROVIDER, encode_call, encode_definition, encode_message
from toolkit.adapters.plain_json import JsonDict, plain, plain_object, plain_objects, plain_text
from toolkit.adapters.provider_names import MADE_ID
from toolkit.adapters.requests import decode_definitions, decode_function
from toolkit.wire.call import ToolCall
from toolkit.wire.choice import NativeChoice, ToolChoice
from toolkit.wire.definition import AnyDefinition, ToolDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, Role, TextMessage, ToolResultMessage
from toolkit.wire.query import QueryResult, Reasoning, Usage
from toolkit.wire.result import ToolResult

_ROLES: Final[dict[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant"}
# Durations, in nanoseconds.
_KEPT: Final = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


def decode_tools(tools: object) -> list[AnyDefinition]:
    return decode_definitions(tools, PROVIDER, _decode_definition, encode_definition)


def _decode_definition(tool: JsonDict) -> ToolDefinition | None:
    return decode_function({**tool, "type": "function"})  # Ollama does not look at the type


def decode_choice(choice: object) -> ToolChoice:
    found = plain(choice)
    return "auto" if found is None or found == "auto" else NativeChoice(PROVIDER, found)


def decode_messages(messages: object) -> list[ChatMessage]:
    """Calls get ids from their position; a result belongs to the first call of its tool that has none yet."""
    decoded: list[ChatMessage] = []
    waiting: list[ToolCall] = []
    for turn, raw in enumerate(plain_objects(messages)):
        if raw.get("role") == "tool":
            call = _take_waiting_call(waiting, raw.get("tool_name"))
            decoded.append(_decode_result(raw, call, turn))
            continue
        message = _decode_message(raw, f"{MADE_ID}{turn}")
        waiting = list(message.tool_calls) if isinstance(message, AssistantToolCallMessage) else []
        decoded.append(message)
    return decoded


def _take_waiting_call(waiting: list[ToolCall], name: object) -> ToolCall | None:
    for call in waiting:
        if not name or call.name == name:
            waiting.remove(call)
            return call
    return None


def _decode_result(raw: JsonDict, call: ToolCall | None, turn: int) -> ToolResultMessage:
    id = call.id if call is not None else f"{MADE_ID}{turn}"
    name = str(raw.get("tool_name") or (call.name if call is not None else ""))
    blocks = decode_images(raw)
    if blocks:
        result = ToolResult(id, name, "multimodal", tuple(blocks))
    else:
        result = ToolResult(id, name, "text", plain_text(raw.get("content")))
    made = ToolResultMessage(result)
    return keep_difference(made, PROVIDER, raw, encode_message(made))


def _decode_message(raw: JsonDict, made_id: str) -> TextMessage | AssistantToolCallMessage:
    content = plain_text(raw.get("content"))
    kept: JsonDict = {"thinking": raw["thinking"]} if isinstance(raw.get("thinking"), str) else {}
    made: TextMessage | AssistantToolCallMessage
    calls = _decode_calls(raw.get("tool_calls"), made_id)
    if calls:
        made = AssistantToolCallMessage(content, calls, {PROVIDER: kept})
    else:
        role = _ROLES.get(str(raw.get("role")), "user")
        made = TextMessage(role, decode_images(raw) or content, {PROVIDER: kept})
    return keep_difference(made, PROVIDER, raw, encode_message(made))


def _decode_calls(calls: object, made_id: str) -> list[ToolCall]:
    return [_decode_call(raw, f"{made_id}-{number}") for number, raw in enumerate(plain_objects(calls))]


def _decode_call(raw: JsonDict, made_id: str) -> ToolCall:
    function = plain_object(raw.get("function"))
    made = ToolCall(made_id, plain_text(function.get("name")), plain_object(function.get("arguments")))
    return keep_difference(made, PROVIDER, raw, encode_call(made))


def decode_response(response: object) -> QueryResult:
    """An answer without a message is ``finish_reason="error"``."""
    raw = mend(plain_object(response))
    usage = Usage(count(raw.get("prompt_eval_count")), count(raw.get("eval_count")))
    message = raw.get("message")
    if not isinstance(message, dict):
        return error_result(PROVIDER, raw.get("error", raw), usage)
    calls = _decode_calls(message.get("tool_calls"), f"{MADE_ID}{raw.get('created_at', '')}")
    reported, thinking = raw.get("done_reason"), plain_text(message.get("thinking"))
    kept: JsonDict = {"finish_reason": reported, **{key: raw[key] for key in _KEPT if raw.get(key) is not None}}
    if thinking:
        kept["thinking"] = thinking
    reason = choose_finish_reason(reported, OLLAMA, calls)
    reasoning = [Reasoning(thinking)] if thinking else []
    return QueryResult(plain_text(message.get("content")), calls, reason, usage, {PROVIDER: kept}, reasoning)
