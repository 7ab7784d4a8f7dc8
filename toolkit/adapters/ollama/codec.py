"""Ollama's chat as the neutral format and back: tools, messages and answers, as JSON or as the client's objects.

There are no call ids: results are matched to calls by tool and order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from toolkit.adapters.answers import OLLAMA, choose_finish_reason, count, error_result
from toolkit.adapters.history import group_results
from toolkit.adapters.lossless import keep_difference, provider_metadata, restore
from toolkit.adapters.media import COMMON_IMAGES, media_type, stand_in
from toolkit.adapters.requests import (
    MADE_ID,
    decode_definitions,
    decode_function,
    encode_definitions,
    encode_function,
    own_native,
    provider_name,
)
from toolkit.adapters.values import (
    JsonDict,
    mend,
    plain,
    plain_list,
    plain_object,
    plain_objects,
    plain_text,
    result_blocks,
    result_text,
)
from toolkit.wire.call import ToolCall, ToolResult
from toolkit.wire.content import ContentBlock
from toolkit.wire.definition import AnyDefinition, NativeChoice, ToolChoice, ToolDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, Role, TextMessage, ToolResultMessage
from toolkit.wire.query import QueryResult, Reasoning, Usage

PROVIDER: Final = "ollama"
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_ROLES: Final[dict[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant"}
# Durations, in nanoseconds.
_KEPT: Final = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


# -- tools ---------------------------------------------------------------------------------------------------------------


def _sent_name(name: str) -> str:
    return provider_name(name, _NAME)


def encode_tools(definitions: Iterable[AnyDefinition], strict: bool | None = None) -> list[JsonDict]:
    """Ollama has no strict mode."""
    return encode_definitions(definitions, PROVIDER, encode_definition)


def encode_definition(definition: ToolDefinition) -> JsonDict:
    """One tool, without what only its metadata knows."""
    return encode_function(_sent_name(definition.name), definition, definition.parameters)


def decode_tools(tools: object) -> list[AnyDefinition]:
    return decode_definitions(tools, PROVIDER, _decode_definition, encode_definition)


def _decode_definition(tool: JsonDict) -> ToolDefinition | None:
    return decode_function({**tool, "type": "function"})  # Ollama does not look at the type


def encode_choice(choice: ToolChoice) -> Any:
    """Ollama always lets the model choose. For ``none``, send no tools; nothing else can be expressed."""
    if isinstance(choice, NativeChoice):
        return own_native(choice, PROVIDER)
    if choice in ("auto", "none"):
        return None
    raise ValueError("Ollama cannot require a tool call; use tool_choice='auto', or send only the tool to be called")


def decode_choice(choice: object) -> ToolChoice:
    found = plain(choice)
    return "auto" if found is None or found == "auto" else NativeChoice(PROVIDER, found)


# -- messages: one text, with images as base64 data next to it -----------------------------------------------------------


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    return [
        restore(encode_message(message), provider_metadata(message.metadata, PROVIDER))
        for message in _order_results(messages)
    ]


def encode_message(message: ChatMessage) -> JsonDict:
    """One message, without the difference stored in its metadata."""
    if isinstance(message, ToolResultMessage):
        result = message.result
        blocks = result_blocks(result)
        content, images = (str(result_text(result)), []) if blocks is None else encode_blocks(blocks)
        made: JsonDict = {"role": "tool", "content": content, "tool_name": _sent_name(result.name)}
        return {**made, "images": images} if images else made
    kept = provider_metadata(message.metadata, PROVIDER)
    extra = {"thinking": kept["thinking"]} if "thinking" in kept else {}
    if isinstance(message, AssistantToolCallMessage):
        calls = [encode_call(call) for call in message.tool_calls]
        return {"role": "assistant", "content": message.content, **extra, "tool_calls": calls}
    if isinstance(message.content, str):
        return {"role": message.role, "content": message.content, **extra}
    content, images = encode_blocks(message.content)
    return {"role": message.role, "content": content, **extra, **({"images": images} if images else {})}


def encode_call(call: ToolCall) -> JsonDict:
    made: JsonDict = {"function": {"name": _sent_name(call.name), "arguments": call.arguments}}
    whole: JsonDict = restore(made, provider_metadata(call.metadata, PROVIDER))
    return whole


def encode_blocks(blocks: Sequence[ContentBlock]) -> tuple[str, list[str]]:
    """The text and the images of blocks. Ollama takes nothing else; texts and notes stand in for other media."""
    texts, images, notes = [], [], []
    for block in blocks:
        if block.text is not None:
            texts.append(block.text)
        elif block.type == "image" and block.data is not None and media_type(block) in COMMON_IMAGES:
            images.append(block.data)
        else:
            notes.append(stand_in(block))
    text = "".join(texts)
    return "\n".join([text, *notes] if text else notes), images


def _order_results(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    """The messages with the results of a turn in the order of its calls, which is all that Ollama goes by."""
    for message, results in group_results(messages):
        if message is not None:
            yield message
        calls = message.tool_calls if isinstance(message, AssistantToolCallMessage) else ()
        yield from _order_by_calls(calls, results)


def _order_by_calls(calls: Sequence[ToolCall], results: list[ToolResultMessage]) -> list[ToolResultMessage]:
    places = {call.id: place for place, call in enumerate(calls)}
    answered = {message.result.tool_call_id for message in results}
    for call in calls:
        same = [other for other in calls if other.name == call.name]
        missing = [other for other in same if other.id not in answered]
        if results and missing and len(missing) < len(same):
            raise ValueError(
                f"{call.name!r} was called {len(same)} times and {len(missing)} results are missing; Ollama has no ids "
                "to tell which result belongs to which call; repair the history first (repair_history)"
            )
    return sorted(results, key=lambda message: places.get(message.result.tool_call_id, len(places)))


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


def decode_images(raw: JsonDict) -> list[ContentBlock]:
    """The text and the images of a message as blocks; none if it has no images."""
    images = [ContentBlock("image", data=image) for image in plain_list(raw.get("images")) if isinstance(image, str)]
    text = plain_text(raw.get("content"))
    lead = [ContentBlock("text", text=text)] if text and images else []
    return [*lead, *images]


def _decode_calls(calls: object, made_id: str) -> list[ToolCall]:
    return [_decode_call(raw, f"{made_id}-{number}") for number, raw in enumerate(plain_objects(calls))]


def _decode_call(raw: JsonDict, made_id: str) -> ToolCall:
    function = plain_object(raw.get("function"))
    made = ToolCall(made_id, plain_text(function.get("name")), plain_object(function.get("arguments")))
    return keep_difference(made, PROVIDER, raw, encode_call(made))


# -- answers -------------------------------------------------------------------------------------------------------------


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
