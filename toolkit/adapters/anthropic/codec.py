"""Anthropic's messages as the neutral format and back: tools, messages and answers, as JSON or as the SDK's objects."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from toolkit.adapters.answers import ANTHROPIC as FINISH_REASONS
from toolkit.adapters.answers import add_counts, choose_finish_reason, count, error_result
from toolkit.adapters.blocks import (
    BlockReader,
    BlockWriter,
    call_input,
    decode_answer,
    decode_result_content,
    decode_turns,
    drop_empty_texts,
    encode_call_block,
    encode_content,
    encode_turns,
)
from toolkit.adapters.lossless import provider_metadata
from toolkit.adapters.media import (
    COMMON_IMAGES,
    PDF,
    as_text,
    document_text,
    is_own_file,
    is_web_url,
    media_type,
    move_media,
    stand_in,
)
from toolkit.adapters.requests import (
    ChoiceTable,
    decode_callers,
    decode_definitions,
    decode_tool_choice,
    encode_callers,
    encode_definitions,
    encode_tool_choice,
    provider_name,
)
from toolkit.adapters.streaming import refuse_last
from toolkit.adapters.strict.adapter import choose_strict, mark_as_sent, original_calls, sent_parameters
from toolkit.adapters.strict.receipt import StrictReceipt
from toolkit.adapters.strict.rules import ANTHROPIC
from toolkit.adapters.values import (
    JsonDict,
    call_from_arguments,
    compact,
    mend,
    plain,
    plain_list,
    plain_object,
    plain_objects,
    plain_text,
    result_blocks,
)
from toolkit.wire.call import JsonObject, ToolCall, ToolResult
from toolkit.wire.content import ContentBlock
from toolkit.wire.definition import AnyDefinition, NativeTool, OutputSchema, ToolChoice, ToolDefinition
from toolkit.wire.message import ChatMessage, TextMessage
from toolkit.wire.query import CachePoint, QueryResult, Reasoning, Usage

PROVIDER: Final = "anthropic"
PROGRAM: Final = "code_execution_"
"""How the words for programs in `allowed_callers` begin; the rest is the version of the tool that runs them."""
CHOICES: Final[ChoiceTable] = {"auto": {"type": "auto"}, "none": {"type": "none"}, "required": {"type": "any"}}
_NEWEST: Final = f"{PROGRAM}20260120"
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
# What a caller may want to know about an answer, or must send with the next request (the container).
_KEPT: Final = ("id", "model", "stop_sequence", "stop_details", "container", "context_management", "usage")
_MARK: Final = {"type": "ephemeral"}
# Blocks that take a breakpoint; thinking does not, and an empty text is refused with one.
_BLOCKS: Final = frozenset({"text", "image", "document", "tool_use", "tool_result"})


# -- tools ---------------------------------------------------------------------------------------------------------------


def sent_name(name: str) -> str:
    """The name of a tool as this provider accepts it."""
    return provider_name(name, _NAME)


def encode_tools(
    definitions: Iterable[AnyDefinition], strict: bool | None = None, *, output: OutputSchema | None = None
) -> list[JsonDict]:
    """``strict`` asks for strict mode for definitions that do not say; native tools of this provider go out unchanged.

    In strict mode the schema of the definition's receipt (``toolkit.adapters.strict``) is sent, and ``decode_strict_calls``
    decodes what the model answers. A schema outside the provider's subset, or beyond what a request may have, is sent as it
    is, without the flag.

    :param output: the structured output of the same request, which uses some of what a request may have.
    """
    listed = list(definitions)
    receipts = choose_strict(listed, strict, PROVIDER, ANTHROPIC, output)
    program = _find_version(listed)
    return encode_definitions(
        listed, PROVIDER, lambda one: encode_definition(one, strict, receipts.get(one.name), program)
    )


def encode_definition(
    definition: ToolDefinition,
    strict: bool | None = None,
    receipt: StrictReceipt | None = None,
    program: str = _NEWEST,
) -> JsonDict:
    """One tool, without what only its metadata knows."""
    parameters, is_strict = sent_parameters(definition, strict, receipt)
    made: JsonDict = {"name": sent_name(definition.name), "input_schema": {"type": "object", **parameters}}
    if definition.description:
        made["description"] = definition.description
    if definition.defer_loading:
        made["defer_loading"] = True
    made |= encode_callers(definition.callers, program)
    return made if is_strict is None else {**made, "strict": is_strict}


def _find_version(definitions: Sequence[AnyDefinition]) -> str:
    """The version of the tool that runs programs: the caller's own, if there is one."""
    types = [str(one.raw.get("type")) for one in definitions if isinstance(one, NativeTool)]
    return next((one for one in types if one.startswith(PROGRAM)), _NEWEST)


