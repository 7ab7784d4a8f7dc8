"""OpenAI's Responses as the neutral format and back: tools, items and answers, as JSON or as the SDK's objects.

An assistant's turn is several items there: reasoning, text, calls, and what the server ran itself. The neutral message has
the text and the calls. Its metadata has a ``layout`` with an entry for each item, in order:

====================  ==============================================
``{"native": item}``  an item the neutral form has no field for
``{"text": item}``    a message item
``{"call": id}``      the call with this id
====================  ==============================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from toolkit.adapters.answers import (
    OPENAI_RESPONSES,
    choose_finish_reason,
    count,
    error_result,
    keep_usage,
    openai_error_reason,
)
from toolkit.adapters.lossless import (
    add_difference,
    keep_difference,
    keep_parts,
    provider_metadata,
    restore,
    restore_parts,
)
from toolkit.adapters.media import (
    COMMON_IMAGES,
    OFFICE,
    PDF,
    as_text,
    block_from_file_data,
    block_from_url,
    file_name,
    is_own_file,
    is_textual,
    is_web_url,
    media_type,
    media_url,
    move_media,
    stand_in,
)
from toolkit.adapters.openai_chat.codec import OWNERS, read_detail
from toolkit.adapters.requests import (
    CUSTOM,
    OPENAI_NAME,
    ChoiceTable,
    custom_input,
    decode_callers,
    decode_definitions,
    decode_tool_choice,
    encode_callers,
    encode_definitions,
    encode_tool_choice,
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
    plain,
    plain_list,
    plain_object,
    plain_objects,
    plain_text,
    result_blocks,
    result_text,
)
from toolkit.wire.call import JsonObject, ToolCall, ToolResult
from toolkit.wire.content import BlockType, ContentBlock
from toolkit.wire.definition import AnyDefinition, ToolChoice, ToolDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, Role, TextMessage, ToolResultMessage
from toolkit.wire.query import FinishReason, QueryResult, Reasoning, Usage

PROVIDER: Final = "openai_responses"
PROGRAM: Final = "programmatic"
"""The word for programs in `allowed_callers`."""
CHOICES: Final[ChoiceTable] = {"auto": "auto", "none": "none", "required": "required"}
# Items that the client must act on, and the items that answer them.
CLIENT_RUN: Final = {
    "computer_call": "computer_call_output",
    "shell_call": "shell_call_output",
    "local_shell_call": "local_shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
    "mcp_approval_request": "mcp_approval_response",
}
_LONGEST_ID: Final = 64
_TEXTS: Final = ("input_text", "output_text", "text")
_RESULTS: Final = ("function_call_output", "custom_tool_call_output")
_ROLES: Final[dict[str, Role]] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
# What a caller may want to know about an answer, or must send with the next request (the state of the conversation).
_KEPT: Final = (
    "id", "model", "status", "conversation", "previous_response_id", "incomplete_details", "service_tier", "error",
)  # fmt: skip


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
    made: JsonDict = {"name": sent_name(definition.name), "description": definition.description}
    if definition.text_argument is not None:
        made = {"type": "custom", **made}
    else:
        parameters, is_strict = parameters_to_send(definition, strict, PROVIDER)
        # Responses takes a missing value for true.
        made = {"type": "function", **made, "parameters": parameters, "strict": bool(is_strict)}
    made |= {"defer_loading": True} if definition.defer_loading else {}
    return made | encode_callers(definition.callers, PROGRAM)


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


def encode_choice(choice: ToolChoice, definitions: Iterable[AnyDefinition] = ()) -> Any:
    """``definitions`` are the tools of the request: one that takes text is chosen in another form."""
    texts = text_tools(definitions)
    return encode_tool_choice(
        choice,
        PROVIDER,
        CHOICES,
        lambda name: {"type": "custom" if name in texts else "function", "name": sent_name(name)},
    )


def decode_choice(choice: object) -> ToolChoice:
    return decode_tool_choice(choice, PROVIDER, CHOICES, _decode_named_choice)


def _decode_named_choice(found: Any) -> str | None:
    name = found.get("name") if isinstance(found, dict) else None
    return name if found == {"type": "function", "name": name} else None


def decode_strict_calls(
    calls: Sequence[ToolCall], definitions: Iterable[AnyDefinition], strict: bool | None = None
) -> list[ToolCall]:
    """Calls of tools that ``encode_tools`` sent in strict mode or as custom tools, given the same arguments, in the form of
    the tools' schemas.

    Drivers do this themselves. In the history, a call is still sent as the model wrote it.
    """
    return original_openai_calls(calls, definitions, strict, PROVIDER, sent_name, encode_call)


# -- messages to items ---------------------------------------------------------------------------------------------------


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    """The input list. Items that only the server has (``previous_response_id``) are not in it.

    Media of a model's message follow in a message of a user. Ids of other providers are shortened if they are too long,
    those of calls and results alike.
    """
    calls: dict[str, JsonDict] = {}
    ids: dict[str, str] = {}
    items: list[JsonDict] = []
    for message in move_media(messages, PROVIDER, by_users=takes, in_results=takes):
        made = _encode_message(message, provider_metadata(message.metadata, PROVIDER), calls)
        if isinstance(message, AssistantToolCallMessage):
            ids |= {call.id: encode_call(call)["call_id"] for call in message.tool_calls if len(call.id) > _LONGEST_ID}
        elif isinstance(message, ToolResultMessage) and message.result.tool_call_id in ids:
            made = [{**item, "call_id": ids[message.result.tool_call_id]} for item in made]
        items += made
    return items


def _encode_message(message: ChatMessage, kept: JsonDict, calls: dict[str, JsonDict]) -> list[JsonDict]:
    if isinstance(message, AssistantToolCallMessage):
        calls.update((call.id, encode_call(call)) for call in message.tool_calls)
        return _encode_turn(message.content, message.tool_calls, kept.get("layout") or [])
    if isinstance(message, TextMessage):
        if "layout" in kept:
            return _encode_turn(_message_text(message), (), kept["layout"])
        return [restore(encode_text(message), kept)]
    return [restore(encode_result(message.result, kept, calls), kept)]


def _encode_turn(content: str, tool_calls: Sequence[ToolCall], layout: Sequence[JsonDict]) -> list[JsonDict]:
    """The items of a turn in their original order. A changed text takes the place of the first text."""
    said = [entry["text"] for entry in layout if "text" in entry]
    is_same_text = "".join(content_text(item.get("content")) for item in said) == content
    calls = list(tool_calls)
    items: list[JsonDict] = []
    text = "" if is_same_text else content
    for entry in layout:
        if "native" in entry:
            items.append(entry["native"])
        elif "text" in entry:
            items += [entry["text"]] if is_same_text else _replace_text(entry["text"], text)
            text = ""
        else:
            called = next((call for call in calls if call.id == entry["call"]), None)
            if called is not None:
                calls.remove(called)
                items.append(encode_call(called))
    new_text = [{"role": "assistant", "content": text}] if text else []
    return [*items, *new_text, *map(encode_call, calls)]


def _replace_text(item: JsonDict, text: str) -> list[JsonDict]:
    """A message item with another text. Its other parts stay; an item without any content is left out."""
    parts = item.get("content")
    if not isinstance(parts, list):
        return [{**item, "content": text}] if text else []
    rest = [part for part in parts if not is_text(part)]
    shape = next((part for part in parts if is_text(part)), {"type": "output_text"})
    # Annotations refer to positions in the old text.
    annotations: JsonDict = {"annotations": []} if "annotations" in shape else {}
    content = [*([{"type": shape["type"], "text": text, **annotations}] if text else []), *rest]
    return [{**item, "content": content}] if content else []


def encode_text(message: TextMessage) -> JsonDict:
    """A message item, without the difference stored in the metadata. A model's message that was not made here is one text:
    parts of a model's text would need an id and a status.
    """
    if isinstance(message.content, str) or message.role == "assistant":
        return {"role": message.role, "content": _message_text(message)}
    return {
        "role": message.role,
        "content": encode_parts(message.content, provider_metadata(message.metadata, PROVIDER)),
    }


def _message_text(message: TextMessage) -> str:
    return message.content if isinstance(message.content, str) else content_text(encode_parts(message.content, {}))


def encode_result(result: ToolResult, kept: JsonDict, calls: Mapping[str, JsonDict]) -> JsonDict:
    """The item of a result, without the difference stored in the metadata. ``calls`` has the items of earlier calls by id."""
    call = calls.get(result.tool_call_id, {})
    kind = "custom_tool_call_output" if call.get("type") == "custom_tool_call" else "function_call_output"
    blocks = result_blocks(result)
    output = result_text(result) if blocks is None else encode_parts(blocks, kept)
    made: JsonDict = {"type": kind, "call_id": result.tool_call_id, "output": output}
    caller = call.get("caller")
    # The result of a call that a program made goes to that program.
    return {**made, "caller": caller} if isinstance(caller, dict) and caller.get("type") == "program" else made


def encode_call(call: ToolCall) -> JsonDict:
    id = provider_id(call.id, _LONGEST_ID)
    if is_custom(call, PROVIDER):
        made = {"type": "custom_tool_call", "call_id": id, "name": call.name, **custom_input(call, PROVIDER)}
    else:
        name, arguments = sent_name(call.name), arguments_text(call)
        made = {"type": "function_call", "call_id": id, "name": name, "arguments": arguments}
    whole: JsonDict = restore(made, provider_metadata(call.metadata, PROVIDER))
    return whole


# -- items to messages ---------------------------------------------------------------------------------------------------


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


# -- content parts: native ones keep their places ------------------------------------------------------------------------


def encode_parts(blocks: Sequence[ContentBlock], kept: JsonDict) -> list[JsonDict]:
    """Parts for blocks, with native parts and whatever else came with each part put back."""
    return restore_parts([_encode_part(block) for block in blocks], kept)


def decode_parts(parts: Sequence[JsonDict]) -> tuple[list[ContentBlock], JsonDict]:
    """Blocks for parts, and what must be kept to write the same parts again."""
    blocks = [_decode_part(part) for part in parts]
    kept = keep_parts(parts, [None if block is None else _encode_part(block) for block in blocks])
    return [block for block in blocks if block is not None], kept


def content_text(content: Any) -> str:
    """The text of a message item's content, whatever its form."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part["text"] for part in parts if is_text(part))


