"""Applies hunks to the text of a file. Everything else keeps every byte: line endings, marks, invalid UTF-8."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from toolkit.builtin.patch.hunk_failure import HunkNotPlaced, hunk_failure
from toolkit.builtin.patch.model import Hunk
from toolkit.builtin.patch.seek import EXACT, LEVELS, Budget, SearchableLines
from toolkit.errors import ToolFailed
from toolkit.visible import BOM

MAX_LINES: Final = 2_000_000

_LINE_END: Final = re.compile("(\r\n|\r|\n)")


def apply_envelope(text: str, hunks: Sequence[Hunk], path: str, budget: Budget) -> str:
    """The text after hunks that are located by the lines they quote, in the order of the file.

    New lines end like the first line of the file, and the last line of the file gets a line end if it has none.
    """
    _refuse_many_lines(text, path)
    # read_file does not show the byte order mark, so models seldom quote it.
    for mark in ("", BOM) if text.startswith(BOM) else ("",):
        try:
            return mark + _apply_quoted(text.removeprefix(mark), hunks, budget)
        except HunkNotPlaced as trouble:
            failure = hunk_failure(path, text.removeprefix(mark), trouble)
    raise failure


def apply_numbered(text: str, hunks: Sequence[Hunk], path: str, budget: Budget) -> str:
    """The text after hunks that are located by line numbers, or near them.

    Lines end at ``\\n``, and a carriage return before it is part of the line, as in git.
    """
    _refuse_many_lines(text, path)
    try:
        return _NumberedHunks(text, budget).apply_all(hunks)
    except HunkNotPlaced as trouble:
        raise hunk_failure(path, text, trouble) from None


def _refuse_many_lines(text: str, path: str) -> None:
    if text.count("\n") + text.count("\r") > MAX_LINES:
        raise ToolFailed("TOO_LARGE", f"'{path}' has more than {MAX_LINES} lines, too many for a patch", path=path)


# -- by the lines they quote -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _LineReplacement:
    """``count`` lines from ``start`` on are replaced."""

    start: int
    count: int
    lines: Sequence[str]


def _apply_quoted(text: str, hunks: Sequence[Hunk], budget: Budget) -> str:
    pieces = _LINE_END.split(text)
    lines, ends = pieces[0::2], pieces[1::2]
    first_end = ends[0] if ends else "\n"
    if lines[-1]:
        ends.append(first_end)
    else:
        lines.pop()
    index = SearchableLines(lines, budget)
    replacements: list[_LineReplacement] = []
    at = 0
    for number, hunk in enumerate(hunks, 1):
        at = _place_quoted(index, hunk, number, at, replacements)
    out: list[str] = []
    kept = 0
    for one in sorted(replacements, key=lambda one: one.start):
        out += chain.from_iterable(zip(lines[kept : one.start], ends[kept : one.start], strict=True))
        out += (line + first_end for line in one.lines)
        kept = one.start + one.count
    out += chain.from_iterable(zip(lines[kept:], ends[kept:], strict=True))
    return "".join(out)


def _place_quoted(index: SearchableLines, hunk: Hunk, number: int, at: int, found: list[_LineReplacement]) -> int:
    """Add what a hunk replaces, from line ``at`` on, to ``found``; returns where the next hunk may start."""
    if hunk.anchor is not None:
        anchor = _seek(index, [hunk.anchor], at)
        if anchor is None:
            raise HunkNotPlaced(number, hunk, [hunk.anchor], index, at)
        at = anchor + 1
    old, new = hunk.old, hunk.new
    if not old:
        found.append(_LineReplacement(len(index.lines), 0, new))
        return at
    start = _seek(index, old, at, at_end=hunk.at_end)
    old_count, new_count = len(old), len(new)
    if start is None and not old[-1]:
        # The empty line may represent the end of the last line of the file.
        old_count -= 1
        new_count -= bool(new) and not new[-1]
        start = _seek(index, old[:old_count], at, at_end=hunk.at_end)
    if start is None:
        raise HunkNotPlaced(number, hunk, old, index, at)
    for first, count, lines in _changed_runs(hunk.rows, old_count, new[:new_count]):
        found.append(_LineReplacement(start + first, count, lines))
    return start + old_count


def _seek(index: SearchableLines, wanted: Sequence[str], start: int, *, at_end: bool = False) -> int | None:
    if at_end:
        start = max(start, len(index.lines) - len(wanted))
    if not wanted:
        return start
    found = (index.first(wanted, start, level=level) for level in LEVELS)
    return next((at for at in found if at is not None), None)


def _changed_runs(rows: Sequence[str], old_count: int, new: Sequence[str]) -> Iterator[tuple[int, int, Sequence[str]]]:
    """The changes between kept lines: the first old line, the number of old lines, and the new lines."""
    old_at = new_at = old_from = new_from = 0
    for row in rows:
        if row[0] == " ":
            if old_at >= old_count or new_at >= len(new):
                break
            if (old_from, new_from) != (old_at, new_at):
                yield old_from, old_at - old_from, new[new_from:new_at]
            old_from, new_from = old_at + 1, new_at + 1
        old_at += row[0] != "+"
        new_at += row[0] != "-"
    if (old_from, new_from) != (old_count, len(new)):
        yield old_from, old_count - old_from, new[new_from:]


# -- by line numbers ---------------------------------------------------------------------------------------------------


class _NumberedHunks:
    """Applies hunks with line numbers to one file, front to back."""

    def __init__(self, text: str, budget: Budget) -> None:
        self._lines = text.split("\n")
        self._is_open = bool(self._lines[-1])
        if not self._is_open:
            self._lines.pop()
        self._return = "\r" if self._lines and self._lines[0].endswith("\r") else ""
        self._index = SearchableLines(self._lines, budget)
        self._out: list[str] = []
        self._done = 0
        self._shift = 0

    def apply_all(self, hunks: Sequence[Hunk]) -> str:
        for number, hunk in enumerate(hunks, 1):
            self._apply(hunk, number)
        is_open = self._is_open
        if self._done == len(self._lines) and hunks:
            is_open = self._ends_open(hunks[-1])
        self._out += self._lines[self._done :]
        return "\n".join(self._out) + ("" if is_open or not self._out else "\n")

    def _ends_open(self, last: Hunk) -> bool:
        """Whether the last line has no line end after a hunk that reaches the end of the file."""
        for row in reversed(last.rows):
            if row[0] == "+":
                return last.new_is_open
            if row[0] == " ":
                return self._is_open and row is last.rows[-1]
        return False

    def _apply(self, hunk: Hunk, number: int) -> None:
        old = hunk.old
        start, is_exact = self._place(hunk, number, old)
        self._out += self._lines[self._done : start]
        # If the patch has no carriage returns at all, new lines end like those of the file.
        takes_return = self._return and not is_exact and not any(row.endswith("\r") for row in hunk.rows)
        at = start
        for row in hunk.rows:
            if row[0] == "+":
                self._out.append(row[1:] + self._return if takes_return else row[1:])
                continue
            if row[0] == " ":
                self._out.append(self._lines[at])
            at += 1
        self._done = at

    def _place(self, hunk: Hunk, number: int, old: Sequence[str]) -> tuple[int, bool]:
        """Where a hunk belongs, and whether its lines match exactly."""
        given = hunk.old_start or 0
        expected = given + self._shift if not old else max(given - 1 + self._shift, 0)
        if not old:
            if not self._done <= expected <= len(self._lines):
                raise HunkNotPlaced(number, hunk, old, self._index, self._done)
            return expected, False
        is_last = hunk.old_is_open or hunk.new_is_open
        if is_last:
            expected = len(self._lines) - len(old)
        for level in LEVELS:
            found = self._matches_near(old, expected, level, is_last=is_last)
            if len(found) == 1:
                self._shift += found[0] - expected
                return found[0], level == EXACT
            if found:
                raise HunkNotPlaced(number, hunk, old, self._index, self._done, is_ambiguous=True)
        raise HunkNotPlaced(number, hunk, old, self._index, self._done)

    def _matches_near(self, old: Sequence[str], expected: int, level: int, *, is_last: bool) -> list[int]:
        """The exact match nearest to the expected place; for inexact matches, up to two, to detect ambiguity."""
        index, done = self._index, self._done
        if expected >= done and index.matches_at(old, expected, level=level):
            return [expected]
        if is_last:
            return []
        if level == EXACT:
            places = [index.first(old, max(done, expected), level=level), index.last(old, done, expected - 1)]
            found = [place for place in places if place is not None]
            return [min(found, key=lambda place: abs(place - expected))] if found else []
        first = index.first(old, done, level=level)
        second = None if first is None else index.first(old, first + 1, level=level)
        return [place for place in (first, second) if place is not None]
