"""Byte order marks: how a text file says which encoding it has."""

from __future__ import annotations

import codecs
from typing import Final

# UTF-32 first: its mark begins with that of UTF-16.
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BEGINNINGS: Final = tuple(mark for mark, _ in _MARKS)


def marked_encoding(head: bytes) -> str | None:
    """The codec for a file that begins like this; None without a mark, which is UTF-8."""
    if not head.startswith(_BEGINNINGS):
        return None
    return next(encoding for mark, encoding in _MARKS if head.startswith(mark))
