"""Finding lines in a file: as they are, then without white space behind them, around them, with plain punctuation.

Each line becomes a number of fixed width, so that a search for lines is one search for bytes, which takes linear time
whatever is searched for. Many searches that find nothing near would still add up: they share a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from toolkit.builtin.patch.model import WHITE_SPACE
from toolkit.errors import ToolFailed

MAX_SEARCHED_LINES: Final = 400_000_000
"""How many lines all searches of one patch may pass; a second or two."""

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


def _without_end(line: str) -> str:
    return line.rstrip(WHITE_SPACE)


def _stripped(line: str) -> str:
    return line.strip(WHITE_SPACE)


def _plain(line: str) -> str:
    return line.strip(WHITE_SPACE).translate(_PUNCTUATION)


_LEVELS: Final[tuple[Callable[[str], str] | None, ...]] = (None, _without_end, _stripped, _plain)
LEVELS: Final = range(len(_LEVELS))


class Budget:
    """What is left of the work that one patch may cause."""

    def __init__(self, lines: int = MAX_SEARCHED_LINES) -> None:
        self._left = lines

    def spend(self, lines: int) -> None:
        self._left -= lines
        if self._left < 0:
            words = "its hunks are found too seldom where they should be, and searching would take too long"
            raise ToolFailed("TOO_LARGE", f"{words}; split the patch, or quote the lines of the files exactly")


class Index:
    """The lines of one file, to be searched at every level; a level is made when it is first needed."""

    def __init__(self, lines: Sequence[str], budget: Budget) -> None:
        self.lines: Final = lines
        self._budget = budget
        self._levels: dict[int, _Level] = {}

    def first(self, wanted: Sequence[str], start: int, *, level: int) -> int | None:
        """Where the wanted lines stand first, from line ``start`` on."""
        made = self._level(level)
        needle = made.encoded(wanted)
        if needle is None or start + len(wanted) > len(self.lines):
            return None
        at = made.text.find(needle, start * _WIDTH)
        self._budget.spend((at // _WIDTH if at >= 0 else len(self.lines)) - start)
        return at // _WIDTH if at >= 0 else None

    def last(self, wanted: Sequence[str], start: int, end: int) -> int | None:
        """Where they stand last, exactly as they are, beginning between two lines."""
        made = self._level(EXACT)
        needle = made.encoded(wanted[::-1])
        first = max(len(self.lines) - len(wanted) - end, 0)
        if needle is None:
            return None
        at = made.reversed_text.find(needle, first * _WIDTH)
        self._budget.spend((at // _WIDTH if at >= 0 else len(self.lines)) - first)
        found = len(self.lines) - len(wanted) - at // _WIDTH
        return found if at >= 0 and found >= start else None

    def stands_at(self, wanted: Sequence[str], line: int, *, level: int) -> bool:
        """Whether they stand there."""
        made = self._level(level)
        needle = made.encoded(wanted)
        return needle is not None and line >= 0 and made.text.startswith(needle, line * _WIDTH)

    def _level(self, level: int) -> _Level:
        if level not in self._levels:
            self._levels[level] = _Level(self.lines, _LEVELS[level])
        return self._levels[level]


class _Level:
    """All lines of a file as one text of numbers, after what they are compared by."""

    def __init__(self, lines: Sequence[str], form: Callable[[str], str] | None) -> None:
        self._form = form
        self._codes: dict[str, bytes] = {}
        codes = self._codes
        numbers = range(1 << 28)
        self._units: Final = [
            codes.get(line) or codes.setdefault(line, _code(numbers[len(codes)]))
            for line in (lines if form is None else map(form, lines))
        ]
        self.text: Final = b"".join(self._units)
        self._reversed_text: bytes | None = None

    @property
    def reversed_text(self) -> bytes:
        if self._reversed_text is None:
            self._reversed_text = b"".join(reversed(self._units))
        return self._reversed_text

    def encoded(self, wanted: Sequence[str]) -> bytes | None:
        """The same for the wanted lines; None if one of them is nowhere in the file."""
        codes = self._codes
        try:
            return b"".join([codes[line] for line in (wanted if self._form is None else map(self._form, wanted))])
        except KeyError:
            return None


def _code(number: int) -> bytes:
    """Seven bits a byte, and the eighth only in the first: a code is never found across the border of two."""
    return bytes((0x80 | number >> 21, number >> 14 & 0x7F, number >> 7 & 0x7F, number & 0x7F))
