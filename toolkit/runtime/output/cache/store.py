"""The interface of output caches, and the default cache in the state directory.

Every operation belongs to a session, and a ref is valid only in its session. Keeping an output never fails a call: if it
cannot be kept, there is no ref and the log says why.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Self
from weakref import WeakSet

from toolkit.errors import ToolFailed
from toolkit.runtime.output.cache.cached_output import BLOCKS_TYPE, CachedOutput, encode_blocks
from toolkit.runtime.output.cache.folder import CacheFolder, OwnedFile
from toolkit.runtime.output.cache.index import STRETCH, LineIndex, count_lines
from toolkit.runtime.output.cache.record import HEADER_BYTES, RecordLabels, Ref, Sealer, labels_bytes
from toolkit.wire.content import ContentBlock

GIBIBYTE: Final = 1024**3
DAY: Final = 24 * 60 * 60.0
TEXT_LIMIT: Final = 50 * 1024

logger: Final = logging.getLogger("toolkit.cache")


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
    """Keeps whole tool outputs, each under an unguessable ref that belongs to one session."""

    text_limit: int = TEXT_LIMIT
    """How many bytes of one output a model is shown."""

    @abstractmethod
    def put(self, session_id: str, data: bytes | str, *, tool: str, media_type: str | None = None) -> str | None:
        """Keeps an output; returns its ref, or None if it could not be kept."""

    @abstractmethod
    def writer(self, session_id: str, *, tool: str, media_type: str | None = None) -> OutputWriter:
        """Keeps an output that comes in pieces."""

    @abstractmethod
    def open(self, session_id: str, ref: str) -> CachedOutput:
        """Opens an output of this session. Any other ref is NOT_FOUND, always with the same message."""

    @abstractmethod
    def close(self) -> None:
        """Closes what is open; the outputs stay."""

    def put_blocks(self, session_id: str, blocks: Sequence[ContentBlock], *, tool: str) -> str | None:
        """Keeps content blocks, which ``CachedOutput.blocks`` returns."""
        return self.put(session_id, encode_blocks(tuple(blocks)), tool=tool, media_type=BLOCKS_TYPE)


def not_kept() -> ToolFailed:
    """The one error for every ref that is not accepted: it must not reveal whether another session has it."""
    return ToolFailed(
        "NOT_FOUND",
        "no output is stored under this ref_id: it is mistyped, or the output is too old or was removed to make room "
        "for newer ones; run the tool again to get its output",
    )


class FileOutputCache(OutputCache):
    """A cache in its own directory, which any number of processes may share.

    Outputs of up to 256 KiB are appended to a shared file, with one write each; larger ones get their own file.

    :param quota_bytes: how much all outputs together may take; the oldest are removed first, of any session.
    :param max_age_seconds: how long an output is kept.
    :param text_limit: how many bytes of one output a model is shown.
    """

    def __init__(
        self,
        directory: str,
        *,
        quota_bytes: int = 4 * GIBIBYTE,
        max_age_seconds: float = 7 * DAY,
        text_limit: int = TEXT_LIMIT,
    ) -> None:
        self.text_limit = text_limit
        self._path = os.path.abspath(directory)
        self._quota = quota_bytes
        self._max_age = max_age_seconds
        self._file_bytes = max(4096, min(8 * 1024 * 1024, quota_bytes // 64))
        self._reset()
        _caches.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._opened: tuple[CacheFolder, Sealer] | None = None
        self._file: OwnedFile | None = None

    def close(self) -> None:
        with self._lock:
            self._opened = self._file = None

    def put(self, session_id: str, data: bytes | str, *, tool: str, media_type: str | None = None) -> str | None:
        if isinstance(data, str):
            data = data.encode("utf-8", "backslashreplace")
        if len(data) > STRETCH:
            with self.writer(session_id, tool=tool, media_type=media_type) as writer:
                writer.write(data)
                return writer.finish()
        try:
            with self._lock:
                return self._add(session_id, data, RecordLabels.encode(tool, media_type))
        except OSError as error:
            _log_lost(tool, error)
            return None

    def writer(self, session_id: str, *, tool: str, media_type: str | None = None) -> OutputWriter:
        return _FileWriter(self, session_id, tool, media_type)

    def open(self, session_id: str, ref: str) -> CachedOutput:
        place = Ref.parse(ref)
        if place is None:
            raise not_kept()
        try:
            found = self._find(session_id, place)
        except (FileNotFoundError, NotADirectoryError):
            found = None
        except OSError as error:
            raise _unreadable(error) from None
        if found is None:
            raise not_kept()
        return found

    def folder(self) -> tuple[CacheFolder, Sealer]:
        """The directory and its sealer, opened at first use, and again if the directory was removed."""
        opened = self._opened
        if opened is None or opened[0].is_gone:
            folder = CacheFolder(self._path, quota_bytes=self._quota, max_age_seconds=self._max_age)
            self._opened = opened = (folder, Sealer(folder.key))
        return opened

    def _add(self, session_id: str, data: bytes, labels: RecordLabels) -> str:
        now = time.time()
        needed = HEADER_BYTES + labels.size + len(data)
        file = self._file
        if file is None or not self._may_take(file, needed, now):
            self._file = None  # releases its lock before the sweep
            self._file = file = self._next_file(needed)
        folder, sealer = self._opened or self.folder()
        folder.reserve(needed)
        ref = Ref.new(file.file_id, file.position)
        size, lines = len(data), count_lines(data)
        file.append(sealer.header(ref, session_id, labels, created=now, size=size, lines=lines, marks_bytes=0), data)
        return str(ref)

    def _may_take(self, file: OwnedFile, needed: int, now: float) -> bool:
        is_full = file.position > 0 and file.position + needed > self._file_bytes
        # A file is removed as a whole, so it must not grow forever.
        return not is_full and now - file.created <= self._max_age / 7 and not file.is_gone

    def _next_file(self, needed: int) -> OwnedFile:
        folder, _ = self.folder()
        folder.sweep(needed)
        return folder.adopt(self._file_bytes // 2, self._max_age / 7) or folder.create()

    def _find(self, session_id: str, ref: Ref) -> CachedOutput | None:
        folder, sealer = self.folder()
        descriptor = folder.reader(ref.file_id)
        header = os.pread(descriptor.number, HEADER_BYTES, ref.offset)
        if len(header) < HEADER_BYTES:
            return None
        labels_data = os.pread(descriptor.number, labels_bytes(header), ref.offset + HEADER_BYTES)
        facts = sealer.open(ref, session_id, header, labels_data)
        if facts is None or facts.created < time.time() - self._max_age:
            return None
        start = ref.offset + HEADER_BYTES + len(labels_data)
        end = start + facts.size
        if os.fstat(descriptor.number).st_size < end + facts.marks_bytes:
            return None
        marks = array("Q", os.pread(descriptor.number, facts.marks_bytes, end))

        def read(position: int, size: int) -> bytes:
            try:
                return os.pread(descriptor.number, max(0, min(size, facts.size - position)), start + position)
            except OSError as error:
                raise _unreadable(error) from None

        return CachedOutput(facts, marks, read)


class _FileWriter(CountingWriter):
    """Holds a small output in memory, and writes a large one to a file of its own."""

    def __init__(self, cache: FileOutputCache, session_id: str, tool: str, media_type: str | None) -> None:
        super().__init__()
        self._cache = cache
        self._session_id = session_id
        self._tool = tool
        self._media_type = media_type
        self._labels = RecordLabels.encode(tool, media_type)
        self._held = bytearray()
        self._file: OwnedFile | None = None
        self._is_open = True

    def write(self, data: bytes) -> None:
        super().write(data)
        if not self._is_open:
            return
        try:
            self._keep(data)
        except OSError as error:
            self._lose(error)

    def _keep(self, data: bytes) -> None:
        if self._file is None and len(self._held) + len(data) <= STRETCH:
            self._held += data
            return
        folder, _ = self._cache.folder()
        folder.reserve(len(self._held) + len(data))
        if self._file is None:
            self._file = folder.create_unfinished()
            self._file.position = HEADER_BYTES + self._labels.size
        self._file.append(bytes(self._held), data)
        self._held.clear()

    def finish(self) -> str | None:
        if not self._is_open:
            return None
        self._is_open = False
        file, self._file = self._file, None
        if file is None:
            return self._cache.put(self._session_id, bytes(self._held), tool=self._tool, media_type=self._media_type)
        try:
            return self._complete(file)
        except OSError as error:
            self._file = file
            self._lose(error)
            return None

    def _complete(self, file: OwnedFile) -> str:
        folder, sealer = self._cache.folder()
        marks = self._index.marks.tobytes()
        file.append(marks)
        created, size, lines = time.time(), self.size, self.lines

        def publish(file_id: bytes) -> Ref | None:
            ref = Ref.new(file_id, 0)
            head = sealer.header(
                ref,
                self._session_id,
                self._labels,
                created=created,
                size=size,
                lines=lines,
                marks_bytes=len(marks),
            )
            file.write(0, head)
            return ref if file.publish(file_id) else None

        return str(next(filter(None, map(publish, folder.new_ids()))))

    def _lose(self, error: OSError) -> None:
        _log_lost(self._tool, error)
        self.discard()

    def discard(self) -> None:
        self._is_open = False
        self._held.clear()
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.remove()


def _log_lost(tool: str, error: OSError) -> None:
    """Logs that an output could not be kept."""
    logger.warning("an output of %r could not be stored: %s", tool, error.strerror or error)


def _unreadable(error: OSError) -> ToolFailed:
    # The error's own text may name a host path.
    words = os.strerror(error.errno or errno.EIO).lower()
    return ToolFailed("IO", f"the output cache cannot be read: {words}")


_caches: Final[WeakSet[FileOutputCache]] = WeakSet()


def _reset_in_child() -> None:
    """A forked child must not use the files of its parent, nor a lock that was held during the fork."""
    for cache in _caches:
        cache._reset()


os.register_at_fork(after_in_child=_reset_in_child)
