"""Finds lines in a file: exactly, then ignoring trailing white space, surrounding white space, Unicode punctuation.

Each line becomes a code of fixed width, so that a search for lines is a search for bytes, which takes linear time. Many
searches over long distances would still add up, so all searches of a patch share a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from toolkit.builtin.patch.model import WHITE_SPACE
from toolkit.errors import ToolFailed

MAX_SEARCHED_LINES: Final = 400_000_000
"""Number of lines that all searches of one patch may pass; takes a second or two."""

EXACT: Final = 0

_WIDTH: Final = 4
_PUNCTUATION: Final = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\xa0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
    }
)


def _strip_end(line: str) -> str:
    return line.rstrip(WHITE_SPACE)


def _strip(line: str) -> str:
    return line.strip(WHITE_SPACE)


def _plain_punctuation(line: str) -> str:
    return line.strip(WHITE_SPACE).translate(_PUNCTUATION)


_LEVELS: Final[tuple[Callable[[str], str] | None, ...]] = (None, _strip_end, _strip, _plain_punctuation)
LEVELS: Final = range(len(_LEVELS))


class Budget:
    """The work that one patch may still cause."""

    def __init__(self, lines: int = MAX_SEARCHED_LINES) -> None:
        self._left = lines

    def spend(self, lines: int) -> None:
        self._left -= lines
        if self._left < 0:
            problem = "too many hunks are not where they should be, and searching for them would take too long"
            raise ToolFailed("TOO_LARGE", f"{problem}; split the patch, or copy the lines exactly from the files")


class SearchableLines:
    """The lines of one file, searchable at every level; a level is built when it is first needed."""

    def __init__(self, lines: Sequence[str], budget: Budget) -> None:
        self.lines: Final = lines
        self._budget = budget
        self._levels: dict[int, _EncodedLines] = {}

    def first(self, wanted: Sequence[str], start: int, *, level: int) -> int | None:
        """The first place of the wanted lines, from line ``start`` on."""
        encoded = self._level(level)
        needle = encoded.encode(wanted)
        if needle is None or start + len(wanted) > len(self.lines):
            return None
        at = encoded.text.find(needle, start * _WIDTH)
        self._budget.spend((at // _WIDTH if at >= 0 else len(self.lines)) - start)
        return at // _WIDTH if at >= 0 else None

    def last(self, wanted: Sequence[str], start: int, end: int) -> int | None:
        """The last exact match that starts between the lines ``start`` and ``end``."""
        encoded = self._level(EXACT)
        needle = encoded.encode(wanted[::-1])
        first = max(len(self.lines) - len(wanted) - end, 0)
        if needle is None:
            return None
        at = encoded.reversed_text.find(needle, first * _WIDTH)
        self._budget.spend((at // _WIDTH if at >= 0 else len(self.lines)) - first)
        found = len(self.lines) - len(wanted) - at // _WIDTH
        return found if at >= 0 and found >= start else None

    def matches_at(self, wanted: Sequence[str], line: int, *, level: int) -> bool:
        """Whether the wanted lines are at this line."""
        encoded = self._level(level)
        needle = encoded.encode(wanted)
        return needle is not None and line >= 0 and encoded.text.startswith(needle, line * _WIDTH)

    def _level(self, level: int) -> _EncodedLines:
        if level not in self._levels:
            self._levels[level] = _EncodedLines(self.lines, _LEVELS[level])
        return self._levels[level]


class _EncodedLines:
    """All lines of a file at one level, encoded as one byte string."""

    def __init__(self, lines: Sequence[str], normalize: Callable[[str], str] | None) -> None:
        self._normalize = normalize
        self._codes: dict[str, bytes] = {}
        codes = self._codes
        numbers = range(1 << 28)
        self._units: Final = [
            codes.get(line) or codes.setdefault(line, _code(numbers[len(codes)]))
            for line in (lines if normalize is None else map(normalize, lines))
        ]
        self.text: Final = b"".join(self._units)
        self._reversed_text: bytes | None = None

    @property
    def reversed_text(self) -> bytes:
        if self._reversed_text is None:
            self._reversed_text = b"".join(reversed(self._units))
        return self._reversed_text

    def encode(self, wanted: Sequence[str]) -> bytes | None:
        """The codes of the wanted lines; None if one of them is not in the file."""
        codes = self._codes
        try:
            return b"".join(
                [codes[line] for line in (wanted if self._normalize is None else map(self._normalize, wanted))]
            )
        except KeyError:
            return None


def _code(number: int) -> bytes:
    """Seven bits per byte, and the eighth bit only in the first byte, so a search never matches across two codes."""
    return bytes((0x80 | number >> 21, number >> 14 & 0x7F, number >> 7 & 0x7F, number & 0x7F))
