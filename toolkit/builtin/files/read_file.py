"""``read_file``: lines of a text file, in constant memory whatever its size; media files are attached.

The file is read front to back. Lines before the requested ones are only counted and hashed, and so are those after them.

A large file is not read further than the requested lines, and not hashed unless they reach its end. Everything in a result
comes from one pass, so a file whose end was not expected is read once more for its hash.
"""

from __future__ import annotations

import base64
import codecs
import math
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

from toolkit.builtin.files.whole_file import CHUNK, LINE_POSITIONS, LinePositions, Media, open_file, recognise_media
from toolkit.builtin.text.diff import format_count
from toolkit.builtin.text.encoding import marked_encoding
from toolkit.errors import ToolFailed
from toolkit.generated import ReadFileInput, ReadFileOutput
from toolkit.runtime.tool_context import ToolContext
from toolkit.visible import escape_hidden

if TYPE_CHECKING:
    from hashlib import _Hash as Digest

    from toolkit.guard.files.handles import OpenFile

MAX_LINE_CHARACTERS: Final = 2000
MAX_ATTACHED_BYTES: Final = 10 * 1024 * 1024
LARGE_FILE_BYTES: Final = 32 * 1024 * 1024

_HEAD: Final = 8 * 1024
# The part of a large file, in estimated lines, after which the end is expected to be reached.
_NEAR_END: Final = 0.97


def run(args: ReadFileInput, ctx: ToolContext) -> ReadFileOutput:
    with open_file(ctx.fs, args.path) as file:
        first = file.read(min(CHUNK, file.size))
        media = recognise_media(first[:_HEAD])
        if media is not None:
            return _attach(file, first, media, args, ctx)
        # In a file with a mark, positions are not those of the text it is converted to.
        if file.size > LARGE_FILE_BYTES and marked_encoding(first) is None:
            return _read_large(file, first, args, ctx)
        return _read_hashed(file, first, args)


def _read_hashed(
    file: OpenFile, first: bytes, args: ReadFileInput, known: LinePositions | None = None
) -> ReadFileOutput:
    source = _FileChunks(file, first, sha256())
    lines = _Lines(source.chunks(), known=known)
    return _output(file, source, lines, _collect(source, lines, args), args)


def _read_large(file: OpenFile, first: bytes, args: ReadFileInput, ctx: ToolContext) -> ReadFileOutput:
    """The requested lines, from what is known about the file. If they reach its end, the hash needs another pass."""
    store = ctx.resolve(LINE_POSITIONS)
    known = store.of(file)
    if known.is_empty and _is_probably_near_end(file, first, args):
        output = _read_hashed(file, first, args, known)
    else:
        source = _FileChunks(file, first)
        position, line_ends = known.before(args.start_line)
        lines = _Lines(source.chunks(position), position, line_ends, known)
        output = _output(file, source, lines, _collect(source, lines, args), args)
        if source.ended:
            file.seek(0)
            output = _read_hashed(file, file.read(CHUNK), args, known)
    store.keep(file, known)
    return output


def _is_probably_near_end(file: OpenFile, first: bytes, args: ReadFileInput) -> bool:
    """Judged by the length of the first lines. A wrong guess costs time and changes no result."""
    total = file.size / max(1, len(first)) * (first.count(b"\n") + 1)  # it may have become empty since it was opened
    return args.start_line + args.max_lines > _NEAR_END * total


def _output(file: OpenFile, source: _FileChunks, lines: _Lines, part: _Part, args: ReadFileInput) -> ReadFileOutput:
    return ReadFileOutput(
        path=file.path,
        content="".join(part.pieces),
        start_line=args.start_line,
        line_count=part.line_count,
        total_lines=lines.passed if source.ended else None,
        truncated=part.next_line is not None or bool(part.clipped),
        next_start_line=part.next_line,
        size=file.size,
        mtime_ns=file.mtime_ns,
        sha256=source.digest.hexdigest() if source.digest is not None and source.ended else None,
        bom=source.has_bom,
        clipped_lines=part.clipped,
    )


def _attach(file: OpenFile, first: bytes, media: Media, args: ReadFileInput, ctx: ToolContext) -> ReadFileOutput:
    if file.size > MAX_ATTACHED_BYTES:
        problem = f"'{file.path}' ({media.media_type}) has {file.size} bytes"
        message = f"{problem}; at most {MAX_ATTACHED_BYTES} can be attached; make it smaller first"
        raise ToolFailed("TOO_LARGE", message, path=file.path, size=file.size)
    from toolkit.wire.content import ContentBlock

    data = first + file.read(file.size - len(first))
    encoded, name = base64.b64encode(data).decode(), escape_hidden(file.path.rpartition("/")[2])
    ctx.attach(ContentBlock(media.block, media.media_type, data=encoded, filename=name))
    return ReadFileOutput(
        path=file.path,
        content="",
        start_line=args.start_line,
        line_count=0,
        total_lines=None,
        truncated=False,
        next_start_line=None,
        size=file.size,
        mtime_ns=file.mtime_ns,
        sha256=sha256(data).hexdigest(),
        media_type=media.media_type,
    )


