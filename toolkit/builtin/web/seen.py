"""Text of pages without what cannot be seen: controls, escape codes, direction marks, invisible letters."""

from __future__ import annotations

import unicodedata
from typing import Final

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Format characters too, but some scripts and emoji fall apart without them.
_JOINERS: Final = frozenset("\u200c\u200d")


def one_line(text: str) -> str:
    """The words of the text with one space between them.

    >>> one_line(" a\\tb\\n\\x1b[31mc\\u202e ")
    'a b [31mc'
    """
    line = " ".join(text.split())
    return line if line.isprintable() else " ".join(_without_hidden(line, " ").split())


def seen_lines(text: str) -> str:
    """The text in its lines, with its tabs.

    >>> seen_lines("a\\r\\n\\tb\\x00")
    'a\\n\\tb'
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.replace("\n", "").replace("\t", "").isprintable() else _without_hidden(text, " \n\t")


def _without_hidden(text: str, kept: str) -> str:
    return "".join(
        letter for letter in text if letter in kept or letter in _JOINERS or unicodedata.category(letter) not in _HIDDEN
    )
