"""The interface of output caches.

Every operation belongs to a session, and a ref is valid only in its session. Keeping an output never fails a call: if it
cannot be kept, there is no ref and the log says why. A cache that raises is treated the same way.
"""

from __future__ import annotations

import codecs
import json
import time
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Self

from toolkit.errors import ToolFailed
from toolkit.runtime.stores.waiting import wait_for
from toolkit.wire.content import ContentBlock

# ----------------------------------------------------------------------------------------------------------------------
# An index of lines: line feeds are counted at every 256 KiB while an output is written.
#
# Marks are set by bytes, not by lines: any line is found by reading one stretch of 256 KiB, however long lines are, and the
# marks of a gigabyte take 32 KiB.

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


# ----------------------------------------------------------------------------------------------------------------------
# Reads a kept output: lines by number, or everything in pieces. It is never held in memory as a whole.

MAX_LINE_CHARACTERS: Final = 2000
BLOCKS_TYPE: Final = "application/vnd.typed-toolkit.blocks+json"

_PAGE: Final = 64 * 1024
_MAX_LINE_BYTES: Final = 4 * MAX_LINE_CHARACTERS


class CachedLine(NamedTuple):
    """One line without its line feed; ``text`` is as much of it as can be shown, ``size`` counts all its bytes."""

    number: int
    text: str
    size: int
    is_clipped: bool


