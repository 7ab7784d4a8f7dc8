"""A name that may be changed: what is there, and how one is moved to the place of another."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.errors import SandboxViolation, ToolFailed
from toolkit.guard.fs.deny_globs import Forms
from toolkit.guard.fs.handles import SandboxDir, no_file
from toolkit.guard.fs.path import SandboxPath
from toolkit.guard.fs.place import Names, Place
from toolkit.guard.fs.protect import Ground
from toolkit.guard.fs.rename import move_new
from toolkit.guard.fs.resolve import os_error
from toolkit.guard.fs.write import look


@dataclass(frozen=True, slots=True)
class Target:
    """A place that may be changed: how it was asked for, where it is, and the names it goes by."""

    path: SandboxPath
    place: Place
    real: Names
    forms: Forms


def is_directory(info: os.stat_result | None) -> bool:
    return info is not None and stat.S_ISDIR(info.st_mode)


def file_to_replace(place: Place, shown: str) -> os.stat_result | None:
    """The regular file that is there, None if there is nothing; a path that ends in a slash means no file."""
    if place.name is None:
        raise os_error(errno.EISDIR)
    info = None if place.missing else look(place.folder, place.name)
    if info is None or stat.S_ISREG(info.st_mode):
        if place.wants_directory:
            raise os_error(errno.EISDIR if info is None else errno.ENOTDIR)
        return info
    raise no_file(info.st_mode, shown)


def last_name(target: Target) -> str:
    """The name of what is no root and no directory above."""
    if target.place.name is None:
        raise SandboxViolation(f"'{target.path.shown}' may not be moved or removed: it is a root or ends in '..'")
    return target.place.name


def refuse_missing(target: Target) -> None:
    """Refuse what cannot be there, as its directory is not."""
    if target.place.missing:
        raise os_error(errno.ENOENT)


def refuse_covered(top: SandboxDir, forms: Sequence[Forms], ground: Ground) -> None:
    """Refuse a directory that holds anything that may not be moved; goes down one descriptor a level."""
    path = top.path
    levels = [(top, top.entries(), forms)]
    while levels:
        folder, entries, here = levels[-1]
        entry = next(entries, None)
        if entry is None:
            folder.close()
            levels.pop()
        elif any(ground.covers_entry(one, entry.raw) for one in here):
            raise SandboxViolation(f"'{path}' may not be moved: it holds something protected or denied")
        elif entry.kind == "directory":
            below = folder.child(entry)
            levels.append((below, below.entries(), [one.below(entry.raw) for one in here]))


def move(source: Target, target: Target, *, replace: bool) -> None:
    """Rename one to the other; both have been judged."""
    old, new = last_name(source), last_name(target)
    old_folder, new_folder = source.place.folder, target.place.folder
    try:
        if replace:
            os.rename(old, new, src_dir_fd=old_folder, dst_dir_fd=new_folder)
        else:
            move_new(old_folder, old, new_folder, new)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        shown = source.path.shown
        raise ToolFailed("IO", f"'{shown}' cannot be moved to another file system", path=shown) from None
