"""Content parts: text, images, audio and files, both ways. Parts nobody else knows keep their place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from toolkit.adapters.lossless import residue, restored
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.content import ContentBlock

_DATA_URL: Final = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+);base64,(?P<data>.*)", re.DOTALL)
_AUDIO: Final = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_FORMATS: Final = {media: name for name, media in _AUDIO.items()}


def encode_parts(blocks: Sequence[ContentBlock], kept: JsonDict) -> list[JsonDict]:
    """Parts for blocks, with native parts back in their places and what else came with each part."""
    extras: JsonDict = kept.get("parts", {})
    parts = [restored(encode_part(block), extras.get(str(at))) for at, block in enumerate(blocks)]
    for place, raw in sorted((int(place), raw) for place, raw in kept.get("native_parts", {}).items()):
        parts.insert(place, raw)
    return parts


def decode_parts(parts: Sequence[JsonDict]) -> tuple[list[ContentBlock], JsonDict]:
    """Blocks for parts, and what must be kept to make the same parts again."""
    blocks: list[ContentBlock] = []
    extras, natives = {}, {}
    for place, part in enumerate(parts):
        block = decode_part(part)
        if block is None:
            natives[str(place)] = part
            continue
        left = residue(part, encode_part(block))
        if left is not None:
            extras[str(len(blocks))] = left
        blocks.append(block)
    kept = {"parts": extras, "native_parts": natives}
    return blocks, {key: value for key, value in kept.items() if value}


def text_of(content: Any) -> str:
    """The text of a message's content, whatever its form."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") in ("text", None)]
    return "".join(text for text in texts if isinstance(text, str))


def encode_part(block: ContentBlock) -> JsonDict:
    """One block as OpenAI writes it."""
    if block.type == "text":
        return {"type": "text", "text": block.text}
    if block.type == "image":
        url = block.url if block.url is not None else f"data:{block.media_type or 'image/png'};base64,{block.data}"
        if block.file_id is not None:
            return {"type": "file", "file": {"file_id": block.file_id}}
        return {"type": "image_url", "image_url": {"url": url}}
    if block.type == "audio" and block.data is not None:
        return {"type": "input_audio", "input_audio": {"data": block.data, "format": _format(block.media_type)}}
    if block.file_id is not None:
        return {"type": "file", "file": {"file_id": block.file_id}}
    data = block.url if block.url is not None else f"data:{block.media_type or 'application/pdf'};base64,{block.data}"
    return {"type": "file", "file": {"file_data": data}}


def decode_part(part: JsonDict) -> ContentBlock | None:
    """The block of a part, or None for one that only OpenAI knows."""
    kind = part.get("type")
    if kind == "text" and isinstance(part.get("text"), str):
        return ContentBlock("text", text=part["text"])
    if kind == "image_url" and isinstance(part.get("image_url"), dict):
        return _media("image", part["image_url"].get("url"))
    if kind == "input_audio" and isinstance(part.get("input_audio"), dict):
        audio = part["input_audio"]
        known = _AUDIO.get(audio.get("format"))
        return None if known is None else ContentBlock("audio", known, data=audio.get("data"))
    if kind == "file" and isinstance(part.get("file"), dict):
        file = part["file"]
        if isinstance(file.get("file_id"), str):
            return ContentBlock("document", file_id=file["file_id"])
        return _media("document", file.get("file_data"))
    return None


def _media(kind: Any, url: object) -> ContentBlock | None:
    if not isinstance(url, str):
        return None
    found = _DATA_URL.fullmatch(url)
    if found is None:
        return ContentBlock(kind, url=url)
    return ContentBlock(kind, found["type"], data=found["data"])


def _format(media_type: str | None) -> str:
    return _FORMATS.get(media_type or "", (media_type or "audio/wav").rpartition("/")[2])
