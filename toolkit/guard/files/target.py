"""A name that is about to be used: where it leads, what is there now, and how it is moved to another name."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.errors import SandboxViolation, ToolFailed
from toolkit.guard.files.consent import Forms, LocatedPath
from toolkit.guard.files.handles import Names, Place, SandboxDir, find_place, not_a_file
from toolkit.guard.files.path import SandboxPath, display
from toolkit.guard.files.resolve import Resolver, os_error
from toolkit.guard.files.write import move, stat_entry

if TYPE_CHECKING:
    from toolkit.guard.bare_repository import ChangedName
    from toolkit.guard.files.protect import AccessRules


@dataclass(frozen=True, slots=True)
class Target:
    """A place that may be changed: the path as requested, the place, its real path, and its names for the rules."""

    path: SandboxPath
    place: Place
    real: Names
    forms: Forms
    changed: ChangedName


def locate(path: SandboxPath, text: str, rules: AccessRules, resolver: Resolver, *, is_written: bool) -> LocatedPath:
    """Where ``path`` leads: the name itself and, if that is a link, its target.

    What a deny rule covers is not found, but ``forms`` has its real names, so that the policy sees the rule as well.
    """
    found = LocatedPath(text, rules.forms_of(path), is_written)
    if rules.denies(found.forms):
        return found
    try:
        for place, info in _places_of(path, rules, resolver):
            real = place.real()
            forms = rules.forms_of(path, real)
            if rules.denies(forms):
                return found._replace(forms=forms, real=None)
            folder = os.fstat(place.folder)
            own = None if info is None else (info.st_dev, info.st_ino, stat.S_IFMT(info.st_mode))
            is_link = info is not None and stat.S_ISLNK(info.st_mode)
            found = found._replace(
                forms=Forms({*found.forms.relative, *forms.relative}, {*found.forms.absolute, *forms.absolute}),
                real=None if is_link else rules.real_path(real),
                places=(*found.places, real),
                is_directory=place.name is None or is_directory(info),
                identity=f"{found.identity}{real} {folder.st_dev} {folder.st_ino} {place.missing} {own}\n",
            )
    except (OSError, SandboxViolation):
        return found._replace(real=None)
    if found.real is None:
        return found
    below = found.real.below[0] if found.real.in_workspace else None
    shown = display("/".join(("", *found.places[-1])) if below is None else "/".join(below) or ".")
    return found._replace(shown="" if shown == path.shown else shown)


def _places_of(
    path: SandboxPath, rules: AccessRules, resolver: Resolver
) -> Iterator[tuple[Place, os.stat_result | None]]:
    """The place of the name and, if that is a link, the place it leads to; and what is there."""
    for follow in (False, True):
        with find_place(rules.root(path).number, path, resolver, follow=follow) as place:
            info = None if place.missing or place.name is None else stat_entry(place.folder, place.name)
            yield place, info
            if info is None or not stat.S_ISLNK(info.st_mode):
                return


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


def refuse_covered(top: SandboxDir, ends: Sequence[Target], rules: AccessRules) -> None:
    """Refuse a directory that contains anything that may not be moved from one end to the other.

    Needs one descriptor per level.
    """
    path = top.path
    levels = [(top, top.entries(), [(end.forms, end.real) for end in ends])]
    while levels:
        folder, entries, here = levels[-1]
        entry = next(entries, None)
        if entry is None:
            folder.close()
            levels.pop()
            continue
        name = entry.raw
        if any(rules.covers_entry(forms, name) for forms, _ in here):
            raise SandboxViolation(f"'{path}' may not be moved: it contains something protected or denied")
        if any(rules.asks_about_entry(forms, place, name) for forms, place in here):
            raise SandboxViolation(
                f"'{path}' may not be moved: it contains '{folder.path_of(name)}', which needs approval"
            )
        if entry.kind == "directory":
            below = folder.child(entry)
            levels.append((below, below.entries(), [(forms.below(name), (*place, name)) for forms, place in here]))


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
