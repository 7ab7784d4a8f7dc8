"""Bedrock's Converse as the neutral format and back: tools, messages and answers, as JSON or as boto3 returns it.

Bytes are base64 text, as in Converse's JSON; ``boto3_messages`` makes them raw, as boto3 wants them.
"""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, Final

from toolkit.adapters.answers import BEDROCK as FINISH_REASONS
from toolkit.adapters.answers import add_counts, choose_finish_reason, count, error_result
from toolkit.adapters.blocks import (
    BlockReader,
    BlockWriter,
    arrange_blocks,
    call_input,
    decode_answer,
    decode_result_content,
    decode_turns,
    drop_empty_texts,
    encode_call_block,
    encode_turns,
)
from toolkit.adapters.lossless import provider_metadata
from toolkit.adapters.media import OFFICE, PDF, as_text, is_textual, media_type, move_media, stand_in
from toolkit.adapters.requests import (
    OPENAI_NAME,
    ChoiceTable,
    decode_definitions,
    decode_tool_choice,
    encode_definitions,
    encode_tool_choice,
    provider_name,
)
from toolkit.adapters.streaming import refuse_last
from toolkit.adapters.strict.adapter import choose_strict, mark_as_sent, original_calls, sent_parameters
from toolkit.adapters.strict.receipt import StrictReceipt
from toolkit.adapters.strict.rules import BEDROCK
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
from toolkit.wire.content import BlockType, ContentBlock
from toolkit.wire.definition import AnyDefinition, ToolChoice, ToolDefinition
from toolkit.wire.message import ChatMessage, TextMessage
from toolkit.wire.query import QueryResult, Reasoning, Usage

PROVIDER: Final = "bedrock"
CHOICES: Final[ChoiceTable] = {"auto": {"auto": {}}, "none": None, "required": {"any": {}}}
_ID: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9()\[\]-]+")
_LONGEST_NAME: Final = 200
_MADE_NAME: Final = re.compile(r"document( \d+)?")
_IMAGES: Final = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
_DOCUMENTS: Final = {
    PDF: "pdf",
    "text/plain": "txt",
    "text/markdown": "md",
    "text/html": "html",
    "text/csv": "csv",
    **{kind: ending for kind, ending in OFFICE.items() if not ending.startswith("ppt")},
}
_AUDIO: Final = {
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/opus": "opus",
    "audio/aac": "aac",
    "audio/mp4": "mp4",
    "audio/webm": "webm",
}
_VIDEOS: Final = {
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "video/webm": "webm",
    "video/x-matroska": "mkv",
    "video/mpeg": "mpeg",
    "video/x-flv": "flv",
    "video/x-ms-wmv": "wmv",
    "video/3gpp": "three_gp",
}
# For each key of Converse: the neutral block and the formats, by media type. One with several media types is read as the
# first. The neutral form has videos among its documents.
_KINDS: Final[dict[str, tuple[BlockType, dict[str, str]]]] = {
    "image": ("image", _IMAGES),
    "document": ("document", _DOCUMENTS),
    "audio": ("audio", _AUDIO),
    "video": ("document", _VIDEOS),
}
# What a caller may want to know about an answer.
_KEPT: Final = ("additionalModelResponseFields", "metrics", "trace", "usage")
# JSON of tools and users: nothing in it is media, whatever it looks like.
_FOREIGN: Final = frozenset({"input", "json"})


# -- tools ---------------------------------------------------------------------------------------------------------------


def sent_name(name: str) -> str:
    """The name of a tool as this provider accepts it."""
    return provider_name(name, OPENAI_NAME)


def encode_tools(definitions: Iterable[AnyDefinition], strict: bool | None = None) -> list[JsonDict]:
    """The list ``toolConfig.tools``. ``strict`` asks for strict mode for definitions that do not say; native tools of
    this provider (system tools, cache points) go out unchanged.

    In strict mode the schema of the definition's receipt (``toolkit.adapters.strict``) is sent, and ``decode_strict_calls``
    decodes what the model answers. A schema outside the provider's subset, or beyond what a request may have, is sent as it
    is, without the flag.
    """
    listed = list(definitions)
    receipts = choose_strict(listed, strict, PROVIDER, BEDROCK)
    return encode_definitions(
        listed, PROVIDER, lambda definition: encode_definition(definition, strict, receipts.get(definition.name))
    )


def encode_definition(
    definition: ToolDefinition, strict: bool | None = None, receipt: StrictReceipt | None = None
) -> JsonDict:
    """One tool, without what only its metadata knows."""
    parameters, is_strict = sent_parameters(definition, strict, receipt)
    spec: JsonDict = {"name": sent_name(definition.name), "inputSchema": {"json": {"type": "object", **parameters}}}
    if definition.description:
        spec["description"] = definition.description
    return {"toolSpec": spec if is_strict is None else {**spec, "strict": is_strict}}


