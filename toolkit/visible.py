"""Hidden characters: which ones cannot be seen, and how to show text that holds them.

Hidden are control characters, format characters (bidi overrides, invisible tags), surrogates, and line and paragraph
separators.
"""

from __future__ import annotations

import unicodedata
from typing import Final

BOM: Final = "\ufeff"
"""The byte order mark, as the first character of a decoded text."""

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Format characters too, but Persian, Indic scripts and emoji cannot be spelled without them.
_JOINERS: Final = frozenset("\u200c\u200d")
_KEPT: Final = _JOINERS | {"\t"}


def is_hidden_character(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN and character not in _JOINERS


def escape_hidden(line: str) -> str:
    """The line with every hidden character written as an escape; tabs stay. Backslashes stay, so it cannot be reversed.

    >>> escape_hidden("red\\x1b[31m\\tkept\\r")
    'red\\\\x1b[31m\\tkept\\\\r'
    """
    return line if line.replace("\t", "").isprintable() else "".join(map(_escape, line))


def _escape(character: str) -> str:
    if character in _KEPT or unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape").decode()


def escape_hidden_lines(text: str) -> str:
    """As ``escape_hidden``, for text of several lines: ``\\n`` stays, too.

    >>> escape_hidden_lines("one\\r\\n\\x9b31mtwo")
    'one\\\\r\\n\\\\x9b31mtwo'
    """
    return "\n".join(map(escape_hidden, text.split("\n")))


def escape_hidden_json(text: str) -> str:
    """JSON text that means the same, with hidden characters as ``\\uXXXX``. Only strings can hold them, and line ends stay.

    >>> escape_hidden_json('{"a": "\\x7f\\u202e\\U000e0041"}')
    '{"a": "\\\\u007f\\\\u202e\\\\udb40\\\\udc41"}'
    """
    return "\n".join(line if line.isprintable() else "".join(map(_escape_json, line)) for line in text.split("\n"))


def _escape_json(character: str) -> str:
    if not is_hidden_character(character):
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def to_one_line(text: str) -> str:
    """The words of the text with one space between them, without hidden characters.

    >>> to_one_line(" a\\tb\\n\\x1b[31mc\\u202e ")
    'a b [31mc'
    """
    line = " ".join(text.split())
    return line if line.isprintable() else " ".join(_drop_hidden(line, " ").split())


def drop_hidden(text: str) -> str:
    """The text without hidden characters; tabs and line ends stay, the latter as ``\\n``.

    >>> drop_hidden("a\\r\\n\\tb\\x00")
    'a\\n\\tb'
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.replace("\n", "").replace("\t", "").isprintable() else _drop_hidden(text, " \n\t")


def _drop_hidden(text: str, kept: str) -> str:
    return "".join(
        letter for letter in text if letter in kept or letter in _JOINERS or unicodedata.category(letter) not in _HIDDEN
    )
