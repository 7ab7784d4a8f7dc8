"""Content parts of chat completions: text, images, audio and files, both ways. Native parts keep their places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from toolkit.adapters.lossless import keep_parts, restore_parts
from toolkit.adapters.media.blocks import (
    COMMON_IMAGES,
    PDF,
    as_text,
    block_from_file_data,
    block_from_url,
    file_name,
    is_own_file,
    is_web_url,
    media_type,
    media_url,
    stand_in,
)
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.content import ContentBlock

PROVIDER: Final = "openai_chat"
OWNERS: Final = ("openai_chat", "openai_responses", "openai")
"""Whose files OpenAI's APIs can read: they share them."""
_AUDIO: Final = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_FORMATS: Final = {media: name for name, media in _AUDIO.items()}
_DETAILS: Final = ("low", "high", "auto")


def encode_parts(blocks: Sequence[ContentBlock], kept: JsonDict) -> list[JsonDict]:
    """Parts for blocks, with native parts and whatever else came with each part put back."""
    return restore_parts([encode_part(block) for block in blocks], kept)


def decode_parts(parts: Sequence[JsonDict]) -> tuple[list[ContentBlock], JsonDict]:
    """Blocks for parts, and what must be kept to write the same parts again."""
    blocks = [decode_part(part) for part in parts]
    kept = keep_parts(parts, [None if block is None else encode_part(block) for block in blocks])
    return [block for block in blocks if block is not None], kept


def content_text(content: Any) -> str:
    """The text of a message's content, whatever its form."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") in ("text", None)]
    return "".join(text for text in texts if isinstance(text, str))


def encode_part(block: ContentBlock) -> JsonDict:
    """One block in OpenAI's form, as a user's message takes it; a text in place of media that it does not take."""
    if block.text is not None:
        return {"type": "text", "text": block.text}
    media = _encode_media(block)
    return {"type": "text", "text": stand_in(block, *OWNERS)} if media is None else media


def takes(block: ContentBlock) -> bool:
    """Whether a user's message takes this block of media."""
    return _encode_media(block) is not None


def _encode_media(block: ContentBlock) -> JsonDict | None:
    """Of files, only PDF are taken; a document that does not say its type counts as one."""
    kind = media_type(block)
    if block.type == "audio":
        form = _FORMATS.get(kind)
        if block.data is None or form is None:
            return None
        return {"type": "input_audio", "input_audio": {"data": block.data, "format": form}}
    if block.type == "image":
        if kind not in COMMON_IMAGES or (block.data is None and not is_web_url(block)):
            return None
        detail = {"detail": block.detail} if block.detail is not None else {}
        return {"type": "image_url", "image_url": {"url": media_url(block), **detail}}
    if kind != PDF:
        return None
    if block.data is not None:
        return {"type": "file", "file": {"filename": file_name(block), "file_data": media_url(block)}}
    return {"type": "file", "file": {"file_id": block.file_id}} if is_own_file(block, *OWNERS) else None


def read_detail(part: JsonDict) -> Any:
    """How closely the model looks at an image, if the part says so with a word that the neutral form has."""
    detail = part.get("detail")
    return detail if detail in _DETAILS else None


def decode_part(part: object) -> ContentBlock | None:
    """The block of a part; None for a native part."""
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    if kind == "text" and isinstance(part.get("text"), str):
        return ContentBlock("text", text=part["text"])
    if kind == "image_url" and isinstance(part.get("image_url"), dict):
        image = block_from_url("image", part["image_url"].get("url"))
        return None if image is None else replace(image, detail=read_detail(part["image_url"]))
    if kind == "input_audio" and isinstance(part.get("input_audio"), dict):
        audio = part["input_audio"]
        known, data = _AUDIO.get(str(audio.get("format"))), as_text(audio.get("data"))
        return None if known is None or data is None else ContentBlock("audio", known, data=data)
    if kind == "file" and isinstance(part.get("file"), dict):
        file = part["file"]
        if isinstance(file.get("file_id"), str):
            return ContentBlock("document", file_id=file["file_id"], provider=PROVIDER)
        document = block_from_file_data(file.get("file_data"))
        return None if document is None else replace(document, filename=as_text(file.get("filename")))
    return None