class CachedOutput:
    """One output; the end of a ``with`` block closes it."""

    __slots__ = ("_marks", "_read", "created", "media_type", "size", "tool", "total_lines")

    def __init__(
        self,
        read: Callable[[int, int], bytes],
        *,
        size: int,
        total_lines: int,
        marks: array[int],
        tool: str,
        media_type: str | None = None,
        created: float | None = None,
    ) -> None:
        """``read(position, size)`` returns fewer bytes than asked for only at the end. ``total_lines`` and ``marks`` are
        those of a ``LineIndex`` that was fed with the output."""
        self.size: Final = size
        self.total_lines: Final = total_lines
        self.tool: Final = tool
        self.media_type: Final = media_type
        self.created: Final = time.time() if created is None else created
        """When it was kept, in seconds since 1970."""
        self._marks = marks
        self._read = read

    @classmethod
    def of(
        cls, data: bytes | str, *, tool: str, media_type: str | None = None, created: float | None = None
    ) -> CachedOutput:
        """An output that is in memory.

        >>> output = CachedOutput.of("one\\ntwo", tool="read_file")
        >>> output.total_lines, [line.text for line in output.lines(2)]
        (2, ['two'])
        """
        whole = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
        index = LineIndex()
        index.feed(whole)
        return cls(
            lambda position, size: whole[position : position + size],
            size=index.size,
            total_lines=index.lines,
            marks=index.marks,
            tool=tool,
            media_type=media_type,
            created=created,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._read = _raise_closed

    def chunks(self, position: int = 0) -> Iterator[bytes]:
        """Everything from this byte on, in pieces."""
        while chunk := self._read(position, STRETCH):
            yield chunk
            position += len(chunk)

    def start_of(self, line: int) -> int:
        """The byte at which this line begins; the end of the output if there is no such line."""
        if line <= 1:
            return 0
        if line > self.total_lines:
            return self.size
        start, before = stretch_of(self._marks, line - 1)
        return start + position_of(self._read(start, STRETCH), line - 1 - before) + 1

    def lines(self, offset: int = 1, limit: int | None = None) -> Iterator[CachedLine]:
        """At most ``limit`` lines from number ``offset`` on; the rest of a very long line is skipped without being read."""
        last = self.total_lines if limit is None else min(self.total_lines, offset + limit - 1)
        start, buffer, at = self.start_of(offset), b"", 0
        for number in range(offset, last + 1):
            end = buffer.find(b"\n", at)
            while end < 0 and len(buffer) - at <= _MAX_LINE_BYTES:
                more = self._read(start + len(buffer) - at, _PAGE)
                if not more:
                    end = len(buffer)
                    break
                buffer, at = buffer[at:] + more, 0
                end = buffer.find(b"\n")
            if end < 0:
                following = self.start_of(number + 1)
                size = following - start - (number < self.total_lines or self._ends_with_line_feed())
                yield _line(number, buffer[at:], size)
                start, buffer, at = following, b"", 0
            else:
                yield _line(number, buffer[at:end], end - at)
                start, at = start + end + 1 - at, end + 1

    def _ends_with_line_feed(self) -> bool:
        return self._read(self.size - 1, 1) == b"\n"

    def blocks(self) -> tuple[ContentBlock, ...]:
        """The blocks that were kept by ``put_blocks``; none for any other output."""
        if self.media_type != BLOCKS_TYPE:
            return ()
        return tuple(ContentBlock(**block) for block in json.loads(b"".join(self.chunks())))

    def as_text(self) -> CachedOutput:
        """The output as lines of text; of content blocks, only the texts."""
        if self.media_type != BLOCKS_TYPE:
            return self
        data = "\n".join(block.text for block in self.blocks() if block.text is not None)
        return CachedOutput.of(data, tool=self.tool, media_type="text/plain", created=self.created)


def encode_blocks(blocks: tuple[ContentBlock, ...]) -> bytes:
    """The format that ``CachedOutput.blocks`` reads."""
    names = ContentBlock.__slots__
    rows = [{name: getattr(block, name) for name in names if getattr(block, name) is not None} for block in blocks]
    return json.dumps(rows, separators=(",", ":")).encode()


def _line(number: int, data: bytes, size: int) -> CachedLine:
    if len(data) <= _MAX_LINE_BYTES:
        text = data.decode(errors="replace")
        return CachedLine(number, text[:MAX_LINE_CHARACTERS], size, len(text) > MAX_LINE_CHARACTERS)
    # The cut may split a character; its first bytes are left out then.
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(data[:_MAX_LINE_BYTES])
    return CachedLine(number, text[:MAX_LINE_CHARACTERS], size, True)


def _raise_closed(position: int, size: int) -> bytes:
    raise ValueError("this output was closed")


TEXT_LIMIT: Final = 50 * 1024
MAX_GATHERED: Final = 16 * 1024 * 1024


class OutputWriter(ABC):
    """Takes one output in pieces; for one thread at a time. The end of a ``with`` block discards an unfinished output."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes written so far, whether or not they could be kept."""

    @property
    @abstractmethod
    def lines(self) -> int:
        """Lines written so far; a last one without a line feed counts."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Appends to the output; never fails."""

    @abstractmethod
    def finish(self) -> str | None:
        """Keeps the output; returns its ref, or None if it could not be kept or was already finished or discarded."""

    @abstractmethod
    def discard(self) -> None:
        """Drops the output, unless it is finished."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.discard()


class CountingWriter(OutputWriter):
    """Counts what is written, and keeps nothing of it."""

    def __init__(self) -> None:
        self._index = LineIndex()

    @property
    def size(self) -> int:
        return self._index.size

    @property
    def lines(self) -> int:
        return self._index.lines

    def write(self, data: bytes) -> None:
        self._index.feed(data)

    def finish(self) -> str | None:
        return None

    def discard(self) -> None:
        pass


class OutputCache(ABC):
    """Keeps whole tool outputs, each under an unguessable ref that belongs to one session.

    A cache of your own needs ``put``, ``open`` and ``close``; ``toolkit.testing.OutputCacheLaws`` tests it. Its methods are
    called in several threads at once. ``AsyncOutputCache`` is the same for code that must be awaited.

    >>> import secrets
    >>> from toolkit.stores import CachedOutput, not_kept
    >>> class InMemory(OutputCache):
    ...     def __init__(self) -> None:
    ...         self._kept: dict[tuple[str, str], CachedOutput] = {}
    ...     def put(self, session_id, data, *, tool, media_type=None):
    ...         ref = secrets.token_urlsafe(24)
    ...         self._kept[session_id, ref] = CachedOutput.of(data, tool=tool, media_type=media_type)
    ...         return ref
    ...     def open(self, session_id, ref):
    ...         if (session_id, ref) not in self._kept:
    ...             raise not_kept()
    ...         return self._kept[session_id, ref]
    ...     def close(self) -> None:
    ...         pass
    >>> cache = InMemory()
    >>> ref = cache.put("session", "one\\ntwo", tool="read_file")
    >>> [line.text for line in cache.open("session", ref).lines()]
    ['one', 'two']
    """

    text_limit: int = TEXT_LIMIT
    """How many bytes of one output a model is shown."""

    @abstractmethod
    def put(self, session_id: str, data: bytes | str, *, tool: str, media_type: str | None = None) -> str | None:
        """Keeps an output; returns its ref, or None if it could not be kept."""

    def writer(self, session_id: str, *, tool: str, media_type: str | None = None) -> OutputWriter:
        """Keeps an output that comes in pieces. Unless a cache does better, they are gathered in memory, up to 16 MiB."""
        return GatheringWriter(self, session_id, tool, media_type)

    @abstractmethod
    def open(self, session_id: str, ref: str) -> CachedOutput:
        """Opens an output of this session. Any other ref is NOT_FOUND, always with the same message."""

    @abstractmethod
    def close(self) -> None:
        """Closes what is open; the outputs stay."""

    def put_blocks(self, session_id: str, blocks: Sequence[ContentBlock], *, tool: str) -> str | None:
        """Keeps content blocks, which ``CachedOutput.blocks`` returns."""
        return self.put(session_id, encode_blocks(tuple(blocks)), tool=tool, media_type=BLOCKS_TYPE)


class GatheringWriter(CountingWriter):
    """Gathers an output in memory and puts it at the end. One that gets too long is not kept."""

    def __init__(self, cache: OutputCache, session_id: str, tool: str, media_type: str | None) -> None:
        super().__init__()
        self._cache = cache
        self._session_id = session_id
        self._tool = tool
        self._media_type = media_type
        self._gathered: bytearray | None = bytearray()

    def write(self, data: bytes) -> None:
        super().write(data)
        if self._gathered is not None and self.size <= MAX_GATHERED:
            self._gathered += data
        else:
            self._gathered = None

    def finish(self) -> str | None:
        data, self._gathered = self._gathered, None
        if data is None:
            return None
        return self._cache.put(self._session_id, bytes(data), tool=self._tool, media_type=self._media_type)

    def discard(self) -> None:
        self._gathered = None


class AsyncOutputCache(ABC):
    """An ``OutputCache`` whose methods are awaited. The toolkit runs them in an event loop of its own, in another thread."""

    text_limit: int = TEXT_LIMIT
    """How many bytes of one output a model is shown."""

    @abstractmethod
    async def put(self, session_id: str, data: bytes | str, *, tool: str, media_type: str | None = None) -> str | None:
        """Keeps an output; returns its ref, or None if it could not be kept."""

    @abstractmethod
    async def open(self, session_id: str, ref: str) -> CachedOutput:
        """Opens an output of this session. Any other ref is NOT_FOUND, always with the same message."""

    @abstractmethod
    async def close(self) -> None:
        """Closes what is open; the outputs stay."""


def not_kept() -> ToolFailed:
    """The one error for every ref that is not accepted: it must not reveal whether another session has it."""
    return ToolFailed(
        "NOT_FOUND",
        "no output is stored under this ref_id: it is mistyped, or the output is too old or was removed to make room "
        "for newer ones; run the tool again to get its output",
    )


# ----------------------------------------------------------------------------------------------------------------------
# The cache for a toolkit that has no place to keep outputs.


class NullCache(OutputCache):
    """Keeps nothing: it returns no refs, and finds none."""

    def put(self, session_id: str, data: bytes | str, *, tool: str, media_type: str | None = None) -> str | None:
        return None

    def writer(self, session_id: str, *, tool: str, media_type: str | None = None) -> OutputWriter:
        return CountingWriter()

    def open(self, session_id: str, ref: str) -> CachedOutput:
        raise not_kept()

    def close(self) -> None:
        pass


# ----------------------------------------------------------------------------------------------------------------------
# An async output cache for the code that keeps outputs, which is sync.


class BlockingCache(OutputCache):
    """Waits for each operation of an async cache, which runs in the event loop of the stores."""

    def __init__(self, cache: AsyncOutputCache) -> None:
        self._cache: Final = cache
        self.text_limit = cache.text_limit

    def put(self, session_id: str, data: bytes | str, *, tool: str, media_type: str | None = None) -> str | None:
        return wait_for(self._cache.put(session_id, data, tool=tool, media_type=media_type))

    def open(self, session_id: str, ref: str) -> CachedOutput:
        return wait_for(self._cache.open(session_id, ref))

    def close(self) -> None:
        wait_for(self._cache.close())
