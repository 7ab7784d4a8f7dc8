"""What is open: a file to read, a directory to list and to go down from. Made by ``SandboxFS``, never by path."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, Literal, Self, TypeAlias, TypeVar

from toolkit.errors import SandboxViolation, ToolFailed
from toolkit.guard.failure import failure
from toolkit.guard.path import display, outside
from toolkit.guard.place import Descriptor
from toolkit.guard.protect import Sight
from toolkit.guard.write import Fingerprint

Kind: TypeAlias = Literal["file", "directory", "symlink", "other"]
Check: TypeAlias = Callable[[], None]

READ_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
READ_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

# os.read allocates what it is asked for, whatever the file holds.
CHUNK: Final = 1 << 20

HeldT = TypeVar("HeldT")


@dataclass(frozen=True, slots=True)
class FileInfo:
    """What a path leads to."""

    kind: Kind
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class DirEntry:
    """One name in a directory, and what it is itself: a link is a link, wherever it points.

    ``name`` is for showing, ``raw`` is the name as the system has it.
    """

    name: str
    raw: str
    kind: Kind
    size: int
    mtime_ns: int


class Open(Generic[HeldT]):
    """Something open: ``close`` or the end of a ``with`` block ends it, and every later use is refused."""

    def __init__(self, held: HeldT, check: Check) -> None:
        self._held: HeldT | None = held
        self._check = check

    def _begin(self) -> HeldT:
        """Start one operation, which keeps the answer in a local name until its last system call."""
        self._check()
        held = self._held
        if held is None:
            raise ToolFailed("IO", f"this {type(self).__name__} has been closed")
        return held

    def close(self) -> None:
        """Give back what is held open; a second time does nothing."""
        self._held = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class OpenFile(Open[Descriptor]):
    """A regular file, open for reading. ``size`` and the rest are those of the moment it was opened.

    Promise: what is read comes from the file that was checked, whatever its name means by now.
    Limit: no snapshot; another process may write into it between two reads. One thread at a time.
    """

    def __init__(self, number: int, info: os.stat_result, path: str, check: Check) -> None:
        super().__init__(Descriptor(number), check)
        self.path = path
        self.size = info.st_size
        self.mtime_ns = info.st_mtime_ns
        self.mode = stat.S_IMODE(info.st_mode)
        self.identity = (info.st_dev, info.st_ino)

    def read(self, n: int) -> bytes:
        """The next ``n`` bytes; fewer only at the end of the file."""
        if n < 0:
            raise ValueError("n must not be negative: a read is always bounded")
        chunks: list[bytes] = []
        while n > 0:
            held = self._begin()
            try:
                chunk = os.read(held.number, min(n, CHUNK))
            except OSError as error:
                raise failure(error, self.path) from None
            if not chunk:
                break
            chunks.append(chunk)
            n -= len(chunk)
        return b"".join(chunks)

    def fingerprint(self, content: bytes | None = None) -> Fingerprint:
        """The file as it was opened, to be compared when it is replaced; nothing is read for it.

        ``content`` is all that was read, by a caller who wants that compared as well: within one tick of the
        clock a file may change without its size and time telling.
        """
        digest = None if content is None else hashlib.sha256(content).hexdigest()
        return Fingerprint(*self.identity, self.size, self.mtime_ns, digest)

    def seek(self, offset: int) -> None:
        """Continue reading at ``offset`` bytes from the beginning."""
        held = self._begin()
        try:
            os.lseek(held.number, offset, os.SEEK_SET)
        except OSError as error:
            raise failure(error, self.path) from None


class SandboxDir(Open[Descriptor]):
    """A directory, open for listing and for going down by one name.

    Promise: neither the listing nor a step down follows a link, so a walk made of ``child`` steps never leaves.
    What a deny rule covers is left out and cannot be stepped into; ``hidden`` counts it once a listing has ended.
    Limit: one listing of the same object at a time; the order is the file system's.
    """

    def __init__(self, number: int, path: str, check: Check, sight: Sight | None = None) -> None:
        super().__init__(Descriptor(number), check)
        self.path = path
        self.hidden = 0
        self._sight = sight

    def entries(self) -> Iterator[DirEntry]:
        """Each name with its facts, one by one; names that vanish meanwhile are left out."""
        held = self._begin()
        self.hidden = 0
        try:
            with os.scandir(held.number) as scan:
                for found in scan:
                    self._check()
                    name = found.name
                    if self._sight is not None and self._sight.hides(name):
                        self.hidden += 1
                        continue
                    try:
                        info = found.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    yield DirEntry(display(name), name, kind_of(info.st_mode), info.st_size, info.st_mtime_ns)
        except OSError as error:
            raise failure(error, self.path) from None

    def child(self, entry: DirEntry) -> SandboxDir:
        """The directory of that name in here."""
        number, path = self._open_entry(entry, READ_DIRECTORY)
        below = None if self._sight is None else self._sight.below(entry.raw)
        return SandboxDir(number, path, self._check, below)

    def open_child_file(self, entry: DirEntry) -> OpenFile:
        """The regular file of that name in here."""
        number, path = self._open_entry(entry, READ_FILE)
        return regular_file(number, path, self._check)

    def _open_entry(self, entry: DirEntry, flags: int) -> tuple[int, str]:
        held = self._begin()
        path = join(self.path, entry.name)
        if entry.raw in ("", ".", "..") or "/" in entry.raw or "\0" in entry.raw:
            raise outside(path)
        if self._sight is not None and self._sight.hides(entry.raw):
            raise SandboxViolation(f"'{path}' may not be used: a deny rule covers it")
        try:
            return os.open(entry.raw, flags | os.O_NOFOLLOW, dir_fd=held.number), path
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise ToolFailed("NOT_FILE", f"'{path}' is a symbolic link", path=path) from None
            raise failure(error, path) from None


def join(folder: str, name: str) -> str:
    return name if folder == "." else f"{folder}/{name}"


def fstat(number: int, shown: str) -> os.stat_result:
    try:
        return os.fstat(number)
    except OSError as error:
        os.close(number)
        raise failure(error, shown) from None


def regular_file(number: int, path: str, check: Check) -> OpenFile:
    info = fstat(number, path)
    if stat.S_ISREG(info.st_mode):
        return OpenFile(number, info, path, check)
    os.close(number)
    raise no_file(info.st_mode, path)


def no_file(mode: int, shown: str) -> ToolFailed:
    what = "is a directory" if stat.S_ISDIR(mode) else "is not a regular file"
    return ToolFailed("NOT_FILE", f"'{shown}' {what}", path=shown)


def kind_of(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "symlink" if stat.S_ISLNK(mode) else "other"
