"""An index of lines: line feeds are counted at every 256 KiB while an output is written.

Marks are set by bytes, not by lines: any line is found by reading one stretch of 256 KiB, however long lines are, and the
marks of a gigabyte take 32 KiB.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Final

STRETCH: Final = 256 * 1024


class LineIndex:
    """Counts the bytes and lines of an output that is fed from beginning to end."""

    __slots__ = ("_is_inside_line", "line_feeds", "marks", "size")

    def __init__(self) -> None:
        self.size = 0
        self.line_feeds = 0
        self.marks: Final = array("Q")
        """For each complete stretch: the line feeds from the beginning of the output to its end."""
        self._is_inside_line = False

    @property
    def lines(self) -> int:
        """A last line without a line feed counts."""
        return self.line_feeds + self._is_inside_line

    def feed(self, data: bytes) -> None:
        start = 0
        while start < len(data):
            stop = min(len(data), start + STRETCH - self.size % STRETCH)
            self.line_feeds += data.count(b"\n", start, stop)
            self.size += stop - start
            if self.size % STRETCH == 0:
                self.marks.append(self.line_feeds)
            start = stop
        if data:
            self._is_inside_line = not data.endswith(b"\n")


def count_lines(data: bytes) -> int:
    """The number of lines of a whole output.

    >>> count_lines(b""), count_lines(b"one\\ntwo"), count_lines(b"one\\ntwo\\n")
    (0, 2, 2)
    """
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


def stretch_of(marks: array[int], line_feed: int) -> tuple[int, int]:
    """Where the stretch with this line feed (counted from 1) begins, and how many line feeds come before it.

    >>> stretch_of(array("Q", [3, 3, 8]), 4)
    (524288, 3)
    """
    number = bisect_left(marks, line_feed)
    return number * STRETCH, marks[number - 1] if number else 0


def position_of(data: bytes, line_feed: int) -> int:
    """Where in ``data`` this line feed (counted from 1) is; it must exist.

    Bisecting reads the data about twice; searching one line feed after the other would take a step for each.

    >>> position_of(b"a\\nb\\n\\n", 3)
    4
    """
    start, stop = 0, len(data)
    while stop - start > 1:
        middle = (start + stop) // 2
        found = data.count(b"\n", start, middle)
        if found >= line_feed:
            stop = middle
        else:
            start, line_feed = middle, line_feed - found
    return start
