"""What the file tools share: opening a named file, reading it whole to change it, and what is known about a file.

A whole file is its bytes, its text, and its fingerprint for the write.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from toolkit.builtin.text.encoding import UTF_8_WITH_BOM, marked_encoding
from toolkit.errors import ToolFailed
from toolkit.inject import DependencyKey

if TYPE_CHECKING:
    from toolkit.files.sandbox_fs import SandboxFS
    from toolkit.guard.files.handles import OpenFile, SandboxDir
    from toolkit.guard.files.write import Fingerprint
    from toolkit.wire.content import BlockType


MAX_BYTES: Final = 10 * 1024 * 1024
"""Largest file that is read, changed and written as a whole."""


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A whole file at one moment."""

    path: str
    data: bytes
    sha256: str
    fingerprint: Fingerprint


def read_whole(file: OpenFile) -> WholeFile:
    """The whole file; raises ``TOO_LARGE`` past ``MAX_BYTES``."""
    data = b"" if file.size > MAX_BYTES else file.read(MAX_BYTES + 1)
    if file.size > MAX_BYTES or len(data) > MAX_BYTES:
        problem = f"'{file.path}' has {max(file.size, len(data))} bytes"
        message = f"{problem}; only files of at most {MAX_BYTES} bytes can be changed"
        raise ToolFailed("TOO_LARGE", message, path=file.path, size=file.size)
    fingerprint = file.fingerprint(data)
    return WholeFile(file.path, data, hashlib.sha256(data).hexdigest(), fingerprint)


def decode_text(file: WholeFile) -> str:
    """The text of the file; bytes that are not UTF-8 become surrogates, which ``encode_text`` turns back."""
    encoding = marked_encoding(file.data)
    if encoding is not None and encoding != UTF_8_WITH_BOM:
        message = (
            f"'{file.path}' is {encoding.upper()} text, but only UTF-8 can be edited; use write_file to replace it"
        )
        raise ToolFailed("BINARY_NOT_SUPPORTED", message, path=file.path)
    if b"\0" in file.data:
        message = f"'{file.path}' is not a text file: it has NUL bytes ({len(file.data)} bytes in all)"
        raise ToolFailed("BINARY_NOT_SUPPORTED", message, path=file.path)
    return file.data.decode(errors="surrogateescape")


def encode_text(text: str) -> bytes:
    """The bytes of a text from ``decode_text``."""
    return text.encode(errors="surrogateescape")


def refuse_mixed_encodings(path: str, before: str, after: str) -> None:
    """Refuse to add UTF-8 to a file in another encoding; ASCII may be added, and its own bytes stay as they are."""
    foreign = [char for char in set(before) if not char.isascii()]
    if not foreign or not all(map(_is_escaped, foreign)):
        return
    if any(not char.isascii() and not _is_escaped(char) for char in set(after)):
        message = (
            f"'{path}' is not UTF-8 and its encoding is unknown, so only ASCII can be added;"
            " use write_file to replace the whole file"
        )
        raise ToolFailed("BINARY_NOT_SUPPORTED", message, path=path)


def _is_escaped(char: str) -> bool:
    return "\udc80" <= char <= "\udcff"


def check_expected(path: str, expected: str | None, found: str | None) -> None:
    """Refuse a file whose digest is not ``expected``; ``found`` is None if there is no file."""
    if expected is None or expected.lower() == found:
        return
    if found is None:
        message = f"'{path}' does not exist, but expected_sha256 was given; check whether it was moved or deleted"
    else:
        problem = f"'{path}' has changed: its sha256 is {found}, which differs from expected_sha256"
        message = f"{problem}; read it again and redo the change"
    raise ToolFailed("CONFLICT", message, path=path, sha256=found)


# ----------------------------------------------------------------------------------------------------------------------
# Where lines begin in large files that were read before, so that later lines are found without reading from the start.
#
# Only positions are kept, never content: every line that is returned is read from the file at that moment. They count
# only for the same file with the same size and times, and only if these were a minute old when the file was read. A
# file that changed since then has a newer time, even if clocks are coarse or a program writes through a memory map.
#
# Limit: on a file system that does not record writes through memory maps (tmpfs), line numbers may be off after such a write.

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


# ----------------------------------------------------------------------------------------------------------------------
# Opens the file or directory the caller named; if it does not exist, the error suggests similar names.


def open_file(fs: SandboxFS, path: str) -> OpenFile:
    try:
        return fs.open_file(path)
    except ToolFailed as error:
        raise _add_hint(fs, path, error) from None


def open_dir(fs: SandboxFS, path: str) -> SandboxDir:
    try:
        return fs.open_dir(path)
    except ToolFailed as error:
        raise _add_hint(fs, path, error) from None


def _add_hint(fs: SandboxFS, path: str, error: ToolFailed) -> ToolFailed:
    if error.reason != "NOT_FOUND":
        return error
    shown = error.details.get("path")
    # A broken link is reported missing under its own name.
    near = [name for name in fs.similar_paths(path) if name != shown]
    if not near:
        return error
    names = " or ".join(f"'{name}'" for name in near)
    return ToolFailed("NOT_FOUND", f"{error.message}. Did you mean {names}?", path=shown, near=near)


# ----------------------------------------------------------------------------------------------------------------------
# Images, documents and audio that models accept, recognised by their first bytes, never by the file name.


class Media(NamedTuple):
    """How to attach a file to a result."""

    block: BlockType
    media_type: str


# Signatures that no text file starts with.
_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", Media("image", "image/png")),
    (b"\xff\xd8\xff", Media("image", "image/jpeg")),
    (b"%PDF-", Media("document", "application/pdf")),
    (b"OggS\0", Media("audio", "audio/ogg")),
    (b"fLaC\0", Media("audio", "audio/flac")),
    (b"fLaC\x80", Media("audio", "audio/flac")),
)
_RIFF: Final = {b"WAVE": Media("audio", "audio/wav"), b"WEBP": Media("image", "image/webp")}
_GIF: Final = Media("image", "image/gif")
_MP3: Final = Media("audio", "audio/mpeg")


def recognise_media(head: bytes) -> Media | None:
    """The media type of a file that starts with ``head``; None for text and for unsupported files."""
    for signature, media in _SIGNATURES:
        if head.startswith(signature):
            return media
    if b"\0" not in head:
        return None  # a text may start with the letters tested below
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12])
    if head.startswith((b"GIF87a", b"GIF89a")):
        return _GIF
    return _MP3 if head.startswith(b"ID3") or _is_mpeg_frame(head) else None


def _is_mpeg_frame(head: bytes) -> bool:
    """Whether this is a frame header of MPEG layer III: 11 set bits, then a valid version, bit rate and sampling rate."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE6 != 0xE2 or head[1] & 0x18 == 0x08:
        return False
    return head[2] >> 4 not in (0x0, 0xF) and head[2] & 0x0C != 0x0C