class _FileChunks:
    """Reads the file as chunks of UTF-8 without a byte order mark, and hashes the bytes it reads if it has a ``digest``.

    Reads no more bytes than the file had when it was opened, so that reading a growing file ends.
    """

    def __init__(self, file: OpenFile, first: bytes, digest: Digest | None = None) -> None:
        self._file = file
        self._first = first
        self._encoding = marked_encoding(first)
        self.has_bom: Final = self._encoding is not None
        self.is_large: Final = file.size > LARGE_FILE_BYTES
        self.digest: Final = digest
        self.taken = 0
        self.ended = False
        self._refuse_binary()

    def _refuse_binary(self) -> None:
        head = self._first[:_HEAD]
        if "\0" in head.decode(self._encoding or "latin-1", "replace"):
            path, size = self._file.path, self._file.size
            message = f"'{path}' is not a text file: it has NUL bytes near its start ({size} bytes in all)"
            raise ToolFailed("BINARY_NOT_SUPPORTED", message, path=path, size=size)

    def chunks(self, position: int = 0) -> Iterator[bytes]:
        """The chunks from ``position`` on; if it is not 0, only of a file without a mark and without a digest."""
        decoder = codecs.getincrementaldecoder(self._encoding)("replace") if self._encoding else None
        chunk = self._first
        if position:
            self._file.seek(position)
            self.taken = position
            chunk = self._read_next()
        while chunk:
            self.taken += len(chunk)
            if self.digest is not None:
                self.digest.update(chunk)
            yield decoder.decode(chunk).encode() if decoder else chunk
            chunk = self._read_next()
        self.ended = True
        yield decoder.decode(b"", True).encode() if decoder else b""

    def _read_next(self) -> bytes:
        return self._file.read(min(CHUNK, self._file.size - self.taken))


class _Line(NamedTuple):
    """One line; ``text`` holds no more of it than can be returned."""

    text: str
    characters: int
    end: str
    is_open: bool = False
    """Whether reading stopped before the end of the line."""


class _WholeLines(NamedTuple):
    """Several whole lines, none of which has to be clipped."""

    text: str
    size: int
    line_count: int


class _Lines:
    """Splits chunks into lines; a long line is never held in memory as a whole.

    The chunks start at ``position``, before which ``line_ends`` lines end. ``known`` takes up where lines are.
    """

    def __init__(
        self, chunks: Iterator[bytes], position: int = 0, line_ends: int = 0, known: LinePositions | None = None
    ) -> None:
        self._chunks = chunks
        self._position = position
        self._known = known
        self._buffer = b""
        self._at = 0
        self._line_ends = line_ends
        self._is_inside_line = False
        self._may_have_blocks = True
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    @property
    def passed(self) -> int:
        """Number of lines read so far, including a last one without a line feed."""
        return self._line_ends + self._is_inside_line

    def has_more(self) -> bool:
        """Whether anything follows; reads the next chunk if necessary."""
        while self._at == len(self._buffer):
            chunk = next(self._chunks, None)
            if chunk is None:
                return False
            if self._known is not None:
                self._known.add(self._position, self._line_ends)
                self._position += len(chunk)
            self._buffer, self._at, self._may_have_blocks = chunk, 0, True
        return True

    def skip(self, wanted: float) -> None:
        """Skip ``wanted`` lines, or to the end."""
        while wanted > 0 and self.has_more():
            found = self._buffer.count(b"\n", self._at)
            if found < wanted:
                self._at = len(self._buffer)
                self._is_inside_line = not self._buffer.endswith(b"\n")
            else:
                found = int(wanted)
                for _ in range(found):
                    self._at = self._buffer.index(b"\n", self._at) + 1
                self._is_inside_line = False
            self._line_ends += found
            wanted -= found

    def next_block(self, max_lines: int, room: int) -> _WholeLines | None:
        """The next lines of the buffer, at most so many and so many bytes; None if the next line needs ``next``.

        All of them in one step: with a step for each line, reading a file takes about five times as long.
        """
        if not self.has_more() or self._is_inside_line or not self._may_have_blocks:
            return None
        begin, end = self._at, self._buffer.rfind(b"\n", self._at, self._at + room) + 1
        if not end:
            return None
        lines = self._buffer[begin:end].split(b"\n", max_lines)
        rest = len(lines.pop())  # empty, or what follows the last line that is wanted
        text = _decode_plain(self._buffer[begin : end - rest], lines)
        if text is None:
            self._may_have_blocks = False
            return None
        self._at = end - rest
        self._line_ends += len(lines)
        return _WholeLines(text, self._at - begin, len(lines))

    def next(self, may_go_on: Callable[[], bool]) -> _Line | None:
        """The next line, None at the end. A line that is too long is left open when ``may_go_on`` returns False."""
        if not self.has_more():
            return None
        kept, characters = "", 0
        while True:
            end = self._buffer.find(b"\n", self._at)
            is_whole = end >= 0
            stop = end if is_whole else len(self._buffer)
            text = self._decode(self._buffer[self._at : stop], is_whole)
            kept += text[: MAX_LINE_CHARACTERS + 1 - len(kept)]
            characters += len(text)
            self._at = stop + is_whole
            self._is_inside_line = not is_whole
            if is_whole:
                self._line_ends += 1
                return _Line(kept, characters, "\n")
            is_open = self.has_more() and characters > MAX_LINE_CHARACTERS and not may_go_on()
            if is_open or not self.has_more():
                rest = self._decode(b"", True)
                return _Line(kept + rest, characters + len(rest), "", is_open)


