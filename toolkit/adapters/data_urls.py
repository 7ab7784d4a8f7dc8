"""Media in ``data:`` URLs, as OpenAI and those who follow it write them."""

from __future__ import annotations

import re
from typing import Final

from toolkit.wire.content import BlockType, ContentBlock

_DATA_URL: Final = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+);base64,(?P<data>.*)", re.DOTALL)
_DEFAULT_TYPES: Final = {"image": "image/png"}


def media_url(block: ContentBlock) -> str:
    """The URL of a block, or a ``data:`` URL with its data."""
    if block.url is not None:
        return block.url
    media_type = block.media_type or _DEFAULT_TYPES.get(block.type, "application/pdf")
    return f"data:{media_type};base64,{block.data}"


def block_from_url(kind: BlockType, url: object) -> ContentBlock | None:
    """The block behind a URL, with its data if it is a ``data:`` URL; None if it is not text."""
    if not isinstance(url, str):
        return None
    found = _DATA_URL.fullmatch(url)
    return ContentBlock(kind, url=url) if found is None else ContentBlock(kind, found["type"], data=found["data"])
