"""The only way from a tool to a file: ``SandboxFS`` holds a directory open and gives what lies below it.

Promise: no text, link or race makes an operation touch anything outside the root that was opened at
construction, even if that directory is renamed or its name comes to mean another one. Only regular files are
read, and no operation waits for a FIFO or a device. No message holds a host path.

Not stopped: hard links and mounts below the root, and a process that writes into the workspace while it is
being read. A device node below the root is opened, without waiting, before it is refused.
"""

from __future__ import annotations

import copy
import difflib
import errno
import itertools
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, Self, TypeAlias

from toolkit.errors import FailureReason, SetupError, ToolFailed, ToolkitError
from toolkit.guard.path import SandboxPath, display, outside
from toolkit.guard.resolve import HANDLE, ResolverName, open_beneath, pick

Kind: TypeAlias = Literal["file", "directory", "symlink", "other"]
Check: TypeAlias = Callable[[], None]

_READ_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_READ_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

# os.read allocates what it is asked for, whatever the file holds.
_CHUNK: Final = 1 << 20
# Comparing names is slow; a suggestion is not worth more.
_NEAR_CANDIDATES: Final = 1000

_FAILURES: Final[dict[int, tuple[FailureReason, str]]] = {
    errno.ENOENT: ("NOT_FOUND", "does not exist"),
    errno.ENOTDIR: ("NOT_DIRECTORY", "is not a directory, or lies below something that is none"),
    errno.EACCES: ("PERMISSION_DENIED", "may not be accessed: permission denied"),
    errno.EPERM: ("PERMISSION_DENIED", "may not be accessed: not permitted"),
    errno.ENXIO: ("NOT_FILE", "is not a regular file"),
    errno.ENODEV: ("NOT_FILE", "is not a regular file"),
    errno.ELOOP: ("IO", "has too many symbolic links"),
    errno.EAGAIN: ("IO", "kept changing while it was being opened"),
}


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


class _Descriptor:
    """A descriptor number, given back when nobody holds it.

    Closing it at once would let a call in another thread go on with a number that means something else by then.
    """

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


class _Open:
    """Something open: ``close`` or the end of a ``with`` block ends it, and every later use is refused."""

    def __init__(self, number: int, check: Check) -> None:
        self._held: _Descriptor | None = _Descriptor(number)
        self._check = check

    def _begin(self) -> _Descriptor:
        """Start one operation, which keeps the answer in a local name until its last system call."""
        self._check()
        held = self._held
        if held is None:
            raise ToolFailed("IO", f"this {type(self).__name__} has been closed")
        return held

    def close(self) -> None:
        """Give the descriptor back; a second time does nothing."""
        self._held = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class OpenFile(_Open):
    """A regular file, open for reading. ``size`` and the rest are those of the moment it was opened.

    Promise: what is read comes from the file that was checked, whatever its name means by now.
    Limit: no snapshot; another process may write into it between two reads. One thread at a time.
    """

    def __init__(self, number: int, info: os.stat_result, path: str, check: Check) -> None:
        super().__init__(number, check)
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
                chunk = os.read(held.number, min(n, _CHUNK))
            except OSError as error:
                raise _failure(error, self.path) from None
            if not chunk:
                break
            chunks.append(chunk)
            n -= len(chunk)
        return b"".join(chunks)

    def seek(self, offset: int) -> None:
        """Continue reading at ``offset`` bytes from the beginning."""
        held = self._begin()
        try:
            os.lseek(held.number, offset, os.SEEK_SET)
        except OSError as error:
            raise _failure(error, self.path) from None


class SandboxDir(_Open):
    """A directory, open for listing and for going down by one name.

    Promise: neither the listing nor a step down follows a link, so a walk made of ``child`` steps never leaves.
    Limit: one listing of the same object at a time; the order is the file system's.
    """

    def __init__(self, number: int, path: str, check: Check) -> None:
        super().__init__(number, check)
        self.path = path

    def entries(self) -> Iterator[DirEntry]:
        """Each name with its facts, one by one; names that vanish meanwhile are left out."""
        held = self._begin()
        try:
            with os.scandir(held.number) as scan:
                for found in scan:
                    self._check()
                    try:
                        info = found.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    name = found.name
                    yield DirEntry(display(name), name, _kind(info.st_mode), info.st_size, info.st_mtime_ns)
        except OSError as error:
            raise _failure(error, self.path) from None

    def child(self, entry: DirEntry) -> SandboxDir:
        """The directory of that name in here."""
        number, path = self._open_entry(entry, _READ_DIRECTORY)
        return SandboxDir(number, path, self._check)

    def open_child_file(self, entry: DirEntry) -> OpenFile:
        """The regular file of that name in here."""
        number, path = self._open_entry(entry, _READ_FILE)
        return _regular_file(number, path, self._check)

    def _open_entry(self, entry: DirEntry, flags: int) -> tuple[int, str]:
        held = self._begin()
        path = _join(self.path, entry.name)
        if entry.raw in ("", ".", "..") or "/" in entry.raw or "\0" in entry.raw:
            raise outside(path)
        try:
            return os.open(entry.raw, flags | os.O_NOFOLLOW, dir_fd=held.number), path
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise ToolFailed("NOT_FILE", f"'{path}' is a symbolic link", path=path) from None
            raise _failure(error, path) from None


