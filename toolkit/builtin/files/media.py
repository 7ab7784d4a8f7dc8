"""Images, documents and audio that models accept, recognised by their first bytes, never by the file name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from toolkit.wire.content import BlockType


class Media(NamedTuple):
    """How to attach a file to a result."""

    block: BlockType
    media_type: str


# Signatures that no text file starts with.
_SIGNATURES: Final = (
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


def recognise_media(head: bytes) -> Media | None:
    """The media type of a file that starts with ``head``; None for text and for unsupported files."""
    for signature, media in _SIGNATURES:
        if head.startswith(signature):
            return media
    if b"\0" not in head:
        return None  # a text may start with the letters tested below
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12])
    if head.startswith((b"GIF87a", b"GIF89a")):
        return _GIF
    return _MP3 if head.startswith(b"ID3") or _is_mpeg_frame(head) else None


def _is_mpeg_frame(head: bytes) -> bool:
    """Whether this is a frame header of MPEG layer III: 11 set bits, then a valid version, bit rate and sampling rate."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE6 != 0xE2 or head[1] & 0x18 == 0x08:
        return False
    return head[2] >> 4 not in (0x0, 0xF) and head[2] & 0x0C != 0x0C
