"""Changing one name in an open directory: a file is never written in place, only replaced as a whole.

Promise: after any end, of the disk or of the call, the name means either what it meant before or the complete new
file, and no other file is left behind; what a hard link shares with another place keeps its content. Of two
writers in this process that hold the lock of one name, one comes after the other.

Not kept when a file is replaced: its owner, access lists, extended attributes, set-id bits and hard links. Its own mode
does not stop a replacement, only that of its directory does. A process killed between two steps may leave a
temporary file (``.`` and 32 digits).
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from toolkit.guard.fs.place import Names
from toolkit.guard.fs.rename import move_new

_CHUNK: Final = 1 << 20
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
_PERMISSIONS: Final = 0o777
# How often someone who waits for a lock asks whether the call has ended.
_PATIENCE_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Which file it was and what was in it; ``sha256`` (in hex) makes it certain, the rest is what one look tells."""

    dev: int
    ino: int
    size: int
    mtime_ns: int
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was written: the path as asked for, whether it is new, its size and its mode."""

    path: str
    created: bool
    size: int
    mode: int


def look(folder: int, name: str) -> os.stat_result | None:
    """What the name is itself, a link or anything else; None if there is nothing."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def put(
    folder: int,
    name: str,
    data: bytes,
    *,
    mode: int | None,
    new: bool,
    check: Callable[[], None],
    last: Callable[[], None],
) -> int:
    """Give ``name`` a file with ``data``; the answer is its mode: ``mode`` without set-id bits, else what umask leaves.

    ``check`` is asked between pieces, ``last`` when all is written: either ends it by raising, with nothing changed.
    ``new`` refuses a name that exists, also one that came just now.
    """
    temporary = unused_name()
    number = create(folder, temporary, mode)
    try:
        given = give_mode(number, mode)
        fill(number, data, check)
        last()
        if new:
            move_new(folder, temporary, folder, name)
        else:
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    finally:
        os.close(number)
    settle(folder)
    return given


def unused_name() -> str:
    """A name that nobody has and nobody can guess."""
    return f".{os.urandom(16).hex()}"


def create(folder: int, name: str, mode: int | None, *, executable: bool = False) -> int:
    """Open a new, empty file for writing; without a ``mode``, umask decides about its own.

    With one it is private until ``give_mode``: nobody may read the new content meanwhile who may not read the old.
    """
    return os.open(name, _NEW, 0o600 if mode is not None else 0o777 if executable else 0o666, dir_fd=folder)


def give_mode(number: int, mode: int | None) -> int:
    """Give an open file this mode without set-id bits, if one is given; the answer is the mode it has."""
    given = stat.S_IMODE(os.fstat(number).st_mode)
    if mode is not None and given != mode & _PERMISSIONS:
        given = mode & _PERMISSIONS
        os.fchmod(number, given)
    return given


def fill(number: int, data: bytes, check: Callable[[], None]) -> None:
    """Write all of it and wait until it is on the disk; ``check`` ends that by raising."""
    rest = memoryview(data)
    while rest:
        check()
        rest = rest[os.write(number, rest[:_CHUNK]) :]
    os.fsync(number)
    check()


def settle(folder: int) -> None:
    """Ask for the new name to reach the disk. It is there already, so a disk that cannot is no failure of the write."""
    with suppress(OSError):
        number = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def is_still(folder: int, name: str, expected: Fingerprint) -> bool:
    """Whether the name is still that very file, unchanged.

    Limit: whoever changes it between this answer and the rename that follows it is not noticed.
    """
    info = look(folder, name)
    if info is None or not stat.S_ISREG(info.st_mode) or _facts(info) != _expected_facts(expected):
        return False
    if expected.sha256 is None:
        return True
    with open(name, "rb", opener=lambda path, _: os.open(path, _READ, dir_fd=folder)) as file:
        return _facts(os.fstat(file.fileno())) == _expected_facts(expected) and (
            hashlib.file_digest(file, "sha256").hexdigest() == expected.sha256
        )


def _facts(info: os.stat_result) -> tuple[int, int, int, int]:
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns


def _expected_facts(expected: Fingerprint) -> tuple[int, int, int, int]:
    return expected.dev, expected.ino, expected.size, expected.mtime_ns


class _Lock:
    """A lock and how many wait for it or have it; who has it may take it again."""

    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock: Final = threading.RLock()
        self.users = 0


_locks: Final[dict[Names, _Lock]] = {}
_table: Final = threading.Lock()


@contextmanager
def holding(places: Iterable[Names], check: Callable[[], None]) -> Iterator[None]:
    """Have the locks of all these real places, taken in one order so that two who want the same do not block each other.

    Limit: among threads of this process only. ``check`` ends the wait by raising.
    """
    with ExitStack() as stack:
        for place in sorted(set(places)):
            stack.enter_context(_one(place, check))
        yield


@contextmanager
def _one(place: Names, check: Callable[[], None]) -> Iterator[None]:
    with _table:
        mine = _locks.setdefault(place, _Lock())
        mine.users += 1
    try:
        while not mine.lock.acquire(timeout=_PATIENCE_SECONDS):
            check()
        try:
            yield
        finally:
            mine.lock.release()
    finally:
        with _table:
            mine.users -= 1
            if not mine.users:
                del _locks[place]
