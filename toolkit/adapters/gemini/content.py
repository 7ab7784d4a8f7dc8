"""Parts of Gemini's contents: text, media, calls and results, both ways."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from toolkit.adapters.gemini.key_case import detect_spelling, join_spellings, respell, to_camel_case
from toolkit.adapters.lossless import keep_parts, provider_metadata, restore, restore_parts
from toolkit.adapters.media.blocks import (
    COMMON_IMAGES,
    PDF,
    as_text,
    is_own_file,
    is_textual,
    is_web_url,
    media_type,
    stand_in,
    standard_base64,
)
from toolkit.adapters.plain_json import JsonDict, plain_list, plain_object, plain_text
from toolkit.adapters.provider_names import MADE_ID, provider_name
from toolkit.adapters.result_value import result_blocks
from toolkit.adapters.values import compact
from toolkit.wire.call import ToolCall
from toolkit.wire.content import BlockType, ContentBlock, ImageDetail
from toolkit.wire.result import ToolResult

PROVIDER: Final = "gemini"
_IMAGES: Final = COMMON_IMAGES | {"image/heic", "image/heif"}
_IN_RESULTS: Final = frozenset({"image/png", "image/jpeg", "image/webp", PDF, "text/plain"})
# The service's own store of files, which nobody else can read.
_OWN_FILES: Final = "https://generativelanguage.googleapis.com/"
_RESOLUTIONS: Final[dict[ImageDetail | None, str]] = {"low": "MEDIA_RESOLUTION_LOW", "high": "MEDIA_RESOLUTION_HIGH"}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")


def sent_name(name: str) -> str:
    """The name of a tool as this provider accepts it."""
    return provider_name(name, _NAME)


def _sent_id(id: str) -> JsonDict:
    return {} if id.startswith(MADE_ID) else {"id": id}


# -- calls ---------------------------------------------------------------------------------------------------------------


def encode_call(call: ToolCall, *, signed: bool = True, spelling: object = None) -> JsonDict:
    """The part of a call.

    :param signed: whether the signature of the model that made the call is sent with it.
    """
    kept = provider_metadata(call.metadata, PROVIDER)
    made: JsonDict = {"functionCall": {**_sent_id(call.id), "name": sent_name(call.name), "args": call.arguments}}
    if "signature" in kept:
        made["thoughtSignature"] = kept["signature"]
    whole: JsonDict = restore(respell(made, spelling), kept)
    return whole if signed else strip_signature(whole)


def decode_call(part: JsonDict, made_id: str) -> ToolCall:
    """The call in a part; ``made_id`` is its id if it has none."""
    raw = part["functionCall"]
    arguments = raw.get("args")
    kept = {"signature": part["thoughtSignature"]} if "thoughtSignature" in part else {}
    metadata: dict[str, object] | None = {PROVIDER: kept} if kept else None
    return ToolCall(
        plain_text(raw.get("id")) or made_id,
        plain_text(raw.get("name")),
        arguments if isinstance(arguments, dict) else {},
        metadata,
    )


def is_signed(part: JsonDict) -> bool:
    return "thoughtSignature" in part or "thought_signature" in part


def strip_signature(part: JsonDict) -> JsonDict:
    return {key: value for key, value in part.items() if key not in ("thoughtSignature", "thought_signature")}


# -- results -------------------------------------------------------------------------------------------------------------


def encode_result(result: ToolResult) -> JsonDict:
    """The part of a result, without what only the metadata of its message knows."""
    response, media = _split_media(result)
    made: JsonDict = {**_sent_id(result.tool_call_id), "name": sent_name(result.name), "response": response}
    if media:
        made["parts"] = [_encode_part(block) for block in media]
    return {"functionResponse": made}


def _split_media(result: ToolResult) -> tuple[JsonDict, list[ContentBlock]]:
    """The response object of a result, and the media that go next to it."""
    value = result.value
    if result.kind == "error":
        return {"error": value}, []
    blocks = result_blocks(result)
    if blocks is not None:
        media = [block for block in blocks if takes(block)]
        texts = [
            stand_in(block, PROVIDER) if block.text is None else block.text for block in blocks if block not in media
        ]
        return ({"output": "\n".join(texts)} if texts else {}), media
    if result.kind == "data" and isinstance(value, dict):
        return value, []
    return {"output": value}, []


def decode_result(part: JsonDict, id: str) -> ToolResult:
    """The result in a part, for the call with this id."""
    raw = part["functionResponse"]
    response, name = raw.get("response") or {}, raw.get("name") or ""
    parts = map(plain_object, plain_list(raw.get("parts")))
    media = [block for block in map(_decode_part, parts) if block is not None]
    if not isinstance(response, dict):
        return ToolResult(id, name, "data", response)
    if media:
        text = response.get("output") if list(response) == ["output"] else compact(response) if response else None
        lead = [ContentBlock("text", text=text)] if isinstance(text, str) else []
        return ToolResult(id, name, "multimodal", (*lead, *media))
    if list(response) == ["output"] and isinstance(response["output"], str):
        return ToolResult(id, name, "text", response["output"])
    if list(response) == ["error"] and isinstance(response["error"], str):
        return ToolResult(id, name, "error", response["error"])
    if list(response) == ["output"] and not isinstance(response["output"], dict):
        return ToolResult(id, name, "data", response["output"])
    return ToolResult(id, name, "data", response)


# -- text and media ------------------------------------------------------------------------------------------------------


def encode_text(text: str) -> list[JsonDict]:
    """The parts of a text; none if it is empty."""
    return [{"text": text}] if text else []


def encode_parts(content: str | Sequence[ContentBlock], kept: JsonDict) -> list[JsonDict]:
    """Parts for a text or blocks, with native parts and whatever else came with each part put back."""
    parts = encode_text(content) if isinstance(content, str) else [_encode_whole_part(block) for block in content]
    return restore_parts([respell(part, kept.get("spelling")) for part in parts], kept)


def decode_parts(parts: Sequence[JsonDict]) -> tuple[list[ContentBlock], JsonDict]:
    """Blocks for parts, and what must be kept to write the same parts again."""
    spelling = find_spelling(parts)
    blocks = [_decode_whole_part(to_camel_case(part)) for part in parts]
    encoded = [None if block is None else respell(_encode_whole_part(block), spelling) for block in blocks]
    kept = keep_parts(parts, encoded)
    if spelling:
        kept["spelling"] = spelling
    return [block for block in blocks if block is not None], kept


def find_spelling(parts: Sequence[JsonDict]) -> str | None:
    """The spelling of parts."""
    return join_spellings(map(detect_spelling, parts))


def takes(block: ContentBlock) -> bool:
    """Whether messages take this block of media."""
    return block.text is None and _encode_media(block) is not None


def takes_in_results(block: ContentBlock) -> bool:
    """Whether a result takes this block of media, in models that take media there at all."""
    return takes(block) and media_type(block) in _IN_RESULTS


def _encode_whole_part(block: ContentBlock) -> JsonDict:
    """A part of a message, which may say how closely the model looks at an image; parts of results may not."""
    made = _encode_part(block)
    if block.detail not in _RESOLUTIONS or "text" in made:
        return made
    return {**made, "mediaResolution": {"level": _RESOLUTIONS[block.detail]}}


def _decode_whole_part(part: JsonDict) -> ContentBlock | None:
    block, level = _decode_part(part), plain_object(part.get("mediaResolution")).get("level")
    if block is None or block.type != "image":
        return block
    return replace(block, detail=next((word for word, name in _RESOLUTIONS.items() if name == level), None))


def _encode_part(block: ContentBlock) -> JsonDict:
    if block.text is not None:
        return {"text": block.text}
    media = _encode_media(block)
    return {"text": stand_in(block, PROVIDER)} if media is None else media


def _encode_media(block: ContentBlock) -> JsonDict | None:
    kind = media_type(block)
    if not _is_readable(block.type, kind):
        return None
    if block.data is not None:
        return {"inlineData": {"mimeType": kind, "data": block.data}}
    if block.file_id is not None:
        uri = block.file_id if is_own_file(block, PROVIDER) else None
    else:
        uri = block.url if is_web_url(block) or (block.url or "").startswith("gs://") else None
    if uri is None:
        return None
    return {"fileData": {"fileUri": uri, **({"mimeType": kind} if block.media_type is not None else {})}}


def _is_readable(type: BlockType, kind: str) -> bool:
    """Whether models read files of this kind; the service refuses a request with any other."""
    if type == "image":
        return kind in _IMAGES
    return type == "audio" or kind == PDF or kind.startswith("video/") or is_textual(kind)


def _decode_part(part: JsonDict) -> ContentBlock | None:
    """The block of a part that is text or media, else None. A thought is neither.

    The name of a file is read and not written: the Gemini API refuses it.
    """
    if isinstance(part.get("text"), str) and not part.get("thought"):
        return ContentBlock("text", text=part["text"])
    inline, file = part.get("inlineData"), part.get("fileData")
    if isinstance(inline, dict) and isinstance(inline.get("data"), str):
        data, kind = standard_base64(inline["data"]), as_text(inline.get("mimeType"))
        return ContentBlock(_block_type(kind), kind, data=data, filename=as_text(inline.get("displayName")))
    if isinstance(file, dict) and isinstance(file.get("fileUri"), str):
        kind, uri, name = as_text(file.get("mimeType")), file["fileUri"], as_text(file.get("displayName"))
        if uri.startswith(_OWN_FILES):
            return ContentBlock(_block_type(kind), kind, file_id=uri, provider=PROVIDER, filename=name)
        return ContentBlock(_block_type(kind), kind, url=uri, filename=name)
    return None


def _block_type(kind: str | None) -> BlockType:
    family = (kind or "").partition("/")[0]
    return "image" if family == "image" else "audio" if family == "audio" else "document"
