"""How similar two texts are: which parts of a file resemble a given text, and which lines two texts share.

The work is bounded whatever the texts are.

``difflib`` is not used because it is quadratic on repetitive text.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

MAX_REGIONS: Final = 3
MIN_SIMILARITY: Final = 0.4

_MAX_COMPARED_CHARACTERS: Final = 20_000
_MAX_WORDS: Final = 48
_MAX_RARE_WORDS: Final = 12
_MAX_PLACES: Final = 200
_MAX_CANDIDATES: Final = 12

# What to look for; each pattern is tried only if the one before finds nothing: words (long ones in pieces, so that a wrong
# letter does not hide the rest), any three characters, whole lines.
_PIECES: Final = (re.compile(r"\w{3,12}"), re.compile(r"(?=(\S{3}))"), re.compile(r"\S(?:.*\S)?"))


class Region(NamedTuple):
    """Lines of a file, counted from 1, and their similarity to the wanted text, from 0 to 1.

    ``column`` is where the similar text starts in the first line.
    """

    first_line: int
    lines: Sequence[str]
    similarity: float
    column: int

    @property
    def last_line(self) -> int:
        return self.first_line + len(self.lines) - 1


class _WordHit(NamedTuple):
    """A word found at ``place`` in the text; ``line`` and ``column`` are its position in the wanted text."""

    weight: int
    place: int
    line: int
    column: int


def similarity(one: str, other: str) -> float:
    """The share of adjacent letter pairs that both have, ignoring surrounding whitespace: 1 if equal, 0 if nothing.

    >>> similarity("return foo", "  return foo"), round(similarity("return foo", "return far"), 2)
    (1.0, 0.78)
    """
    one, other = one.strip(), other.strip()
    if one == other:
        return 1.0
    if len(one) < 2 or len(other) < 2:
        return 0.0
    pairs, others = Counter(pairwise(one)), Counter(pairwise(other))
    # Less than 1 even if only the order differs.
    return min(2 * (pairs & others).total() / (len(one) + len(other) - 2), 0.99)


def nearest_regions(text: str, wanted: str) -> list[Region]:
    """The parts of ``text`` most similar to ``wanted``, with as many lines, the most similar first.

    Only places around words of ``wanted`` that are rare in the text are compared. Limit: of very long texts only the start
    is compared.
    """
    whole = wanted.strip("\n")
    height = whole.count("\n") + 1
    whole = whole[:_MAX_COMPARED_CHARACTERS]
    lines = text.split("\n")
    if height > len(lines):
        return []
    starts = array("I", accumulate((len(line) + 1 for line in lines), initial=0))
    votes: Counter[int] = Counter()
    begins: dict[int, int] = {}
    for hit in _hits(text, whole.split("\n")):
        top = min(max(bisect_right(starts, hit.place) - 1 - hit.line, 0), len(lines) - height)
        votes[top] += hit.weight
        begins.setdefault(top, max(hit.place - hit.column, starts[top]) if height == 1 else starts[top])
    regions = []
    for top, _ in votes.most_common(_MAX_CANDIDATES):
        start, end = begins[top], starts[top + height] - 1
        found = text[start : min(end, start + (len(whole) if height == 1 else _MAX_COMPARED_CHARACTERS))]
        regions.append(Region(top + 1, lines[top : top + height], similarity(whole, found), start - starts[top]))
    return _pick_separate(sorted(regions, key=lambda region: (-region.similarity, region.first_line)))


def _hits(text: str, wanted: Sequence[str]) -> Iterator[_WordHit]:
    """Where the rarest words of the wanted lines occur in the text; rarer words weigh more."""
    for pattern in _PIECES:
        places: dict[str, tuple[int, int]] = {}
        for number, line in enumerate(wanted):
            for found in pattern.finditer(line):
                places.setdefault(found[found.re.groups], (number, found.start()))
        longest = sorted(places, key=len, reverse=True)[:_MAX_WORDS]
        counted = [(count, word) for word in longest if (count := text.count(word))]
        for count, word in sorted(counted)[:_MAX_RARE_WORDS]:
            tried = min(count, _MAX_PLACES)
            place = -1
            for _ in range(tried):
                place = text.find(word, place + 1)
                yield _WordHit(_MAX_PLACES // tried, place, *places[word])
        if counted:
            return


def _pick_separate(regions: Iterable[Region]) -> list[Region]:
    """The first regions that are similar enough and share no line."""
    kept: list[Region] = []
    for region in regions:
        if region.similarity < MIN_SIMILARITY or len(kept) == MAX_REGIONS:
            break
        if all(region.last_line < other.first_line or other.last_line < region.first_line for other in kept):
            kept.append(region)
    return kept


# ----------------------------------------------------------------------------------------------------------------------
# Hints for a model that copied lines from ``read_file`` in a way that cannot match the file.

_NUMBERED: Final = re.compile(r"\s*\d+\t")
_UNREADABLE: Final = re.compile("[\udc80-\udcff]")


def copy_hints(text: str, wanted: Sequence[str], leave_out: str) -> Iterator[str]:
    """What may be wrong with the ``wanted`` lines; ``leave_out`` says what to do about bytes that are not UTF-8."""
    if all(_NUMBERED.match(line) for line in wanted):
        yield "Remove the line numbers: they are not part of the file."
    if any("\ufffd" in line for line in wanted) and _UNREADABLE.search(text):
        yield f"The file has bytes that are not UTF-8, which read_file shows as \ufffd: {leave_out}."


# ----------------------------------------------------------------------------------------------------------------------
# Matches the lines of two texts, with bounded work whatever the texts are.
#
# Lines that occur once on both sides are matched first; between them the fewest changes are searched for, within a budget.
# When it is used up, the rest of that part counts as replaced: a coarser result, never a wrong one.

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
