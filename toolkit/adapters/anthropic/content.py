"""Content blocks of Anthropic's messages: text, images and documents, both ways."""

from __future__ import annotations

import base64
import binascii

from toolkit.adapters.media import media_note
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.content import ContentBlock


def encode_part(block: ContentBlock) -> JsonDict:
    if block.type == "text":
        return {"type": "text", "text": block.text}
    if block.type == "audio":
        return {"type": "text", "text": media_note(block)}
    return {"type": block.type, "source": _encode_source(block)}


def _encode_source(block: ContentBlock) -> JsonDict:
    if block.url is not None:
        return {"type": "url", "url": block.url}
    if block.file_id is not None:
        return {"type": "file", "file_id": block.file_id}
    if block.type == "document" and (block.media_type or "").startswith("text/"):
        text = _decode_text(block.data or "")
        if text is not None:
            return {"type": "text", "media_type": "text/plain", "data": text}
    default = "image/png" if block.type == "image" else "application/pdf"
    return {"type": "base64", "media_type": block.media_type or default, "data": block.data}


def decode_part(block: JsonDict) -> ContentBlock | None:
    """The neutral block; None if the neutral form has none for it."""
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return ContentBlock("text", text=block["text"])
    source = block.get("source")
    if kind not in ("image", "document") or not isinstance(source, dict):
        return None
    form = source.get("type")
    if form == "url" and isinstance(source.get("url"), str):
        return ContentBlock(kind, url=source["url"])
    if form == "file" and isinstance(source.get("file_id"), str):
        return ContentBlock(kind, file_id=source["file_id"])
    if form == "base64" and isinstance(source.get("data"), str):
        return ContentBlock(kind, source.get("media_type"), data=source["data"])
    if form == "text" and kind == "document" and isinstance(source.get("data"), str):
        return ContentBlock(kind, "text/plain", data=base64.b64encode(source["data"].encode()).decode())
    return None


def _decode_text(data: str) -> str | None:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
