"""Directories that commands removed, and the kept entries that went with them: remembered for as long as the guard lives.

Promise: a kept file that comes back with its directory, by a later command or behind a link, is the one that was there.
Without this, a command could move a directory away, change a copy of it, and let another command move that in its place.
Limit: beyond ``MAX_GONE`` directories and ``MAX_FILES`` entries, those that go later are not remembered.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from toolkit.guard.process.program import is_below
from toolkit.guard.review.node import MAX_FILES, Node
from toolkit.guard.review.scan import EntryPlace, ScanRoot, Seen

MAX_GONE: Final = 20_000


class GoneFolders:
    """``kept`` are entries by the place they were in."""

    def __init__(self) -> None:
        self._folders: set[EntryPlace] = set()
        self.kept: Final[dict[EntryPlace, Node | None]] = {}

    def __contains__(self, folder: EntryPlace) -> bool:
        return folder in self._folders

    def remember(self, before: Seen, now: Seen, kept: Mapping[EntryPlace, Node | None]) -> None:
        """Add what is not there any more."""
        gone = before.without(now)
        self._folders.update(gone[: MAX_GONE - len(self._folders)])
        for place, node in kept.items():
            if place.parent in self._folders and len(self.kept) < MAX_FILES:
                self.kept[place] = node

    def forget(self, now: Seen) -> None:
        """Remove what is there again: from now on it counts as it is."""
        if self._folders:
            self._folders = {folder for folder in self._folders if not now.had_folder(folder)}
            for place in [place for place in self.kept if now.had_folder(place.parent)]:
                del self.kept[place]

    def behind_links(
        self, roots: Sequence[ScanRoot], before: Seen, now: Seen
    ) -> Iterator[tuple[EntryPlace, EntryPlace]]:
        """Each directory that was there and is now reached through a link, with that link."""
        gone = {*before.without(now), *(folder for folder in self._folders if not now.had_folder(folder))}
        links = [folder for folder in gone if folder.parent not in gone and _is_link(folder, roots)]
        for link in links:
            yield from ((folder, link) for folder in gone if _is_below(folder, link))


def first_link(place: EntryPlace, roots: Sequence[ScanRoot]) -> EntryPlace | None:
    """The outermost directory on the way to an entry that is a link; None if there is none."""
    names = place.path.split("/")[:-1]
    steps = (EntryPlace(place.root, "/".join(names[: count + 1])) for count in range(len(names)))
    return next((step for step in steps if _is_link(step, roots)), None)


def _is_below(folder: EntryPlace, link: EntryPlace) -> bool:
    return folder.root == link.root and is_below(f"/{folder.path}", f"/{link.path}")


def _is_link(place: EntryPlace, roots: Sequence[ScanRoot]) -> bool:
    try:
        return stat.S_ISLNK(os.stat(place.path, dir_fd=roots[place.root].fd, follow_symlinks=False).st_mode)
    except OSError:
        return False
