"""``Place``: a name below a root that is about to be used, in the open directory that contains it.

A path has two forms in this package. A ``SandboxPath`` is what a caller wrote; it may lead anywhere. A ``Place`` is where it
leads: its directory is open, so everything after that (checking, reading, changing) means the same directory, whatever
happens to the path.

Promise: nothing is decided from a path's text. A directory is first opened beneath its root, and then the system is asked
for the real path of that descriptor.
Limit: a directory above an open one may be renamed right afterwards.
"""

from __future__ import annotations

import copy
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple, Self, TypeAlias

from toolkit.errors import SandboxViolation
from toolkit.guard.files.path import SandboxPath, not_a_file, split_names
from toolkit.guard.files.resolve import HANDLE, MAX_LINKS, READ_DIRECTORY, Resolver, open_beneath, open_step, os_error

Names: TypeAlias = tuple[str, ...]
"""A real path, without links, name by name."""

_FOLDER: Final = HANDLE | os.O_DIRECTORY


class Descriptor:
    """A descriptor number that is closed when the last reference to it is gone.

    If it were closed earlier, a call in another thread could go on with a number that means something else by then.
    """

    __slots__ = ("number",)

    # An attribute of the class: when the interpreter exits, the names of this module may be gone first.
    _close = staticmethod(os.close)

    def __init__(self, number: int) -> None:
        self.number = number

    @staticmethod
    def copy_of(number: int) -> Descriptor:
        """Another descriptor of what this one leads to."""
        return Descriptor(os.dup(number))

    def stat(self) -> os.stat_result:
        """What it leads to."""
        return os.fstat(self.number)

    def __del__(self) -> None:
        self._close(self.number)


@contextmanager
def closing_descriptor(number: int) -> Iterator[int]:
    """Closes it at the end of the block."""
    try:
        yield number
    finally:
        os.close(number)


class Place:
    """The last name of a path, in the open directory that contains it. The end of a ``with`` block closes that.

    ``missing`` are the directories between ``folder`` and ``name`` that do not exist yet. ``name`` is None where
    the path does not end in a name of its own (``.``, ``a/..``): then the place is ``folder`` itself.
    """

    __slots__ = ("_real", "folder", "missing", "name", "path", "top", "wants_directory")

    def __init__(
        self, path: SandboxPath, folder: int, missing: Names, name: str | None, *, wants_directory: bool
    ) -> None:
        self.path = path
        """As the caller wrote it."""
        self.folder = folder
        self.missing = missing
        self.name = name
        self.wants_directory = wants_directory
        self.top = 0
        """How many names of ``real`` are those of the outermost root; set when a change has been checked."""
        self._real: Names | None = None

    @property
    def real(self) -> Names:
        """The real path. It is looked up once, so that what is locked and reported is what was checked."""
        if self._real is None:
            self._real = real_names(self.folder) + self._below()
        return self._real

    @property
    def shown(self) -> str:
        """How messages name it."""
        return self.path.shown

    def open(self, flags: int) -> int:
        """Open what is here. A link that was created after the place was found is not followed."""
        self.refuse_missing()
        if self.wants_directory:
            flags |= os.O_DIRECTORY
        found = open_step(self.folder, os.fsencode(self.name or "."), flags)
        if isinstance(found, bytes):
            raise os_error(errno.EAGAIN)
        return found

    def stat(self) -> os.stat_result | None:
        """What is here, a link itself; None if there is nothing, or no name of its own."""
        return None if self.missing or self.name is None else stat_entry(self.folder, self.name)

    def file_to_replace(self) -> os.stat_result | None:
        """The regular file that is here; None if there is nothing. A path that ends in a slash is not a file."""
        if self.name is None:
            raise os_error(errno.EISDIR)
        info = self.stat()
        if info is None or stat.S_ISREG(info.st_mode):
            if self.wants_directory:
                raise os_error(errno.EISDIR if info is None else errno.ENOTDIR)
            return info
        raise not_a_file(info.st_mode, self.shown)

    def require_name(self) -> str:
        """The last name; refuses a root and a path that ends in ``..``."""
        if self.name is None:
            raise SandboxViolation(f"'{self.shown}' may not be moved or removed: it is a root or ends in '..'")
        return self.name

    def refuse_missing(self) -> None:
        """Refuse a name whose directory does not exist."""
        if self.missing:
            raise os_error(errno.ENOENT)

    def make_missing(self) -> None:
        """Make the missing directories, each in the one before it. They stay if a later operation fails."""
        while self.missing:
            name, *rest = self.missing
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.folder)
            below = open_folder(name, self.folder)
            os.close(self.folder)
            self.folder, self.missing = below, tuple(rest)

    def held_by(self, folder: int) -> Place:
        """The same place by another descriptor of its directory, which somebody else closes."""
        other = copy.copy(self)
        other.folder = folder
        return other

    def depth_of_folder(self) -> int:
        """How many names of ``real`` are those of ``folder``."""
        return len(self.real) - len(self._below())

    def _below(self) -> Names:
        return self.missing if self.name is None else (*self.missing, self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self.folder)


