"""The default output cache: files in the state directory, not a database: keeping an output is one write to a locked file."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import secrets
import stat
import threading
import time
from array import array
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from itertools import count
from struct import Struct
from typing import Final, NamedTuple
from weakref import WeakSet

from toolkit.errors import ToolFailed
from toolkit.guard.files.place import Descriptor
from toolkit.guard.files.write import move_new
from toolkit.runtime.stores.outputs import (
    STRETCH,
    TEXT_LIMIT,
    CachedOutput,
    CountingWriter,
    OutputCache,
    OutputWriter,
    count_lines,
    not_kept,
)

# ----------------------------------------------------------------------------------------------------------------------
# The format of one output in a file of the cache, and of the refs that point to it.
#
# A file holds records one after the other: a header, the tool's name, the media type, the output, and the marks of its
# lines. A ref is 128 random bits and the place of its record. It is accepted only if the header at that place has the same
# bits and a valid seal, made with the cache's secret key over the place, the header and the session. So a ref of another
# session is worth no more than an invented one, and bytes of an output that look like a header are not accepted.

FILE_ID_BYTES: Final = 5
_TOKEN_BYTES: Final = 16
_OFFSET_BYTES: Final = 3
_SEAL_BYTES: Final = 16
_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{32}", re.ASCII)

# magic, token, creation time, bytes, lines, bytes of marks, of the tool's name, of the media type
_HEADER: Final = Struct("<4s16sdQQIHH")
_MAGIC: Final = b"out1"
HEADER_BYTES: Final = _HEADER.size + _SEAL_BYTES

_MAX_WORD_BYTES: Final = 1000


class Ref(NamedTuple):
    """A parsed ref: the secret token, and where the record is."""

    token: bytes
    file_id: bytes
    offset: int

    @classmethod
    def new(cls, file_id: bytes, offset: int) -> Ref:
        return cls(secrets.token_bytes(_TOKEN_BYTES), file_id, offset)

    @classmethod
    def parse(cls, text: str) -> Ref | None:
        """None for text that does not have the form of a ref. A ref of the right form may still be invented."""
        if _TEXT.fullmatch(text) is None:
            return None
        data = urlsafe_b64decode(text)
        place = _TOKEN_BYTES + FILE_ID_BYTES
        return cls(data[:_TOKEN_BYTES], data[_TOKEN_BYTES:place], int.from_bytes(data[place:], "little"))

    @property
    def place(self) -> bytes:
        return self.file_id + self.offset.to_bytes(_OFFSET_BYTES, "little")

    def __str__(self) -> str:
        return urlsafe_b64encode(self.token + self.place).decode()


class Facts(NamedTuple):
    """What a record declares about its output."""

    created: float
    size: int
    lines: int
    marks_bytes: int
    tool: str
    media_type: str | None


class RecordLabels(NamedTuple):
    """The tool's name and the media type as bytes; a header holds their lengths."""

    tool: bytes
    media_type: bytes

    @classmethod
    def encode(cls, tool: str, media_type: str | None) -> RecordLabels:
        return cls(_label(tool), _label(media_type or ""))

    @property
    def size(self) -> int:
        return len(self.tool) + len(self.media_type)