def _decode_plain(data: bytes, lines: list[bytes]) -> str | None:
    """The text of these lines; None if one of them may have to be clipped or is not UTF-8."""
    if max(map(len, lines)) > MAX_LINE_CHARACTERS:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


class _Part:
    """The part of the text to return."""

    def __init__(self) -> None:
        self.pieces: Final[list[str]] = []
        self.clipped: Final[list[int]] = []
        self.line_count = 0
        self.next_line: int | None = None


def _collect(source: _FileChunks, lines: _Lines, args: ReadFileInput) -> _Part:
    """The requested lines. After them a large file is not read further; any other is counted to its end."""
    lines.skip(args.start_line - 1 - lines.passed)
    give_up_at = source.taken + LARGE_FILE_BYTES
    part = _fill_part(lines, args, lambda: source.taken < give_up_at)
    if part.next_line is None and lines.has_more():
        part.next_line = args.start_line + part.line_count
    if not source.is_large:
        lines.skip(math.inf)
    return part


def _fill_part(lines: _Lines, args: ReadFileInput, may_go_on: Callable[[], bool]) -> _Part:
    part = _Part()
    room = args.max_bytes
    while room > 0 and part.line_count < args.max_lines:
        block = lines.next_block(args.max_lines - part.line_count, room)
        if block is not None:
            part.pieces.append(block.text)
            part.line_count += block.line_count
            room -= block.size
            continue
        line = lines.next(may_go_on)
        if line is None:
            break
        number = args.start_line + part.line_count
        is_clipped = line.characters > MAX_LINE_CHARACTERS
        piece = _clip(line, args.max_bytes) if is_clipped else line.text + line.end
        size = len(piece.encode())
        if size > room and part.line_count:
            part.next_line = number
            return part
        if size > room:
            piece, is_clipped = _clip(line, room), True
        if is_clipped:
            part.clipped.append(number)
        part.pieces.append(piece)
        part.line_count += 1
        room -= size
        if line.is_open:
            part.next_line = number + 1
            return part
    return part


def _clip(line: _Line, room: int) -> str:
    """The start of the line and a note, in at most ``room`` bytes; without the note if there is no room for it."""
    over = "over " if line.is_open else ""
    tail = f"… [line clipped: {over}{line.characters} characters]{line.end}"
    space = room - len(tail.encode())
    if space <= 0:
        return _cut_to(line.text, room)
    return _cut_to(line.text[:MAX_LINE_CHARACTERS], space) + tail


def _cut_to(text: str, room: int) -> str:
    """As many whole characters as fit into ``room`` bytes."""
    return text.encode()[:room].decode(errors="ignore")


def text(output: ReadFileOutput) -> str:
    if output.media_type is not None:
        return f"[attached: {output.media_type}, {output.size} bytes]"
    if not output.line_count:
        return _explain_empty(output)
    rows = output.content.removesuffix("\n").split("\n")
    numbered = [f"{number:>6}\t{escape_hidden(row)}" for number, row in enumerate(rows, output.start_line)]
    return "\n".join([*numbered, *_notes(output)])


def _explain_empty(output: ReadFileOutput) -> str:
    if not output.total_lines:
        return "[empty file]"
    return f"[no line {output.start_line}: the file has {format_count(output.total_lines, 'line')}]"


def _notes(output: ReadFileOutput) -> list[str]:
    """A last line that says which lines these are and how to read the rest, unless they are the whole file."""
    if output.start_line == 1 and not output.truncated:
        return []
    first, last = output.start_line, output.start_line + output.line_count - 1
    note = f"line {first}" if first == last else f"lines {first}-{last}"
    if output.total_lines is not None:
        note += f" of {output.total_lines}"
    if output.clipped_lines:
        note += f"; {format_count(len(output.clipped_lines), 'long line')} clipped"
    if output.next_start_line is not None:
        note += f"; continue with start_line={output.next_start_line}"
    return [f"[{note}]"]
