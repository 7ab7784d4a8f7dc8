"""Hidden characters: which ones cannot be seen, and how to show text that holds them.

Hidden are control characters, format characters (bidi overrides, invisible tags), surrogates, and line and paragraph
separators.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Final

BOM: Final = "\ufeff"
"""The byte order mark, as the first character of a decoded text."""

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Format characters too, but Persian, Indic scripts and emoji cannot be spelled without them.
_JOINERS: Final = frozenset("\u200c\u200d")
# Where Unicode puts hidden characters; elsewhere are ideographs, private use and nothing.
_PLACES: Final = (range(0x20000), range(0xE0000, 0xE1000))


def is_hidden_character(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN and character not in _JOINERS


def display(text: str) -> str:
    """``text`` on one line, with everything invisible or undecodable escaped as ``\\xNN``, ``\\uNNNN`` or ``\\UNNNNNNNN``.

    Limit: not reversible, because a backslash is not escaped; open such a file by its raw name.

    >>> display("two\\nlines"), display("not utf-8: \\udcff")
    ('two\\\\x0alines', 'not utf-8: \\\\xff')
    """
    return text if text.isprintable() else "".join(map(_escape_in_name, text))


def _escape_in_name(character: str) -> str:
    if not is_hidden_character(character):
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # how Python represents a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def escape_hidden(text: str, kept: str = "\t") -> str:
    """The text with every hidden character written as an escape, except those in ``kept``.

    Backslashes stay, so it cannot be reversed.

    >>> escape_hidden("red\\x1b[31m\\tkept\\r")
    'red\\\\x1b[31m\\tkept\\\\r'
    """
    visible = text
    for character in kept:
        visible = visible.replace(character, "")
    return text if visible.isprintable() else hidden_pattern(kept).sub(_escape, text)


@cache
def hidden_characters() -> frozenset[str]:
    """All of them; made at its first use.

    >>> "\\u202e" in hidden_characters(), "a" in hidden_characters()
    (True, False)
    """
    return frozenset(map(chr, _hidden_codes()))


@cache
def hidden_pattern(kept: str) -> re.Pattern[str]:
    """An expression that matches one hidden character that is not in ``kept``; made at its first use.

    >>> hidden_pattern("\\n").sub("?", "a\\tb\\n")
    'a?b\\n'
    """
    ranges: list[list[int]] = []
    for code in _hidden_codes():
        if chr(code) in kept:
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return re.compile("[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges) + "]")


@cache
def _hidden_codes() -> tuple[int, ...]:
    return tuple(code for place in _PLACES for code in place if is_hidden_character(chr(code)))


def _escape(hidden: re.Match[str]) -> str:
    return hidden[0].encode("unicode_escape").decode()


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
    return line if line.isprintable() else " ".join(hidden_pattern("").sub("", line).split())


def drop_hidden(text: str) -> str:
    """The text without hidden characters; tabs and line ends stay, the latter as ``\\n``.

    >>> drop_hidden("a\\r\\n\\tb\\x00")
    'a\\n\\tb'
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.replace("\n", "").replace("\t", "").isprintable() else hidden_pattern("\n\t").sub("", text)
