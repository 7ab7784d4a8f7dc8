"""Reads a kept output: lines by number, or everything in pieces. It is never held in memory as a whole."""

from __future__ import annotations

import codecs
import json
import time
from array import array
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Self

from toolkit.runtime.output.cache.index import STRETCH, LineIndex, position_of, stretch_of
from toolkit.wire.content import ContentBlock

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
