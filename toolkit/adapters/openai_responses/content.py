"""Content parts of Responses: text, images and files, both ways. Native parts keep their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from toolkit.adapters.lossless import keep_parts, restore_parts
from toolkit.adapters.media import block_from_url, detail_field, media_url, with_detail
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.content import BlockType, ContentBlock

_TEXTS: Final = frozenset({"input_text", "output_text", "text"})


def encode_parts(blocks: Sequence[ContentBlock], kept: JsonDict, *, role: str = "user") -> list[JsonDict]:
    """Parts for blocks, with native parts and whatever else came with each part put back."""
    return restore_parts([_encode_part(block, role) for block in blocks], kept)


def decode_parts(parts: Sequence[JsonDict], *, role: str = "user") -> tuple[list[ContentBlock], JsonDict]:
    """Blocks for parts, and what must be kept to write the same parts again."""
    blocks = [_decode_part(part) for part in parts]
    kept = keep_parts(parts, [None if block is None else _encode_part(block, role) for block in blocks])
    return [block for block in blocks if block is not None], kept


def content_text(content: Any) -> str:
    """The text of a message item's content, whatever its form."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part["text"] for part in parts if is_text(part))


def is_text(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in _TEXTS and isinstance(part.get("text"), str)


def _encode_part(block: ContentBlock, role: str) -> JsonDict:
    if block.type == "text":
        return {"type": "output_text" if role == "assistant" else "input_text", "text": block.text}
    if block.type == "image":
        if block.file_id is not None:
            return {"type": "input_image", "file_id": block.file_id, **detail_field(block)}
        return {"type": "input_image", "image_url": media_url(block), **detail_field(block)}
    if block.file_id is not None:
        return {"type": "input_file", "file_id": block.file_id}
    if block.url is not None:
        return {"type": "input_file", "file_url": block.url}
    return {"type": "input_file", "file_data": media_url(block)}


def _decode_part(part: object) -> ContentBlock | None:
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    if is_text(part):
        return ContentBlock("text", text=part["text"])
    if kind == "input_image":
        return with_detail(_decode_media("image", part, "image_url"), part.get("detail"))
    if kind == "input_file":
        return _decode_media("document", part, "file_url") or _decode_media("document", part, "file_data")
    return None


def _decode_media(kind: BlockType, part: JsonDict, key: str) -> ContentBlock | None:
    if isinstance(part.get("file_id"), str):
        return ContentBlock(kind, file_id=part["file_id"])
    block = block_from_url(kind, part.get(key))
    # A `file_data` that is not a `data:` URL cannot be read as one.
    return None if block is None or (key == "file_data" and block.data is None) else block
