"""Open files and directories, for reading and listing. ``FileGuard`` creates them; they are never opened by path."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Literal, NamedTuple, Self, TypeAlias, TypeVar

from toolkit.errors import ToolFailed
from toolkit.guard.files.path import is_entry_name, not_a_file, outside_error, to_failure
from toolkit.guard.files.place import Descriptor
from toolkit.guard.files.resolve import READ_DIRECTORY
from toolkit.visible import display

if TYPE_CHECKING:
    from toolkit.guard.files.protect import ListingFilter
    from toolkit.guard.files.write import Fingerprint


Kind: TypeAlias = Literal["file", "directory", "symlink", "other"]
Check: TypeAlias = Callable[[], None]

READ_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

# os.read allocates the requested size, however small the file is.
CHUNK: Final = 1 << 20
# How many names of a directory are read before ``check`` is called again.
_NAMES_BETWEEN_CHECKS: Final = 1024

HeldT = TypeVar("HeldT")


@dataclass(frozen=True, slots=True)
class FileInfo:
    """The kind, size and time of what a path leads to."""

    kind: Kind
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class DirEntry:
    """One name in a directory and its own kind: a link is a link, wherever it points.

    ``name`` is for display, ``raw`` is the name as the system has it.
    """

    name: str
    raw: str
    kind: Kind
    size: int
    mtime_ns: int


class EntryNames(NamedTuple):
    """The raw names in a directory by their own kind, in the file system's order."""

    directories: list[str]
    files: list[str]
    symlinks: list[str]
    others: list[str]


class Handle(Generic[HeldT]):
    """Something open. ``close`` or the end of a ``with`` block closes it, and every later use is refused."""

    __slots__ = ("_check", "_held")

    def __init__(self, held: HeldT, check: Check) -> None:
        self._held: HeldT | None = held
        self._check = check

    def _begin(self) -> HeldT:
        """Start one operation. The caller keeps the result in a local variable until its last system call."""
        self._check()
        held = self._held
        if held is None:
            raise ToolFailed("IO", f"this {type(self).__name__} is already closed")
        return held

    def close(self) -> None:
        """Release what is held open. Closing twice does nothing."""
        self._held = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class OpenFile(Handle[Descriptor]):
    """A regular file, open for reading. ``size`` and the other attributes are from the moment it was opened.

    Promise: the content comes from the file that was checked, whatever its name means by now.
    Limit: not a snapshot; another process may write to it between two reads. One thread at a time.
    """

    def __init__(self, number: int, info: os.stat_result, path: str, check: Check) -> None:
        super().__init__(Descriptor(number), check)
        self.path = path
        self.size = info.st_size
        self.mtime_ns = info.st_mtime_ns
        self.ctime_ns = info.st_ctime_ns
        self.mode = stat.S_IMODE(info.st_mode)
        self.identity = (info.st_dev, info.st_ino)

    def read(self, n: int) -> bytes:
        """Read the next ``n`` bytes; fewer only at the end of the file."""
        if n < 0:
            raise ValueError("n must not be negative: a read is always bounded")
        chunks: list[bytes] = []
        while n > 0:
            held = self._begin()
            try:
                chunk = os.read(held.number, min(n, CHUNK))
            except OSError as error:
                raise to_failure(error, self.path) from None
            if not chunk:
                break
            chunks.append(chunk)
            n -= len(chunk)
        return b"".join(chunks)

    def fingerprint(self, content: bytes | None = None) -> Fingerprint:
        """The file as it was opened, to be compared when it is replaced. Reads nothing.

        Pass the whole ``content`` if that should be compared as well: within one tick of the clock a file may change
        while its size and time stay the same.
        """
        from toolkit.guard.files.write import Fingerprint

        digest = None if content is None else hashlib.sha256(content).hexdigest()
        return Fingerprint(*self.identity, self.size, self.mtime_ns, digest)

    def seek(self, offset: int) -> None:
        """Continue reading ``offset`` bytes from the start."""
        held = self._begin()
        try:
            os.lseek(held.number, offset, os.SEEK_SET)
        except OSError as error:
            raise to_failure(error, self.path) from None


