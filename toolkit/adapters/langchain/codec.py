"""LangChain's messages and tools as the neutral format and back.

Tools are encoded for ``bind_tools``, messages as ``message_to_dict`` writes them. Content is sent as LangChain's standard
blocks, which all its models read; content that came as OpenAI's parts or as bare texts keeps that form.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from toolkit.adapters.answers import LANGCHAIN, choose_finish_reason, count, error_result
from toolkit.adapters.history import decode_with_call_names
from toolkit.adapters.lossless import (
    add_difference,
    keep_difference,
    keep_parts,
    provider_metadata,
    restore,
    restore_parts,
)
from toolkit.adapters.media import as_text, media_type
from toolkit.adapters.openai_chat.codec import decode_part as decode_openai_part
from toolkit.adapters.openai_chat.codec import encode_part as encode_openai_part
from toolkit.adapters.requests import (
    OPENAI_NAME,
    ChoiceTable,
    decode_definitions,
    decode_strict_function,
    decode_tool_choice,
    encode_definitions,
    encode_function,
    encode_tool_choice,
    function_choice,
    function_choice_name,
    provider_name,
)
from toolkit.adapters.streaming import refuse_last
from toolkit.adapters.strict.adapter import mark_as_sent, original_calls, parameters_to_send
from toolkit.adapters.strict.rules import OPENAI
from toolkit.adapters.values import (
    JsonDict,
    call_from_arguments,
    has_broken_arguments,
    mend,
    parse_json,
    plain,
    plain_object,
    plain_objects,
    plain_text,
    result_blocks,
    result_text,
)
from toolkit.wire.call import ToolCall, ToolResult
from toolkit.wire.content import BlockType, ContentBlock
from toolkit.wire.definition import AnyDefinition, NativeChoice, NativeTool, ToolChoice, ToolDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, Role, TextMessage, ToolResultMessage
from toolkit.wire.query import FinishReason, QueryResult, Reasoning, Usage

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

PROVIDER: Final = "langchain"
# ``any`` is the word for ``required`` that all models know.
CHOICES: Final[ChoiceTable] = {"auto": "auto", "none": "none", "required": "any"}
Style: TypeAlias = Literal["standard", "openai", "bare"]
_RESERVED: Final = frozenset({"auto", "none", "any", "required"})
_TYPES: Final = {"user": "human", "assistant": "ai", "system": "system"}
_MEDIA: Final[dict[str, BlockType]] = {"image": "image", "audio": "audio", "file": "document", "video": "document"}
_NAMES: Final[dict[str, str]] = {"image": "image", "audio": "audio", "document": "file"}
# Blocks that repeat a call from the message's list of calls, and their key for the arguments.
_ARGUMENTS: Final = {"tool_use": "input", "tool_call": "args"}
_FRAGMENTS: Final = ("input_json_delta", "tool_call_chunk")
_ROLES: Final[dict[str, Role]] = {
    "system": "system", "developer": "system",
    "human": "user", "user": "user",
    "ai": "assistant", "assistant": "assistant",
}  # fmt: skip
# The keys under which the integrations store the finish reason of the provider behind them.
_REASON_KEYS: Final = ("finish_reason", "stop_reason", "done_reason", "stopReason", "finishReason", "status")


# -- tools ---------------------------------------------------------------------------------------------------------------


def sent_name(name: str) -> str:
    """The name of a tool as this provider accepts it."""
    # LangChain accepts any name; the providers behind it do not.
    return provider_name(name, OPENAI_NAME)


def encode_tools(definitions: Iterable[AnyDefinition], strict: bool | None = None) -> list[JsonDict]:
    """For ``model.bind_tools``, which takes OpenAI's form for every model. Native tools of any provider go out unchanged:
    only the model knows whether it has them.

    ``strict`` asks for OpenAI's strict mode: ``decode_strict_calls`` decodes what the model answers. A schema that it cannot
    express is sent as it is, without strict mode.
    """
    of_the_model = (
        replace(definition, provider=PROVIDER) if isinstance(definition, NativeTool) else definition
        for definition in definitions
    )
    return encode_definitions(of_the_model, PROVIDER, lambda definition: encode_definition(definition, strict))


def encode_definition(definition: ToolDefinition, strict: bool | None = None) -> JsonDict:
    """One tool, without what only its metadata knows."""
    parameters, is_strict = parameters_to_send(definition, strict, PROVIDER)
    return encode_function(sent_name(definition.name), definition, parameters, is_strict)


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


def encode_choice(choice: ToolChoice) -> Any:
    """For ``bind_tools(tool_choice=...)``. A native choice goes out unchanged: only the model knows whether it has it."""
    choice = replace(choice, provider=PROVIDER) if isinstance(choice, NativeChoice) else choice
    return encode_tool_choice(choice, PROVIDER, CHOICES, _encode_named_choice)


def _encode_named_choice(name: str) -> Any:
    sent = sent_name(name)
    return function_choice(sent) if sent in _RESERVED else sent


def decode_choice(choice: object) -> ToolChoice:
    """``required`` and ``True`` mean ``any``; a tool is given by its name or in OpenAI's form."""
    is_required = choice is True or choice == "required"
    return decode_tool_choice("any" if is_required else choice, PROVIDER, CHOICES, _decode_named_choice)


