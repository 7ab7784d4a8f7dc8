"""How similar two texts are, and which parts of a file are most similar to a given text, with bounded work."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
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
