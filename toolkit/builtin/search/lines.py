"""Searches texts of any length in blocks of whole lines, for matching lines and the lines around them.

Memory stays flat: only one block is held at a time, and no more of a matching line than can be shown.

>>> from toolkit.builtin.search.regex import compile
>>> search = Search(compile("b"), after=1)
>>> [(hit.line, hit.text, hit.after) for hit in search.hits([b"a\\nb", b"c\\r\\nd\\n"])]
[(2, 'bc', ['d'])]
"""

from __future__ import annotations

import codecs
import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from toolkit.builtin.search.regex import Matcher, Span
from toolkit.builtin.text.encoding import marked_encoding

if TYPE_CHECKING:
    from toolkit.guard.files.handles import OpenFile


BLOCK: Final = 128 * 1024
"""How many bytes are searched at once, unless a line is longer."""

LONG_LINE: Final = 1024 * 1024
"""Lines with more bytes are searched in pieces of this size; a match across two pieces is not found."""

MAX_SHOWN: Final = 500
"""Maximum number of characters shown of a line."""
# How many characters before a match are shown, in a line that is too long to show as a whole.
_LEAD: Final = 100


@dataclass(slots=True)
class Hit:
    """A matching line. Long lines are clipped with a note."""

    line: int
    column: int | None
    text: str
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


class Search:
    """A search through one or more texts, one after the other.

    ``wanted`` is the maximum number of lines to return, and ``room`` about how many characters they may have, including
    context. Further matches are only counted, which is cheaper. ``total`` is the number of matching lines so far.
    """

    def __init__(
        self, matcher: Matcher, *, before: int = 0, after: int = 0, wanted: float = math.inf, room: float = math.inf
    ) -> None:
        self._matcher = matcher
        self._before = before
        self._after = after
        self._wanted = wanted
        self._room = room
        self.total = 0

    @property
    def is_full(self) -> bool:
        """Whether no more lines will be returned."""
        return self._wanted <= 0 or self._room <= 0

    def hits(self, chunks: Iterable[bytes]) -> Iterator[Hit]:
        """The matching lines of a text with the lines around them. Lines count from 1.

        A carriage return before a line feed belongs to the line ending, and invalid UTF-8 is read as U+FFFD.
        """
        above: list[str] = []
        waiting: deque[Hit] = deque()
        for block in _search_blocks(self._matcher, chunks):
            self.total += len(block.spans)
            if waiting:
                following = _lines_from(block, block.first_line, self._after)
                for hit in waiting:
                    hit.after += following[: self._after - len(hit.after)]
            waiting.extend(self._new_hits(block, above))
            while waiting and len(waiting[0].after) == self._after:
                yield waiting.popleft()
            if self._before:
                end = len(block.data) + (not block.data.endswith(b"\n"))
                above = _lines_before(block, end, above, self._before)
        yield from waiting

    def _new_hits(self, block: _Block, above: list[str]) -> Iterator[Hit]:
        at, number = 0, block.number
        for start, end in block.spans:
            if self.is_full:
                return
            self._wanted -= 1
            number += block.data.count(b"\n", at, start)
            at = start
            hit = _make_hit(self._matcher, number, block.data[start:end])
            if self._before:
                hit.before = _lines_before(block, start, above, self._before)
            if self._after:
                hit.after = _lines_from(block, end + 1, self._after)
            self._room -= sum(map(len, (hit.text, *hit.before, *hit.after)))
            yield hit


class _Block(NamedTuple):
    """Lines of valid UTF-8, each ending in a line feed, except at the end of the text or inside a long line."""

    data: bytes
    number: int
    """Number of its first line."""
    is_inside_line: bool
    """Whether that line started in the block before."""
    spans: list[Span]

    @property
    def first_line(self) -> int:
        """Position of the first line that starts in this block."""
        return (self.data.find(b"\n") + 1 or len(self.data) + 1) if self.is_inside_line else 0


def _search_blocks(matcher: Matcher, chunks: Iterable[bytes]) -> Iterator[_Block]:
    number = 1
    is_inside_line = was_found = False
    for data in split_blocks(chunks):
        spans = matcher.spans(data)
        if was_found and is_inside_line and spans and spans[0][0] == 0:
            del spans[0]  # another piece of a line that already matched
        yield _Block(data, number, is_inside_line, spans)
        feeds = data.count(b"\n")
        number += feeds
        was_found = bool(spans and spans[-1][1] == len(data)) or (was_found and is_inside_line and not feeds)
        is_inside_line = not data.endswith(b"\n")


