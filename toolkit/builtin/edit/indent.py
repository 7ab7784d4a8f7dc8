"""Translates the indentation of given lines to that of the file they are inserted into."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from math import gcd
from typing import NamedTuple


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


class _Scale(NamedTuple):
    """``given`` characters of indentation correspond to ``found`` times ``letter`` in the file."""

    given: int
    found: int
    letter: str

    def apply(self, indent: str) -> str:
        width, rest = divmod(len(indent) * self.found, self.given)
        return indent if rest else self.letter * width


class Indentation:
    """Compares lines as given with the same lines in the file, to translate indents from one to the other."""

    def __init__(self, given: Sequence[str], found: Sequence[str], new: Sequence[str]) -> None:
        """``new`` are the lines to indent; their indents help to find the width of a level."""
        self._lines: list[int] = []
        self._pairs: list[tuple[str, str]] = []
        self._same: dict[str, list[int]] = {}
        for number, (one, other) in enumerate(zip(given, found, strict=True)):
            if one.strip() and other.strip():
                self._same.setdefault(indent_of(one), []).append(number)
                self._lines.append(number)
                self._pairs.append((indent_of(one), indent_of(other)))
        self._found = [indent_of(line) for line in found]
        self._scale = _find_scale(self._pairs, [indent_of(line) for line in new if line.strip()])

    def fit(self, line: str, place: int) -> str:
        """The line with the indent it needs near the given line ``place``."""
        indent = indent_of(line)
        if len(indent) == len(line) or not self._pairs:
            return line
        return self._translate(indent, place) + line[len(indent) :]

    def _translate(self, indent: str, place: int) -> str:
        same = self._same.get(indent)
        if same is not None:
            return self._found[_nearest(same, place)]
        given, found = self._pairs[bisect_left(self._lines, _nearest(self._lines, place))]
        if indent.startswith(given):
            return found + self._scale_indent(indent[len(given) :])
        less = self._scale_indent(given[len(indent) :]) if given.startswith(indent) else None
        if less is None or not (found.endswith(less) or less.endswith(found)):
            return indent  # it has nothing in common with the file
        return found[: max(0, len(found) - len(less))]

    def _scale_indent(self, indent: str) -> str:
        return indent if self._scale is None else self._scale.apply(indent)


def _nearest(numbers: Sequence[int], wanted: int) -> int:
    """The number nearest to ``wanted`` in a sorted list; the smaller of two."""
    at = bisect_left(numbers, wanted)
    around = numbers[max(0, at - 1) : at + 1]
    return min(around, key=lambda number: abs(number - wanted))


def _find_scale(pairs: Sequence[tuple[str, str]], new: Sequence[str]) -> _Scale | None:
    """How the width of a level differs between the given lines and the file; None if it does not."""
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
    # A level is the greatest common divisor of all indents; a tab is one level.
    level = gcd(*map(len, found if given_tabs else given)) or 1
    return _Scale(1, level, letter) if given_tabs else _Scale(level, 1, letter)