def _label(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")[:_MAX_WORD_BYTES]


class Sealer:
    """Makes and checks headers; holds the secret key."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def header(
        self,
        ref: Ref,
        session_id: str,
        labels: RecordLabels,
        *,
        created: float,
        size: int,
        lines: int,
        marks_bytes: int,
    ) -> bytes:
        """The header, followed by the labels."""
        fixed = _HEADER.pack(
            _MAGIC, ref.token, created, size, lines, marks_bytes, len(labels.tool), len(labels.media_type)
        )
        labels_data = labels.tool + labels.media_type
        return fixed + self._seal(ref, fixed, labels_data, session_id) + labels_data

    def open(self, ref: Ref, session_id: str, header: bytes, labels_data: bytes) -> Facts | None:
        """The facts of the record, if the ref and the session are those it was made for; else None.

        ``labels_data`` has the length that ``labels_bytes`` returns.
        """
        fixed, seal = header[: _HEADER.size], header[_HEADER.size :]
        magic, token, created, size, lines, marks_bytes, tool_bytes, _ = _HEADER.unpack(fixed)
        ours = secrets.compare_digest(token, ref.token)
        sealed = secrets.compare_digest(seal, self._seal(ref, fixed, labels_data, session_id))
        if magic != _MAGIC or not ours or not sealed:
            return None
        tool = labels_data[:tool_bytes].decode(errors="replace")
        return Facts(created, size, lines, marks_bytes, tool, labels_data[tool_bytes:].decode(errors="replace") or None)

    def _seal(self, ref: Ref, fixed: bytes, labels_data: bytes, session_id: str) -> bytes:
        # Every part but the last has a known length, so two records never produce the same bytes.
        sealed = ref.place + fixed + labels_data + session_id.encode("utf-8", "surrogatepass")
        return blake2b(sealed, key=self._key, digest_size=_SEAL_BYTES).digest()


def labels_bytes(header: bytes) -> int:
    """How many bytes of labels follow this header."""
    *_, tool_bytes, media_type_bytes = _HEADER.unpack(header[: _HEADER.size])
    return int(tool_bytes) + int(media_type_bytes)


# ----------------------------------------------------------------------------------------------------------------------
# The private directory of the cache: its files, who may append to them, and when they are removed.
#
# Promise: only the holder of a file's lock appends to it, so any number of processes and threads share the directory without
# waiting for each other, and the lock of a killed process is free. Files are removed when they are older than the cache
# keeps them, then the oldest first until the quota is met; a file whose lock is held stays. What a killed writer left
# unfinished is removed by the next sweep.
#
# Limit: nothing is synced to disk, because outputs are copies of what was delivered. After a power failure the latest outputs
# may be lost; a ref to an incomplete output is unknown.

_UNFINISHED: Final = ".part"
_NAME: Final = re.compile(r"[0-9a-f]+(\.part)?")
# Files are named by their creation time in hundredths of a second, so names sort by age.
_IDS_PER_SECOND: Final = 100
_KEY: Final = "key"
_KEY_BYTES: Final = 32
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
# How many files are tried before a new one is created: others may hold all their locks.
_TRIED: Final = 8


class _Entry(NamedTuple):
    name: str
    size: int
    changed: float

    @property
    def is_unfinished(self) -> bool:
        return self.name.endswith(_UNFINISHED)


class OwnedFile:
    """A file of the cache, locked: no other process appends to it or removes it while this object exists."""

    __slots__ = ("_descriptor", "_folder", "_name", "created", "file_id", "position")

    def __init__(self, folder: Descriptor, name: str, descriptor: Descriptor, position: int = 0) -> None:
        self._folder = folder
        self._descriptor = descriptor
        self._name = name
        is_named = not name.endswith(_UNFINISHED)
        self.file_id: Final = bytes.fromhex(name) if is_named else b""
        self.created: Final = _creation_time(name) if is_named else time.time()
        self.position = position
        """The end of the last complete record; what a failed write left there is overwritten."""

    @property
    def is_gone(self) -> bool:
        """Whether the file was removed in spite of the lock, as with the whole directory."""
        return os.fstat(self._descriptor.number).st_nlink == 0

    def append(self, head: bytes, data: bytes = b"") -> None:
        """Appends everything; on an error, nothing counts as appended."""
        size = len(head) + len(data)
        done = os.pwritev(self._descriptor.number, (head, data), self.position)
        if done < size:  # the disk is full, or this is too much for one write
            self.write(self.position + done, head[done:])
            rest = memoryview(data)[max(0, done - len(head)) :]
            self.write(self.position + size - len(rest), rest)
        self.position += size

    def write(self, position: int, data: bytes | memoryview) -> None:
        """Writes everything at this position, or raises."""
        rest = memoryview(data)
        while rest:
            done = os.pwrite(self._descriptor.number, rest, position)
            rest, position = rest[done:], position + done

    def publish(self, file_id: bytes) -> bool:
        """Gives an unfinished file its final name; False if that name is taken."""
        try:
            move_new(self._folder.number, self._name, self._folder.number, file_id.hex())
        except FileExistsError:
            return False
        return True

    def remove(self) -> None:
        """Removes an unfinished file."""
        os.unlink(self._name, dir_fd=self._folder.number)


class CacheFolder:
    """The directory itself. Every method may raise ``OSError``."""

    __slots__ = ("_directory", "_last_id", "_max_age", "_quota", "_room", "key")

    def __init__(self, path: str, *, quota_bytes: int, max_age_seconds: float) -> None:
        self._quota = quota_bytes
        self._max_age = max_age_seconds
        self._room = 0
        self._last_id = 0
        self._directory: Final = _open_private(path)
        self.key: Final = _load_key(self._directory.number)

    @property
    def is_gone(self) -> bool:
        return os.fstat(self._directory.number).st_nlink == 0

    def reader(self, file_id: bytes) -> Descriptor:
        """Opens a file for reading; it can be read to its end even if it is removed in the meantime."""
        return Descriptor(os.open(file_id.hex(), _READ, dir_fd=self._directory.number))

    def new_ids(self) -> Iterator[bytes]:
        """Ids for a file created now; use the first that is not taken."""
        while True:
            self._last_id = max(self._last_id + 1, int(time.time() * _IDS_PER_SECOND))
            yield self._last_id.to_bytes(FILE_ID_BYTES, "big")

    def create(self) -> OwnedFile:
        """Creates a file."""
        return next(filter(None, (self._try_create(file_id.hex()) for file_id in self.new_ids())))

    def create_unfinished(self) -> OwnedFile:
        """Creates a file for one output, which no ref can name yet; without its lock it counts as a leftover."""
        return next(filter(None, (self._try_create(secrets.token_hex(8) + _UNFINISHED) for _ in count())))

    def _try_create(self, name: str) -> OwnedFile | None:
        """None if the name is taken, or if a sweep removed the file before it was locked."""
        try:
            descriptor = Descriptor(os.open(name, _NEW, 0o600, dir_fd=self._directory.number))
        except FileExistsError:
            return None
        return OwnedFile(self._directory, name, descriptor) if _lock(descriptor) else None

    def adopt(self, max_size: int, max_age: float) -> OwnedFile | None:
        """Takes over a small, young file that no process appends to: otherwise every short-lived process would leave one."""
        youngest = sorted((entry for entry in self._entries() if not entry.is_unfinished), reverse=True)
        for entry in youngest[:_TRIED]:
            if entry.size > max_size or time.time() - _creation_time(entry.name) > max_age:
                continue
            with suppress(FileNotFoundError):
                descriptor = Descriptor(os.open(entry.name, _OLD, dir_fd=self._directory.number))
                if _lock(descriptor):
                    return OwnedFile(self._directory, entry.name, descriptor, os.fstat(descriptor.number).st_size)
        return None

    def reserve(self, size: int) -> None:
        """Call it before writing so many bytes; scans the directory only after a part of the quota is written."""
        self._room -= size
        if self._room < 0:
            self.sweep(size)

    def sweep(self, wanted: int) -> None:
        """Removes leftovers, files that are too old, and the oldest until ``wanted`` more bytes fit into the quota."""
        entries = sorted(self._entries())
        total = sum(entry.size for entry in entries) + wanted
        oldest = time.time() - self._max_age
        ahead = self._quota // 64  # what this process may write until the next scan; so may others
        for entry in entries:
            is_over = total + ahead > self._quota
            if (is_over or entry.is_unfinished or entry.changed < oldest) and self._remove(entry.name):
                total -= entry.size
        if total > self._quota:
            raise OSError(errno.EDQUOT, "the quota of the output cache is used up")
        self._room = min(ahead, self._quota - total)

    def _entries(self) -> Iterator[_Entry]:
        with os.scandir(self._directory.number) as scan:
            for entry in scan:
                if _NAME.fullmatch(entry.name):
                    with suppress(FileNotFoundError):
                        info = entry.stat(follow_symlinks=False)
                        yield _Entry(entry.name, info.st_size, info.st_mtime)

    def _remove(self, name: str) -> bool:
        """Removes a file unless its lock is held; returns whether it is gone."""
        with suppress(FileNotFoundError):
            descriptor = Descriptor(os.open(name, _OLD, dir_fd=self._directory.number))
            if not _lock(descriptor):
                return False
            os.unlink(name, dir_fd=self._directory.number)
        return True


def _creation_time(name: str) -> float:
    """When the file of this name was created."""
    return int(name, 16) / _IDS_PER_SECOND


def _lock(descriptor: Descriptor) -> bool:
    """Takes the lock; returns whether it is ours and the file is still in the directory."""
    try:
        fcntl.flock(descriptor.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(descriptor.number).st_nlink > 0


def _open_private(path: str) -> Descriptor:
    """Opens the directory, created if necessary; refuses one of another user."""
    os.makedirs(path, mode=0o700, exist_ok=True)
    descriptor = Descriptor(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    info = os.fstat(descriptor.number)
    if info.st_uid != os.geteuid():
        raise OSError(errno.EPERM, "the directory of the output cache belongs to another user")
    if stat.S_IMODE(info.st_mode) != 0o700:
        os.fchmod(descriptor.number, 0o700)
    return descriptor


def _load_key(directory: int) -> bytes:
    """The key that seals records, created by the first process. A damaged key is replaced, and its refs are lost."""
    while True:
        with suppress(FileNotFoundError):
            descriptor = Descriptor(os.open(_KEY, _READ, dir_fd=directory))
            key = os.read(descriptor.number, _KEY_BYTES + 1)
            if len(key) == _KEY_BYTES:
                return key
            os.unlink(_KEY, dir_fd=directory)
        try:
            _write_key(directory)
        except FileNotFoundError:  # a sweep removed it as a leftover
            if os.fstat(directory).st_nlink == 0:
                raise  # or the directory is gone, and will stay so


def _write_key(directory: int) -> None:
    """Creates the key file atomically, unless another process has."""
    name = secrets.token_hex(8) + _UNFINISHED
    descriptor = Descriptor(os.open(name, _NEW, 0o600, dir_fd=directory))
    try:
        os.write(descriptor.number, secrets.token_bytes(_KEY_BYTES))
        os.fsync(descriptor.number)
        move_new(directory, name, directory, _KEY)
    except FileExistsError:
        os.unlink(name, dir_fd=directory)


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