class SandboxFS(_Open):
    """The files below one directory, which is found once, at construction, and held open from then on.

    Every method takes a path text relative to the root (or absolute and below the root's name), follows
    relative links that stay inside, refuses the rest with ``SandboxViolation`` and fails with ``ToolFailed``.
    May be used by several threads. Limit: an absolute path must begin with the root as it was given here.
    """

    def __init__(self, root: str | os.PathLike[str], *, resolver: ResolverName = "auto") -> None:
        self._resolver = pick(resolver)
        self._name = os.path.abspath(root)
        try:
            number = os.open(root, HANDLE | os.O_DIRECTORY)
        except OSError as error:
            name = os.fspath(root)
            raise SetupError(f"workspace root {name!r} cannot be opened as a directory: {error.strerror}") from error
        super().__init__(number, _no_check)

    def bound(self, check: Check) -> SandboxFS:
        """A view on the same root that calls ``check`` first in every operation and every read.

        ``check`` raises to end the call; it takes the place of an earlier one. The view is closed by itself and
        outlives its origin.
        """
        view = copy.copy(self)
        view._check = check
        return view

    def path(self, text: str) -> SandboxPath:
        """The checked form of ``text``; says nothing about whether it exists or leaves the root."""
        return SandboxPath.parse(text, self._name)

    def open_file(self, text: str) -> OpenFile:
        """Open a regular file for reading; anything else is ``NOT_FILE``."""
        path = self.path(text)
        return _regular_file(self._open(path, _READ_FILE), display(path.text), self._check)

    def open_dir(self, text: str) -> SandboxDir:
        """Open a directory for listing; anything else is ``NOT_DIRECTORY``."""
        path = self.path(text)
        return SandboxDir(self._open(path, _READ_DIRECTORY), display(path.text), self._check)

    def stat(self, text: str) -> FileInfo:
        """What the path leads to, links followed; needs no permission to read it."""
        path = self.path(text)
        number = self._open(path, HANDLE)
        info = _fstat(number, display(path.text))
        os.close(number)
        return FileInfo(_kind(info.st_mode), info.st_size, info.st_mtime_ns)

    def near(self, text: str, limit: int = 3) -> list[str]:
        """Paths resembling a missing ``text``: names like the first missing one, in the last directory that exists.

        Limit: only the first thousand names of that directory are compared.
        """
        self._begin()
        parts = self.path(text).parts
        for depth in reversed(range(len(parts))):
            try:
                with self.open_dir(SandboxPath(parts[:depth]).text) as folder:
                    names = [entry.name for entry in itertools.islice(folder.entries(), _NEAR_CANDIDATES)]
            except ToolFailed:
                continue
            folded = {name.casefold(): name for name in names}
            close = difflib.get_close_matches(parts[depth].casefold(), folded, n=limit)
            return [_join(folder.path, folded[key]) for key in close]
        return []

    def _open(self, path: SandboxPath, flags: int) -> int:
        held = self._begin()
        if path.wants_directory:
            flags |= os.O_DIRECTORY
        try:
            return open_beneath(held.number, path.text, flags, self._resolver)
        except OSError as error:
            raise _failure(error, display(path.text)) from None


def _no_check() -> None:
    """What an unbound ``SandboxFS`` asks before each operation."""


def _join(folder: str, name: str) -> str:
    return name if folder == "." else f"{folder}/{name}"


def _fstat(number: int, shown: str) -> os.stat_result:
    try:
        return os.fstat(number)
    except OSError as error:
        os.close(number)
        raise _failure(error, shown) from None


def _regular_file(number: int, path: str, check: Check) -> OpenFile:
    info = _fstat(number, path)
    if stat.S_ISREG(info.st_mode):
        return OpenFile(number, info, path, check)
    os.close(number)
    what = "is a directory" if stat.S_ISDIR(info.st_mode) else "is not a regular file"
    raise ToolFailed("NOT_FILE", f"'{path}' {what}", path=path)


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "symlink" if stat.S_ISLNK(mode) else "other"


def _failure(error: OSError, shown: str) -> ToolkitError:
    """The one translation of what the system says; its own text is left out, as it may name a host path."""
    number = error.errno or errno.EIO
    if number == errno.EXDEV:
        return outside(shown)
    reason, words = _FAILURES.get(number, ("IO", f"cannot be used: {os.strerror(number).lower()}"))
    return ToolFailed(reason, f"'{shown}' {words}", path=shown)
