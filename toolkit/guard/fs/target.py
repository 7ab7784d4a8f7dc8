"""A name that may be changed: what is there now, and how it is moved to another name."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.errors import SandboxViolation, ToolFailed
from toolkit.guard.fs.deny_globs import Forms
from toolkit.guard.fs.handles import SandboxDir, not_a_file
from toolkit.guard.fs.path import SandboxPath
from toolkit.guard.fs.place import Names, Place
from toolkit.guard.fs.protect import AccessRules
from toolkit.guard.fs.rename import move
from toolkit.guard.fs.resolve import os_error
from toolkit.guard.fs.write import stat_entry


@dataclass(frozen=True, slots=True)
class Target:
    """A place that may be changed: the path as requested, the place, its real path, and its names for the rules."""

    path: SandboxPath
    place: Place
    real: Names
    forms: Forms


def is_directory(info: os.stat_result | None) -> bool:
    return info is not None and stat.S_ISDIR(info.st_mode)


def file_to_replace(place: Place, shown: str) -> os.stat_result | None:
    """The regular file that is there; None if there is nothing. A path that ends in a slash is not a file."""
    if place.name is None:
        raise os_error(errno.EISDIR)
    info = None if place.missing else stat_entry(place.folder, place.name)
    if info is None or stat.S_ISREG(info.st_mode):
        if place.wants_directory:
            raise os_error(errno.EISDIR if info is None else errno.ENOTDIR)
        return info
    raise not_a_file(info.st_mode, shown)


def last_name(target: Target) -> str:
    """The last name of the path; refuses a root and a path that ends in ``..``."""
    if target.place.name is None:
        raise SandboxViolation(f"'{target.path.shown}' may not be moved or removed: it is a root or ends in '..'")
    return target.place.name


def refuse_missing(target: Target) -> None:
    """Refuse a name whose directory does not exist."""
    if target.place.missing:
        raise os_error(errno.ENOENT)


def refuse_covered(top: SandboxDir, forms: Sequence[Forms], rules: AccessRules) -> None:
    """Refuse a directory that contains anything that may not be moved. Needs one descriptor per level."""
    path = top.path
    levels = [(top, top.entries(), forms)]
    while levels:
        folder, entries, here = levels[-1]
        entry = next(entries, None)
        if entry is None:
            folder.close()
            levels.pop()
        elif any(rules.covers_entry(one, entry.raw) for one in here):
            raise SandboxViolation(f"'{path}' may not be moved: it contains something protected or denied")
        elif entry.kind == "directory":
            below = folder.child(entry)
            levels.append((below, below.entries(), [one.below(entry.raw) for one in here]))


def move_target(source: Target, target: Target, *, replace: bool) -> None:
    """Rename one to the other. Both have been checked against the rules."""
    old, new = last_name(source), last_name(target)
    try:
        move(source.place.folder, old, target.place.folder, new, replace=replace)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        shown = source.path.shown
        raise ToolFailed("IO", f"'{shown}' cannot be moved to another file system", path=shown) from None
