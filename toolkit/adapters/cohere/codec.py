"""Cohere's v2 chat as the neutral format and back: tools, messages and answers, as JSON or as the SDK's objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn

from toolkit.adapters.answers import COHERE, choose_finish_reason, count, error_result, keep_usage
from toolkit.adapters.history import decode_with_call_names
from toolkit.adapters.lossless import (
    has_native_parts,
    insert_native_parts,
    keep_difference,
    keep_native_parts,
    keep_parts,
    provider_metadata,
    restore,
    restore_parts,
)
from toolkit.adapters.media import COMMON_IMAGES, IN_PLACE, is_web_url, media_type, move_media, never, stand_in
from toolkit.adapters.openai_chat.codec import decode_part
from toolkit.adapters.openai_chat.codec import encode_part as encode_image
from toolkit.adapters.requests import (
    OPENAI_NAME,
    ChoiceTable,
    decode_definitions,
    decode_function,
    decode_tool_choice,
    encode_definitions,
    encode_function,
    encode_tool_choice,
    provider_name,
)
from toolkit.adapters.streaming import refuse_last
from toolkit.adapters.values import (
    JsonDict,
    arguments_text,
    call_from_text,
    mend,
    plain_object,
    plain_objects,
    plain_text,
    result_blocks,
    result_text,
)
from toolkit.wire.call import ToolCall, ToolResult
from toolkit.wire.content import ContentBlock
from toolkit.wire.definition import AnyDefinition, ToolChoice, ToolDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, Role, TextMessage, ToolResultMessage
from toolkit.wire.query import QueryResult, Reasoning, Usage

PROVIDER: Final = "cohere"
CHOICES: Final[ChoiceTable] = {"auto": None, "none": "NONE", "required": "REQUIRED"}
_ROLES: Final[dict[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant"}


# -- tools ---------------------------------------------------------------------------------------------------------------


def _sent_name(name: str) -> str:
    return provider_name(name, OPENAI_NAME)


def encode_tools(definitions: Iterable[AnyDefinition], strict: bool | None = None) -> list[JsonDict]:
    """Cohere's strict mode is a field of the whole request, ``strict_tools``, and is not set here."""
    return encode_definitions(definitions, PROVIDER, encode_definition)


def encode_definition(definition: ToolDefinition) -> JsonDict:
    """One tool, without what only its metadata knows."""
    return encode_function(_sent_name(definition.name), definition, definition.parameters)


def decode_tools(tools: object) -> list[AnyDefinition]:
    return decode_definitions(tools, PROVIDER, decode_function, encode_definition)


def encode_choice(choice: ToolChoice) -> Any:
    """None for ``auto``: leave the field out then. Cohere cannot require one tool by name."""
    return encode_tool_choice(choice, PROVIDER, CHOICES, _refuse_named_choice)


def _refuse_named_choice(name: str) -> NoReturn:
    raise ValueError(f"Cohere cannot require one tool by name; send {name!r} alone, with tool_choice='required'")


def decode_choice(choice: object) -> ToolChoice:
    return decode_tool_choice(choice, PROVIDER, CHOICES, lambda _: None)


# -- messages ------------------------------------------------------------------------------------------------------------


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    """The list ``messages``. Only users' messages take images: those of other messages follow in one of a user."""
    placed = move_media(messages, PROVIDER, by_users=takes, in_results=never)
    return [restore(encode_message(message), provider_metadata(message.metadata, PROVIDER)) for message in placed]


def encode_message(message: ChatMessage) -> JsonDict:
    """One message, without the difference stored in its metadata."""
    kept = provider_metadata(message.metadata, PROVIDER)
    if isinstance(message, AssistantToolCallMessage):
        return _encode_turn(message, kept)
    if isinstance(message, TextMessage):
        said = message.content
        content = encode_text(said, kept) if isinstance(said, str) else encode_parts(said, kept)
        return {"role": message.role, "content": content}
    result = message.result
    blocks = result_blocks(result)
    result_content = result_text(result) if blocks is None else encode_parts(blocks, kept)
    return {"role": "tool", "tool_call_id": result.tool_call_id, "content": result_content}


def _encode_turn(message: AssistantToolCallMessage, kept: JsonDict) -> JsonDict:
    """A message with calls. The model's plan, which is thinking and not text, is sent back with them."""
    made: JsonDict = {"role": "assistant"}
    if message.content or kept.get("is_list"):
        made["content"] = encode_text(message.content, kept)
    if "tool_plan" in kept:
        made["tool_plan"] = kept["tool_plan"]
    return {**made, "tool_calls": [encode_call(call) for call in message.tool_calls]}


def encode_call(call: ToolCall) -> JsonDict:
    function = {"name": _sent_name(call.name), "arguments": arguments_text(call)}
    made: JsonDict = {"id": call.id, "type": "function", "function": function}
    whole: JsonDict = restore(made, provider_metadata(call.metadata, PROVIDER))
    return whole


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


# -- content parts: native ones (thinking, documents) keep their places --------------------------------------------------


def encode_parts(blocks: Sequence[ContentBlock], kept: JsonDict) -> list[JsonDict]:
    """Parts for blocks, with native parts and whatever else came with each part put back."""
    return restore_parts([_encode_part(block) for block in blocks], kept)


def decode_parts(parts: Sequence[JsonDict]) -> tuple[list[ContentBlock], JsonDict]:
    """Blocks for parts, and what must be kept to write the same parts again."""
    blocks = [decode_part(part) if _is_readable(part) else None for part in parts]
    kept = keep_parts(parts, [None if block is None else _encode_part(block) for block in blocks])
    return [block for block in blocks if block is not None], kept


def encode_text(text: str, kept: JsonDict) -> Any:
    """A model's text: a list of parts if it came as one, else the text itself."""
    if not has_native_parts(kept) and not kept.get("is_list"):
        return text
    return insert_native_parts([{"type": "text", "text": text}] if text else [], kept)


def decode_text(content: object) -> tuple[str, JsonDict]:
    """A model's text, and what must be kept of the parts around it."""
    if not isinstance(content, list):
        return (content if isinstance(content, str) else ""), {}
    natives = {place: part for place, part in enumerate(content) if not _is_text(part)}
    text = "".join(part["text"] for part in content if _is_text(part))
    return text, {"is_list": True, **keep_native_parts(natives)}


def takes(block: ContentBlock) -> bool:
    """Whether a user's message takes this block of media."""
    if block.type != "image" or block.file_id is not None:
        return False
    return media_type(block) in COMMON_IMAGES and (block.data is not None or is_web_url(block))


def _encode_part(block: ContentBlock) -> JsonDict:
    if block.text is not None:
        return {"type": "text", "text": block.text}
    return encode_image(block) if takes(block) else {"type": "text", "text": stand_in(block)}


def _is_readable(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in ("text", "image_url")


def _is_text(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


# -- answers -------------------------------------------------------------------------------------------------------------


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
