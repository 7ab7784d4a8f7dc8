"""Content blocks of Anthropic's messages: text, images and documents, both ways."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any, Final

from toolkit.adapters.media.blocks import (
    COMMON_IMAGES,
    PDF,
    as_text,
    document_text,
    is_own_file,
    is_web_url,
    media_type,
    stand_in,
)
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.content import ContentBlock

PROVIDER: Final = "anthropic"


def encode_part(block: ContentBlock) -> JsonDict:
    """One block; a text in place of media that Anthropic does not take."""
    if block.text is not None:
        return {"type": "text", "text": block.text}
    media = _encode_media(block)
    return {"type": "text", "text": stand_in(block, PROVIDER)} if media is None else media


def takes(block: ContentBlock) -> bool:
    """Whether users' messages and results take this block of media."""
    return _encode_media(block) is not None


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