def split_blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The text of the chunks in blocks, as ``Matcher.spans`` needs it."""
    pieces: list[bytes] = []
    size = 0
    for chunk in chunks:
        pieces.append(chunk)
        size += len(chunk)
        if size < BLOCK:
            continue
        held = b"".join(pieces)
        at = 0
        while end := _find_block_end(held, at):
            yield _normalize(held[at:end])
            at = end
        pieces = [held[at:]]
        size = len(held) - at
    if size:
        yield _normalize(b"".join(pieces))


def _find_block_end(held: bytes, at: int) -> int:
    """The end of the block that starts at ``at``: after a line feed if there is one; 0 if more must be read first."""
    if len(held) - at < BLOCK:
        return 0
    end = held.rfind(b"\n", at, at + BLOCK) + 1 or held.find(b"\n", at + BLOCK, at + LONG_LINE) + 1
    if end or len(held) - at <= LONG_LINE:
        return end
    end = at + LONG_LINE
    while held[end] & 0xC0 == 0x80 and end > at + LONG_LINE - 3:
        end -= 1  # do not split a character
    return end - (held[end - 1 : end] == b"\r")  # nor a line ending


def _normalize(data: bytes) -> bytes:
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    return data if data.isascii() else data.decode("utf-8", "replace").encode()


def _make_hit(matcher: Matcher, number: int, line: bytes) -> Hit:
    text = line.decode()
    column = matcher.column(text)
    if len(text) <= MAX_SHOWN:
        return Hit(number, column, text)
    return Hit(number, column, clip(text, column - 1 if column else matcher.find_near(text)))


def _lines_before(block: _Block, start: int, above: list[str], wanted: int) -> list[str]:
    """The last lines before the one that starts at ``start``; ``above`` are those before the block."""
    if start == 0 and block.is_inside_line:
        return above[:-1]  # the last of them is the start of this line
    found: list[str] = []
    while len(found) < wanted and start > block.first_line:
        end = start - 1
        start = block.data.rfind(b"\n", 0, end) + 1
        found.append(clip(block.data[start:end].decode()))
    found += above[::-1][: wanted - len(found)]
    return found[::-1]


def _lines_from(block: _Block, start: int, wanted: int) -> list[str]:
    found: list[str] = []
    while len(found) < wanted and start < len(block.data):
        end = block.data.find(b"\n", start)
        if end < 0:
            end = len(block.data)
        found.append(clip(block.data[start:end].decode()))
        start = end + 1
    return found


def clip(line: str, at: int = 0) -> str:
    """The line; if it is too long, the part around ``at`` with a note."""
    if len(line) <= MAX_SHOWN:
        return line
    start = 0 if at + _LEAD < MAX_SHOWN else at - _LEAD
    return f"{'…' * (start > 0)}{line[start : start + MAX_SHOWN]}… [line clipped: {len(line)} characters]"


# ----------------------------------------------------------------------------------------------------------------------
# Reads files as UTF-8 chunks, decoding those with a byte order mark; nothing is read from binary files.

_CHUNK: Final = 128 * 1024


def read_text(file: OpenFile) -> Iterator[bytes] | None:
    """The text of an open file, read lazily; None if it is not text.

    Reads no more bytes than the file had when it was opened, so that reading a growing file ends.
    """
    return decode_chunks(_read_chunks(file))


def decode_chunks(chunks: Iterable[bytes]) -> Iterator[bytes] | None:
    """UTF-8 without a byte order mark, up to the first chunk with a NUL; None if that is the first one."""
    left = iter(chunks)
    first = next(left, b"")
    encoding = marked_encoding(first)
    text: Iterator[bytes] = chain((first,), left)
    if encoding is not None:
        text = _decode(text, encoding)
        first = next(text, b"")
        text = chain((first,), text)
    return None if b"\0" in first else takewhile(_is_text, text)


def _read_chunks(file: OpenFile) -> Iterator[bytes]:
    left = file.size
    while left > 0 and (chunk := file.read(min(left, _CHUNK))):
        left -= len(chunk)
        yield chunk


def _is_text(chunk: bytes) -> bool:
    return b"\0" not in chunk


def _decode(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode()
    yield decoder.decode(b"", True).encode()
