"""Finding the text that an edit names: as it stands, else by lines that differ in whitespace, else by a similar block.

What is found is never longer than what was looked for: the same characters, or as many lines. Line ends do not matter
in any way of finding. The first two take time in proportion to the file, the last gives up at a fixed budget.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Final, Literal, NamedTuple, TypeAlias

from toolkit.builtin.text.similar import similarity
from toolkit.visible import BOM

MatchMode: TypeAlias = Literal["exact", "line-trimmed", "block-anchor"]

BLOCK_FLOOR: Final = 0.6
"""How alike the lines between the first and the last must be on average, by their length."""
LINE_FLOOR: Final = 0.5
"""How alike each single one of them must be."""

MAX_LINES: Final = 500_000
"""Files with more lines than that are searched for the text as it stands, not line by line."""

_MAX_STEPS: Final = 500_000


class Span(NamedTuple):
    """``text[start:end]``."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Matches:
    """Everything that was found in one way. ``spans`` gives it anew each time, in order, none over another.

    ``overlap`` tells that another place begins inside the first one, and is not counted.
    """

    mode: MatchMode
    count: int
    overlap: bool
    spans: Callable[[], Iterator[Span]]


def find_exact(text: str, old: str) -> Matches | None:
    """``old``, whose lines end in ``\\n``, whatever the lines of ``text`` end in."""
    crlf = text.count("\r\n") if "\n" in old else 0
    if not crlf:
        return _found_as_it_is(text, old)
    if crlf == text.count("\n"):
        return _found_as_it_is(text, old.replace("\n", "\r\n"))
    plain = text.replace("\r\n", "\n")
    found = _found_as_it_is(plain, old)
    if found is None:
        return None
    # How many carriage returns are gone from the lines before each line.
    gone = array("I", accumulate((line.endswith("\r") for line in text.split("\n")), initial=0))
    height = old.count("\n")

    def spans() -> Iterator[Span]:
        line = at = 0
        for start, end in found.spans():
            line += plain.count("\n", at, start)
            yield Span(start + gone[line], end + gone[line + height])
            at = start

    return Matches("exact", found.count, found.overlap, spans)


def _found_as_it_is(text: str, old: str) -> Matches | None:
    first = text.find(old)
    if first < 0:
        return None

    def spans() -> Iterator[Span]:
        start = first
        while start >= 0:
            yield Span(start, start + len(old))
            start = text.find(old, start + len(old))

    overlap = 0 <= text.find(old, first + 1) < first + len(old)
    return Matches("exact", text.count(old), overlap, spans)


def find_by_lines(text: str, old: str) -> Matches | None:
    """Whole lines like those of ``old`` but for the whitespace around each, else similar blocks of lines."""
    if has_too_many_lines(text):
        return None
    lines = _TrimmedLines(text)
    wanted = [line.strip() for line in old.removesuffix("\n").split("\n")]
    places, overlap = lines.places(wanted)
    mode: MatchMode = "line-trimmed"
    if not places:
        places = _similar_blocks(lines, wanted)
        mode = "block-anchor"
    if not places:
        return None

    def spans() -> Iterator[Span]:
        for place in places:
            yield lines.span(place, len(wanted), with_end=old.endswith("\n"))

    return Matches(mode, len(places), overlap, spans)


def has_too_many_lines(text: str) -> bool:
    return text.count("\n") >= MAX_LINES


class _TrimmedLines:
    """The lines of a text without the whitespace around them, and where each of them stands."""

    def __init__(self, text: str) -> None:
        self._text = text
        whole = text.split("\n")
        self._starts = array("I", accumulate((len(line) + 1 for line in whole), initial=0))
        self.lines: Final = [line.strip() for line in whole]
        self.lines[0] = self.lines[0].removeprefix(BOM).lstrip()
        self._joined = _enclosed(self.lines)

    def places(self, wanted: Sequence[str]) -> tuple[Sequence[int], bool]:
        """The numbers, from 0, of the lines where the wanted ones begin, and whether another place overlaps the first."""
        sought = _enclosed(wanted)
        found = first = self._joined.find(sought)
        places = array("I")
        line = at = 0
        while found >= 0:
            line += self._joined.count("\n", at, found)
            places.append(line)
            at = found
            # The line end behind the last line is the one before the next.
            found = self._joined.find(sought, found + len(sought) - 1)
        overlap = bool(places) and 0 <= self._joined.find(sought, first + 1) < first + len(sought) - 1
        return places, overlap

    def span(self, first: int, height: int, *, with_end: bool) -> Span:
        """Where so many lines stand, with the line end behind the last one, if there is one, or without it."""
        start, end = self._starts[first], self._starts[first + height]
        if not first and self._text.startswith(BOM):
            start += 1
        if first + height == len(self.lines):
            return Span(start, len(self._text))
        if with_end:
            return Span(start, end)
        return Span(start, end - 1 - self._text.endswith("\r", start, end - 1))


def _enclosed(lines: Sequence[str]) -> str:
    """Lines as one text in which only whole ones can be found."""
    return "\n".join(["", *lines, ""])


def _similar_blocks(lines: _TrimmedLines, wanted: Sequence[str]) -> list[int]:
    """Blocks with the first and last of the wanted lines, and similar ones between; none if the budget ends first."""
    if len(wanted) < 3 or not wanted[0] or not wanted[-1]:
        return []
    firsts, _ = lines.places(wanted[:1])
    comparison = _Comparison(lines.lines, wanted)
    similar = [place for place in firsts if comparison.is_similar_at(place)]
    return similar if comparison.steps > 0 else []


class _Comparison:
    """Blocks of a file beside the lines that are wanted, line by line."""

    def __init__(self, lines: Sequence[str], wanted: Sequence[str]) -> None:
        self._lines = lines
        self._wanted = wanted
        self.steps = _MAX_STEPS

    def is_similar_at(self, place: int) -> bool:
        """Whether the block that begins with the first wanted line ends with the last and is similar between."""
        behind = place + len(self._wanted) - 1
        if behind >= len(self._lines) or self._lines[behind] != self._wanted[-1]:
            return False
        alike = total = 0.0
        for at in range(1, len(self._wanted) - 1):
            one, other = self._wanted[at], self._lines[place + at]
            self.steps -= 1 if one == other else 1 + len(one) + len(other)
            share = similarity(one, other) if self.steps > 0 else 0.0
            if share < LINE_FLOOR:
                return False
            weight = max(len(one), len(other), 1)
            alike += weight * share
            total += weight
        return alike >= BLOCK_FLOOR * total


def line_ranges(text: str, spans: Iterator[Span], most: int) -> list[tuple[int, int]]:
    """The first and last line, counted from 1, of the first so many spans."""
    ranges = []
    line, at = 1, 0
    for start, end in islice(spans, most):
        line += text.count("\n", at, start)
        ends_with_line = end > start and text[end - 1] == "\n"
        ranges.append((line, line + text.count("\n", start, end) - ends_with_line))
        at = start
    return ranges