def decode_tools(tools: object) -> list[AnyDefinition]:
    return decode_definitions(tools, PROVIDER, _decode_definition, encode_definition)


def _decode_definition(tool: JsonDict) -> ToolDefinition | None:
    schema = tool.get("input_schema")
    if tool.get("type") not in (None, "custom") or not isinstance(schema, dict) or "name" not in tool:
        return None
    made = ToolDefinition(
        tool["name"],
        tool.get("description") or "",
        JsonObject(schema),
        tool.get("strict"),
        defer_loading=tool.get("defer_loading") is True,
        callers=decode_callers(tool, PROGRAM),
    )
    return mark_as_sent(made, PROVIDER, ANTHROPIC)


def encode_choice(choice: ToolChoice) -> Any:
    return encode_tool_choice(choice, PROVIDER, CHOICES, lambda name: {"type": "tool", "name": sent_name(name)})


def decode_choice(choice: object) -> ToolChoice:
    return decode_tool_choice(choice, PROVIDER, CHOICES, _decode_named_choice)


def _decode_named_choice(found: Any) -> str | None:
    name = found.get("name") if isinstance(found, dict) else None
    return name if found == {"type": "tool", "name": name} else None


def decode_strict_calls(
    calls: Sequence[ToolCall],
    definitions: Iterable[AnyDefinition],
    strict: bool | None = None,
    *,
    output: OutputSchema | None = None,
) -> list[ToolCall]:
    """Calls of tools that ``encode_tools`` sent in strict mode, given the same arguments, in the form of the tools' schemas.

    The driver does this itself. In the history, a call is still sent as the model wrote it.
    """
    return original_calls(
        calls, definitions, strict, PROVIDER, ANTHROPIC, sent_name, partial(encode_call_block, WRITER), output
    )


# -- messages ------------------------------------------------------------------------------------------------------------


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    """The list ``messages``. Results come first in the message right after their calls, all of one turn in one message.

    Media of a model's message follow in a message of a user. System texts stay where they are; ``split_system`` takes out
    those that belong in the field ``system``.
    """
    return encode_turns(WRITER, _place_media(messages))


def split_system(messages: Sequence[ChatMessage]) -> tuple[str | list[JsonDict] | None, list[ChatMessage]]:
    """What goes into the field ``system``, and the other messages.

    Only system texts at the front go there. One later in the conversation stays in its place, as newer models want it
    (older ones refuse it).
    """
    end = next((at for at, one in enumerate(messages) if getattr(one, "role", None) != "system"), len(messages))
    contents: list[str | list[JsonDict]] = []
    placed = list(_place_media(messages[:end]))
    for message in placed:
        if not isinstance(message, TextMessage) or message.role != "system":
            break
        contents.append(encode_content(WRITER, message.content, provider_metadata(message.metadata, PROVIDER)))
    rest = [*placed[len(contents) :], *messages[end:]]
    if len(contents) == 1:
        return contents[0], rest
    lists = [[_encode_text(content)] if isinstance(content, str) else content for content in contents]
    return [block for blocks in lists for block in blocks] or None, rest


