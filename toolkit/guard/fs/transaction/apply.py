"""Several files changed as one: all of them, or after any failure none.

First everything is prepared beside the files it will replace, and compared; then only names change. What fails before
leaves nothing; what fails while names change is undone. A process that is killed leaves a journal, if it was given a
directory for them, and the next one finishes or undoes its work (``recovery.py``).

Promise: a file that is not what was expected, looked at before and after its name changed, is a ``CONFLICT`` and keeps
its content; no link is followed or replaced; nothing is made, moved or removed by path, only in open directories.

Not promised: that others never see a part of it (names change one after the other, and directories are made before
that); without a journal, what a killed process leaves; on file systems without ``renameat2``, that a file which is
replaced is there at every instant.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Final, Protocol

from toolkit.errors import ToolFailed, ToolkitError
from toolkit.guard.fs.handles import Check
from toolkit.guard.fs.os_errors import changed, failure
from toolkit.guard.fs.path import display
from toolkit.guard.fs.place import Descriptor, Names, real_names
from toolkit.guard.fs.protect import Ground, Root
from toolkit.guard.fs.rename import move_new
from toolkit.guard.fs.resolve import HANDLE
from toolkit.guard.fs.target import Target, file_to_replace, last_name
from toolkit.guard.fs.transaction.change import Change, Put
from toolkit.guard.fs.transaction.journal import Journal, JournalDirectory, Plan, RootMark
from toolkit.guard.fs.transaction.step import Changed, Facts, Folder, Step, facts, remove_made
from toolkit.guard.fs.write import Fingerprint, create, fill, give_mode, holding, is_still, look, settle, unused_name

_FOLDER: Final = HANDLE | os.O_DIRECTORY | os.O_NOFOLLOW


class FindTarget(Protocol):
    """Finds the place of a path that may be changed, as ``SandboxFS`` judges it."""

    def __call__(self, text: str, *, follow: bool) -> AbstractContextManager[Target]: ...


def transact(
    changes: Sequence[Change], find: FindTarget, ground: Ground, journals: JournalDirectory | None, check: Check
) -> None:
    """Make all changes or none."""
    if not changes:
        return
    transaction = _Transaction(changes, ground, check)
    for change in changes:
        with find(change.path, follow=isinstance(change, Put)) as target:
            transaction.add(change, target)
    with holding(transaction.places, check):
        transaction.run(journals)


class _Transaction:
    def __init__(self, changes: Sequence[Change], ground: Ground, check: Check) -> None:
        self._changes = changes
        self._ground = ground
        self._check = check
        self._plan = Plan({})
        self._modes: list[int | None] = []
        self._existing: dict[tuple[int, int], Folder] = {}
        self._missing: dict[tuple[int, str], Folder] = {}
        self._taken: dict[tuple[int, str], str] = {}
        self.places: Final[list[Names]] = []

    # -- planning: nothing is changed ------------------------------------------------------------------------------------

    def add(self, change: Change, target: Target) -> None:
        """Note where the change happens and what is there now."""
        shown, place = target.path.shown, target.place
        with _told(shown):
            name = last_name(target)
            before = file_to_replace(place, shown)
            self._refuse_unexpected(change, before, shown)
            folder = self._folder_of(target)
        key = (id(folder), name)
        if key in self._taken:
            words = f"'{self._taken[key]}' and '{shown}' are the same file: change it once"
            raise ToolFailed("CONFLICT", words, path=shown)
        self._taken[key] = shown
        old = None if before is None else facts(before)
        self._plan.steps.append(Step(folder, name, unused_name(), shown, old))
        own = None if before is None else stat.S_IMODE(before.st_mode)
        self._modes.append(change.mode if isinstance(change, Put) and change.mode is not None else own)
        self.places.append(target.real)

    def _refuse_unexpected(self, change: Change, before: os.stat_result | None, shown: str) -> None:
        if change.expected is None and before is not None:
            raise ToolFailed("ALREADY_EXISTS", f"'{shown}' exists already", path=shown)
        if change.expected is not None and (before is None or not _is_expected(before, change.expected)):
            raise changed(shown)

    def _folder_of(self, target: Target) -> Folder:
        """The directory of a target, held open once however many targets are in it."""
        root = self._ground.root(target.path)
        folder = self._existing_folder(target, root)
        for name in target.place.missing:
            key = (id(folder), name)
            if key not in self._missing:
                self._missing[key] = Folder(folder.root, (*folder.names, name), None, folder, unused_name())
                self._plan.folders.append(self._missing[key])
            folder = self._missing[key]
        return folder

    def _existing_folder(self, target: Target, root: Root) -> Folder:
        info = os.fstat(target.place.folder)
        key = (info.st_dev, info.st_ino)
        if key not in self._existing:
            top = os.fstat(root.number)
            self._plan.roots[target.path.root] = RootMark(root.name, top.st_dev, top.st_ino)
            below = real_names(target.place.folder)[len(real_names(root.number)) :]
            held = Descriptor(os.dup(target.place.folder))
            self._existing[key] = Folder(target.path.root, below, info.st_ino, held=held)
            self._plan.folders.append(self._existing[key])
        return self._existing[key]

    # -- at work ---------------------------------------------------------------------------------------------------------

    def run(self, journals: JournalDirectory | None) -> None:
        """Prepare, compare, change, tidy up; undo it all if that fails before the last name has changed."""
        with _told_of_journal():
            journal = Journal() if journals is None else journals.begin()
        try:
            try:
                self._change(journal)
            except BaseException as error:
                self._undo(journal, error)
                raise
            # What fails from here on is left to the next start: the changes are made.
            with suppress(OSError):
                finish(self._plan, journal)
        finally:
            journal.close()

    def _change(self, journal: Journal) -> None:
        with _told_of_journal():
            journal.note_plan(self._plan)
        self._prepare(journal)
        self._compare()
        with _told_of_journal():
            journal.note_ready(self._plan)
        self._plan.is_ready = True
        for step in self._plan.steps:
            with _told(step.shown):
                step.do()

    def _prepare(self, journal: Journal) -> None:
        for number, folder in enumerate(self._plan.folders):
            if folder.parent is not None:
                with _told(display("/".join(folder.names))):
                    self._make_folder(journal, number, folder, folder.parent)
        for number, change in enumerate(self._changes):
            if isinstance(change, Put):
                with _told(self._plan.steps[number].shown):
                    self._make_file(journal, number, change)

    def _make_folder(self, journal: Journal, number: int, folder: Folder, parent: Folder) -> None:
        """Under its spare name first: whatever has that name is ours."""
        above, name = parent.number, folder.names[-1]
        os.mkdir(folder.spare, dir_fd=above)
        folder.ino = os.stat(folder.spare, dir_fd=above, follow_symlinks=False).st_ino
        with _told_of_journal():
            journal.note_made_folder(number, folder.ino)
        try:
            move_new(above, folder.spare, above, name)
            folder.held = Descriptor(os.open(name, _FOLDER, dir_fd=above))
        except FileExistsError:
            # Somebody else made it meanwhile, which is as good.
            os.rmdir(folder.spare, dir_fd=above)
            folder.held = Descriptor(os.open(name, _FOLDER, dir_fd=above))
            folder.ino, folder.spare = os.fstat(folder.held.number).st_ino, ""
            with _told_of_journal():
                journal.note_found_folder(number, folder.ino)

    def _make_file(self, journal: Journal, number: int, change: Put) -> None:
        step, mode = self._plan.steps[number], self._modes[number]
        file = Descriptor(create(step.folder.number, step.spare, mode, executable=change.executable))
        step.made = os.fstat(file.number).st_ino
        with _told_of_journal():
            journal.note_made_file(number, step.made)
        give_mode(file.number, mode)
        fill(file.number, change.data, self._check)
        step.new = facts(os.fstat(file.number))

    def _compare(self) -> None:
        for step, change in zip(self._plan.steps, self._changes, strict=True):
            self._check()
            with _told(step.shown):
                number = step.folder.number
                if change.expected is not None and not is_still(number, step.name, change.expected):
                    raise Changed
                if change.expected is None and look(number, step.name) is not None:
                    raise FileExistsError(errno.EEXIST, "")

    def _undo(self, journal: Journal, error: BaseException) -> None:
        with suppress(OSError):
            journal.note_undoing()
        stuck = undo(self._plan)
        if not stuck:
            with suppress(OSError):
                journal.remove()
        if stuck and isinstance(error, Exception):
            why = error.message if isinstance(error, ToolkitError) else "something unexpected happened"
            raise ToolFailed("IO", f"{why}; and not everything could be undone: {'; '.join(stuck)}") from error


def undo(plan: Plan) -> list[str]:
    """Bring every name back to what it meant, and remove what was made; the answer tells what could not be."""
    stuck: list[str] = []
    for step in reversed(plan.steps):
        try:
            trouble = _undo_step(step, plan)
        except (OSError, Changed):
            trouble = f"'{step.shown}' cannot be brought back"
        stuck += [trouble] if trouble else []
    for folder in reversed(plan.folders):
        with suppress(OSError):
            remove_made(folder)
    return stuck


def _undo_step(step: Step, plan: Plan) -> str | None:
    """What could not be undone, and why."""
    if step.folder.held is None:
        was_there = plan.is_ready or step.made is not None
        was_removed = plan.is_undoing and step.folder.parent is not None  # by who began to undo this
        return f"the directory of '{step.shown}' is not where it was" if was_there and not was_removed else None
    if not plan.is_ready:
        gone = step.drop_unnoted_spare() if step.made is None else step.drop_spare(step.made)
        if gone or (step.made is None and not plan.was_left):
            return None
        return f"'{step.spare}' beside '{step.shown}' is not the file that was made there"
    state = step.state()
    if state == "after":
        step.undo()
    elif state == "displaced":
        step.put_back()
    step.drop_spare(None if step.new is None else step.new[0])
    if state == "edited":
        return f"'{step.shown}' was changed meanwhile; '{step.spare}' beside it is what was there before"
    return f"'{step.shown}' or '{step.spare}' beside it was changed meanwhile" if state == "foreign" else None


def finish(plan: Plan, journal: Journal) -> list[str]:
    """All names have changed: remove the old files, then the journal. The answer tells which old files are not there."""
    for folder in plan.folders:
        if folder.held is not None:
            settle(folder.number)
    journal.note_done()
    missed = [step for step in plan.steps if step.old is not None and not _drop_old(step, step.old)]
    if not missed:
        journal.remove()
    return [f"'{step.spare}' beside '{step.shown}' is not the file that was there before" for step in missed]


def _drop_old(step: Step, old: Facts) -> bool:
    try:
        return step.folder.held is not None and step.drop_spare(old[0])
    except OSError:
        return False


def _is_expected(info: os.stat_result, expected: Fingerprint) -> bool:
    """What one look tells; the content is compared when all is prepared."""
    return (info.st_dev, *facts(info)) == (expected.dev, expected.ino, expected.size, expected.mtime_ns)


@contextmanager
def _told(shown: str) -> Iterator[None]:
    """What went wrong with one file; one that vanished, or whose directory did, has changed."""
    try:
        yield
    except (Changed, FileNotFoundError):
        raise changed(shown) from None
    except OSError as error:
        raise failure(error, shown) from None


@contextmanager
def _told_of_journal() -> Iterator[None]:
    """The place of the journal is nobody's business who reads the message."""
    try:
        yield
    except OSError as error:
        words = os.strerror(error.errno or errno.EIO).lower()
        raise ToolFailed("IO", f"nothing was changed: the journal of the change cannot be written: {words}") from None