def _decode_named_choice(found: Any) -> str | None:
    return found if isinstance(found, str) else function_choice_name(found)


def decode_strict_calls(
    calls: Sequence[ToolCall], definitions: Iterable[AnyDefinition], strict: bool | None = None
) -> list[ToolCall]:
    """Calls of tools that ``encode_tools`` sent in strict mode, given the same arguments, in the form of the tools' schemas.

    Call it for the calls of each answer. In the history, a call is still sent as the model wrote it.
    """
    return original_calls(calls, definitions, strict, PROVIDER, OPENAI, sent_name, encode_call)


# -- messages to JSON ----------------------------------------------------------------------------------------------------


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    return [restore(encode_message(message), provider_metadata(message.metadata, PROVIDER)) for message in messages]


def as_langchain_messages(messages: Sequence[ChatMessage]) -> list[BaseMessage]:
    """The same as objects of LangChain, for ``model.invoke``."""
    from langchain_core.messages import messages_from_dict

    return messages_from_dict(encode_messages(messages))


def encode_message(message: ChatMessage) -> JsonDict:
    """One message, without the difference stored in its metadata."""
    kept = provider_metadata(message.metadata, PROVIDER)
    if isinstance(message, AssistantToolCallMessage):
        return _encode_assistant(_encode_text(message.content, message.tool_calls, kept), message.tool_calls)
    if isinstance(message, TextMessage):
        if not isinstance(message.content, str):
            content: Any = encode_blocks(message.content, kept)
        else:
            content = _encode_text(message.content, (), kept)
        return _encode_assistant(content, ()) if message.role == "assistant" else _wrap(_TYPES[message.role], content)
    result = message.result
    more = {"tool_call_id": result.tool_call_id, "artifact": None}
    name = sent_name(result.name) if result.name else None
    status = "error" if result.kind == "error" else "success"
    return _wrap("tool", result_content(result, kept), **more, name=name, status=status)


def _encode_text(text: str, calls: Sequence[ToolCall], kept: JsonDict) -> Any:
    return encode_layout(text, calls, kept["layout"]) if "layout" in kept else text


def _encode_assistant(content: Any, calls: Sequence[ToolCall]) -> JsonDict:
    broken = [call for call in calls if has_broken_arguments(call)]
    return _wrap(
        "ai",
        content,
        tool_calls=[encode_call(call) for call in calls if call not in broken],
        invalid_tool_calls=[encode_call(call) for call in broken],
        usage_metadata=None,
    )


def _wrap(type: str, content: Any, **more: Any) -> JsonDict:
    base = {"content": content, "additional_kwargs": {}, "response_metadata": {}, "type": type}
    return {"type": type, "data": {**base, "name": None, "id": None, **more}}


def encode_call(call: ToolCall) -> JsonDict:
    head: JsonDict = {"name": sent_name(call.name)}
    if has_broken_arguments(call):
        made = {**head, "args": call.raw_arguments, "id": call.id, "error": None, "type": "invalid_tool_call"}
    else:
        made = {**head, "args": call.arguments, "id": call.id, "type": "tool_call"}
    whole: JsonDict = restore(made, provider_metadata(call.metadata, PROVIDER))
    return whole


