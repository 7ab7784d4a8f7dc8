"""OpenAI's chat completions as the neutral format and back: tools, messages and answers, as JSON or as the SDK's objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from toolkit.adapters.answers import (
    OPENAI_CHAT,
    choose_finish_reason,
    count,
    error_result,
    keep_usage,
    openai_error_reason,
)
from toolkit.adapters.history import decode_with_call_names
from toolkit.adapters.lossless import keep_difference, keep_parts, provider_metadata, restore, restore_parts
from toolkit.adapters.media import (
    COMMON_IMAGES,
    IN_PLACE,
    PDF,
    as_text,
    block_from_file_data,
    block_from_url,
    file_name,
    is_own_file,
    is_web_url,
    media_type,
    media_url,
    move_media,
    never,
    stand_in,
)
from toolkit.adapters.requests import (
    CUSTOM,
    OPENAI_NAME,
    ChoiceTable,
    custom_input,
    decode_definitions,
    decode_strict_function,
    decode_tool_choice,
    encode_definitions,
    encode_function,
    encode_tool_choice,
    function_choice,
    function_choice_name,
    is_custom,
    provider_id,
    provider_name,
    text_tools,
)
from toolkit.adapters.streaming import refuse_last
from toolkit.adapters.strict.adapter import mark_as_sent, original_openai_calls, parameters_to_send
from toolkit.adapters.strict.rules import OPENAI
from toolkit.adapters.values import (
    JsonDict,
    arguments_text,
    call_from_arguments,
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
from toolkit.wire.query import FinishReason, QueryResult, Reasoning, Usage

PROVIDER: Final = "openai_chat"
OWNERS: Final = ("openai_chat", "openai_responses", "openai")
"""Whose files OpenAI's APIs can read: they share them."""
CHOICES: Final[ChoiceTable] = {"auto": "auto", "none": "none", "required": "required"}
_LONGEST_ID: Final = 40
_AUDIO: Final = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_FORMATS: Final = {media: name for name, media in _AUDIO.items()}
_DETAILS: Final = ("low", "high", "auto")
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


# -- tools ---------------------------------------------------------------------------------------------------------------


def sent_name(name: str) -> str:
    """The name of a tool as this provider accepts it."""
    return provider_name(name, OPENAI_NAME)


def encode_tools(definitions: Iterable[AnyDefinition], strict: bool | None = None) -> list[JsonDict]:
    """``strict`` asks for strict mode for definitions that do not say; native tools of this provider go out unchanged.

    In strict mode the schema of the definition's receipt (``toolkit.adapters.strict``) is sent, and ``decode_strict_calls``
    decodes what the model answers. A schema that strict mode cannot express is sent as it is, without strict mode.
    """
    return encode_definitions(definitions, PROVIDER, lambda definition: encode_definition(definition, strict))


def encode_definition(definition: ToolDefinition, strict: bool | None = None) -> JsonDict:
    """One tool, without what only its metadata knows."""
    if definition.text_argument is not None:
        return {"type": "custom", "custom": {"name": sent_name(definition.name), "description": definition.description}}
    parameters, is_strict = parameters_to_send(definition, strict, PROVIDER)
    return encode_function(sent_name(definition.name), definition, parameters, is_strict)


def decode_tools(tools: object) -> list[AnyDefinition]:
    return decode_definitions(tools, PROVIDER, _decode_definition, encode_definition)


def _decode_definition(tool: JsonDict) -> ToolDefinition | None:
    made = decode_strict_function(tool)
    return None if made is None else mark_as_sent(made, PROVIDER, OPENAI)


def encode_choice(choice: ToolChoice, definitions: Iterable[AnyDefinition] = ()) -> Any:
    """``definitions`` are the tools of the request: one that takes text is chosen in another form."""
    texts = text_tools(definitions)

    def encode_name(name: str) -> Any:
        sent = sent_name(name)
        return {"type": "custom", "custom": {"name": sent}} if name in texts else function_choice(sent)

    return encode_tool_choice(choice, PROVIDER, CHOICES, encode_name)


def decode_choice(choice: object) -> ToolChoice:
    return decode_tool_choice(choice, PROVIDER, CHOICES, function_choice_name)


def decode_strict_calls(
    calls: Sequence[ToolCall], definitions: Iterable[AnyDefinition], strict: bool | None = None
) -> list[ToolCall]:
    """Calls of tools that ``encode_tools`` sent in strict mode or as custom tools, given the same arguments, in the form of
    the tools' schemas.

    Drivers do this themselves. In the history, a call is still sent as the model wrote it.
    """
    return original_openai_calls(calls, definitions, strict, PROVIDER, sent_name, encode_call)


# -- messages ------------------------------------------------------------------------------------------------------------


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    """The list ``messages``. Only users' messages take media: those of other messages follow in one of a user.

    Ids of other providers are shortened if they are too long, those of calls and results alike.
    """
    encoded: list[JsonDict] = []
    ids: dict[str, str] = {}
    for message in move_media(messages, PROVIDER, by_users=takes, in_results=never):
        made: JsonDict = restore(encode_message(message), provider_metadata(message.metadata, PROVIDER))
        if isinstance(message, AssistantToolCallMessage):
            ids |= {call.id: encode_call(call)["id"] for call in message.tool_calls if len(call.id) > _LONGEST_ID}
        elif isinstance(message, ToolResultMessage) and message.result.tool_call_id in ids:
            made = {**made, "tool_call_id": ids[message.result.tool_call_id]}
        encoded.append(made)
    return encoded


