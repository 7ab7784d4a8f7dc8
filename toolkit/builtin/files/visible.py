"""Text of files as a model should see it: on its own line, in its own order, nothing unseen."""

from __future__ import annotations

import unicodedata
from typing import Final

# Controls, format characters (bidi overrides, invisible tags), surrogates, line and paragraph separators.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# A tab is what it looks like; the joiners are format characters without which some scripts and emoji fall apart.
_KEPT: Final = frozenset("\t\u200c\u200d")


def visible(line: str) -> str:
    """The line with every hidden character written as an escape; backslashes stay, so it cannot be reversed.

    >>> visible("red\\x1b[31m\\tkept\\r")
    'red\\\\x1b[31m\\tkept\\\\r'
    """
    return line if line.replace("\t", "").isprintable() else "".join(map(_shown, line))


def _shown(character: str) -> str:
    if character in _KEPT or unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape").decode()
