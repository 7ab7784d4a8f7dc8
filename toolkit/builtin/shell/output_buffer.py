"""Collecting a command's output while it runs: head and tail of each stream in memory, and everything in the output cache
once a stream is longer than may be returned.

Memory stays flat however much is written: two limits of text, and a few bytes for every change between the streams until
something has to be left out.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Final, Literal, Protocol, TypeAlias, cast

from toolkit.builtin.shell.output import OutputEscaper
from toolkit.guard.process.output import HeadTail

Stream: TypeAlias = Literal["stdout", "stderr"]
OnText: TypeAlias = Callable[[Stream, str], None]

STREAMS: Final[tuple[Stream, Stream]] = ("stdout", "stderr")


class FullOutputWriter(Protocol):
    """Takes an output that is too long to be returned."""

    def write(self, data: bytes) -> None: ...


class OutputCollector:
    """Both streams of one command: ``add`` what comes, ``finish``, and read ``streams``.

    ``on_text`` gets every piece of text. ``open_writer`` is called once, when a stream first exceeds ``limit``; the writer
    gets everything from the first byte on, both streams in the order in which they came.
    """

    def __init__(self, limit: int, on_text: OnText | None, open_writer: Callable[[], FullOutputWriter]) -> None:
        self.streams: Final[Mapping[Stream, HeadTail]] = {name: HeadTail(limit) for name in STREAMS}
        self._escapers = {name: OutputEscaper() for name in STREAMS}
        self._on_text = on_text
        self._open_writer = open_writer
        self._writer: FullOutputWriter | None = None
        self._turns = array("I", [0])
        """How many bytes came from stdout, then from stderr, then from stdout again, and so on; until there is a writer."""

    def add(self, name: str, data: bytes) -> None:
        """The next bytes of a stream."""
        stream = cast("Stream", name)
        self._add_text(stream, self._escapers[stream].feed(data))

    def finish(self) -> None:
        """Call it once after the last ``add``."""
        for stream in STREAMS:
            self._add_text(stream, self._escapers[stream].end())

    def _add_text(self, stream: Stream, text: str) -> None:
        if not text:
            return
        if self._on_text is not None:
            self._on_text(stream, text)
        piece = text.encode()
        if self._writer is None and not self.streams[stream].fits(len(piece)):
            self._writer = self._open_writer()
            self._writer.write(self._everything_so_far())
        self.streams[stream].add(piece)
        if self._writer is not None:
            self._writer.write(piece)
        else:
            self._count_turn(stream, len(piece))

    def _count_turn(self, stream: Stream, size: int) -> None:
        if STREAMS[(len(self._turns) - 1) % 2] == stream:
            self._turns[-1] += size
        else:
            self._turns.append(size)

    def _everything_so_far(self) -> bytes:
        """Both streams in the order in which they came."""
        sources = [memoryview(self.streams[stream].whole()) for stream in STREAMS]
        gathered = bytearray()
        for turn, size in enumerate(self._turns):
            gathered += sources[turn % 2][:size]
            sources[turn % 2] = sources[turn % 2][size:]
        return bytes(gathered)


def shorten(stream: HeadTail) -> str:
    """The text of a stream; where something is left out, a line says how much.

    >>> stream = HeadTail(8)
    >>> stream.add("one\\ntwo\\nthree\\n".encode())
    >>> print(shorten(stream))
    one
    [... 6 bytes left out ...]
    …ree
    <BLANKLINE>
    """
    if not stream.is_truncated:
        return stream.whole().decode()
    kept_head, before_tail, kept_tail = stream.parts()
    # A character that was cut is left out with the rest. A line that was cut is marked, or it would look like a whole one.
    head, tail = kept_head.decode(errors="ignore"), kept_tail.decode(errors="ignore")
    missing = stream.total - len(head.encode()) - len(tail.encode())
    end_mark = "" if head.endswith("\n") else "…\n"
    start_mark = "" if before_tail == b"\n" or not tail else "…"
    return f"{head}{end_mark}[... {missing} bytes left out ...]\n{start_mark}{tail}"
