"""Matches the lines of two texts, with bounded work whatever the texts are.

Lines that occur once on both sides are matched first; between them the fewest changes are searched for, within a budget.
When it is used up, the rest of that part counts as replaced: a coarser result, never a wrong one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

# With more lines, everything between the first and the last difference counts as one change.
MAX_LINES: Final = 50_000
MAX_STEPS: Final = 1_000_000
MAX_DEPTH: Final = 8


class LineChange(NamedTuple):
    """``old[old_start:old_end]`` became ``new[new_start:new_end]``; one of the two may be empty."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def line_changes(old: Sequence[str], new: Sequence[str]) -> list[LineChange]:
    """The changes that turn ``old`` into ``new``, in order; no two are adjacent.

    >>> line_changes(["a", "b", "c"], ["a", "x", "y", "c"])
    [LineChange(old_start=1, old_end=2, new_start=1, new_end=3)]
    """
    numbers: dict[str, int] = {}
    comparison = _LineComparison(
        [numbers.setdefault(line, len(numbers)) for line in old],
        [numbers.setdefault(line, len(numbers)) for line in new],
    )
    return list(_join_adjacent(comparison.changes_within(LineChange(0, len(old), 0, len(new)))))


class _LineComparison:
    """Compares two lists of numbers, where equal numbers stand for equal lines, within a budget of steps."""

    def __init__(self, old: list[int], new: list[int]) -> None:
        self._old = old
        self._new = new
        self._steps = MAX_STEPS

    def changes_within(self, part: LineChange, depth: int = 0) -> Iterator[LineChange]:
        """The changes within a part. Recurses at most ``MAX_DEPTH`` deep; each level passes over the part once."""
        part = self._trim_equal_ends(part)
        a, a_end, b, b_end = part
        if a == a_end or b == b_end:
            if part != (a, a, b, b):
                yield part
            return
        if (a_end - a) + (b_end - b) > MAX_LINES:
            yield part
            return
        fixed = self._unique_pairs(part) if depth < MAX_DEPTH else []
        if not fixed:
            yield from self._fewest_changes(part)
            return
        for i, j in [*fixed, (a_end, b_end)]:
            yield from self.changes_within(LineChange(a, i, b, j), depth + 1)
            a, b = i + 1, j + 1

    def _trim_equal_ends(self, part: LineChange) -> LineChange:
        """The part without equal lines at its start and end."""
        old, new = self._old, self._new
        a, a_end, b, b_end = part
        while a < a_end and b < b_end and old[a] == new[b]:
            a, b = a + 1, b + 1
        while a < a_end and b < b_end and old[a_end - 1] == new[b_end - 1]:
            a_end, b_end = a_end - 1, b_end - 1
        return LineChange(a, a_end, b, b_end)

    def _unique_pairs(self, part: LineChange) -> list[tuple[int, int]]:
        """Places of lines that occur once on each side: the longest selection of pairs that increases on both."""
        a, a_end, b, b_end = part
        in_old, in_new = Counter(self._old[a:a_end]), Counter(self._new[b:b_end])
        place = {number: b + j for j, number in enumerate(self._new[b:b_end]) if in_new[number] == 1}
        pairs = [
            (i, place[number])
            for i, number in enumerate(self._old[a:a_end], a)
            if in_old[number] == 1 and number in place
        ]
        return _longest_increasing(pairs)

    def _fewest_changes(self, part: LineChange) -> Iterator[LineChange]:
        """The shortest list of changes (Myers' greedy algorithm), or the whole part once the budget is used up."""
        a, a_end, b, b_end = part
        rows = self._search(self._old[a:a_end], self._new[b:b_end])
        if rows is None:
            yield part
            return
        for i, i_end, j, j_end in _trace_back(rows, a_end - a, b_end - b):
            yield LineChange(a + i, a + i_end, b + j, b + j_end)

    def _search(self, old: list[int], new: list[int]) -> list[list[int]] | None:
        """For each number of changes, how far into ``old`` every second diagonal gets; None if too costly."""
        best = {1: 0}
        rows: list[list[int]] = []
        for count in range(len(old) + len(new) + 1):
            row = []
            for diagonal in range(-count, count + 1, 2):
                x = _step(best, diagonal, count)
                start = x
                while x < len(old) and x - diagonal < len(new) and old[x] == new[x - diagonal]:
                    x += 1
                self._steps -= 1 + x - start
                best[diagonal] = x
                row.append(x)
                if x >= len(old) and x - diagonal >= len(new):
                    return [*rows, row]
                if self._steps <= 0:
                    return None
            rows.append(row)
        raise AssertionError("replacing everything is always possible")


def _step(best: dict[int, int], diagonal: int, count: int) -> int:
    """Where a diagonal is entered with one more change: an insertion comes from above, a deletion from below."""
    if diagonal == -count or (diagonal != count and best[diagonal - 1] < best[diagonal + 1]):
        return best[diagonal + 1]
    return best[diagonal - 1] + 1


def _trace_back(rows: list[list[int]], x: int, y: int) -> list[LineChange]:
    """The single insertions and deletions on the path that was found."""
    found: list[LineChange] = []
    for count in range(len(rows) - 1, 0, -1):
        before = {diagonal: rows[count - 1][(diagonal + count - 1) // 2] for diagonal in range(1 - count, count, 2)}
        diagonal = x - y
        inserted = diagonal == -count or (diagonal != count and before[diagonal - 1] < before[diagonal + 1])
        came_from = diagonal + 1 if inserted else diagonal - 1
        x = before[came_from]
        y = x - came_from
        found.append(LineChange(x, x, y, y + 1) if inserted else LineChange(x, x + 1, y, y))
    return found[::-1]


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of pairs sorted by their first number, the longest selection in which the second increases too."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int | None] = []
    for index, (_, j) in enumerate(pairs):
        at = bisect_left(ends, j)
        before.append(last[at - 1] if at else None)
        ends[at : at + 1] = [j]
        last[at : at + 1] = [index]
    chosen: list[tuple[int, int]] = []
    here = last[-1] if last else None
    while here is not None:
        chosen.append(pairs[here])
        here = before[here]
    return chosen[::-1]


def _join_adjacent(found: Iterator[LineChange]) -> Iterator[LineChange]:
    """The changes, with adjacent ones joined."""
    whole: LineChange | None = None
    for one in found:
        if whole is not None and (whole.old_end, whole.new_end) == (one.old_start, one.new_start):
            whole = LineChange(whole.old_start, one.old_end, whole.new_start, one.new_end)
            continue
        if whole is not None:
            yield whole
        whole = one
    if whole is not None:
        yield whole
