"""Content parts of Responses: text, images and files, both ways. Parts nobody else knows keep their place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from toolkit.adapters.lossless import residue, restored
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.content import ContentBlock

_DATA_URL: Final = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+);base64,(?P<data>.*)", re.DOTALL)
_TEXTS: Final = frozenset({"input_text", "output_text", "text"})


def encode_parts(blocks: Sequence[ContentBlock], kept: JsonDict, *, role: str = "user") -> list[JsonDict]:
    """Parts for blocks, with native parts back in their places and what else came with each part."""
    extras: JsonDict = kept.get("parts", {})
    parts = [restored(_part(block, role), extras.get(str(at))) for at, block in enumerate(blocks)]
    for place, raw in sorted((int(place), raw) for place, raw in kept.get("native_parts", {}).items()):
        parts.insert(place, raw)
    return parts


def decode_parts(parts: Sequence[JsonDict], *, role: str = "user") -> tuple[list[ContentBlock], JsonDict]:
    """Blocks for parts, and what must be kept to make the same parts again."""
    blocks: list[ContentBlock] = []
    extras, natives = {}, {}
    for place, part in enumerate(parts):
        block = _block(part)
        if block is None:
            natives[str(place)] = part
            continue
        left = residue(part, _part(block, role))
        if left is not None:
            extras[str(len(blocks))] = left
        blocks.append(block)
    kept = {"parts": extras, "native_parts": natives}
    return blocks, {key: value for key, value in kept.items() if value}


def text_of(content: Any) -> str:
    """The text of a message item's content, whatever its form."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part["text"] for part in parts if is_text(part))


def is_text(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in _TEXTS and isinstance(part.get("text"), str)


def _part(block: ContentBlock, role: str) -> JsonDict:
    if block.type == "text":
        return {"type": "output_text" if role == "assistant" else "input_text", "text": block.text}
    if block.type == "image":
        if block.file_id is not None:
            return {"type": "input_image", "file_id": block.file_id}
        url = block.url if block.url is not None else f"data:{block.media_type or 'image/png'};base64,{block.data}"
        return {"type": "input_image", "image_url": url}
    if block.file_id is not None:
        return {"type": "input_file", "file_id": block.file_id}
    if block.url is not None:
        return {"type": "input_file", "file_url": block.url}
    return {"type": "input_file", "file_data": f"data:{block.media_type or 'application/pdf'};base64,{block.data}"}


def _block(part: object) -> ContentBlock | None:
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    if is_text(part):
        return ContentBlock("text", text=part["text"])
    if kind == "input_image":
        return _media("image", part, "image_url")
    if kind == "input_file":
        return _media("document", part, "file_url") or _media("document", part, "file_data")
    return None


def _media(kind: Any, part: JsonDict, key: str) -> ContentBlock | None:
    if isinstance(part.get("file_id"), str):
        return ContentBlock(kind, file_id=part["file_id"])
    url = part.get(key)
    if not isinstance(url, str):
        return None
    found = _DATA_URL.fullmatch(url)
    if found is not None:
        return ContentBlock(kind, found["type"], data=found["data"])
    return None if key == "file_data" else ContentBlock(kind, url=url)
