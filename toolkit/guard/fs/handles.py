"""What is open: a file to read, a directory to list and to go down from. Made by ``SandboxFS``, never by path."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, Literal, NamedTuple, Self, TypeAlias, TypeVar

from toolkit.errors import SandboxViolation, ToolFailed
from toolkit.guard.fs.os_errors import failure
from toolkit.guard.fs.path import display, outside
from toolkit.guard.fs.place import Descriptor
from toolkit.guard.fs.protect import Sight
from toolkit.guard.fs.write import Fingerprint

Kind: TypeAlias = Literal["file", "directory", "symlink", "other"]
Check: TypeAlias = Callable[[], None]

READ_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
READ_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

# os.read allocates what it is asked for, whatever the file holds.
CHUNK: Final = 1 << 20
# How many names of a directory are taken before the call is asked again whether to go on.
_NAMES_BETWEEN_CHECKS: Final = 1024

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


class Names(NamedTuple):
    """The raw names in a directory by what they are themselves, in the file system's order."""

    directories: list[str]
    files: list[str]
    symlinks: list[str]
    others: list[str]


class Open(Generic[HeldT]):
    """Something open: ``close`` or the end of a ``with`` block ends it, and every later use is refused."""

    __slots__ = ("_check", "_held")

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

    __slots__ = ("_sight", "hidden", "path")

    def __init__(self, number: int, path: str, check: Check, sight: Sight | None = None) -> None:
        self._held = Descriptor(number)
        self._check = check
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

    def names(self) -> Names:
        """All names at once, without their facts: what a walk over many directories needs, at a third of the cost.

        Limit: holds as much as the directory does.
        """
        held = self._begin()
        self.hidden = 0
        sight = self._sight
        directories: list[str] = []
        files: list[str] = []
        symlinks: list[str] = []
        others: list[str] = []
        try:
            with os.scandir(held.number) as scan:
                while some := list(itertools.islice(scan, _NAMES_BETWEEN_CHECKS)):
                    self._check()
                    for found in some:
                        name = found.name
                        if sight is not None and sight.hides(name):
                            self.hidden += 1
                        elif found.is_file(follow_symlinks=False):
                            files.append(name)
                        elif found.is_dir(follow_symlinks=False):
                            directories.append(name)
                        elif found.is_symlink():
                            symlinks.append(name)
                        else:
                            others.append(name)
        except OSError as error:
            raise failure(error, self.path) from None
        return Names(directories, files, symlinks, others)

    def path_of(self, name: str) -> str:
        """How results and messages call what has that raw name in here."""
        return join(self.path, display(name))

    def child(self, entry: DirEntry | str) -> SandboxDir:
        """The directory of that name in here; like the next ones it takes an entry, or the raw name of one."""
        name = _raw(entry)
        number = self._open_entry(name, READ_DIRECTORY)
        below = None if self._sight is None else self._sight.below(name)
        return SandboxDir(number, self.path_of(name), self._check, below)

    def open_child_file(self, entry: DirEntry | str) -> OpenFile:
        """The regular file of that name in here."""
        name = _raw(entry)
        number = self._open_entry(name, READ_FILE)
        return regular_file(number, self.path_of(name), self._check)

    def read_child_file(self, entry: DirEntry | str, most: int) -> bytes | None:
        """All that the regular file of that name holds; None if that is more than ``most`` bytes, then nothing is read.

        The same as to open it, compare its size and read, but for less.
        """
        name = _raw(entry)
        number = self._open_entry(name, READ_FILE)
        try:
            info = os.fstat(number)
            if not stat.S_ISREG(info.st_mode):
                raise no_file(info.st_mode, self.path_of(name))
            left = info.st_size
            if left > most:
                return None
            data = os.read(number, left)
            # A file that was cut short meanwhile ends before, one that has grown ends where it did.
            while (left := left - len(data)) > 0 and (more := os.read(number, left)):
                data += more
            return data
        except OSError as error:
            raise failure(error, self.path_of(name)) from None
        finally:
            os.close(number)

    def changed_ns(self, names: Iterable[str]) -> dict[str, int]:
        """When what has these raw names in here was last changed, a link itself; names that are gone are left out."""
        held = self._begin()
        number = held.number
        times: dict[str, int] = {}
        for name in names:
            self._refuse(name)
            try:
                times[name] = os.stat(name, dir_fd=number, follow_symlinks=False).st_mtime_ns
            except FileNotFoundError:
                continue
            except OSError as error:
                raise failure(error, self.path_of(name)) from None
        return times

    def _open_entry(self, name: str, flags: int) -> int:
        held = self._begin()
        self._refuse(name)
        try:
            return os.open(name, flags | os.O_NOFOLLOW, dir_fd=held.number)
        except OSError as error:
            path = self.path_of(name)
            if error.errno == errno.ELOOP:
                raise ToolFailed("NOT_FILE", f"'{path}' is a symbolic link", path=path) from None
            raise failure(error, path) from None

    def _refuse(self, name: str) -> None:
        """Refuse what is no name in here, and what a deny rule covers."""
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise outside(self.path_of(name))
        if self._sight is not None and self._sight.hides(name):
            raise SandboxViolation(f"'{self.path_of(name)}' may not be used: a deny rule covers it")


def _raw(entry: DirEntry | str) -> str:
    return entry if isinstance(entry, str) else entry.raw


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