def decode_tools(tools: object) -> list[AnyDefinition]:
    """The list ``toolConfig.tools``."""
    return decode_definitions(tools, PROVIDER, _decode_definition, encode_definition)


def _decode_definition(tool: JsonDict) -> ToolDefinition | None:
    spec = tool.get("toolSpec")
    schema = plain_object(spec.get("inputSchema")).get("json") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(schema, dict) or "name" not in spec:
        return None
    made = ToolDefinition(spec["name"], spec.get("description") or "", JsonObject(schema), spec.get("strict"))
    return mark_as_sent(made, PROVIDER, BEDROCK)


def encode_choice(choice: ToolChoice) -> Any:
    """``toolConfig.toolChoice``. Converse has no ``none``: then this returns None, and the request must have no tools."""
    return encode_tool_choice(choice, PROVIDER, CHOICES, lambda name: {"tool": {"name": sent_name(name)}})


def decode_choice(choice: object) -> ToolChoice:
    return decode_tool_choice(choice, PROVIDER, CHOICES, _decode_named_choice)


def _decode_named_choice(found: Any) -> str | None:
    tool = found.get("tool") if isinstance(found, dict) else None
    name = tool.get("name") if isinstance(tool, dict) else None
    return name if found == {"tool": {"name": name}} else None


def decode_strict_calls(
    calls: Sequence[ToolCall], definitions: Iterable[AnyDefinition], strict: bool | None = None
) -> list[ToolCall]:
    """Calls of tools that ``encode_tools`` sent in strict mode, given the same arguments, in the form of the tools' schemas.

    Call it for the calls of each answer. In the history, a call is still sent as the model wrote it.
    """
    return original_calls(calls, definitions, strict, PROVIDER, BEDROCK, sent_name, partial(encode_call_block, WRITER))


# -- messages ------------------------------------------------------------------------------------------------------------


