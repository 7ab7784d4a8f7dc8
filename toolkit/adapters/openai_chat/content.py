"""Content parts of chat completions: text, images, audio and files, both ways. Native parts keep their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from toolkit.adapters.lossless import keep_parts, restore_parts
from toolkit.adapters.media import block_from_url, detail_field, media_url, with_detail
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.content import ContentBlock

_AUDIO: Final = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_FORMATS: Final = {media: name for name, media in _AUDIO.items()}


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
    """One block in OpenAI's form."""
    if block.type == "text":
        return {"type": "text", "text": block.text}
    if block.type == "audio" and block.data is not None:
        return {"type": "input_audio", "input_audio": {"data": block.data, "format": _audio_format(block.media_type)}}
    if block.file_id is not None:
        return {"type": "file", "file": {"file_id": block.file_id}}
    if block.type == "image":
        return {"type": "image_url", "image_url": {"url": media_url(block), **detail_field(block)}}
    return {"type": "file", "file": {"file_data": media_url(block)}}


def decode_part(part: JsonDict) -> ContentBlock | None:
    """The block of a part; None for a native part."""
    kind = part.get("type")
    if kind == "text" and isinstance(part.get("text"), str):
        return ContentBlock("text", text=part["text"])
    if kind == "image_url" and isinstance(part.get("image_url"), dict):
        image = part["image_url"]
        return with_detail(block_from_url("image", image.get("url")), image.get("detail"))
    if kind == "input_audio" and isinstance(part.get("input_audio"), dict):
        audio = part["input_audio"]
        known = _AUDIO.get(audio.get("format"))
        return None if known is None else ContentBlock("audio", known, data=audio.get("data"))
    if kind == "file" and isinstance(part.get("file"), dict):
        file = part["file"]
        if isinstance(file.get("file_id"), str):
            return ContentBlock("document", file_id=file["file_id"])
        return block_from_url("document", file.get("file_data"))
    return None


def _audio_format(media_type: str | None) -> str:
    return _FORMATS.get(media_type or "", (media_type or "audio/wav").rpartition("/")[2])