def result_content(result: ToolResult, kept: JsonDict) -> Any:
    """The content of a ``ToolMessage``. An error is its plain text; the status of the message says that it is one."""
    if result.kind == "error":
        return result.value
    blocks = result_blocks(result)
    return result_text(result) if blocks is None else encode_blocks(blocks, kept)


# -- messages from JSON or objects ---------------------------------------------------------------------------------------


def decode_messages(messages: object) -> list[ChatMessage]:
    given = messages if isinstance(messages, Iterable) else ()
    return decode_with_call_names(map(message_json, given), _decode_message)


def message_json(message: object) -> JsonDict:
    """A message as ``message_to_dict`` writes it; empty if it is not a message."""
    if isinstance(message, Mapping):
        raw = plain_object(message)
        return raw if isinstance(raw.get("data"), dict) else {}
    type, dump = getattr(message, "type", None), getattr(message, "model_dump", None)
    return {"type": type, "data": plain(dump())} if isinstance(type, str) and callable(dump) else {}


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


# -- answers -------------------------------------------------------------------------------------------------------------


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


# -- content as blocks ---------------------------------------------------------------------------------------------------


def encode_blocks(blocks: Sequence[ContentBlock], kept: JsonDict) -> list[Any]:
    """Parts for blocks, with native parts and whatever else came with each part put back."""
    styles: JsonDict = kept.get("styles", {})
    parts = [_encode_part(block, styles.get(str(at), "standard")) for at, block in enumerate(blocks)]
    return restore_parts(parts, kept)


def decode_blocks(parts: Sequence[Any]) -> tuple[list[ContentBlock], JsonDict]:
    """Blocks for parts, and what must be kept to write the same parts again."""
    read = [_decode_part(part) for part in parts]
    kept = keep_parts(parts, [None if block is None else _encode_part(block, style) for block, style in read])
    decoded = [(block, style) for block, style in read if block is not None]
    styles = {str(at): style for at, (_, style) in enumerate(decoded) if style != "standard"}
    return [block for block, _ in decoded], {**kept, **({"styles": styles} if styles else {})}


def content_text(content: object) -> str:
    """The text of a message's content, whatever its form."""
    if isinstance(content, str):
        return content
    return "".join(
        text for part in (content if isinstance(content, list) else ()) if (text := _part_text(part)) is not None
    )


def _part_text(part: object) -> str | None:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, dict) and part.get("type") in ("text", None) else None
    return text if isinstance(text, str) else None


def _encode_part(block: ContentBlock, style: Style) -> Any:
    if style == "bare" and block.text is not None:
        return block.text
    if style == "openai" or block.text is not None:
        return encode_openai_part(block)
    is_video = block.type == "document" and (block.media_type or "").startswith("video/")
    made: JsonDict = {"type": "video" if is_video else _NAMES[block.type]}
    for ours, theirs in (("data", "base64"), ("url", "url"), ("file_id", "file_id")):
        if (value := getattr(block, ours)) is not None:
            made[theirs] = value
    if block.media_type is not None:
        made["mime_type"] = block.media_type
    elif block.data is not None:
        made["mime_type"] = media_type(block)  # LangChain demands one with data
    return {**made, "extras": {"filename": block.filename}} if block.filename else made


def _decode_part(part: object) -> tuple[ContentBlock | None, Style]:
    if isinstance(part, str):
        return ContentBlock("text", text=part), "bare"
    if not isinstance(part, dict):
        return None, "standard"
    kind = _MEDIA.get(str(part.get("type")))
    if kind is not None:
        for ours, theirs in (("data", "base64"), ("url", "url"), ("file_id", "file_id")):
            if isinstance(part.get(theirs), str):
                made: Any = {
                    ours: part[theirs],
                    "media_type": as_text(part.get("mime_type")),
                    "filename": _read_name(part),
                }
                return ContentBlock(kind, **made), "standard"
    block = decode_openai_part(part)
    return block, "standard" if block is None or block.type == "text" else "openai"


