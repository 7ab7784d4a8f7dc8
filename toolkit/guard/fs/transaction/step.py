"""The change of one name in a transaction: it can be done, undone and recognised later by the process that recovers it.

Besides its own name a step has a spare name in the same directory that cannot be guessed. Before the step the new file has
the spare name; after it the old file has it. So the same exchange does the step and undoes it. Files are recognised by
inode, size and time; a file that is neither of the two belongs to somebody else and is not touched.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias

from toolkit.guard.files.write import stat_entry
from toolkit.guard.fs.place import Descriptor, Names
from toolkit.guard.fs.rename import exchange, move_new, third_name

Facts: TypeAlias = tuple[int, int, int]
"""Inode, size and time of a file. Not its device: all files of a directory share it, and it may change after a restart."""

State: TypeAlias = Literal["before", "after", "given up", "overtaken", "edited", "displaced", "foreign"]
"""How far a step got. ``before``: not begun. ``after``: done. ``given up``: undone, the new file is removed. ``overtaken``:
not done, and the name means something else by now. ``edited``: done, and the new file was changed since. ``displaced``:
done, and the old file was changed. ``foreign``: none of these."""


class StepConflict(Exception):
    """A name does not have the expected file. Nothing was changed."""


@dataclass(slots=True, eq=False)
class StepFolder:
    """A directory in which names change. One that does not exist yet will be made in its ``parent``."""

    root: str
    names: Names
    """The path from the root, without links."""
    ino: int | None
    parent: StepFolder | None = None
    spare: str = ""
    """Its name until it gets its own; empty for a directory that this transaction did not make."""
    held: Descriptor | None = None

    @property
    def number(self) -> int:
        if self.held is None:
            raise FileNotFoundError
        return self.held.number


@dataclass(slots=True, eq=False)
class Step:
    """One name that gets another file, a new file, or none."""

    folder: StepFolder
    name: str
    spare: str
    shown: str
    old: Facts | None
    """The file of the name before the step; None for no file."""
    new: Facts | None = None
    """The file of the name after the step."""
    made: int | None = None
    """The inode of the new file, once it exists."""

    def do(self) -> None:
        """Raises ``StepConflict`` or ``OSError``, with nothing changed."""
        self._swap_checked(self.old, self.new)

    def undo(self) -> None:
        """The reverse of ``do``, with the same errors."""
        self._swap_checked(self.new, self.old)

    def put_back(self) -> None:
        """``undo`` for an old file that was changed in the meantime."""
        self._swap(has_old=self.new is not None, has_new=True)

    def _swap_checked(self, old: Facts | None, new: Facts | None) -> None:
        """Replace ``old`` under the name by ``new``, which has the spare name."""
        if (self._facts_at(self.name), self._facts_at(self.spare)) != (old, new):
            raise StepConflict
        self._swap(has_old=old is not None, has_new=new is not None)
        # Checked again afterwards, so that there is no moment in which a change could be missed.
        if (self._facts_at(self.name), self._facts_at(self.spare)) != (new, old):
            self._swap(has_old=new is not None, has_new=old is not None)
            raise StepConflict

    def _swap(self, *, has_old: bool, has_new: bool) -> None:
        number = self.folder.number
        if has_old and has_new:
            exchange(number, self.spare, self.name)
        elif has_new:
            move_new(number, self.spare, number, self.name)
        else:
            move_new(number, self.name, number, self.spare)

    def remove_spare(self, ino: int | None) -> bool:
        """Remove the file with the spare name if it has this inode. Returns whether the spare name is unused now."""
        found = self._facts_at(self.spare)
        if found is not None and found[0] == ino:
            os.unlink(self.spare, dir_fd=self.folder.number)
            return True
        return found is None

    def remove_unnoted_spare(self) -> bool:
        """The same for a file whose inode was not noted: its process was killed right after making it, so it is empty."""
        info = stat_entry(self.folder.number, self.spare)
        if info is not None and stat.S_ISREG(info.st_mode) and info.st_size == 0:
            os.unlink(self.spare, dir_fd=self.folder.number)
            return True
        return info is None

    def state(self) -> State:
        """How far the step got. Its process no longer works on it."""
        self._complete_move()
        here, spare = self._facts_at(self.name), self._facts_at(self.spare)
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

    def _complete_move(self) -> None:
        """Complete or undo a move of several system calls that was interrupted between two of them."""
        number, aside = self.folder.number, third_name(self.spare)
        here, spare, third = self._facts_at(self.name), self._facts_at(self.spare), self._facts_at(aside)
        if third is not None and third in (self.old, self.new):
            if third == here:
                os.unlink(aside, dir_fd=number)
            elif here is None:
                move_new(number, aside, number, self.name)
            else:
                os.rename(aside, self.spare, src_dir_fd=number, dst_dir_fd=number)
        elif spare is not None and spare == here:
            os.unlink(self.spare, dir_fd=number)

    def _facts_at(self, name: str) -> Facts | None:
        info = stat_entry(self.folder.number, name)
        return None if info is None else facts(info)


def facts(info: os.stat_result) -> Facts:
    """What distinguishes a file from others in its directory, and from itself after a change."""
    return info.st_ino, info.st_size, info.st_mtime_ns


def remove_made_folder(folder: StepFolder) -> None:
    """Remove a directory that was made for a transaction, under either of its names, unless it is used by now."""
    if not folder.spare or folder.parent is None or folder.parent.held is None:
        return
    number, name = folder.parent.number, folder.names[-1]
    here, spare = stat_entry(number, name), stat_entry(number, folder.spare)
    is_still_spare = spare is not None and spare.st_ino == folder.ino
    with suppress(OSError):
        # A move in two steps first makes an empty directory with the new name.
        if here is not None and (is_still_spare or here.st_ino == folder.ino):
            os.rmdir(name, dir_fd=number)
    with suppress(OSError):
        if is_still_spare or (spare is not None and folder.ino is None):
            os.rmdir(folder.spare, dir_fd=number)
