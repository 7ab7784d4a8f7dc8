"""Changes several files as one transaction: all of them or, after any failure, none.

First the new files are prepared next to the files they will replace, and the old ones are compared; then only names change.
A failure before that leaves nothing behind; a failure while names change is undone. A process that is killed leaves a
journal, if it has a directory for journals, and the next process finishes or undoes its work (``recover``).

Promise: a file that is not the expected one, checked before and after its name changes, is a ``CONFLICT`` and keeps its
content; no link is followed or replaced; nothing is made, moved or removed by path, only in directories that
``FileGuard`` has opened after its rules allowed the change.

Not promised: that others never see a part of the changes (names change one after the other, and directories are made
before that); without a journal, what a killed process leaves; on file systems without ``renameat2``, that a file that is
being replaced exists at every moment.
"""

from __future__ import annotations

import errno
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from toolkit.errors import SandboxViolation, ToolFailed, ToolkitError
from toolkit.files.journal import Journal, JournalDirectory
from toolkit.files.steps import (
    Facts,
    RootMark,
    Step,
    StepConflict,
    StepFolder,
    TransactionPlan,
    facts,
    remove_made_folder,
)
from toolkit.guard.files.handles import Check
from toolkit.guard.files.path import (
    AcceptChanges,
    FileErrors,
    SandboxPath,
    absolute,
    already_exists,
    conflict,
    ignore_changes,
)
from toolkit.guard.files.place import Descriptor, Names, Place, open_folder, real_names, stat_entry
from toolkit.guard.files.protect import AccessRules, Root
from toolkit.guard.files.write import (
    Fingerprint,
    create,
    is_unchanged,
    make_folder,
    move_new,
    remove_folder,
    set_mode,
    sync_folder,
    unused_name,
    write_all,
)
from toolkit.system_faults import OsErrorTranslation, describe_errno, find_system_fault
from toolkit.visible import display

if TYPE_CHECKING:
    import os