def encode_messages(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    """The list ``messages``, in which roles alternate. Results come first in the message right after their calls.

    Media that a result or a model's message cannot have follow in one of a user. Converse has no system role here;
    ``split_system`` takes them out for the field ``system``.
    """
    return _name_documents(encode_turns(WRITER, _place_media(messages)))


def split_system(messages: Sequence[ChatMessage]) -> tuple[list[JsonDict] | None, list[ChatMessage]]:
    """What goes into the field ``system``, which is all system texts wherever they are, and the other messages."""
    system: list[JsonDict] = []
    rest: list[ChatMessage] = []
    for message in _place_media(messages):
        if isinstance(message, TextMessage) and message.role == "system":
            system += arrange_blocks(WRITER, message.content, (), provider_metadata(message.metadata, PROVIDER))
        else:
            rest.append(message)
    return system or None, rest


def _place_media(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    return move_media(messages, PROVIDER, by_users=takes, in_results=takes_in_results)


def decode_messages(messages: object) -> list[ChatMessage]:
    """The list ``messages``; ``decode_system`` decodes the field ``system``."""
    return decode_turns(READER, messages)


def decode_system(system: object) -> list[ChatMessage]:
    """The field ``system`` as a message for the start of the conversation."""
    found = plain_list(system)
    return decode_turns(READER, [{"role": "system", "content": found}]) if found else []


def boto3_messages(encoded: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The result of ``encode_messages`` for ``client.converse(messages=...)``.

    >>> image = {"image": {"format": "png", "source": {"bytes": "AAEC"}}}
    >>> boto3_messages([{"role": "user", "content": [image]}])[0]["content"][0]["image"]["source"]["bytes"]
    b'\\x00\\x01\\x02'
    """
    return [_with_bytes(message) for message in encoded]


def _with_bytes(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_bytes(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: item if key in _FOREIGN else _decode_bytes(key, item) for key, item in value.items()}


def _decode_bytes(key: str, value: Any) -> Any:
    if key == "redactedContent" and isinstance(value, str):
        return base64.b64decode(value)
    if key == "source" and isinstance(value, dict) and isinstance(value.get("bytes"), str):
        return {**value, "bytes": base64.b64decode(value["bytes"])}
    return _with_bytes(value)


# -- names of documents, which must differ -------------------------------------------------------------------------------


def _name_documents(turns: list[JsonDict]) -> list[JsonDict]:
    """The messages with a name for each document; Converse wants a different one for each."""
    named = deepcopy(turns)  # parts of it may belong to somebody's metadata
    documents = [document for turn in named for document in _find_documents(turn.get("content"))]
    names = [document["name"] for document in documents if isinstance(document.get("name"), str)]
    taken, used = set(names), set[str]()
    for document in documents:
        name = document.get("name")
        if "name" not in document or (isinstance(name, str) and name in used):
            document["name"] = _free_name(name, taken)
            taken.add(document["name"])
        elif isinstance(name, str):
            used.add(name)
    return named


def _free_name(wanted: str | None, taken: set[str]) -> str:
    forms = (
        f"document {number}" if wanted is None else f"{wanted[:190]} ({number + 1})" for number in itertools.count(1)
    )
    return next(name for name in forms if name not in taken)


def _find_documents(blocks: object) -> Iterator[JsonDict]:
    for block in blocks if isinstance(blocks, list) else ():
        document, result = (block.get("document"), block.get("toolResult")) if isinstance(block, dict) else (None, None)
        if isinstance(document, dict):
            yield document
        if isinstance(result, dict):
            yield from _find_documents(result.get("content"))


def _document_name(filename: str) -> str:
    """A name in the characters that Converse allows, without the ending, which the format says.

    >>> _document_name("Q3 report, v2.pdf")
    'Q3 report v2'
    """
    stem = filename.rpartition(".")[0] or filename
    return " ".join(_NOT_IN_NAMES.sub(" ", stem).split())[:_LONGEST_NAME] or "document"


# -- answers -------------------------------------------------------------------------------------------------------------


def decode_response(response: object) -> QueryResult:
    """The answer; one that is an error becomes ``finish_reason="error"``."""
    raw = mend(plain_object(response))
    message = plain_object(plain_object(raw.get("output")).get("message"))
    if not isinstance(message.get("content"), list):
        return error_result(PROVIDER, raw)
    return build_result(raw)


def build_result(response: JsonDict, texts: Mapping[int, str] | None = None) -> QueryResult:
    """The result for a whole answer; ``texts`` has the argument texts of streamed calls, by the position of their block."""
    blocks = [_as_request(block) for block in plain_objects(response["output"]["message"]["content"])]
    content, calls, kept = decode_answer(READER, blocks, texts)
    reported = response.get("stopReason")
    reason = choose_finish_reason(reported, FINISH_REASONS, calls)
    if reason == "length" and blocks[-1:] and _decode_call(blocks[-1]) is not None:
        calls = refuse_last(calls)
    fields = {key: response[key] for key in _KEPT if response.get(key) is not None}
    metadata = {PROVIDER: {"finish_reason": reported, **fields, **drop_empty_texts(kept)}}
    usage = decode_usage(response.get("usage"))
    return QueryResult(content, calls, reason, usage, metadata, _decode_reasoning(blocks))


def _decode_reasoning(blocks: list[JsonDict]) -> list[Reasoning]:
    shown = [block["reasoningContent"] for block in blocks if isinstance(block.get("reasoningContent"), dict)]
    texts = [plain_text(plain_object(one.get("reasoningText")).get("text")) for one in shown]
    return [Reasoning(text, is_hidden=not text) for text in texts]


def _as_request(block: JsonDict) -> JsonDict:
    """A block of an answer without the types of texts and calls, which requests may not have."""
    use = block.get("toolUse")
    if isinstance(use, dict) and use.get("type") == "tool_use":
        return {**block, "toolUse": {key: value for key, value in use.items() if key != "type"}}
    return {key: value for key, value in block.items() if (key, value) != ("type", "text")}


def decode_usage(usage: object) -> Usage:
    """The provider's ``inputTokens`` are without what was read from a cache or written to one."""
    found = plain_object(usage)
    read, written = found.get("cacheReadInputTokens"), found.get("cacheWriteInputTokens")
    return Usage(
        add_counts(found.get("inputTokens"), read, written),
        count(found.get("outputTokens")),
        count(read),
        cache_write_tokens=count(written),
    )


# -- blocks of text and media --------------------------------------------------------------------------------------------


def takes(block: ContentBlock) -> bool:
    """Whether a user's message takes this block of media."""
    return _encode_media(block) is not None


def takes_in_results(block: ContentBlock) -> bool:
    """Whether a result takes this block of media."""
    return block.type != "audio" and takes(block)


def encode_part(block: ContentBlock) -> JsonDict:
    """The block for Converse, which takes bytes and objects in S3; a text in place of anything else.

    A document has no name yet unless its block has one: names must differ within a conversation, so ``encode_messages``
    sets them.
    """
    if block.text is not None:
        return {"text": block.text}
    media = _encode_media(block)
    return {"text": stand_in(block)} if media is None else media


def _encode_media(block: ContentBlock) -> JsonDict | None:
    source, found = _encode_source(block), _find_format(block)
    if source is None or found is None:
        return None
    key, form = found
    name = {"name": _document_name(block.filename)} if key == "document" and block.filename else {}
    return {key: {"format": form, **name, "source": source}}


def _encode_source(block: ContentBlock) -> JsonDict | None:
    if block.data is not None:
        return {"bytes": block.data}
    return {"s3Location": {"uri": block.url}} if block.url is not None and block.url.startswith("s3://") else None


def _find_format(block: ContentBlock) -> tuple[str, str] | None:
    """Converse's key and format for a block of media."""
    media = media_type(block)
    for key, (kind, formats) in _KINDS.items():
        if block.type == kind and media in formats:
            return key, formats[media]
    return ("document", "txt") if block.type == "document" and is_textual(media) else None


def decode_part(block: JsonDict) -> ContentBlock | None:
    """The neutral block; None if the neutral form has none for it."""
    if isinstance(block.get("text"), str):
        return ContentBlock("text", text=block["text"])
    for key, (kind, formats) in _KINDS.items():
        media = plain_object(block.get(key))
        for named, form in formats.items():
            if media.get("format") == form:
                return _decode_source(kind, named, media)
    return None


def _decode_source(kind: BlockType, media_type: str, media: JsonDict) -> ContentBlock | None:
    source, name = media.get("source"), as_text(media.get("name")) or ""
    filename = None if _MADE_NAME.fullmatch(name) else name or None
    if not isinstance(source, dict):
        return None
    if isinstance(source.get("bytes"), str):
        return ContentBlock(kind, media_type, data=source["bytes"], filename=filename)
    place = source.get("s3Location")
    if isinstance(place, dict) and isinstance(place.get("uri"), str):
        return ContentBlock(kind, media_type, url=place["uri"], filename=filename)
    return None


# -- how blocks are written and read -------------------------------------------------------------------------------------


def _sent_id(id: str) -> str:
    return provider_name(id, _ID)


def _encode_text(text: str) -> JsonDict:
    return {"text": text}


def _encode_call(call: ToolCall) -> JsonDict:
    return {"toolUse": {"toolUseId": call.id, "name": sent_name(call.name), "input": call_input(call)}}


def _encode_result(result: ToolResult, kept: JsonDict) -> JsonDict:
    made: JsonDict = {"toolUseId": result.tool_call_id, "content": _encode_result_content(result, kept)}
    return {"toolResult": {**made, "status": "error"} if result.kind == "error" else made}


def _encode_result_content(result: ToolResult, kept: JsonDict) -> list[JsonDict]:
    if result.kind == "data":
        value = plain(result.value)
        # Models refuse JSON here that is not an object.
        return [{"json": value}] if isinstance(value, dict) else [_encode_text(compact(value))]
    blocks = result_blocks(result)
    return arrange_blocks(WRITER, str(result.value) if blocks is None else blocks, (), kept)


WRITER: Final = BlockWriter(
    provider=PROVIDER,
    id=_sent_id,
    text=_encode_text,
    part=encode_part,
    call=_encode_call,
    result=_encode_result,
    about_text=frozenset({"citationsContent"}),
    bare_text=False,
    alternating=True,
)


def _decode_text(block: JsonDict) -> str | None:
    """The text of a block, also with citations around it."""
    text = block.get("text")
    if isinstance(text, str):
        return text
    cited = plain_object(block.get("citationsContent")).get("content")
    if not isinstance(cited, list):
        return None
    return "".join(part["text"] for part in cited if isinstance(part, dict) and isinstance(part.get("text"), str))


def _decode_call(block: JsonDict) -> ToolCall | None:
    raw = block.get("toolUse")
    if not isinstance(raw, dict) or raw.get("type") == "server_tool_use":  # which Bedrock runs itself
        return None
    return call_from_arguments(plain_text(raw.get("toolUseId")), plain_text(raw.get("name")), raw.get("input"))


def _decode_result(block: JsonDict, names: Mapping[str, str]) -> tuple[ToolResult, JsonDict] | None:
    raw = block.get("toolResult")
    if not isinstance(raw, dict):
        return None
    id = str(raw.get("toolUseId") or "")
    name, failed = names.get(id, ""), raw.get("status") == "error"
    parts = [part for part in plain_list(raw.get("content")) if isinstance(part, dict)]
    data = parts[0]["json"] if len(parts) == 1 and "json" in parts[0] else None
    if isinstance(data, dict):
        return ToolResult(id, name, "error" if failed else "data", compact(data) if failed else data), {}
    return decode_result_content(READER, id, name, parts, failed=failed)


READER: Final = BlockReader(
    writer=WRITER, text=_decode_text, part=decode_part, call=_decode_call, result=_decode_result
)
