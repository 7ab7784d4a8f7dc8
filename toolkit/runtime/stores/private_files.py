"""A private folder of small files that expire, shared by any number of processes: behind the file stores.

Promise: a file is replaced as a whole, also when a process is killed; who holds ``locked`` is alone, between threads and
processes; a folder that was removed is made again. Every method may raise ``OSError``.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_LOCK: Final = "lock"
_SUFFIX: Final = ".json"
_MAX_WAIT: Final = 10.0
_HOUR: Final = 3600.0
_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def digest_of(text: str) -> str:
    """A name for any text, which must not become a path."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def reason_of(error: OSError) -> str:
    """What the system says, without the path that the error may name."""
    return os.strerror(error.errno or errno.EIO).lower()


class PrivateFiles:
    """The files of one folder. ``max_age_seconds`` counts from the modification time of each."""

    def __init__(self, directory: str, max_age_seconds: float = 0.0, *, is_synced: bool = True) -> None:
        self._directory: Final = os.path.abspath(directory)
        self._max_age: Final = max_age_seconds
        self._is_synced: Final = is_synced
        """Whether a file must be on the disk when ``write`` returns."""
        self._next_sweep = 0.0

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if there is none, or if it has expired."""
        try:
            with open(self._path(name), "rb") as file:
                if os.fstat(file.fileno()).st_mtime + self._max_age <= time.time():
                    return None
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, data: bytes, *, expires: float | None = None) -> None:
        """Replaces a file; call it inside ``locked``. ``expires`` is a time, if it is not the usual age."""
        draft = f"{self._path(name)}.{secrets.token_hex(8)}"
        try:
            with open(draft, "xb", opener=_open_private) as file:
                file.write(data)
                file.flush()
                if self._is_synced:
                    os.fsync(file.fileno())
            if expires is not None:
                os.utime(draft, (expires, expires))
            os.replace(draft, self._path(name))
        except BaseException:
            with suppress(OSError):
                os.unlink(draft)
            raise
        if time.time() >= self._next_sweep:
            with suppress(OSError):  # the file is written
                self._sweep()

    def remove(self, name: str) -> None:
        """Removes a file, if it exists; call it inside ``locked``."""
        with suppress(FileNotFoundError):
            os.unlink(self._path(name))

    def count(self, prefix: str) -> int:
        """How many files whose names begin like this have not expired."""
        return sum(name.startswith(prefix) and not is_old for name, is_old in self._entries())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else is between these lines. Waits for a few seconds at most."""
        number = self._lock()
        try:
            yield
        finally:
            # Explicitly: a process that was forked meanwhile shares the open file.
            fcntl.flock(number, fcntl.LOCK_UN)
            os.close(number)

    def _lock(self) -> int:
        give_up, pause = time.monotonic() + _MAX_WAIT, 0.0005
        while True:
            _make_private(self._directory)
            try:
                number = os.open(self._beside(_LOCK), _OPEN, 0o600)
            except FileNotFoundError:  # the folder was removed again
                continue
            if _try_lock(number):
                return number
            os.close(number)
            if time.monotonic() > give_up:
                raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
            time.sleep(pause)
            pause = min(2 * pause, 0.05)

    def _sweep(self) -> None:
        """Removes what has expired, and what killed writers left."""
        self._next_sweep = time.time() + _HOUR
        for name, is_old in list(self._entries()):
            if is_old:
                with suppress(FileNotFoundError):
                    os.unlink(self._beside(name))

    def _entries(self) -> Iterator[tuple[str, bool]]:
        now = time.time()
        with os.scandir(self._directory) as found:
            for entry in found:
                if _SUFFIX in entry.name:
                    with suppress(FileNotFoundError):
                        age = self._max_age if entry.name.endswith(_SUFFIX) else _HOUR
                        yield entry.name, entry.stat(follow_symlinks=False).st_mtime + age <= now

    def _path(self, name: str) -> str:
        return self._beside(f"{name}{_SUFFIX}")

    def _beside(self, name: str) -> str:
        return os.path.join(self._directory, name)


def _try_lock(number: int) -> bool:
    """Whether the lock is ours now, and its file is still in the folder."""
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(number).st_nlink > 0


def _make_private(path: str) -> None:
    """Makes a folder, and those above it that do not exist, for this user only."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent != path:
        _make_private(parent)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    info = os.lstat(path)
    if not stat.S_ISDIR(info.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if info.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
