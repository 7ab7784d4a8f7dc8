"""Content parts of Cohere's chat: text and images, both ways. Native parts (thinking, documents) keep their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.adapters.lossless import (
    has_native_parts,
    insert_native_parts,
    keep_native_parts,
    keep_parts,
    restore_parts,
)
from toolkit.adapters.media.blocks import COMMON_IMAGES, is_web_url, media_type, stand_in
from toolkit.adapters.openai_chat.content import decode_part
from toolkit.adapters.openai_chat.content import encode_part as encode_image
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.content import ContentBlock


def encode_parts(blocks: Sequence[ContentBlock], kept: JsonDict) -> list[JsonDict]:
    """Parts for blocks, with native parts and whatever else came with each part put back."""
    return restore_parts([_encode_part(block) for block in blocks], kept)


def decode_parts(parts: Sequence[JsonDict]) -> tuple[list[ContentBlock], JsonDict]:
    """Blocks for parts, and what must be kept to write the same parts again."""
    blocks = [decode_part(part) if _is_readable(part) else None for part in parts]
    kept = keep_parts(parts, [None if block is None else _encode_part(block) for block in blocks])
    return [block for block in blocks if block is not None], kept


def _is_readable(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in ("text", "image_url")


def _is_text(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def encode_text(text: str, kept: JsonDict) -> Any:
    """A model's text: a list of parts if it came as one, else the text itself."""
    if not has_native_parts(kept) and not kept.get("is_list"):
        return text
    return insert_native_parts([{"type": "text", "text": text}] if text else [], kept)


def decode_text(content: object) -> tuple[str, JsonDict]:
    """A model's text, and what must be kept of the parts around it."""
    if not isinstance(content, list):
        return (content if isinstance(content, str) else ""), {}
    natives = {place: part for place, part in enumerate(content) if not _is_text(part)}
    text = "".join(part["text"] for part in content if _is_text(part))
    return text, {"is_list": True, **keep_native_parts(natives)}


def takes(block: ContentBlock) -> bool:
    """Whether a user's message takes this block of media."""
    if block.type != "image" or block.file_id is not None:
        return False
    return media_type(block) in COMMON_IMAGES and (block.data is not None or is_web_url(block))


def _encode_part(block: ContentBlock) -> JsonDict:
    if block.text is not None:
        return {"type": "text", "text": block.text}
    return encode_image(block) if takes(block) else {"type": "text", "text": stand_in(block)}
