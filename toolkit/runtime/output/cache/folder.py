"""The private directory of the cache: its files, who may append to them, and when they are removed.

Promise: only the holder of a file's lock appends to it, so any number of processes and threads share the directory without
waiting for each other, and the lock of a killed process is free. Files are removed when they are older than the cache
keeps them, then the oldest first until the quota is met; a file whose lock is held stays. What a killed writer left
unfinished is removed by the next sweep.

Limit: nothing is synced to disk, because outputs are copies of what was delivered. After a power failure the latest outputs
may be lost; a ref to an incomplete output is unknown.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Final, NamedTuple

from toolkit.guard.fs.place import Descriptor
from toolkit.guard.fs.rename import move_new
from toolkit.runtime.output.cache.record import FILE_ID_BYTES

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
        with suppress(FileNotFoundError):  # a sweep removed it as a leftover
            _write_key(directory)


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
