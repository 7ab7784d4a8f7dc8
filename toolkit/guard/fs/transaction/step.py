"""The change of one name in a transaction: done, undone and recognised afterwards, by whoever has to finish it.

Besides its own name a step has a spare one in the same directory, which nobody can guess. Before the step the new
file lies under the spare name, after it the old one, so that the same exchange does the step and undoes it. What lies
where is told by inode, size and time: a file that is neither of the two is somebody else's and is not touched.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias

from toolkit.guard.fs.place import Descriptor, Names
from toolkit.guard.fs.rename import aside, exchange, move_new
from toolkit.guard.fs.write import look

Facts: TypeAlias = tuple[int, int, int]
"""Inode, size and time of a file. Not its device: that is its directory's, and may have another number after a restart."""

State: TypeAlias = Literal["before", "after", "given up", "overtaken", "edited", "displaced", "foreign"]
"""How far a step got: not begun; done; undone, its new file removed; not done, and the name means something else by now;
done, and the new file changed by somebody since; done, and the old one changed; none of these."""


class Changed(Exception):
    """Something else is there than what was expected; everything is as it was."""


@dataclass(slots=True, eq=False)
class Folder:
    """A directory in which names change; one that does not exist yet is to be made in its ``parent``."""

    root: str
    names: Names
    """From the root down to it, without links."""
    ino: int | None
    parent: Folder | None = None
    spare: str = ""
    """What it is called until it gets its own name; empty for one that somebody else made."""
    held: Descriptor | None = None

    @property
    def number(self) -> int:
        if self.held is None:
            raise FileNotFoundError
        return self.held.number


@dataclass(slots=True, eq=False)
class Step:
    """One name that gets another file, a file where there was none, or none where there was one."""

    folder: Folder
    name: str
    spare: str
    shown: str
    old: Facts | None
    """What the name meant before, None for nothing."""
    new: Facts | None = None
    """What it is to mean."""
    made: int | None = None
    """The inode of the new file, as soon as there is one."""

    def do(self) -> None:
        """Raises ``Changed`` or ``OSError`` with everything as it was."""
        self._turn(self.old, self.new)

    def undo(self) -> None:
        """The way back, on the same terms."""
        self._turn(self.new, self.old)

    def put_back(self) -> None:
        """The way back to an old file that somebody changed meanwhile."""
        self._swap(leaves=self.new is not None, comes=True)

    def _turn(self, out: Facts | None, into: Facts | None) -> None:
        if (self._at(self.name), self._at(self.spare)) != (out, into):
            raise Changed
        self._swap(leaves=out is not None, comes=into is not None)
        # Looked at again afterwards, there is no instant in which a change could be overlooked.
        if (self._at(self.name), self._at(self.spare)) != (into, out):
            self._swap(leaves=into is not None, comes=out is not None)
            raise Changed

    def _swap(self, *, leaves: bool, comes: bool) -> None:
        number = self.folder.number
        if leaves and comes:
            exchange(number, self.spare, self.name)
        elif comes:
            move_new(number, self.spare, number, self.name)
        else:
            move_new(number, self.name, number, self.spare)

    def drop_spare(self, ino: int | None) -> bool:
        """Remove what has the spare name if it is that inode; whether nothing has that name now."""
        found = self._at(self.spare)
        if found is not None and found[0] == ino:
            os.unlink(self.spare, dir_fd=self.folder.number)
            return True
        return found is None

    def drop_unnoted_spare(self) -> bool:
        """The same for a file that was made in the last instant before its maker was killed: it is still empty."""
        info = look(self.folder.number, self.spare)
        if info is not None and stat.S_ISREG(info.st_mode) and info.st_size == 0:
            os.unlink(self.spare, dir_fd=self.folder.number)
            return True
        return info is None

    def state(self) -> State:
        """How far it got, when nobody is at work on it any more."""
        self._settle()
        here, spare = self._at(self.name), self._at(self.spare)
        if (here, spare) == (self.old, self.new):
            return "before"
        if (here, spare) == (self.new, self.old):
            return "after"
        if here == self.old and spare is None:
            return "given up"
        if spare == self.new:
            return "overtaken"
        if here == self.new and spare is not None and self.old is not None and spare[0] == self.old[0]:
            return "displaced"
        return "edited" if spare == self.old else "foreign"

    def _settle(self) -> None:
        """Bring a move that was made of several steps to one of its ends."""
        number = self.folder.number
        here, spare, third = self._at(self.name), self._at(self.spare), self._at(aside(self.spare))
        if third is not None and third in (self.old, self.new):
            if third == here:
                os.unlink(aside(self.spare), dir_fd=number)
            elif here is None:
                move_new(number, aside(self.spare), number, self.name)
            else:
                os.rename(aside(self.spare), self.spare, src_dir_fd=number, dst_dir_fd=number)
        elif spare is not None and spare == here:
            os.unlink(self.spare, dir_fd=number)

    def _at(self, name: str) -> Facts | None:
        info = look(self.folder.number, name)
        return None if info is None else facts(info)


def facts(info: os.stat_result) -> Facts:
    """What tells one file from another in its directory, and from itself after a change."""
    return info.st_ino, info.st_size, info.st_mtime_ns


def remove_made(folder: Folder) -> None:
    """Remove a directory that was made for a transaction, under either of its names, unless somebody uses it by now."""
    if not folder.spare or folder.parent is None or folder.parent.held is None:
        return
    number, name = folder.parent.number, folder.names[-1]
    here, spare = look(number, name), look(number, folder.spare)
    is_still_spare = spare is not None and spare.st_ino == folder.ino
    with suppress(OSError):
        # A move that takes two steps makes an empty directory of the new name first.
        if here is not None and (is_still_spare or here.st_ino == folder.ino):
            os.rmdir(name, dir_fd=number)
    with suppress(OSError):
        if is_still_spare or (spare is not None and folder.ino is None):
            os.rmdir(folder.spare, dir_fd=number)
