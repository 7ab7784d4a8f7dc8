"""Media in content blocks: as ``data:`` URLs, and as a note for a model whose provider does not accept them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, cast, get_args

from toolkit.wire.content import BlockType, ContentBlock, ImageDetail

_DETAILS: Final = get_args(ImageDetail)
_DATA_URL: Final = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+);base64,(?P<data>.*)", re.DOTALL)


def media_url(block: ContentBlock) -> str:
    """The URL of a block, or a ``data:`` URL with its data.

    >>> media_url(ContentBlock("image", "image/png", data="AAAA"))
    'data:image/png;base64,AAAA'
    """
    if block.url is not None:
        return block.url
    default = "image/png" if block.type == "image" else "application/pdf"
    return f"data:{block.media_type or default};base64,{block.data}"


def block_from_url(kind: BlockType, url: object) -> ContentBlock | None:
    """The block for a URL, with its data if it is a ``data:`` URL; None if it is not a text."""
    if not isinstance(url, str):
        return None
    found = _DATA_URL.fullmatch(url)
    return ContentBlock(kind, url=url) if found is None else ContentBlock(kind, found["type"], data=found["data"])


def with_detail(block: ContentBlock | None, detail: object) -> ContentBlock | None:
    """The image with the detail that its provider's JSON names; other words than the neutral ones are not read."""
    if block is None or block.type != "image" or detail not in _DETAILS:
        return block
    return replace(block, detail=cast(ImageDetail, detail))


def detail_field(block: ContentBlock) -> dict[str, str]:
    """The field ``detail`` of an image, as OpenAI and Cohere have it; empty if nobody asked for one."""
    return {} if block.detail is None else {"detail": block.detail}


def media_note(block: ContentBlock) -> str:
    """A line of text in place of the block: what it is, and its address if it has one.

    >>> media_note(ContentBlock("audio", "audio/wav", data="AAAA"))
    '[audio/wav, 3 bytes: omitted, this model does not accept it]'
    """
    what = block.media_type or block.type
    if block.data is not None:
        size = len(block.data) * 3 // 4 - block.data[-2:].count("=")
        return f"[{what}, {size} bytes: omitted, this model does not accept it]"
    return f"[{what} at {block.url or block.file_id}: omitted, this model does not accept it]"
