"""Content parts: text and images, both ways. Thinking, documents and what else only Cohere knows keep their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.adapters.blocks.media_note import media_note
from toolkit.adapters.lossless import residue, restored
from toolkit.adapters.openai_chat.content import decode_part
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.content import ContentBlock


def encode_parts(blocks: Sequence[ContentBlock], kept: JsonDict) -> list[JsonDict]:
    """Parts for blocks, with native parts back in their places and what else came with each part."""
    extras: JsonDict = kept.get("parts", {})
    parts = [restored(_part(block), extras.get(str(at))) for at, block in enumerate(blocks)]
    return _with_natives(parts, kept)


def decode_parts(parts: Sequence[JsonDict]) -> tuple[list[ContentBlock], JsonDict]:
    """Blocks for parts, and what must be kept to make the same parts again."""
    blocks: list[ContentBlock] = []
    extras: JsonDict = {}
    natives: JsonDict = {}
    for place, part in enumerate(parts):
        block = decode_part(part) if part.get("type") in ("text", "image_url") else None
        if block is None:
            natives[str(place)] = part
            continue
        left = residue(part, _part(block))
        if left is not None:
            extras[str(len(blocks))] = left
        blocks.append(block)
    kept = {"parts": extras, "native_parts": natives}
    return blocks, {key: value for key, value in kept.items() if value}


def encode_said(text: str, kept: JsonDict) -> Any:
    """What a model said: one text to us, a list of parts where it came as one."""
    if "native_parts" not in kept and not kept.get("is_list"):
        return text
    return _with_natives([{"type": "text", "text": text}] if text else [], kept)


def decode_said(content: object) -> tuple[str, JsonDict]:
    """The text of a turn, and what lay around it."""
    if not isinstance(content, list):
        return (content if isinstance(content, str) else ""), {}
    natives = {str(place): part for place, part in enumerate(content) if part.get("type") != "text"}
    text = "".join(part["text"] for part in content if part.get("type") == "text" and isinstance(part.get("text"), str))
    return text, {"is_list": True, **({"native_parts": natives} if natives else {})}


def _with_natives(parts: list[JsonDict], kept: JsonDict) -> list[JsonDict]:
    for place, raw in sorted((int(place), raw) for place, raw in kept.get("native_parts", {}).items()):
        parts.insert(place, raw)
    return parts


def _part(block: ContentBlock) -> JsonDict:
    if block.text is not None:
        return {"type": "text", "text": block.text}
    if block.type != "image" or block.file_id is not None:
        return {"type": "text", "text": media_note(block)}
    url = block.url if block.url is not None else f"data:{block.media_type or 'image/png'};base64,{block.data}"
    return {"type": "image_url", "image_url": {"url": url}}
