"""Which parts of repositories the full tier can hold while a command runs: mounts in its view of the files.

For a command these are the settings and hooks of the repository at the top of each root, below a git directory that is a
mount of its own and so cannot be moved. A program that runs for long, and every command with ``git="read-only"``, gets
all repositories read-only as a whole. What a mount cannot hold, such as a file that does not exist, is left to the review.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from toolkit.guard.review.baseline import HeldPart
from toolkit.guard.review.git_state import COMMON, PARTS
from toolkit.guard.review.node import NodeReader
from toolkit.guard.review.places import pointer_target, read_entry, real_path
from toolkit.guard.review.scan import EntryPlace, Identity, Scan, ScanRoot

_HELD: Final = ("config", "hooks", "config.worktree", COMMON)
_ITSELF: Final = "."  # a git directory that cannot be moved, whatever is changed in it
MAX_MOUNTS: Final = 500


class HeldMount(NamedTuple):
    """An entry to mount onto itself, with the identity it must have. ``part`` is what it means to the review."""

    place: EntryPlace
    identity: Identity
    read_only: bool
    part: HeldPart


def held_parts(mounts: Iterable[HeldMount]) -> frozenset[HeldPart]:
    """What the mounts hold; a whole git directory is held with each of its parts."""
    found: set[HeldPart] = set()
    for mount in mounts:
        found.add(mount.part)
        if not isinstance(mount.part, EntryPlace) and mount.part[1] == "":
            found.update((mount.identity, name) for name in (*PARTS, _ITSELF))
    return frozenset(found)


def mounts_of_roots(scan: Scan, roots: Sequence[ScanRoot], tops: Iterable[EntryPlace]) -> list[HeldMount]:
    """For a command: what holds the settings and hooks of the repositories at ``tops``."""
    found: dict[EntryPlace, HeldMount] = {}
    seen: set[EntryPlace] = set()
    for top in tops:
        pending = [top] if top in scan.git_folders else []
        pending += _repository_at(top.child(".git"), scan, roots, found)
        while pending:
            place = pending.pop()
            if place in seen:
                continue
            seen.add(place)
            identity = scan.git_folders[place]
            if place != top:
                found[place] = HeldMount(place, identity, False, (identity, _ITSELF))
            for name in _HELD:
                _add(found, place.child(name), roots, (identity, name))
            pending += _follow(place.child(COMMON), scan, roots)
    return list(found.values())


def mounts_of_everything(scan: Scan, roots: Sequence[ScanRoot]) -> list[HeldMount]:
    """For ``git="read-only"`` and programs that run for long: whole repositories, pointers and kept entries."""
    found: dict[EntryPlace, HeldMount] = {}
    for place, identity in sorted(scan.git_folders.items()):
        found[place] = HeldMount(place, identity, True, (identity, ""))
    for place in (*scan.pointers, *scan.kept):
        _add(found, place, roots, place)
    return list(found.values())


def _repository_at(
    place: EntryPlace, scan: Scan, roots: Sequence[ScanRoot], found: dict[EntryPlace, HeldMount]
) -> list[EntryPlace]:
    if place in scan.git_folders:
        return [place]
    if place in scan.pointers:
        _add(found, place, roots, place)
    return _follow(place, scan, roots)


def _follow(place: EntryPlace, scan: Scan, roots: Sequence[ScanRoot]) -> list[EntryPlace]:
    """The git directory that a pointer leads to, if it is below a root."""
    target = pointer_target(place, read_entry(place, roots, NodeReader(1)), roots)
    return [] if target is None else [one for one in scan.git_folders if real_path(one, roots) == target]


def _add(found: dict[EntryPlace, HeldMount], place: EntryPlace, roots: Sequence[ScanRoot], part: HeldPart) -> None:
    """Add a read-only mount of an entry. A link cannot be one; what it leads to is compared after the command."""
    try:
        info = os.stat(place.path, dir_fd=roots[place.root].fd, follow_symlinks=False)
    except OSError:
        return
    if not stat.S_ISLNK(info.st_mode):
        found[place] = HeldMount(place, (info.st_dev, info.st_ino), True, part)
