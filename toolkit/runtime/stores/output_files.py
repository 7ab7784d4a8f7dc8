"""The default output cache: files in the state directory."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from weakref import WeakSet

from toolkit.errors import ToolFailed
from toolkit.runtime.output.cache.cached_output import CachedOutput
from toolkit.runtime.output.cache.folder import CacheFolder, OwnedFile
from toolkit.runtime.output.cache.index import STRETCH, count_lines
from toolkit.runtime.output.cache.record import HEADER_BYTES, RecordLabels, Ref, Sealer, labels_bytes
from toolkit.runtime.stores.outputs import TEXT_LIMIT, CountingWriter, OutputCache, OutputWriter, not_kept

GIBIBYTE: Final = 1024**3
DAY: Final = 24 * 60 * 60.0

logger: Final = logging.getLogger("toolkit.cache")


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
        self._is_closed = False
        self._reset()
        _caches.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._opened: tuple[CacheFolder, Sealer] | None = None
        self._file: OwnedFile | None = None

    def close(self) -> None:
        """Closes what is open. The cache can still be used, as by messages that outlive their toolkit; it then holds nothing
        open in between."""
        with self._lock:
            self._is_closed = True
            self._opened = self._file = None

    @contextmanager
    def _using(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            finally:
                if self._is_closed:
                    self._opened = self._file = None

    def put(self, session_id: str, data: bytes | str, *, tool: str, media_type: str | None = None) -> str | None:
        if isinstance(data, str):
            data = data.encode("utf-8", "backslashreplace")
        if len(data) > STRETCH:
            with self.writer(session_id, tool=tool, media_type=media_type) as writer:
                writer.write(data)
                return writer.finish()
        try:
            with self._using():
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
            opened = (folder, Sealer(folder.key))
            if not self._is_closed:
                self._opened = opened
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

        return CachedOutput(
            read,
            size=facts.size,
            total_lines=facts.lines,
            marks=marks,
            tool=facts.tool,
            media_type=facts.media_type,
            created=facts.created,
        )


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
