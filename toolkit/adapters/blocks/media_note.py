"""What a model is told in the place of media its provider does not take."""

from __future__ import annotations

from toolkit.wire.content import ContentBlock


def media_note(block: ContentBlock) -> str:
    """A line of text instead of the block: what it was, and where it is if it has an address.

    >>> media_note(ContentBlock("audio", "audio/wav", data="AAAA"))
    '[audio/wav, 3 bytes: not shown, this model cannot be given it]'
    """
    what = block.media_type or block.type
    if block.data is not None:
        size = len(block.data) * 3 // 4 - block.data[-2:].count("=")
        return f"[{what}, {size} bytes: not shown, this model cannot be given it]"
    return f"[{what} at {block.url or block.file_id}: not shown, this model cannot be given it]"
