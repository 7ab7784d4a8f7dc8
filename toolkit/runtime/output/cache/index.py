"""Where lines begin: line feeds counted at every 256 KiB while an output is written.

Marks stand at bytes, not at every so many lines: any line is then found by reading one stretch of 256 KiB, however
long or short lines are, and the marks of a gigabyte take 32 KiB.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Final

STRETCH: Final = 256 * 1024


class LineIndex:
    """Fed with an output from its beginning to its end; knows its size and lines at every moment."""

    __slots__ = ("_is_inside_line", "line_feeds", "marks", "size")

    def __init__(self) -> None:
        self.size = 0
        self.line_feeds = 0
        self.marks: Final = array("Q")
        """For each whole stretch: line feeds from the beginning to its end."""
        self._is_inside_line = False

    @property
    def lines(self) -> int:
        """A last line without a line feed counts, too."""
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
    """The lines of an output that is there as a whole.

    >>> count_lines(b""), count_lines(b"one\\ntwo"), count_lines(b"one\\ntwo\\n")
    (0, 2, 2)
    """
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


def stretch_of(marks: array[int], line_feed: int) -> tuple[int, int]:
    """Where the stretch begins that holds this line feed, counted from 1, and how many come before it.

    >>> stretch_of(array("Q", [3, 3, 8]), 4)
    (524288, 3)
    """
    number = bisect_left(marks, line_feed)
    return number * STRETCH, marks[number - 1] if number else 0


def position_of(data: bytes, line_feed: int) -> int:
    """Where in ``data`` this line feed is, counted from 1; it must be there.

    Halving and counting reads the data about twice, where looking for one line feed after the other would take a step
    for each.

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
