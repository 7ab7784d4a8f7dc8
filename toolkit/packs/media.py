"""What packs of every kind do with media in an answer."""

from __future__ import annotations

from toolkit.wire.content import BlockType


def block_type(media_type: str) -> BlockType:
    """The type of content block for a media type.

    >>> [block_type(name) for name in ("image/png", "audio/ogg", "application/pdf")]
    ['image', 'audio', 'document']
    """
    family = media_type.partition("/")[0]
    return "image" if family == "image" else "audio" if family == "audio" else "document"
