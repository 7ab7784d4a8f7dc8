"""Finds the text to edit: exactly, else by lines that differ in whitespace, else by a similar block.

A match is never longer than the wanted text: the same characters, or as many lines. Line endings are always ignored. The
first two methods take time proportional to the file; the last gives up at a fixed budget.
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
"""Minimum average similarity of the lines between the first and the last, weighted by length."""
LINE_FLOOR: Final = 0.5
"""Minimum similarity of each of them."""

MAX_LINES: Final = 500_000
"""Files with more lines are only searched for an exact match."""

_MAX_STEPS: Final = 500_000


class Span(NamedTuple):
    """``text[start:end]``."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Matches:
    """All matches of one method. Each call of ``spans`` yields them in order, without overlaps.

    ``overlap`` says that another match, which is not counted, starts inside the first one.
    """

    mode: MatchMode
    count: int
    overlap: bool
    spans: Callable[[], Iterator[Span]]


def find_exact(text: str, old: str) -> Matches | None:
    """The places of ``old``, whose lines end in ``\\n``, whatever the line endings of ``text``."""
    crlf = text.count("\r\n") if "\n" in old else 0
    if not crlf:
        return _find_literal(text, old)
    if crlf == text.count("\n"):
        return _find_literal(text, old.replace("\n", "\r\n"))
    plain = text.replace("\r\n", "\n")
    found = _find_literal(plain, old)
    if found is None:
        return None
    # Number of carriage returns removed before each line.
    removed = array("I", accumulate((line.endswith("\r") for line in text.split("\n")), initial=0))
    height = old.count("\n")

    def spans() -> Iterator[Span]:
        line = at = 0
        for start, end in found.spans():
            line += plain.count("\n", at, start)
            yield Span(start + removed[line], end + removed[line + height])
            at = start

    return Matches("exact", found.count, found.overlap, spans)


def _find_literal(text: str, old: str) -> Matches | None:
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
    """Lines equal to those of ``old`` except for the whitespace around each, else similar blocks of lines."""
    if has_too_many_lines(text):
        return None
    lines = _TrimmedLines(text)
    wanted = [line.strip() for line in old.removesuffix("\n").split("\n")]
    places, overlap = lines.places(wanted)
    mode: MatchMode = "line-trimmed"
    if not places:
        places = _find_similar_blocks(lines, wanted)
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
    """The lines of a text without surrounding whitespace, and the position of each."""

    def __init__(self, text: str) -> None:
        self._text = text
        whole = text.split("\n")
        self._starts = array("I", accumulate((len(line) + 1 for line in whole), initial=0))
        self.lines: Final = [line.strip() for line in whole]
        self.lines[0] = self.lines[0].removeprefix(BOM).lstrip()
        self._joined = _enclose(self.lines)

    def places(self, wanted: Sequence[str]) -> tuple[Sequence[int], bool]:
        """Line numbers, from 0, where the wanted lines start, and whether another place overlaps the first."""
        sought = _enclose(wanted)
        found = first = self._joined.find(sought)
        places = array("I")
        line = at = 0
        while found >= 0:
            line += self._joined.count("\n", at, found)
            places.append(line)
            at = found
            # The line end after the last line is also the one before the next.
            found = self._joined.find(sought, found + len(sought) - 1)
        overlap = bool(places) and 0 <= self._joined.find(sought, first + 1) < first + len(sought) - 1
        return places, overlap

    def span(self, first: int, height: int, *, with_end: bool) -> Span:
        """The span of ``height`` lines, with or without the line end after the last one."""
        start, end = self._starts[first], self._starts[first + height]
        if not first and self._text.startswith(BOM):
            start += 1
        if first + height == len(self.lines):
            return Span(start, len(self._text))
        if with_end:
            return Span(start, end)
        return Span(start, end - 1 - self._text.endswith("\r", start, end - 1))


def _enclose(lines: Sequence[str]) -> str:
    """The lines joined so that a search finds only whole lines."""
    return "\n".join(["", *lines, ""])


def _find_similar_blocks(lines: _TrimmedLines, wanted: Sequence[str]) -> list[int]:
    """Blocks with the first and last wanted line and similar lines between; none if the budget is used up."""
    if len(wanted) < 3 or not wanted[0] or not wanted[-1]:
        return []
    firsts, _ = lines.places(wanted[:1])
    comparison = _BlockComparison(lines.lines, wanted)
    similar = [place for place in firsts if comparison.is_similar_at(place)]
    return similar if comparison.steps > 0 else []


class _BlockComparison:
    """Compares blocks of a file with the wanted lines, line by line."""

    def __init__(self, lines: Sequence[str], wanted: Sequence[str]) -> None:
        self._lines = lines
        self._wanted = wanted
        self.steps = _MAX_STEPS

    def is_similar_at(self, place: int) -> bool:
        """Whether the block that starts with the first wanted line ends with the last and is similar between."""
        last = place + len(self._wanted) - 1
        if last >= len(self._lines) or self._lines[last] != self._wanted[-1]:
            return False
        similar = total = 0.0
        for at in range(1, len(self._wanted) - 1):
            one, other = self._wanted[at], self._lines[place + at]
            self.steps -= 1 if one == other else 1 + len(one) + len(other)
            share = similarity(one, other) if self.steps > 0 else 0.0
            if share < LINE_FLOOR:
                return False
            weight = max(len(one), len(other), 1)
            similar += weight * share
            total += weight
        return similar >= BLOCK_FLOOR * total


def line_ranges(text: str, spans: Iterator[Span], most: int) -> list[tuple[int, int]]:
    """First and last line, counted from 1, of the first ``most`` spans."""
    ranges = []
    line, at = 1, 0
    for start, end in islice(spans, most):
        line += text.count("\n", at, start)
        ends_with_line = end > start and text[end - 1] == "\n"
        ranges.append((line, line + text.count("\n", start, end) - ends_with_line))
        at = start
    return ranges
