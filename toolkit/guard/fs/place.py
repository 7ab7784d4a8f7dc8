"""The location of a name: the open directory that contains it, found beneath a root, and that directory's real path.

Code that changes or checks a single name needs both. Nothing is decided from a path's text: a directory is first opened
beneath the root, and then the system is asked for the real path of that descriptor.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import Final, Self, TypeAlias

from toolkit.guard.files.path import SandboxPath, split_names
from toolkit.guard.files.resolve import (
    HANDLE,
    MAX_LINKS,
    READ_DIRECTORY,
    Resolver,
    open_beneath,
    open_step,
    os_error,
)

Names: TypeAlias = tuple[str, ...]

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

    def __del__(self) -> None:
        self._close(self.number)


class Place:
    """The last name of a path, in the open directory that contains it. The end of a ``with`` block closes it.

    ``missing`` are the directories between ``folder`` and ``name`` that do not exist yet. ``name`` is None where
    the path does not end in a name of its own (``.``, ``a/..``): then the place is ``folder`` itself.
    """

    __slots__ = ("folder", "missing", "name", "wants_directory")

    def __init__(self, folder: int, missing: Names, name: str | None, *, wants_directory: bool) -> None:
        self.folder = folder
        self.missing = missing
        self.name = name
        self.wants_directory = wants_directory

    def real(self) -> Names:
        """The real path of the place, without links, name by name."""
        last = () if self.name is None else (self.name,)
        return real_names(self.folder) + self.missing + last

    def open(self, flags: int) -> int:
        """Open what is here. A link that was created after the place was found is not followed."""
        if self.missing:
            raise os_error(errno.ENOENT)
        if self.wants_directory:
            flags |= os.O_DIRECTORY
        found = open_step(self.folder, os.fsencode(self.name or "."), flags)
        if isinstance(found, bytes):
            raise os_error(errno.EAGAIN)
        return found

    def make_missing(self) -> None:
        """Make the missing directories, each in the one before it. They stay if a later operation fails."""
        while self.missing:
            name, *rest = self.missing
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.folder)
            below = open_folder(name, self.folder)
            os.close(self.folder)
            self.folder, self.missing = below, tuple(rest)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self.folder)


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
            return Place(folder, (), None, wants_directory=True)
        folder, missing = _open_deepest(root_fd, parts[:-1], resolver)
        try:
            target = _link_target(folder, parts[-1]) if follow and not missing else None
        except OSError:
            os.close(folder)
            raise
        if target is None:
            return Place(folder, missing, parts[-1], wants_directory=wants_directory)
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
