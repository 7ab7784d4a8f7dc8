"""The steps of a transaction: each gives one name another file, and can be done, undone and recognized by another process.

No path is used here: only names, in directories that ``FileGuard`` has opened, by the primitives of the guard.
"""

from __future__ import annotations

import stat
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from toolkit.guard.files.place import Descriptor, Names, stat_entry
from toolkit.guard.files.write import exchange, move, move_new, remove_file, remove_folder, third_name

if TYPE_CHECKING:
    import os

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
    """One name that gets another file, a new file, or none. It can be done, undone, and recognised by another process.

    Besides its own name a step has a spare name in the same directory that cannot be guessed. Before the step the new
    file has the spare name; after it the old file has it. So the same exchange does the step and undoes it. Files are
    recognised by inode, size and time; a file that is neither of the two belongs to somebody else and is not touched.
    """

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
            remove_file(self.folder.number, self.spare)
            return True
        return found is None

    def remove_unnoted_spare(self) -> bool:
        """The same for a file whose inode was not noted: its process was killed right after making it, so it is empty."""
        info = stat_entry(self.folder.number, self.spare)
        if info is not None and stat.S_ISREG(info.st_mode) and info.st_size == 0:
            remove_file(self.folder.number, self.spare)
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
                remove_file(number, aside)
            elif here is None:
                move_new(number, aside, number, self.name)
            else:
                move(number, aside, number, self.spare, replace=True)
        elif spare is not None and spare == here:
            remove_file(number, self.spare)

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
            remove_folder(number, name)
    with suppress(OSError):
        if is_still_spare or (spare is not None and folder.ino is None):
            remove_folder(number, folder.spare)


# -- the plan ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RootMark:
    """Identifies a root later on: by its inode, and by its device or the name it was given by."""

    name: str
    dev: int
    ino: int

    def is_same(self, other: RootMark) -> bool:
        return self.ino == other.ino and (self.dev == other.dev or self.name == other.name)


@dataclass(slots=True)
class TransactionPlan:
    """The content of a journal: the steps of one transaction, and how far it got."""

    roots: dict[str, RootMark]
    """The workspace under an empty name, extra roots under their own."""
    folders: list[StepFolder] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    is_ready: bool = False
    is_undoing: bool = False
    is_done: bool = False
    was_abandoned: bool = False
    """Whether it was read from a journal. Then the last operation may not have been noted."""
