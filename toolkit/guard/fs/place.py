"""Where a name lies: the open directory that holds it, found beneath a root, and that directory's real path.

What changes or judges a single name needs both. Nothing here is decided by a path's text: a directory is opened
beneath the root first, and its real path is then asked of the system for that very descriptor.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import Final, Self, TypeAlias

from toolkit.guard.fs.path import SandboxPath
from toolkit.guard.fs.resolve import HANDLE, MAX_LINKS, Resolver, open_beneath, open_step, os_error

Names: TypeAlias = tuple[str, ...]

_FOLDER: Final = HANDLE | os.O_DIRECTORY
_LISTED: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Descriptor:
    """A descriptor number, given back when nobody holds it.

    Closing it at once would let a call in another thread go on with a number that means something else by then.
    """

    __slots__ = ("number",)

    # Held by the class: at the end of the program the names of this module may be gone first.
    _close = staticmethod(os.close)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        self._close(self.number)


class Place:
    """The last name of a path, in the open directory that holds it; the end of a ``with`` block closes it.

    ``missing`` are the directories between ``folder`` and ``name`` that do not exist yet. ``name`` is None where
    the path does not end in a name of its own (``.``, ``a/..``): the place is then ``folder`` itself.
    """

    __slots__ = ("folder", "missing", "name", "wants_directory")

    def __init__(self, folder: int, missing: Names, name: str | None, *, wants_directory: bool) -> None:
        self.folder = folder
        self.missing = missing
        self.name = name
        self.wants_directory = wants_directory

    def real(self) -> Names:
        """Where the place is by the file system's own names, whatever links led here."""
        last = () if self.name is None else (self.name,)
        return real_names(self.folder) + self.missing + last

    def open(self, flags: int) -> int:
        """Open what is here. A link that came after the place was found is not followed."""
        if self.missing:
            raise os_error(errno.ENOENT)
        if self.wants_directory:
            flags |= os.O_DIRECTORY
        found = open_step(self.folder, os.fsencode(self.name or "."), flags)
        if isinstance(found, bytes):
            raise os_error(errno.EAGAIN)
        return found

    def make_missing(self) -> None:
        """Make the directories that are missing, each in the one made before it; they stay if a later act fails."""
        while self.missing:
            name, *rest = self.missing
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.folder)
            below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=self.folder)
            os.close(self.folder)
            self.folder, self.missing = below, tuple(rest)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self.folder)


def find(root_fd: int, path: SandboxPath, resolver: Resolver, *, follow: bool) -> Place:
    """The place of ``path`` below ``root_fd``; with ``follow``, that of what its last name links to.

    Raises ``OSError`` as ``open_beneath`` does: ``EXDEV`` where the path, or a link at its end, leaves the root.
    """
    parts, wants_directory = path.parts, path.wants_directory
    for _ in range(MAX_LINKS + 1):
        if not parts or parts[-1] == "..":
            folder = open_beneath(root_fd, SandboxPath(parts).text, _FOLDER, resolver)
            return Place(folder, (), None, wants_directory=True)
        folder, missing = _deepest(root_fd, parts[:-1], resolver)
        try:
            target = _link_target(folder, parts[-1]) if follow and not missing else None
        except OSError:
            os.close(folder)
            raise
        if target is None:
            return Place(folder, missing, parts[-1], wants_directory=wants_directory)
        os.close(folder)
        wants_directory = wants_directory or target.endswith(("/", "/."))
        parts = (*parts[:-1], *(name for name in target.split("/") if name not in ("", ".")))
    raise os_error(errno.ELOOP)


def _deepest(root_fd: int, parts: Names, resolver: Resolver) -> tuple[int, Names]:
    """The last directory of ``parts`` that exists, and the names behind it."""
    for depth in range(len(parts), -1, -1):
        try:
            folder = open_beneath(root_fd, SandboxPath(parts[:depth]).text, _FOLDER, resolver)
        except FileNotFoundError:
            # There is no way up from what does not exist.
            if depth == 0 or parts[depth - 1] == "..":
                raise
        else:
            return folder, parts[depth:]
    raise os_error(errno.ENOENT)


def _link_target(folder: int, name: str) -> str | None:
    try:
        target = os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):  # no link, or nothing at all
            return None
        raise
    if target.startswith("/"):
        raise os_error(errno.EXDEV)
    return target


def real_names(number: int) -> Names:
    """The real path of an open directory, name by name from the top of the file system.

    Limit: somebody may rename a directory above it the moment after.
    """
    try:
        text = os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return _climbed(number)
    return tuple(name for name in text.split("/") if name)


def _climbed(number: int) -> Names:
    """The same where there is no ``/proc``, or the path is too long for it: each parent is asked for the name.

    Limit: needs read permission on every directory above.
    """
    names: list[str] = []
    here = os.open(".", _LISTED, dir_fd=number)
    try:
        while True:
            above = os.open("..", _LISTED, dir_fd=here)
            below, here = here, above
            info = os.fstat(below)
            os.close(below)
            if os.path.samestat(info, os.fstat(here)):
                return tuple(reversed(names))
            names.append(_name_of(info, here))
    finally:
        os.close(here)


def _name_of(info: os.stat_result, folder: int) -> str:
    with os.scandir(folder) as scan:
        for entry in scan:
            with suppress(FileNotFoundError):
                if entry.is_dir(follow_symlinks=False) and os.path.samestat(entry.stat(follow_symlinks=False), info):
                    return entry.name
    raise os_error(errno.ENOENT)
