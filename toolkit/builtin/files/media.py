"""Media that models can look at or listen to, recognised by how a file begins, never by its name."""

from __future__ import annotations

from typing import Final, NamedTuple

from toolkit.wire.content import BlockType


class Media(NamedTuple):
    """How to send a file along with the answer."""

    block: BlockType
    media_type: str


# Beginnings that no text has.
_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", Media("image", "image/png")),
    (b"\xff\xd8\xff", Media("image", "image/jpeg")),
    (b"%PDF-", Media("document", "application/pdf")),
    (b"OggS\0", Media("audio", "audio/ogg")),
    (b"fLaC\0", Media("audio", "audio/flac")),
    (b"fLaC\x80", Media("audio", "audio/flac")),
)
_RIFF: Final = {b"WAVE": Media("audio", "audio/wav"), b"WEBP": Media("image", "image/webp")}
_GIF: Final = Media("image", "image/gif")
_MP3: Final = Media("audio", "audio/mpeg")


def recognise(head: bytes) -> Media | None:
    """What a file with this beginning is; None for text and for everything that is no medium."""
    for beginning, media in _BEGINNINGS:
        if head.startswith(beginning):
            return media
    if b"\0" not in head:
        return None  # what follows are letters that a text may start with, too
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12])
    if head.startswith((b"GIF87a", b"GIF89a")):
        return _GIF
    return _MP3 if head.startswith(b"ID3") or _is_mpeg_frame(head) else None


def _is_mpeg_frame(head: bytes) -> bool:
    """A frame header of MPEG layer III: eleven set bits, then a version, bit rate and sampling rate that exist."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE6 != 0xE2 or head[1] & 0x18 == 0x08:
        return False
    return head[2] >> 4 not in (0x0, 0xF) and head[2] & 0x0C != 0x0C
