"""Holding a command's output while it comes: beginning and end of each stream in memory, and all of it elsewhere once
that is more than may be returned.

Memory stays flat however much is written: two limits of text, and a few bytes for every change between the streams until
something has to be cut.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Final, Literal, Protocol, TypeAlias, cast

from toolkit.builtin.shell.escape_output import Cleaner

Stream: TypeAlias = Literal["stdout", "stderr"]
Tell: TypeAlias = Callable[[Stream, str], None]

STREAMS: Final[tuple[Stream, Stream]] = ("stdout", "stderr")
_SLACK: Final = 1 << 16


class Whole(Protocol):
    """Where an output goes that is too long to be returned."""

    def write(self, data: bytes) -> None: ...


class Ends:
    """The beginning and the end of one stream as UTF-8, at most ``limit`` bytes of it together."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    @property
    def is_cut(self) -> bool:
        return self.total > self._limit

    def fits(self, more: int) -> bool:
        """Whether nothing has to be cut when so many bytes follow."""
        return self.total + more <= self._limit

    def add(self, piece: bytes) -> None:
        self.total += len(piece)
        room = self._limit - self._limit // 2 - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:]
        if len(self._tail) > self._limit + _SLACK:  # not at every piece: moving the rest costs its length
            self._trim()

    def kept(self) -> bytes:
        """Everything, as long as nothing was cut."""
        return b"".join((self._head, self._tail))

    def text(self) -> str:
        """What is left of the stream; where something is missing, a line says how much."""
        if not self.is_cut:
            return self.kept().decode()
        self._trim()
        # A character the cut went through is left out with the rest; a line, marked: it could be taken for a whole one.
        head, tail = self._head.decode(errors="ignore"), self._tail[1:].decode(errors="ignore")
        missing = self.total - len(head.encode()) - len(tail.encode())
        stop = "" if head.endswith("\n") else "…\n"
        start = "" if self._tail.startswith(b"\n") or not tail else "…"
        return f"{head}{stop}[... {missing} bytes left out ...]\n{start}{tail}"

    def _trim(self) -> None:
        """One byte more stays than is shown: it tells whether a line begins behind it."""
        surplus = len(self._tail) - self._limit // 2 - 1
        if surplus > 0:
            del self._tail[:surplus]


class Collector:
    """Both streams of one command: ``add`` what comes, ``finish``, and read ``ends``.

    ``tell`` hears every piece of text. ``begin_whole`` is asked once, when a stream first exceeds ``limit``; what it gives
    is written everything from the first byte on, both streams in the order in which they came.
    """

    def __init__(self, limit: int, tell: Tell | None, begin_whole: Callable[[], Whole]) -> None:
        self.ends: Final[Mapping[Stream, Ends]] = {name: Ends(limit) for name in STREAMS}
        self._cleaners = {name: Cleaner() for name in STREAMS}
        self._tell = tell
        self._begin_whole = begin_whole
        self._whole: Whole | None = None
        self._turns = array("I", [0])
        """How many bytes came of stdout, then of stderr, then of stdout again, and so on; until there is a whole."""

    def add(self, name: str, data: bytes) -> None:
        """The next bytes of a stream."""
        stream = cast("Stream", name)
        self._take(stream, self._cleaners[stream].feed(data))

    def finish(self) -> None:
        """Nothing more will come."""
        for stream in STREAMS:
            self._take(stream, self._cleaners[stream].end())

    def _take(self, stream: Stream, text: str) -> None:
        if not text:
            return
        if self._tell is not None:
            self._tell(stream, text)
        piece = text.encode()
        if self._whole is None and not self.ends[stream].fits(len(piece)):
            self._whole = self._begin_whole()
            self._whole.write(self._in_order())
        self.ends[stream].add(piece)
        if self._whole is not None:
            self._whole.write(piece)
        else:
            self._count(stream, len(piece))

    def _count(self, stream: Stream, size: int) -> None:
        if STREAMS[(len(self._turns) - 1) % 2] == stream:
            self._turns[-1] += size
        else:
            self._turns.append(size)

    def _in_order(self) -> bytes:
        """All that came so far."""
        sources = [memoryview(self.ends[stream].kept()) for stream in STREAMS]
        gathered = bytearray()
        for turn, size in enumerate(self._turns):
            gathered += sources[turn % 2][:size]
            sources[turn % 2] = sources[turn % 2][size:]
        return bytes(gathered)
