"""Content parts of Responses: text, images and files, both ways. Native parts keep their places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from toolkit.adapters.lossless import keep_parts, restore_parts
from toolkit.adapters.media.blocks import (
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
    stand_in,
)
from toolkit.adapters.openai_chat.content import OWNERS, read_detail
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.content import BlockType, ContentBlock

PROVIDER: Final = "openai_responses"
_TEXTS: Final = ("input_text", "output_text", "text")


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


def _encode_part(block: ContentBlock) -> JsonDict:
    if block.text is not None:
        return {"type": "input_text", "text": block.text}
    media = _encode_media(block)
    return {"type": "input_text", "text": stand_in(block, *OWNERS)} if media is None else media


def takes(block: ContentBlock) -> bool:
    """Whether users' messages and results take this block of media."""
    return _encode_media(block) is not None


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