class SandboxDir(Handle[Descriptor]):
    """A directory, open for listing and for opening its entries.

    Promise: neither the listing nor ``child`` follows a link, so a walk made of ``child`` steps never leaves the
    directory. What is denied or needs approval is left out and cannot be opened; ``hidden`` counts it once a listing has
    ended.
    Limit: one listing of the same object at a time; the order is the file system's.
    """

    __slots__ = ("_filter", "hidden", "path")

    def __init__(self, number: int, path: str, check: Check, listing_filter: ListingFilter | None = None) -> None:
        self._held = Descriptor(number)
        self._check = check
        self.path = path
        self.hidden = 0
        self._filter = listing_filter

    def entries(self) -> Iterator[DirEntry]:
        """Each name with its kind, size and time, one by one. Names that vanish in the meantime are omitted."""
        held = self._begin()
        self.hidden = 0
        try:
            with os.scandir(held.number) as scan:
                for found in scan:
                    self._check()
                    name = found.name
                    if self._filter is not None and self._filter.find_refusal(name):
                        self.hidden += 1
                        continue
                    try:
                        info = found.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    yield DirEntry(display(name), name, kind_of(info.st_mode), info.st_size, info.st_mtime_ns)
        except OSError as error:
            raise to_failure(error, self.path) from None

    def names(self) -> EntryNames:
        """All names at once, without size and time: a third of the cost, for walks over many directories.

        Limit: memory grows with the directory.
        """
        held = self._begin()
        self.hidden = 0
        directories: list[str] = []
        files: list[str] = []
        symlinks: list[str] = []
        others: list[str] = []
        try:
            with os.scandir(held.number) as scan:
                while some := list(itertools.islice(scan, _NAMES_BETWEEN_CHECKS)):
                    self._check()
                    for found in some if self._filter is None else self._shown(some):
                        if found.is_file(follow_symlinks=False):
                            files.append(found.name)
                        elif found.is_dir(follow_symlinks=False):
                            directories.append(found.name)
                        elif found.is_symlink():
                            symlinks.append(found.name)
                        else:
                            others.append(found.name)
                    if len(some) < _NAMES_BETWEEN_CHECKS:
                        break
        except OSError as error:
            raise to_failure(error, self.path) from None
        return EntryNames(directories, files, symlinks, others)

    def _shown(self, found: list[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
        """The entries that neither a deny nor an ask rule leaves out; counts the others."""
        assert self._filter is not None, "asked only where there are rules"
        shown = [one for one in found if not self._filter.find_refusal(one.name)]
        self.hidden += len(found) - len(shown)
        return shown

    def path_of(self, name: str) -> str:
        """How results and messages name the entry with this raw name."""
        shown = name if name.isprintable() else display(name)
        return shown if self.path == "." else f"{self.path}/{shown}"

    def child(self, entry: DirEntry | str) -> SandboxDir:
        """Open the directory with this name. Like the next methods, it takes an entry or its raw name."""
        name = entry if isinstance(entry, str) else entry.raw
        number = self._open_entry(name, READ_DIRECTORY)
        below = None if self._filter is None else self._filter.below(name)
        return SandboxDir(number, self.path_of(name), self._check, below)

    def open_child_file(self, entry: DirEntry | str) -> OpenFile:
        """Open the regular file with this name."""
        name = entry if isinstance(entry, str) else entry.raw
        number = self._open_entry(name, READ_FILE)
        return as_regular_file(number, self.path_of(name), self._check)

    def read_child_file(self, entry: DirEntry | str, most: int) -> bytes | None:
        """The whole content of the regular file with this name; None, without reading, if it has more than ``most`` bytes.

        Cheaper than to open it, compare its size and read it.
        """
        name = entry if isinstance(entry, str) else entry.raw
        number = self._open_entry(name, READ_FILE)
        try:
            info = os.fstat(number)
            if not stat.S_ISREG(info.st_mode):
                raise not_a_file(info.st_mode, self.path_of(name))
            left = info.st_size
            if left > most:
                return None
            data = os.read(number, left)
            # A file that was shortened in the meantime ends earlier; one that has grown is read up to its old size.
            while (left := left - len(data)) > 0 and (more := os.read(number, left)):
                data += more
            return data
        except OSError as error:
            raise to_failure(error, self.path_of(name)) from None
        finally:
            os.close(number)

    def changed_ns(self, names: Iterable[str]) -> dict[str, int]:
        """When the entries with these raw names were last modified; of a link, the link itself. Missing ones are left out."""
        held = self._begin()
        number = held.number
        times: dict[str, int] = {}
        for name in names:
            self._refuse_name(name)
            try:
                times[name] = os.stat(name, dir_fd=number, follow_symlinks=False).st_mtime_ns
            except FileNotFoundError:
                continue
            except OSError as error:
                raise to_failure(error, self.path_of(name)) from None
        return times

    def _open_entry(self, name: str, flags: int) -> int:
        held = self._begin()
        self._refuse_name(name)
        try:
            return os.open(name, flags | os.O_NOFOLLOW, dir_fd=held.number)
        except OSError as error:
            path = self.path_of(name)
            if error.errno == errno.ELOOP:
                raise ToolFailed("NOT_FILE", f"'{path}' is a symbolic link", path=path) from None
            raise to_failure(error, path) from None

    def _refuse_name(self, name: str) -> None:
        """Refuse what is not the name of an entry, and what a deny or ask rule covers."""
        if not is_entry_name(name):
            raise outside_error(self.path_of(name))
        if self._filter is not None and (refusal := self._filter.find_refusal(name, self.path_of(name))):
            raise refusal


def join_path(folder: str, name: str) -> str:
    return name if folder == "." else f"{folder}/{name}"


def fstat(number: int, shown: str) -> os.stat_result:
    """``os.fstat`` that closes the descriptor if it fails."""
    try:
        return os.fstat(number)
    except OSError as error:
        os.close(number)
        raise to_failure(error, shown) from None


def as_regular_file(number: int, path: str, check: Check) -> OpenFile:
    """The open descriptor as a file; anything but a regular file is closed and refused."""
    info = fstat(number, path)
    if stat.S_ISREG(info.st_mode):
        return OpenFile(number, info, path, check)
    os.close(number)
    raise not_a_file(info.st_mode, path)


def kind_of(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "symlink" if stat.S_ISLNK(mode) else "other"