@dataclass(frozen=True, slots=True)
class Put:
    """Write this content to a file: the one that was read, or a new one with the directories above it.

    :param expected: what was read; None if the name must not exist.
    :param mode: the permissions of the file, without set-id bits; if None, a replaced file keeps its own and a new one gets
        the default by umask.
    :param executable: whether the default by umask includes execute permission.
    """

    path: str
    data: bytes
    expected: Fingerprint | None
    mode: int | None = None
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove a file. A link is refused: neither the link nor its target is removed."""

    path: str
    expected: Fingerprint


FileChange: TypeAlias = Put | Drop
"""What a transaction does with one file."""


class FindPlace(Protocol):
    """Finds the place of a path that may be changed, checked by the rules of ``SandboxFS``."""

    def __call__(self, text: str, *, follow: bool) -> AbstractContextManager[Place]: ...


def transact(
    changes: Sequence[FileChange],
    find: FindPlace,
    rules: AccessRules,
    journal: str | None,
    check: Check,
    accept_changes: AcceptChanges = ignore_changes,
) -> None:
    """Make all changes or none."""
    if not changes:
        return
    with closing(_Transaction(changes, rules, check)) as transaction:
        for change in changes:
            with find(change.path, follow=isinstance(change, Put)) as place:
                transaction.add(change, place)
        with (
            rules.hold([place.real for place in transaction.places], check),
            rules.protect_repositories(transaction.places),
            accept_changes() as accept,
        ):
            transaction.run(None if journal is None else JournalDirectory(journal))
            for change, place in zip(changes, transaction.places, strict=True):
                accept(absolute(place.real), change.data if isinstance(change, Put) else None)


class _Transaction:
    """One run of ``transact``: plans first, then prepares, compares and changes."""

    def __init__(self, changes: Sequence[FileChange], rules: AccessRules, check: Check) -> None:
        self._changes = changes
        self._rules = rules
        self._check = check
        self._plan = TransactionPlan({})
        self._modes: list[int | None] = []
        self._existing: dict[tuple[int, int], StepFolder] = {}
        self._missing: dict[tuple[int, str], StepFolder] = {}
        self._taken: dict[tuple[int, str], str] = {}
        self.places: Final[list[Place]] = []

    def close(self) -> None:
        """Close the directories. The traceback of a failure refers to them for as long as anybody keeps the failure."""
        for folder in self._plan.folders:
            folder.held = None

    # -- planning: nothing is changed ------------------------------------------------------------------------------------

    def add(self, change: FileChange, place: Place) -> None:
        """Note where the change happens and what is there now."""
        shown = place.shown
        with StepErrors(shown):
            name = place.require_name()
            before = place.file_to_replace()
            self._refuse_unexpected(change, before, shown)
            existing = self._existing_folder(place, self._rules.root(place.path))
            folder = self._folder_of(place, existing)
        key = (id(folder), name)
        if key in self._taken:
            problem = f"'{self._taken[key]}' and '{shown}' are the same file; change it only once"
            raise ToolFailed("CONFLICT", problem, path=shown)
        self._taken[key] = shown
        old = None if before is None else facts(before)
        self._plan.steps.append(Step(folder, name, unused_name(), shown, old))
        own = None if before is None else stat.S_IMODE(before.st_mode)
        self._modes.append(change.mode if isinstance(change, Put) and change.mode is not None else own)
        self.places.append(place.held_by(existing.number))

    def _refuse_unexpected(self, change: FileChange, before: os.stat_result | None, shown: str) -> None:
        """Compare what ``stat`` shows; the content is compared when everything is prepared."""
        if change.expected is None and before is not None:
            raise already_exists(shown)
        if change.expected is not None and (before is None or not change.expected.matches_stat(before)):
            raise conflict(shown)

    def _folder_of(self, place: Place, existing: StepFolder) -> StepFolder:
        """The directory of a place, which is ``existing`` or will be made below it."""
        folder = existing
        for name in place.missing:
            key = (id(folder), name)
            if key not in self._missing:
                self._missing[key] = StepFolder(folder.root, (*folder.names, name), None, folder, unused_name())
                self._plan.folders.append(self._missing[key])
            folder = self._missing[key]
        return folder

    def _existing_folder(self, place: Place, root: Root) -> StepFolder:
        """The deepest directory of a place that exists, opened only once however many places are in it."""
        held = Descriptor.copy_of(place.folder)
        info = held.stat()
        key = (info.st_dev, info.st_ino)
        if key not in self._existing:
            top = root.stat()
            self._plan.roots[place.path.root] = RootMark(root.name, top.st_dev, top.st_ino)
            below = real_names(place.folder)[len(real_names(root.number)) :]
            self._existing[key] = StepFolder(place.path.root, below, info.st_ino, held=held)
            self._plan.folders.append(self._existing[key])
        return self._existing[key]

    # -- running ---------------------------------------------------------------------------------------------------------

    def run(self, journals: JournalDirectory | None) -> None:
        """Prepare, compare, change and clean up; undo everything if that fails before the last name has changed."""
        with _JournalErrors():
            journal = Journal() if journals is None else journals.begin()
        try:
            try:
                self._change(journal)
            except BaseException as error:
                self._undo(journal, error)
                raise
            # The changes are made. What fails from here on is left to the next start.
            with suppress(OSError):
                finish(self._plan, journal)
        finally:
            journal.close()

    def _change(self, journal: Journal) -> None:
        with _JournalErrors():
            journal.note_plan(self._plan)
        self._prepare(journal)
        self._compare()
        with _JournalErrors():
            journal.note_ready(self._plan)
        self._plan.is_ready = True
        for step in self._plan.steps:
            with StepErrors(step.shown):
                step.do()

    def _prepare(self, journal: Journal) -> None:
        for number, folder in enumerate(self._plan.folders):
            if folder.parent is not None:
                with StepErrors(display("/".join(folder.names))):
                    self._make_folder(journal, number, folder, folder.parent)
        for number, change in enumerate(self._changes):
            if isinstance(change, Put):
                with StepErrors(self._plan.steps[number].shown):
                    self._make_file(journal, number, change)

    def _make_folder(self, journal: Journal, number: int, folder: StepFolder, parent: StepFolder) -> None:
        """Make the directory under its spare name first, because only this transaction uses that name."""
        above, name = parent.number, folder.names[-1]
        folder.ino = make_folder(above, folder.spare)
        with _JournalErrors():
            journal.note_made_folder(number, folder.ino)
        try:
            move_new(above, folder.spare, above, name)
            folder.held = Descriptor(open_folder(name, above))
        except FileExistsError:
            # It was created concurrently, so that one is used.
            remove_folder(above, folder.spare)
            folder.held = Descriptor(open_folder(name, above))
            folder.ino, folder.spare = folder.held.stat().st_ino, ""
            with _JournalErrors():
                journal.note_found_folder(number, folder.ino)

    def _make_file(self, journal: Journal, number: int, change: Put) -> None:
        step, mode = self._plan.steps[number], self._modes[number]
        file = Descriptor(create(step.folder.number, step.spare, mode, executable=change.executable))
        try:
            step.made = file.stat().st_ino
            with _JournalErrors():
                journal.note_made_file(number, step.made)
            set_mode(file.number, mode)
            write_all(file.number, change.data, self._check)
            step.new = facts(file.stat())
        finally:
            del file  # which closes it: the traceback of a failure would keep it

    def _compare(self) -> None:
        for step, change in zip(self._plan.steps, self._changes, strict=True):
            self._check()
            with StepErrors(step.shown):
                number = step.folder.number
                if change.expected is not None and not is_unchanged(number, step.name, change.expected):
                    raise StepConflict
                if change.expected is None and stat_entry(number, step.name) is not None:
                    raise FileExistsError(errno.EEXIST, "")

    def _undo(self, journal: Journal, error: BaseException) -> None:
        with suppress(OSError):
            journal.note_undoing()
        stuck = undo(self._plan)
        if not stuck:
            with suppress(OSError):
                journal.remove()
        if stuck and isinstance(error, Exception):
            why = error.message if isinstance(error, ToolkitError) else "an unexpected error occurred"
            raise ToolFailed("IO", f"{why}; not everything could be undone: {'; '.join(stuck)}") from error


def undo(plan: TransactionPlan) -> list[str]:
    """Give every name its old file again and remove what was made. Returns what could not be undone, as sentences."""
    stuck: list[str] = []
    for step in reversed(plan.steps):
        try:
            trouble = _undo_step(step, plan)
        except (OSError, StepConflict):
            trouble = f"'{step.shown}' could not be restored"
        stuck += [trouble] if trouble else []
    for folder in reversed(plan.folders):
        with suppress(OSError):
            remove_made_folder(folder)
    return stuck


def _undo_step(step: Step, plan: TransactionPlan) -> str | None:
    """Undo one step. Returns what could not be undone, and why."""
    if step.folder.held is None:
        was_there = plan.is_ready or step.made is not None
        was_removed = plan.is_undoing and step.folder.parent is not None  # by the process that began to undo this
        return f"the directory of '{step.shown}' is no longer where it was" if was_there and not was_removed else None
    if not plan.is_ready:
        gone = step.remove_unnoted_spare() if step.made is None else step.remove_spare(step.made)
        if gone or (step.made is None and not plan.was_abandoned):
            return None
        return f"'{step.spare}' next to '{step.shown}' is not the file that was created there"
    state = step.state()
    if state == "after":
        step.undo()
    elif state == "displaced":
        step.put_back()
    step.remove_spare(None if step.new is None else step.new[0])
    if state == "edited":
        return f"'{step.shown}' was changed concurrently; '{step.spare}' next to it is the file that was there before"
    return f"'{step.shown}' or '{step.spare}' next to it was changed concurrently" if state == "foreign" else None


def finish(plan: TransactionPlan, journal: Journal) -> list[str]:
    """All names have changed: remove the old files, then the journal. Returns which old files were not found."""
    for folder in plan.folders:
        if folder.held is not None:
            sync_folder(folder.number)
    journal.note_done()
    missed = [step for step in plan.steps if step.old is not None and not _remove_old(step, step.old)]
    if not missed:
        journal.remove()
    return [f"'{step.spare}' next to '{step.shown}' is not the file that was there before" for step in missed]


def _remove_old(step: Step, old: Facts) -> bool:
    try:
        return step.folder.held is not None and step.remove_spare(old[0])
    except OSError:
        return False


class StepErrors(FileErrors):
    """Raises errors of one file as failures. If the file or its directory has vanished, that is a conflict."""

    __slots__ = ()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, StepConflict | FileNotFoundError):
            raise conflict(self._shown) from None
        super().__exit__(kind, error, traceback)


class _JournalErrors(OsErrorTranslation):
    """Raises errors of the journal as failures that do not name its location."""

    __slots__ = ()

    def translate(self, error: OSError) -> ToolFailed:
        what = "nothing was changed: the journal could not be written"
        return find_system_fault(error, what) or ToolFailed("IO", f"{what}: {describe_errno(error.errno or errno.EIO)}")


# -- recovery ----------------------------------------------------------------------------------------------------------

# A journal is not trusted without checks. The rules of today decide whether its changes may be made at all. A directory is
# opened name by name from its root without following a link, and must be the one that was noted. A file is touched only if
# it is the one that was noted, by inode, size and time. What somebody else put in its place stays, and the report says so.


@dataclass(frozen=True, slots=True)
class Recovery:
    """The result for one transaction that a killed process left.

    ``stuck`` means that parts could be neither finished nor undone; ``kept`` means that nothing was tried, for a reason
    that may be temporary. ``troubles`` are sentences about both; paths in them are relative to the workspace.
    """

    outcome: Literal["finished", "undone", "stuck", "kept"]
    paths: tuple[str, ...]
    troubles: tuple[str, ...] = ()


def recover(journal: str, rules: AccessRules) -> Iterator[Recovery]:
    """Finish or undo every transaction below these roots whose process is gone.

    Idempotent: a process that is killed during it leaves the rest to the next one.
    """
    for abandoned in JournalDirectory(journal).take_abandoned():
        try:
            recovery = _recover_one(abandoned, rules)
        except OSError as error:
            problem = f"the transaction could not be examined: {describe_errno(error.errno)}"
            recovery = Recovery("kept", (), (problem,))
        except ToolFailed as busy:
            recovery = Recovery("kept", (), (busy.message,))
        finally:
            abandoned.close()
        if recovery is not None:
            yield recovery


def _recover_one(journal: Journal, rules: AccessRules) -> Recovery | None:
    try:
        plan = journal.read()
    except ValueError:
        journal.set_aside()
        return Recovery("stuck", (), ("a journal that cannot be read was set aside",))
    if plan is None:
        journal.remove()
        return None
    if not _has_same_roots(plan, rules):
        return None  # it belongs to another toolkit with other roots
    paths = tuple(step.shown for step in plan.steps)
    refusal = _find_refusal(plan, rules)
    if refusal is not None:
        return Recovery("kept", paths, (refusal,))
    with rules.hold(_real_paths(plan, rules), _no_check):
        return _finish_or_undo(journal, plan, rules, paths)


def _finish_or_undo(journal: Journal, plan: TransactionPlan, rules: AccessRules, paths: tuple[str, ...]) -> Recovery:
    for folder in plan.folders:
        folder.held = _reopen(folder, rules)
    if _complete(plan):
        troubles = finish(plan, journal)
        if troubles:
            journal.set_aside()
        return Recovery("finished", paths, tuple(troubles))
    with suppress(OSError):
        journal.note_undoing()
    stuck = undo(plan)
    if stuck:
        journal.set_aside()
        return Recovery("stuck", paths, tuple(stuck))
    journal.remove()
    return Recovery("undone", paths)


def _has_same_roots(plan: TransactionPlan, rules: AccessRules) -> bool:
    """Whether every root of the transaction is one of these."""
    for key, mark in plan.roots.items():
        try:
            root = rules.root(SandboxPath((), root=key))
        except KeyError:
            return False
        info = root.stat()
        if not mark.is_same(RootMark(root.name, info.st_dev, info.st_ino)):
            return False
    return True


def _find_refusal(plan: TransactionPlan, rules: AccessRules) -> str | None:
    """Why the rules of today do not allow these changes, whatever was allowed before."""
    for step, place in zip(plan.steps, _real_paths(plan, rules), strict=True):
        try:
            rules.check_write(SandboxPath((*step.folder.names, step.name), root=step.folder.root), place)
        except SandboxViolation as violation:
            return violation.message
    return None


def _real_paths(plan: TransactionPlan, rules: AccessRules) -> list[Names]:
    """The real path of each step."""
    return [
        (*real_names(rules.root(SandboxPath((), root=step.folder.root)).number), *step.folder.names, step.name)
        for step in plan.steps
    ]


def _no_check() -> None:
    """Recovery belongs to no call that could be cancelled."""


def _reopen(folder: StepFolder, rules: AccessRules) -> Descriptor | None:
    """Open the directory that was noted, if it is still where it was."""
    if folder.parent is None:
        top: int | None = rules.root(SandboxPath((), root=folder.root)).number
        names = folder.names
    else:
        top = None if folder.parent.held is None else folder.parent.held.number
        names = folder.names[-1:]
    if top is None:
        return None
    held = Descriptor.copy_of(top)
    try:
        for name in names:
            held = Descriptor(open_folder(name, held.number))
    except OSError:
        return None
    return held if held.stat().st_ino == folder.ino else None


def _complete(plan: TransactionPlan) -> bool:
    """Do the remaining steps if that is possible. Returns whether all steps are done."""
    if plan.is_done:
        return True
    if plan.is_undoing or not plan.is_ready or any(folder.held is None for folder in plan.folders):
        return False
    states = [step.state() for step in plan.steps]
    if not {"before", "after", "edited"}.issuperset(states):
        return False
    try:
        for step, state in zip(plan.steps, states, strict=True):
            if state == "before":
                step.do()
    except (OSError, StepConflict):
        return False
    return True
