"""Byte order marks: how a text file declares its encoding."""

from __future__ import annotations

import codecs
from typing import Final

UTF_8_WITH_BOM: Final = "utf-8-sig"

# UTF-32 first: its mark begins with that of UTF-16.
_ENCODINGS: Final = (
    (codecs.BOM_UTF8, UTF_8_WITH_BOM),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MARKS: Final = tuple(mark for mark, _ in _ENCODINGS)


def marked_encoding(head: bytes) -> str | None:
    """The codec for a file that starts with these bytes; None without a mark, which means UTF-8."""
    if not head.startswith(_MARKS):
        return None
    return next(encoding for mark, encoding in _ENCODINGS if head.startswith(mark))