def _read_name(part: JsonDict) -> str | None:
    """The name of a file: integrations look for it in these places."""
    extras = part.get("extras")
    return as_text(part.get("filename")) or as_text(extras.get("filename") if isinstance(extras, dict) else None)


# -- content whose order a layout keeps ----------------------------------------------------------------------------------


def decode_layout(content: list[Any]) -> JsonDict:
    """The layout of a turn: an entry for each part, which is the length of a text, or a native part (thinking, citations)."""
    layout: list[Any] = []
    for part in content:
        text = _part_text(part)
        if text is None:
            layout.append({"native": part})
        else:
            layout.append(add_difference({"text": len(text)}, part, {"type": "text", "text": text}))
    return {"layout": layout}


def encode_layout(text: str, calls: Sequence[ToolCall], layout: list[JsonDict]) -> list[Any]:
    """The parts of a layout. A changed text takes the place of the first; copies of calls follow the calls."""
    lengths = [part["text"] for part in layout if "text" in part]
    is_whole = sum(lengths) == len(text)
    by_id = {call.id: call for call in calls}
    parts: list[Any] = []
    rest: str = text
    for part in layout:
        if "native" in part:
            parts += _encode_native(part["native"], by_id)
            continue
        here, rest = (rest[: part["text"]], rest[part["text"] :]) if is_whole else (rest, "")
        if here or is_whole:
            parts.append(restore({"type": "text", "text": here}, part))
    return [*parts, {"type": "text", "text": rest}] if rest else parts


def _encode_native(part: Any, calls: dict[str, ToolCall]) -> list[Any]:
    """The part itself; the copy of a call gets the arguments of the call, and is left out if that was removed."""
    key = _ARGUMENTS.get(as_text(part.get("type")) or "") if isinstance(part, dict) else None
    if key is None or not isinstance(part.get("id"), str):
        return [part]
    call = calls.get(part["id"])
    if call is None:
        return []
    copied = part.get(key)
    value = parse_json(copied) if isinstance(copied, str) else copied  # streams leave it as text
    return [part] if value == call.arguments else [{**part, key: call.arguments}]


# -- content that is streamed --------------------------------------------------------------------------------------------


def feed_content(so_far: list[Any], content: object) -> None:
    """Adds one chunk's content: parts with the same index are one part, and so are texts in a row."""
    parts: list[Any] = content if isinstance(content, list) else [content] if content else []
    for part in parts:
        text = _part_text(part)
        index = part.get("index") if isinstance(part, dict) else None
        if isinstance(part, dict) and part.get("type") in _FRAGMENTS:
            continue  # pieces of calls, which also come outside the content
        last = next((one for one in reversed(so_far) if _continues(one, part, index)), None)
        if last is None:
            so_far.append(dict(part) if isinstance(part, dict) else {"type": "text", "text": text or ""})
        elif text is not None:
            last["text"] = (last.get("text") or "") + text
        else:
            _extend_part(last, part)


def _continues(one: JsonDict, part: Any, index: object) -> bool:
    if index is not None:
        return one.get("index") == index
    return _part_text(part) is not None and _part_text(one) is not None and one.get("index") is None


def _extend_part(last: JsonDict, part: JsonDict) -> None:
    for key, value in part.items():
        if key not in ("type", "index", "id"):
            last[key] = _join(last.get(key), value)


def _join(before: Any, value: Any) -> Any:
    """A value that comes in pieces: texts are joined, also inside objects and items with the same index."""
    if isinstance(before, str) and isinstance(value, str):
        return before + value
    if isinstance(before, dict) and isinstance(value, dict):
        made = dict(before)
        _extend_part(made, value)
        return made
    if isinstance(before, list) and isinstance(value, list):
        return _join_items(before, value)
    return value


def _join_items(before: list[Any], more: list[Any]) -> list[Any]:
    joined = list(before)
    for item in more:
        index = item.get("index") if isinstance(item, dict) else None
        same = [at for at, one in enumerate(joined) if isinstance(one, dict) and one.get("index") == index]
        if index is None or not same:
            joined.append(item)
        else:
            joined[same[-1]] = _join(joined[same[-1]], item)
    return joined
