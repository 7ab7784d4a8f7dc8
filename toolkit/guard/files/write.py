"""Writes and renames in an open directory. A file is never written in place, only replaced as a whole.

Promise: however the write ends, by a full disk or a cancelled call, the name means either what it meant before or the
complete new file, and no other file is left behind. A hard link to the old file keeps the old content. Writers that hold
the lock of the same name run one after the other.

Not kept when a file is replaced: its owner, access lists, extended attributes, set-id bits and hard links. The file's own
mode does not prevent a replacement; only the mode of its directory does. A process that is killed between two steps may
leave a temporary file (``.`` and 32 hexadecimal digits).

No function follows a link at a name it is given, or replaces anything unless that was requested.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from toolkit.guard.files.place import closing_descriptor, stat_entry
from toolkit.guard.files.resolve import READ_DIRECTORY, os_error

_CHUNK: Final = 1 << 20
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
_PERMISSIONS: Final = 0o777
_RENAME_NOREPLACE: Final = 1
_RENAME_EXCHANGE: Final = 2


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Identifies a file and its content. ``sha256`` (hexadecimal) is optional; the rest comes from one ``stat``."""

    dev: int
    ino: int
    size: int
    mtime_ns: int
    sha256: str | None = None

    def matches_stat(self, info: os.stat_result) -> bool:
        """Whether ``stat`` shows this file, unchanged; says nothing about the digest."""
        return (self.dev, self.ino, self.size, self.mtime_ns) == (
            info.st_dev,
            info.st_ino,
            info.st_size,
            info.st_mtime_ns,
        )


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that was written: the path as requested, whether it is new, its size and its mode."""

    path: str
    created: bool
    size: int
    mode: int


def replace_file(
    folder: int,
    name: str,
    data: bytes,
    *,
    mode: int | None,
    new: bool,
    check: Callable[[], None],
    last: Callable[[], None],
) -> int:
    """Write ``data`` to a file called ``name``. Returns its mode: ``mode`` without set-id bits, or the default by umask.

    ``check`` is called between chunks, ``last`` when everything is written; if either raises, nothing changes.
    ``new`` refuses a name that exists, even one that was created concurrently.
    """
    temporary = unused_name()
    number = create(folder, temporary, mode)
    try:
        given = set_mode(number, mode)
        write_all(number, data, check)
        last()
        move(folder, temporary, folder, name, replace=not new)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    finally:
        os.close(number)
    sync_folder(folder)
    return given


def unused_name() -> str:
    """A random name that is unused and cannot be guessed."""
    return f".{os.urandom(16).hex()}"


def create(folder: int, name: str, mode: int | None, *, executable: bool = False) -> int:
    """Open a new, empty file for writing. Without a ``mode``, umask decides.

    With a ``mode`` the file is private until ``set_mode``, so that only those who may read the old content may read the new.
    """
    return os.open(name, _NEW, 0o600 if mode is not None else 0o777 if executable else 0o666, dir_fd=folder)


def set_mode(number: int, mode: int | None) -> int:
    """Give an open file this mode without set-id bits, if there is one. Returns the mode that the file has."""
    given = stat.S_IMODE(os.fstat(number).st_mode)
    if mode is not None and given != mode & _PERMISSIONS:
        given = mode & _PERMISSIONS
        os.fchmod(number, given)
    return given


def write_all(number: int, data: bytes, check: Callable[[], None]) -> None:
    """Write everything and wait until it is on the disk; ``check`` ends that by raising."""
    rest = memoryview(data)
    while rest:
        check()
        rest = rest[os.write(number, rest[:_CHUNK]) :]
    os.fsync(number)
    check()


def sync_folder(folder: int) -> None:
    """Flush the new name to the disk. The name has already changed, so an error here is not a failure of the write."""
    with suppress(OSError), closing_descriptor(os.open(".", READ_DIRECTORY, dir_fd=folder)) as number:
        os.fsync(number)


def make_folder(folder: int, name: str) -> int:
    """Make a directory, and return its inode."""
    os.mkdir(name, dir_fd=folder)
    return os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino


def remove_file(folder: int, name: str) -> None:
    """Remove a name that is not a directory."""
    os.unlink(name, dir_fd=folder)


def remove_folder(folder: int, name: str) -> None:
    """Remove an empty directory."""
    os.rmdir(name, dir_fd=folder)


def is_unchanged(folder: int, name: str, expected: Fingerprint) -> bool:
    """Whether the name is still exactly this file, unchanged.

    Limit: a change between this check and the rename that follows it is not noticed.
    """
    info = stat_entry(folder, name)
    if info is None or not stat.S_ISREG(info.st_mode) or not expected.matches_stat(info):
        return False
    if expected.sha256 is None:
        return True
    with open(name, "rb", opener=lambda path, _: os.open(path, _READ, dir_fd=folder)) as file:
        return expected.matches_stat(os.fstat(file.fileno())) and (
            hashlib.file_digest(file, "sha256").hexdigest() == expected.sha256
        )


# -- renaming ----------------------------------------------------------------------------------------------------------

# Where the kernel or the file system has no ``renameat2``, ``move_new`` and ``exchange`` take several steps: ``move_new`` is
# still safe then, but during ``exchange`` the second name is missing for a moment.


def move(old_folder: int, old: str, new_folder: int, new: str, *, replace: bool) -> None:
    """Rename; without ``replace``, only to a name that does not exist."""
    if replace:
        os.rename(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder)
    else:
        move_new(old_folder, old, new_folder, new)


def move_new(old_folder: int, old: str, new_folder: int, new: str) -> None:
    """Rename to a name that must not exist. The check and the rename are one operation."""
    if not _try_renameat2(old_folder, old, new_folder, new, _RENAME_NOREPLACE):
        _claim_and_move(old_folder, old, new_folder, new)


def exchange(folder: int, spare: str, name: str) -> None:
    """Swap two names in one directory; no other process uses ``spare``.

    Where that takes several steps, the old file of ``name`` is called ``third_name(spare)`` between them.
    """
    if _try_renameat2(folder, spare, folder, name, _RENAME_EXCHANGE):
        return
    os.stat(spare, dir_fd=folder, follow_symlinks=False)
    os.rename(name, third_name(spare), src_dir_fd=folder, dst_dir_fd=folder)
    try:
        move_new(folder, spare, folder, name)
    except OSError:
        with suppress(OSError):
            move_new(folder, third_name(spare), folder, name)
        raise
    os.rename(third_name(spare), spare, src_dir_fd=folder, dst_dir_fd=folder)


def third_name(spare: str) -> str:
    """The additional name that ``exchange`` needs where the system cannot swap two names at once."""
    return f"{spare}~"


def _try_renameat2(old_folder: int, old: str, new_folder: int, new: str, flag: int) -> bool:
    """Whether the system did the rename; False where it has no such call."""
    if _renameat2 is None:
        return False
    done = _renameat2(old_folder, os.fsencode(old), new_folder, os.fsencode(new), flag)
    number = ctypes.get_errno()
    if done == 0:
        return True
    if number not in (errno.EINVAL, errno.ENOSYS):
        raise os_error(number)
    return False


def _claim_and_move(old_folder: int, old: str, new_folder: int, new: str) -> None:
    """``move_new`` without ``renameat2``: creating the new name fails if it exists."""
    if stat.S_ISDIR(os.stat(old, dir_fd=old_folder, follow_symlinks=False).st_mode):
        os.mkdir(new, dir_fd=new_folder)
        try:
            os.rename(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder)
        except OSError:
            with suppress(OSError):
                os.rmdir(new, dir_fd=new_folder)
            raise
    else:
        os.link(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder, follow_symlinks=False)
        os.unlink(old, dir_fd=old_folder)


_renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
if _renameat2 is not None:
    _renameat2.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
