"""The text a model gets in place of media that its provider does not accept."""

from __future__ import annotations

from toolkit.wire.content import ContentBlock


def media_note(block: ContentBlock) -> str:
    """A line of text that says what the block is, and its address if it has one.

    >>> media_note(ContentBlock("audio", "audio/wav", data="AAAA"))
    '[audio/wav, 3 bytes: omitted, this model does not accept it]'
    """
    what = block.media_type or block.type
    if block.data is not None:
        size = len(block.data) * 3 // 4 - block.data[-2:].count("=")
        return f"[{what}, {size} bytes: omitted, this model does not accept it]"
    return f"[{what} at {block.url or block.file_id}: omitted, this model does not accept it]"