def encode_message(message: ChatMessage) -> JsonDict:
    """One message, without the difference stored in its metadata."""
    kept = provider_metadata(message.metadata, PROVIDER)
    if isinstance(message, TextMessage):
        content = message.content if isinstance(message.content, str) else encode_parts(message.content, kept)
        return {"role": message.role, "content": content, **kept.get("extra", {})}
    if isinstance(message, AssistantToolCallMessage):
        calls = [encode_call(call) for call in message.tool_calls]
        return {"role": "assistant", "content": message.content or None, "tool_calls": calls, **kept.get("extra", {})}
    result = message.result
    blocks = result_blocks(result)
    result_content = result_text(result) if blocks is None else encode_parts(blocks, kept)
    return {"role": "tool", "tool_call_id": result.tool_call_id, "content": result_content}


def encode_call(call: ToolCall) -> JsonDict:
    made: JsonDict = {"id": provider_id(call.id, _LONGEST_ID)}
    if is_custom(call, PROVIDER):
        made |= {"type": "custom", "custom": {"name": call.name, **custom_input(call, PROVIDER)}}
    else:
        function = {"name": sent_name(call.name), "arguments": arguments_text(call)}
        made |= {"type": "function", "function": function}
    whole: JsonDict = restore(made, provider_metadata(call.metadata, PROVIDER))
    return whole


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


# -- content parts: native ones keep their places ------------------------------------------------------------------------


def encode_parts(blocks: Sequence[ContentBlock], kept: JsonDict) -> list[JsonDict]:
    """Parts for blocks, with native parts and whatever else came with each part put back."""
    return restore_parts([encode_part(block) for block in blocks], kept)


def decode_parts(parts: Sequence[JsonDict]) -> tuple[list[ContentBlock], JsonDict]:
    """Blocks for parts, and what must be kept to write the same parts again."""
    blocks = [decode_part(part) for part in parts]
    kept = keep_parts(parts, [None if block is None else encode_part(block) for block in blocks])
    return [block for block in blocks if block is not None], kept


def content_text(content: Any) -> str:
    """The text of a message's content, whatever its form."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") in ("text", None)]
    return "".join(text for text in texts if isinstance(text, str))


def encode_part(block: ContentBlock) -> JsonDict:
    """One block in OpenAI's form, as a user's message takes it; a text in place of media that it does not take."""
    if block.text is not None:
        return {"type": "text", "text": block.text}
    media = _encode_media(block)
    return {"type": "text", "text": stand_in(block, *OWNERS)} if media is None else media


def takes(block: ContentBlock) -> bool:
    """Whether a user's message takes this block of media."""
    return _encode_media(block) is not None


def _encode_media(block: ContentBlock) -> JsonDict | None:
    """Of files, only PDF are taken; a document that does not say its type counts as one."""
    kind = media_type(block)
    if block.type == "audio":
        form = _FORMATS.get(kind)
        if block.data is None or form is None:
            return None
        return {"type": "input_audio", "input_audio": {"data": block.data, "format": form}}
    if block.type == "image":
        if kind not in COMMON_IMAGES or (block.data is None and not is_web_url(block)):
            return None
        detail = {"detail": block.detail} if block.detail is not None else {}
        return {"type": "image_url", "image_url": {"url": media_url(block), **detail}}
    if kind != PDF:
        return None
    if block.data is not None:
        return {"type": "file", "file": {"filename": file_name(block), "file_data": media_url(block)}}
    return {"type": "file", "file": {"file_id": block.file_id}} if is_own_file(block, *OWNERS) else None


def decode_part(part: object) -> ContentBlock | None:
    """The block of a part; None for a native part."""
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    if kind == "text" and isinstance(part.get("text"), str):
        return ContentBlock("text", text=part["text"])
    if kind == "image_url" and isinstance(part.get("image_url"), dict):
        image = block_from_url("image", part["image_url"].get("url"))
        return None if image is None else replace(image, detail=read_detail(part["image_url"]))
    if kind == "input_audio" and isinstance(part.get("input_audio"), dict):
        audio = part["input_audio"]
        known, data = _AUDIO.get(str(audio.get("format"))), as_text(audio.get("data"))
        return None if known is None or data is None else ContentBlock("audio", known, data=data)
    if kind == "file" and isinstance(part.get("file"), dict):
        file = part["file"]
        if isinstance(file.get("file_id"), str):
            return ContentBlock("document", file_id=file["file_id"], provider=PROVIDER)
        document = block_from_file_data(file.get("file_data"))
        return None if document is None else replace(document, filename=as_text(file.get("filename")))
    return None


def read_detail(part: JsonDict) -> Any:
    """How closely the model looks at an image, if the part says so with a word that the neutral form has."""
    detail = part.get("detail")
    return detail if detail in _DETAILS else None


# -- answers -------------------------------------------------------------------------------------------------------------


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