def stat_entry(folder: int, name: str) -> os.stat_result | None:
    """``os.stat`` of the name itself, without following a link; None if it does not exist."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def is_directory(info: os.stat_result | None) -> bool:
    return info is not None and stat.S_ISDIR(info.st_mode)


def open_folder(name: str, parent: int) -> int:
    """A handle of the directory ``name`` in ``parent``. A link is not followed."""
    return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)


def find_place(root_fd: int, path: SandboxPath, resolver: Resolver, *, follow: bool) -> Place:
    """The place of ``path`` below ``root_fd``; with ``follow``, the place that its last name links to.

    Raises ``OSError`` as ``open_beneath`` does: ``EXDEV`` if the path, or a link at its end, leaves the root.
    """
    parts, wants_directory = path.parts, path.wants_directory
    for _ in range(MAX_LINKS + 1):
        if not parts or parts[-1] == "..":
            folder = open_beneath(root_fd, SandboxPath(parts).text, _FOLDER, resolver)
            return Place(path, folder, (), None, wants_directory=True)
        folder, missing = _open_deepest(root_fd, parts[:-1], resolver)
        try:
            target = _link_target(folder, parts[-1]) if follow and not missing else None
        except OSError:
            os.close(folder)
            raise
        if target is None:
            return Place(path, folder, missing, parts[-1], wants_directory=wants_directory)
        os.close(folder)
        wants_directory = wants_directory or target.endswith(("/", "/."))
        parts = (*parts[:-1], *split_names(target))
    raise os_error(errno.ELOOP)


def _open_deepest(root_fd: int, parts: Names, resolver: Resolver) -> tuple[int, Names]:
    """Open the last directory of ``parts`` that exists; also returns the names after it."""
    for depth in range(len(parts), -1, -1):
        try:
            folder = open_beneath(root_fd, SandboxPath(parts[:depth]).text, _FOLDER, resolver)
        except FileNotFoundError:
            # ".." has no meaning in a directory that does not exist.
            if depth == 0 or parts[depth - 1] == "..":
                raise
        else:
            return folder, parts[depth:]
    raise os_error(errno.ENOENT)


def _link_target(folder: int, name: str) -> str | None:
    """The target of a link; None if the name is not a link. An absolute target is an escape."""
    try:
        target = os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):  # not a link, or nothing at all
            return None
        raise
    if target.startswith("/"):
        raise os_error(errno.EXDEV)
    return target


def real_names(number: int) -> Names:
    """The real path of an open directory, name by name from the root of the file system.

    Limit: a directory above it may be renamed right afterwards.
    """
    try:
        text = os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return _climb(number)
    return tuple(name for name in text.split("/") if name)


def _climb(number: int) -> Names:
    """``real_names`` without ``/proc``, or for a path that is too long for it: searches each parent for the name.

    Limit: needs read permission on every directory above.
    """
    names: list[str] = []
    here = os.open(".", READ_DIRECTORY, dir_fd=number)
    try:
        while True:
            above = os.open("..", READ_DIRECTORY, dir_fd=here)
            below, here = here, above
            info = os.fstat(below)
            os.close(below)
            if os.path.samestat(info, os.fstat(here)):
                return tuple(reversed(names))
            names.append(_find_name(info, here))
    finally:
        os.close(here)


def _find_name(info: os.stat_result, folder: int) -> str:
    with os.scandir(folder) as scan:
        for entry in scan:
            with suppress(FileNotFoundError):
                if entry.is_dir(follow_symlinks=False) and os.path.samestat(entry.stat(follow_symlinks=False), info):
                    return entry.name
    raise os_error(errno.ENOENT)


# -- the way to a path, by its names -----------------------------------------------------------------------------------


class Way(NamedTuple):
    """The way from a path to its real path."""

    links: list[str]
    """Each link, by the real path of its directory."""
    forms: list[str]
    """The whole path as named, and after each link; the last is the real path."""


def trace_links(path: str) -> Way:
    """The way from ``path`` to its real path. Names that do not exist count as directories."""
    links: list[str] = []
    whole = path if path.startswith("/") else os.path.join(current_directory(), path)
    forms = [os.path.normpath(whole)]
    here, names = "/", whole.split("/")[::-1]
    while names:
        name = names.pop()
        if name in ("", "."):
            continue
        if name == "..":
            here = os.path.dirname(here)
            continue
        step = os.path.join(here, name)
        try:
            target = os.readlink(step) if len(links) < MAX_LINKS else ""
        except OSError:
            target = ""
        if not target:
            here = step
            continue
        links.append(step)
        forms.append(os.path.join(step, *names[::-1]))
        here = "/" if target.startswith("/") else here
        names += target.split("/")[::-1]
    return Way(links, [*forms, here])


def current_directory() -> str:
    """Where relative paths begin."""
    try:
        return os.getcwd()
    except FileNotFoundError:  # it was removed, so nothing can be found in it
        return "/"
