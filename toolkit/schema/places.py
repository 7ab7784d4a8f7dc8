"""Where in a text the value of a JSON pointer is: line and column, both from 1.

A key counts as the place of its value. Nothing here runs unless a finding is reported, and a text that is only partly
right has places as far as it could be read.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from toolkit.schema.problems import ODD_KEY, below


class PlaceTable:
    """The places of some pointers and of everything above them; a pointer that leads nowhere has the place above it."""

    def __init__(self, pointers: Collection[str]) -> None:
        self._wanted = {above for pointer in pointers for above in _list_above(pointer)}
        self._found: dict[str, tuple[int, int]] = {}

    def find(self, pointer: str) -> tuple[int, int]:
        """Line and column; (1, 1) for the whole text, and if nothing of it could be read."""
        if not pointer:
            return 1, 1
        return next((self._found[above] for above in _list_above(pointer) if above in self._found), (1, 1))

    def enter(self, pointer: str | None, key: str | int) -> str | None:
        """The pointer of a key, or None if nothing at or below it is wanted."""
        inner = None if pointer is None else below(pointer, key)
        return inner if inner in self._wanted else None

    def record(self, pointer: str | None, line: int, column: int) -> None:
        """Of two equal keys the second one counts: it is the mistake."""
        if pointer is not None:
            self._found[pointer] = (line, column)


def _list_above(pointer: str) -> Iterator[str]:
    """The pointer itself, then each one above it."""
    yield pointer
    while pointer:
        pointer = pointer.rpartition("/")[0]
        yield pointer


@dataclass(slots=True)
class _Container:
    pointer: str | None
    is_object: bool
    index: int = 0
    key: str | None = None
    """The pointer of the key that was read last."""
    is_at_key: bool = True


class Cursor:
    """Follows the values of a text in their order: keys and scalars, and where lists and objects start and end."""

    def __init__(self, places: PlaceTable, pointer: str | None = "") -> None:
        self._places = places
        self._root = pointer
        self._stack: list[_Container] = []

    def scalar(self, read: Callable[[], str], line: int, column: int) -> None:
        """A key or a value; ``read`` returns its text, which only a key needs."""
        self._next_value(read, line, column)

    def open(self, is_object: bool, line: int, column: int) -> None:
        self._stack.append(_Container(self._next_value(lambda: ODD_KEY, line, column), is_object))

    def close(self) -> None:
        if self._stack:
            self._stack.pop()

    def _next_value(self, read_key: Callable[[], str], line: int, column: int) -> str | None:
        """The pointer of what comes next; None for a key, and for what is not wanted."""
        if not self._stack:
            self._places.record(self._root, line, column)
            return self._root
        top = self._stack[-1]
        if not top.is_object:
            pointer = self._places.enter(top.pointer, top.index)
            top.index += 1
            self._places.record(pointer, line, column)
            return pointer
        top.is_at_key = not top.is_at_key
        if top.is_at_key:
            return top.key
        top.key = self._places.enter(top.pointer, read_key()) if top.pointer is not None else None
        self._places.record(top.key, line, column)
        return None


class Lines:
    """Line and column of an offset."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1