def _place_media(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    return move_media(messages, PROVIDER, by_users=takes, in_results=takes)


def decode_messages(messages: object) -> list[ChatMessage]:
    """The list ``messages``; ``decode_system`` decodes the field ``system``."""
    return decode_turns(READER, [_as_request(message) for message in plain_list(messages)])


def _as_request(message: object) -> object:
    """A message without the fields that only answers have: callers put the SDK's answers into the list as they are."""
    if isinstance(message, dict) and message.get("type") == "message":
        return {key: message[key] for key in ("role", "content") if key in message}
    return message


def decode_system(system: object) -> list[ChatMessage]:
    """The field ``system``, a text or blocks, as a message for the start of the conversation."""
    found = plain(system)
    return [] if not found else decode_turns(READER, [{"role": "system", "content": found}])


# -- answers -------------------------------------------------------------------------------------------------------------


def decode_response(response: object) -> QueryResult:
    """The answer; one that is an error becomes ``finish_reason="error"``."""
    raw = mend(plain_object(response))
    if not isinstance(raw.get("content"), list):
        return error_result(PROVIDER, raw.get("error", raw))
    return build_result(raw)


def build_result(message: JsonDict, texts: Mapping[int, str] | None = None) -> QueryResult:
    """The result for a whole message; ``texts`` has the argument texts of streamed calls, by the position of their block."""
    blocks = plain_objects(message["content"])
    content, calls, kept = decode_answer(READER, blocks, texts)
    reported = message.get("stop_reason")
    reason = choose_finish_reason(reported, FINISH_REASONS, calls)
    if reason == "length" and blocks[-1:] and _decode_call(blocks[-1]) is not None:
        calls = refuse_last(calls)
    fields = {key: message[key] for key in _KEPT if message.get(key) is not None}
    metadata = {PROVIDER: {"finish_reason": reported, **fields, **drop_empty_texts(kept)}}
    usage = decode_usage(message.get("usage"))
    return QueryResult(content, calls, reason, usage, metadata, _decode_reasoning(blocks))


def _decode_reasoning(blocks: list[JsonDict]) -> list[Reasoning]:
    found: list[Reasoning] = []
    for block in blocks:
        if block.get("type") == "thinking":
            text = plain_text(block.get("thinking"))
            found.append(Reasoning(text, is_hidden=not text))
        elif block.get("type") == "redacted_thinking":
            found.append(Reasoning(is_hidden=True))
    return found


def decode_usage(usage: object) -> Usage:
    """The provider's ``input_tokens`` are without what was read from a cache or written to one."""
    found = plain_object(usage)
    read, written = found.get("cache_read_input_tokens"), found.get("cache_creation_input_tokens")
    return Usage(
        add_counts(found.get("input_tokens"), read, written),
        count(found.get("output_tokens")),
        count(read),
        count(plain_object(found.get("output_tokens_details")).get("thinking_tokens")),
        count(written),
    )


# -- blocks of text and media --------------------------------------------------------------------------------------------


def takes(block: ContentBlock) -> bool:
    """Whether users' messages and results take this block of media."""
    return _encode_media(block) is not None


def encode_part(block: ContentBlock) -> JsonDict:
    """One block; a text in place of media that Anthropic does not take."""
    if block.text is not None:
        return {"type": "text", "text": block.text}
    media = _encode_media(block)
    return {"type": "text", "text": stand_in(block, PROVIDER)} if media is None else media


def _encode_media(block: ContentBlock) -> JsonDict | None:
    text = document_text(block)
    if text is not None:
        return _name_document({"source": {"type": "text", "media_type": "text/plain", "data": text}}, block)
    source = _encode_source(block)
    if source is None or block.type not in ("image", "document"):
        return None
    return {"type": "image", "source": source} if block.type == "image" else _name_document({"source": source}, block)


def _name_document(made: JsonDict, block: ContentBlock) -> JsonDict:
    return {"type": "document", **made, **({"title": block.filename} if block.filename else {})}


def _encode_source(block: ContentBlock) -> JsonDict | None:
    kind = media_type(block)
    if block.file_id is not None:
        return {"type": "file", "file_id": block.file_id} if is_own_file(block, PROVIDER) else None
    if kind not in COMMON_IMAGES if block.type == "image" else kind != PDF:
        return None
    if block.data is not None:
        return {"type": "base64", "media_type": kind, "data": block.data}
    return {"type": "url", "url": block.url} if is_web_url(block) else None


def decode_part(block: JsonDict) -> ContentBlock | None:
    """The neutral block; None if the neutral form has none for it."""
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return ContentBlock("text", text=block["text"])
    source = block.get("source")
    if kind not in ("image", "document") or not isinstance(source, dict):
        return None
    found = _decode_source(kind, source)
    return None if found is None else replace(found, filename=as_text(block.get("title")))


def _decode_source(kind: Any, source: JsonDict) -> ContentBlock | None:
    form = source.get("type")
    if form == "url" and isinstance(source.get("url"), str):
        return ContentBlock(kind, url=source["url"])
    if form == "file" and isinstance(source.get("file_id"), str):
        return ContentBlock(kind, file_id=source["file_id"], provider=PROVIDER)
    if form == "base64" and isinstance(source.get("data"), str):
        return ContentBlock(kind, as_text(source.get("media_type")), data=source["data"])
    if form == "text" and kind == "document" and isinstance(source.get("data"), str):
        data = base64.b64encode(source["data"].encode("utf-8", "surrogatepass")).decode()
        return ContentBlock(kind, "text/plain", data=data)
    return None


# -- how blocks are written and read -------------------------------------------------------------------------------------


def _sent_id(id: str) -> str:
    return provider_name(id, _ID)


def _encode_text(text: str) -> JsonDict:
    return {"type": "text", "text": text}


def _encode_call(call: ToolCall) -> JsonDict:
    return {"type": "tool_use", "id": call.id, "name": sent_name(call.name), "input": call_input(call)}


def _encode_result(result: ToolResult, kept: JsonDict) -> JsonDict:
    content: Any = result_blocks(result)
    if content is None:
        content = compact(plain(result.value)) if result.kind == "data" else str(result.value)
    made = {
        "type": "tool_result",
        "tool_use_id": result.tool_call_id,
        "content": encode_content(WRITER, content, kept),
    }
    return {**made, "is_error": True} if result.kind == "error" else made


WRITER: Final = BlockWriter(
    provider=PROVIDER,
    id=_sent_id,
    text=_encode_text,
    part=encode_part,
    call=_encode_call,
    result=_encode_result,
    about_text=frozenset({"citations"}),
    bare_text=True,
    alternating=False,
)


def _decode_text(block: JsonDict) -> str | None:
    text = block.get("text")
    return text if block.get("type") == "text" and isinstance(text, str) else None


def _decode_call(block: JsonDict) -> ToolCall | None:
    if block.get("type") != "tool_use":
        return None
    return call_from_arguments(plain_text(block.get("id")), plain_text(block.get("name")), block.get("input"))


def _decode_result(block: JsonDict, names: Mapping[str, str]) -> tuple[ToolResult, JsonDict] | None:
    if block.get("type") != "tool_result":
        return None
    id, content = str(block.get("tool_use_id") or ""), block.get("content")
    name, failed = names.get(id, ""), block.get("is_error") is True
    if not isinstance(content, list):
        text = content if isinstance(content, str) else ""
        return ToolResult(id, name, "error" if failed else "text", text), {}
    parts = [part for part in content if isinstance(part, dict)]
    return decode_result_content(READER, id, name, parts, failed=failed)


READER: Final = BlockReader(
    writer=WRITER, text=_decode_text, part=decode_part, call=_decode_call, result=_decode_result
)


# -- breakpoints of the prompt cache -------------------------------------------------------------------------------------


def add_breakpoints(request: JsonDict, points: Sequence[CachePoint]) -> None:
    """Marks the last tool, the end of the system text and the end of the last message, as far as the request has them."""
    if "tools" in points:
        # A tool that is loaded later is not in the prompt.
        shown = [tool for tool in request.get("tools", ()) if not tool.get("defer_loading")]
        if shown:
            shown[-1].setdefault("cache_control", dict(_MARK))
    if "system" in points and request.get("system"):
        request["system"] = _marked(request["system"])
    if "messages" in points and request["messages"]:
        last = request["messages"][-1]
        request["messages"] = [*request["messages"][:-1], {**last, "content": _marked(last["content"])}]


def _marked(content: str | list[JsonDict]) -> str | list[JsonDict]:
    """The content with a breakpoint at its last block that takes one."""
    blocks: list[JsonDict] = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    for at in reversed(range(len(blocks))):
        block = blocks[at]
        if block.get("type") in _BLOCKS and block.get("text") != "":
            blocks[at] = {"cache_control": dict(_MARK), **block}
            return blocks
    return content
