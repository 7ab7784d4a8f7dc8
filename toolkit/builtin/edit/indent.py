"""Indentation of lines that were written with another one in mind: what they must begin with to fit into a file."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from math import gcd
from typing import NamedTuple


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


class _Scale(NamedTuple):
    """So many characters of indentation as given are so many of ``letter`` in the file."""

    given: int
    found: int
    letter: str

    def applied(self, indent: str) -> str:
        width, rest = divmod(len(indent) * self.found, self.given)
        return indent if rest else self.letter * width


class Indentation:
    """Lines as somebody gave them beside the same lines as the file has them: how one writes the indents of the other."""

    def __init__(self, given: Sequence[str], found: Sequence[str], new: Sequence[str]) -> None:
        """``new`` are the lines to be indented; their indents help to tell how wide a level is."""
        self._lines: list[int] = []
        self._pairs: list[tuple[str, str]] = []
        self._same: dict[str, list[int]] = {}
        for number, (one, other) in enumerate(zip(given, found, strict=True)):
            if one.strip() and other.strip():
                self._same.setdefault(indent_of(one), []).append(number)
                self._lines.append(number)
                self._pairs.append((indent_of(one), indent_of(other)))
        self._found = [indent_of(line) for line in found]
        self._scale = _scale(self._pairs, [indent_of(line) for line in new if line.strip()])

    def fitted(self, line: str, place: int) -> str:
        """The line with the indent it needs near the given line ``place``."""
        indent = indent_of(line)
        if len(indent) == len(line) or not self._pairs:
            return line
        return self._translated(indent, place) + line[len(indent) :]

    def _translated(self, indent: str, place: int) -> str:
        same = self._same.get(indent)
        if same is not None:
            return self._found[_nearest(same, place)]
        given, found = self._pairs[bisect_left(self._lines, _nearest(self._lines, place))]
        if indent.startswith(given):
            return found + self._scaled(indent[len(given) :])
        less = self._scaled(given[len(indent) :]) if given.startswith(indent) else None
        if less is None or not (found.endswith(less) or less.endswith(found)):
            return indent  # nothing in common with what is there
        return found[: max(0, len(found) - len(less))]

    def _scaled(self, indent: str) -> str:
        return indent if self._scale is None else self._scale.applied(indent)


def _nearest(numbers: Sequence[int], wanted: int) -> int:
    """Of rising numbers the one next to the wanted one, the smaller of two."""
    at = bisect_left(numbers, wanted)
    around = numbers[max(0, at - 1) : at + 1]
    return min(around, key=lambda number: abs(number - wanted))


def _scale(pairs: Sequence[tuple[str, str]], new: Sequence[str]) -> _Scale | None:
    """How much deeper the file goes where the given lines go deeper; None where both are written alike."""
    given, found = [*(one for one, _ in pairs), *new], [other for _, other in pairs]
    letter = "\t" if any("\t" in indent for indent in found) else " "
    for (one, other), (next_one, next_other) in pairwise(pairs):
        deeper, deeper_in_file = len(next_one) - len(one), len(next_other) - len(other)
        if deeper * deeper_in_file > 0:
            return _Scale(abs(deeper), abs(deeper_in_file), letter)
    given_tabs, found_tabs = any("\t" in indent for indent in given), letter == "\t"
    if given_tabs == found_tabs or not any(found):
        return None
    both = next(((one, other) for one, other in pairs if one and other), None)
    if both is not None:
        return _Scale(len(both[0]), len(both[1]), letter)
    # One level is what all indents are multiples of; a tab is a level by itself.
    level = gcd(*map(len, found if given_tabs else given)) or 1
    return _Scale(1, level, letter) if given_tabs else _Scale(level, 1, letter)
