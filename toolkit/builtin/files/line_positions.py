"""Where lines begin in large files that were read before, so that later lines are found without reading from the start.

Only positions are kept, never content: every line that is returned is read from the file at that moment. They count only for
the same file with the same size and times, and only if these were a minute old when the file was read. A file that changed
since then has a newer time, even if clocks are coarse or a program writes through a memory map.

Limit: on a file system that does not record writes through memory maps (tmpfs), line numbers may be off after such a write.
"""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_left
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from toolkit.inject.key import DependencyKey

if TYPE_CHECKING:
    from toolkit.guard.files.handles import OpenFile

CHUNK: Final = 256 * 1024
"""Positions are multiples of it; files are read in pieces of this size."""

# Positions of one file, and files whose positions are kept.
_MAX_POSITIONS: Final = 1024
_MAX_FILES: Final = 32
# Longer than a kernel keeps a page writable through a memory map before it records the next write to it.
_SETTLED_NS: Final = 60 * 1_000_000_000

_Stamp: TypeAlias = tuple[int, int, int]


class LinePositions:
    """How many lines end before some positions of a file, as far as it was read: one for every ``step`` bytes."""

    __slots__ = ("_line_ends", "_step")

    def __init__(self, size: int, line_ends: tuple[int, ...] = ()) -> None:
        self._step = CHUNK * math.ceil(size / (CHUNK * _MAX_POSITIONS))
        self._line_ends = [*line_ends]

    @property
    def is_empty(self) -> bool:
        return not self._line_ends

    def add(self, position: int, line_ends: int) -> None:
        """Note how many lines end before ``position``, unless that is known or not one of its positions."""
        if position == len(self._line_ends) * self._step:
            self._line_ends.append(line_ends)

    def before(self, line: int) -> tuple[int, int]:
        """The last known position before the start of this line, counted from 1, and how many lines end before it."""
        number = max(0, bisect_left(self._line_ends, line - 1) - 1)
        return number * self._step, self._line_ends[number] if number else 0

    def known(self) -> tuple[int, ...]:
        return tuple(self._line_ends)


class LinePositionStore:
    """The positions of a run, by file; thread-safe. ``clock`` returns the time in nanoseconds since 1970."""

    def __init__(self, clock: Callable[[], int] = time.time_ns) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[tuple[int, int], tuple[_Stamp, tuple[int, ...]]] = {}

    def of(self, file: OpenFile) -> LinePositions:
        """What is known about the file, to be used and added to by one call; empty if it may have changed."""
        stamp, known = self._kept.get(file.identity, (None, ()))
        return LinePositions(file.size, known if stamp == _stamp(file) else ())

    def keep(self, file: OpenFile, positions: LinePositions) -> None:
        """Keep them for later calls, unless the file was changed so recently that another change might not show."""
        if self._clock() - max(file.mtime_ns, file.ctime_ns) < _SETTLED_NS:
            return
        stamp, known = _stamp(file), positions.known()
        with self._lock:
            before = self._kept.pop(file.identity, None)
            longer = before[1] if before is not None and before[0] == stamp and len(before[1]) > len(known) else known
            self._kept[file.identity] = stamp, longer  # the last used comes last
            while len(self._kept) > _MAX_FILES:
                del self._kept[next(iter(self._kept))]


def _stamp(file: OpenFile) -> _Stamp:
    return file.size, file.mtime_ns, file.ctime_ns


LINE_POSITIONS: Final[DependencyKey[LinePositionStore]] = DependencyKey(
    "line_positions", LinePositionStore, lifetime="run"
)