def is_text(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in _TEXTS and isinstance(part.get("text"), str)


def takes(block: ContentBlock) -> bool:
    """Whether users' messages and results take this block of media."""
    return _encode_media(block) is not None


def _encode_part(block: ContentBlock) -> JsonDict:
    if block.text is not None:
        return {"type": "input_text", "text": block.text}
    media = _encode_media(block)
    return {"type": "input_text", "text": stand_in(block, *OWNERS)} if media is None else media


def _encode_media(block: ContentBlock) -> JsonDict | None:
    if block.type == "audio" or (block.file_id is not None and not is_own_file(block, *OWNERS)):
        return None
    kind = media_type(block)
    if block.type == "image":
        made: JsonDict = {"type": "input_image", "detail": block.detail or "auto"}
        if block.file_id is not None:
            return {**made, "file_id": block.file_id}
        is_taken = kind in COMMON_IMAGES and (block.data is not None or is_web_url(block))
        return {**made, "image_url": media_url(block)} if is_taken else None
    if block.file_id is not None:
        return {"type": "input_file", "file_id": block.file_id}
    if kind != PDF and kind not in OFFICE and not is_textual(kind):
        return None
    if block.url is not None:
        return {"type": "input_file", "file_url": block.url} if is_web_url(block) else None
    return {"type": "input_file", "filename": file_name(block), "file_data": media_url(block)}


def _decode_part(part: object) -> ContentBlock | None:
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    if is_text(part):
        return ContentBlock("text", text=part["text"])
    if isinstance(part.get("file_id"), str) and kind in ("input_image", "input_file"):
        detail = read_detail(part) if kind == "input_image" else None
        form: BlockType = "image" if kind == "input_image" else "document"
        return ContentBlock(form, file_id=part["file_id"], provider=PROVIDER, detail=detail)
    if kind == "input_image":
        image = block_from_url("image", part.get("image_url"))
        return None if image is None else replace(image, detail=read_detail(part))
    if kind == "input_file":
        file = block_from_url("document", part.get("file_url")) or block_from_file_data(part.get("file_data"))
        return None if file is None else replace(file, filename=as_text(part.get("filename")))
    return None


# -- answers -------------------------------------------------------------------------------------------------------------


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


# -- how an answer ended -------------------------------------------------------------------------------------------------


def decode_finish_reason(
    response: JsonDict, items: Sequence[JsonDict], calls: Sequence[ToolCall], actions: Sequence[JsonDict]
) -> FinishReason:
    if response.get("error") or response.get("status") == "failed":
        return openai_error_reason(response.get("error"))
    word = reported_word(response)
    if not isinstance(word, str) or word not in OPENAI_RESPONSES:
        word = response.get("status")
    refused: FinishReason | None = "refused" if any(map(has_refusal, items)) else None
    waiting: FinishReason | None = "needs_action" if actions else None
    return choose_finish_reason(word, OPENAI_RESPONSES, calls, refused, waiting)


def reported_word(response: JsonDict) -> object:
    """The provider's own word for the end: why the response is incomplete, or else its status."""
    return plain_object(response.get("incomplete_details")).get("reason") or response.get("status")


def has_refusal(item: JsonDict) -> bool:
    """Whether this is a message in which the model declines to answer."""
    content = item.get("content")
    parts = plain_objects(content) if item.get("type", "message") == "message" and isinstance(content, list) else []
    return any(part.get("type") == "refusal" for part in parts)


def find_actions(items: Sequence[JsonDict]) -> list[JsonDict]:
    """The items that wait for an action of the client: those that the server neither runs nor has answered itself."""
    return [item for item in items if _is_for_client(item) and not _is_answered(item, items)]


def _is_for_client(item: JsonDict) -> bool:
    kind = item.get("type")
    if kind == "tool_search_call":
        return item.get("execution") == "client"
    if kind == "shell_call":
        return plain_object(item.get("environment")).get("type") != "container_reference"
    return isinstance(kind, str) and kind in CLIENT_RUN


def _is_answered(item: JsonDict, items: Sequence[JsonDict]) -> bool:
    ids = [item[key] for key in ("call_id", "id") if item.get(key) is not None]
    answers = [one for one in items if one.get("type") == CLIENT_RUN[item["type"]]]
    return any(one.get(key) in ids for one in answers for key in ("call_id", "approval_request_id", "id"))
