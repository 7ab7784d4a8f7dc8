"""Content of Ollama's messages, both ways: one text, and images as base64 data next to it."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.adapters.media.blocks import COMMON_IMAGES, media_type, stand_in
from toolkit.adapters.plain_json import JsonDict, plain_list, plain_text
from toolkit.wire.content import ContentBlock


def encode_blocks(blocks: Sequence[ContentBlock]) -> tuple[str, list[str]]:
    """The text and the images of blocks. Ollama takes nothing else; texts and notes stand in for other media."""
    texts, images, notes = [], [], []
    for block in blocks:
        if block.text is not None:
            texts.append(block.text)
        elif block.type == "image" and block.data is not None and media_type(block) in COMMON_IMAGES:
            images.append(block.data)
        else:
            notes.append(stand_in(block))
    text = "".join(texts)
    return "\n".join([text, *notes] if text else notes), images


def decode_images(raw: JsonDict) -> list[ContentBlock]:
    """The text and the images of a message as blocks; none if it has no images."""
    images = [ContentBlock("image", data=image) for image in plain_list(raw.get("images")) if isinstance(image, str)]
    text = plain_text(raw.get("content"))
    lead = [ContentBlock("text", text=text)] if text and images else []
    return [*lead, *images]
