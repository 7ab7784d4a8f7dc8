"""Changes several files as one transaction: all of them or, after any failure, none.

First the new files are prepared next to the files they will replace, and the old ones are compared; then only names change.
A failure before that leaves nothing behind; a failure while names change is undone. A process that is killed leaves a
journal, if it has a directory for journals, and the next process finishes or undoes its work (``recover``).

Promise: a file that is not the expected one, checked before and after its name changes, is a ``CONFLICT`` and keeps its
content; no link is followed or replaced; nothing is made, moved or removed by path, only in open directories.

Not promised: that others never see a part of the changes (names change one after the other, and directories are made
before that); without a journal, what a killed process leaves; on file systems without ``renameat2``, that a file that is
being replaced exists at every moment.

Four parts, in this order: a ``Step`` is the change of one name; the ``Journal`` is the log from which another process can
take over; ``transact`` does the work; ``recover`` finishes or undoes what a killed process left.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar

from toolkit.errors import SandboxViolation, SetupError, ToolFailed, ToolkitError
from toolkit.guard.files.handles import Check
from toolkit.guard.files.locks import hold_locks
from toolkit.guard.files.path import (
    AcceptChanges,
    FileErrors,
    SandboxPath,
    absolute,
    already_exists,
    conflict,
    display,
    ignore_changes,
)
from toolkit.guard.files.place import Descriptor, Names, Place, open_folder, real_names, stat_entry
from toolkit.guard.files.protect import AccessRules, Root
from toolkit.guard.files.resolve import READ_DIRECTORY
from toolkit.guard.files.write import (
    FileChange,
    Put,
    create,
    exchange,
    is_unchanged,
    move_new,
    set_mode,
    sync_folder,
    third_name,
    unused_name,
    write_all,
)
from toolkit.guard.system_faults import OsErrorTranslation, describe_errno, find_system_fault

# -- one step ----------------------------------------------------------------------------------------------------------

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


# -- the journal -------------------------------------------------------------------------------------------------------

ItemT = TypeVar("ItemT")

_VERSION: Final = 1
_SUFFIX: Final = ".journal"
_KEPT_SUFFIX: Final = ".left"
_MAX_BYTES: Final = 64 << 20
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOUND: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


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


class Journal:
    """The journal of one transaction: a write-ahead log, in a directory that no tool can reach.

    It is one file of JSON lines. The process that writes it holds a lock on it as long as it lives, so a journal that can
    be locked was abandoned. Its lines, in this order; an incomplete one is ignored:

    - the plan: every directory and name of the transaction, and the file that each name has before it;
    - one ``made`` for each directory and file that was made, with its inode;
    - ``ready``: all new files are complete, with their inode, size and time; names change from here on;
    - ``undoing``: the transaction failed and is being undone;
    - ``done``: all names have changed; only the old files must still be removed.

    Without a file it notes nothing; then only errors can be undone.
    """

    def __init__(self, folder: Descriptor | None = None, name: str = "", file: Descriptor | None = None) -> None:
        self._folder = folder
        self._name = name
        self._file = file

    def note_plan(self, plan: TransactionPlan) -> None:
        """The first line: it says where to look for everything else."""
        self._note(_plan_record(plan))

    def note_made_folder(self, number: int, ino: int) -> None:
        """The folder with this number in the plan exists, under its spare name."""
        self._note({"made": "folder", "number": number, "ino": ino})

    def note_found_folder(self, number: int, ino: int) -> None:
        """The folder was not needed: another process made one with its name first."""
        self._note({"made": "folder", "number": number, "ino": ino, "spare": ""})

    def note_made_file(self, number: int, ino: int) -> None:
        """The new file of the step with this number exists and is empty."""
        self._note({"made": "file", "number": number, "ino": ino})

    def note_ready(self, plan: TransactionPlan) -> None:
        """No name may change before this is on the disk."""
        self._note({"ready": [step.new for step in plan.steps]})
        if self._file is not None and self._folder is not None:
            os.fsync(self._file.number)
            os.fsync(self._folder.number)

    def note_undoing(self) -> None:
        """From here on the transaction can only be undone."""
        self._note({"undoing": True})

    def note_done(self) -> None:
        """From here on the transaction can only be finished."""
        self._note({"done": True})

    def _note(self, record: dict[str, Any]) -> None:
        if self._file is None:
            return
        number = self._file.number
        before = os.fstat(number).st_size
        rest = memoryview(json.dumps(record, separators=(",", ":")).encode() + b"\n")
        try:
            while rest:
                rest = rest[os.write(number, rest) :]
        except OSError:
            # The next line must not be appended to a part of this one.
            os.ftruncate(number, before)
            raise

    def read(self) -> TransactionPlan | None:
        """The plan of an abandoned journal; None if nothing was done yet.

        Raises ``ValueError`` if the file is not a journal of this version.
        """
        if self._file is None:
            return None
        data = bytearray()
        while piece := os.read(self._file.number, 1 << 20):
            data += piece
            if len(data) > _MAX_BYTES:
                raise ValueError("the journal is too long")
        try:
            return _parse_plan(bytes(data))
        except (LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError("not a journal") from error

    def remove(self) -> None:
        """The transaction has ended, in one way or the other."""
        if self._folder is not None:
            os.unlink(self._name, dir_fd=self._folder.number)
        self.close()

    def set_aside(self) -> None:
        """Keep the file for a person to look at; it will not be read again."""
        if self._folder is not None:
            kept = self._name.removesuffix(_SUFFIX) + _KEPT_SUFFIX
            os.rename(self._name, kept, src_dir_fd=self._folder.number, dst_dir_fd=self._folder.number)
        self.close()

    def close(self) -> None:
        """Release the lock. The next ``recover`` handles a journal that still exists."""
        self._file = self._folder = None


class JournalDirectory:
    """The directory of the journals. It belongs to this user and is made when the first one is written."""

    def __init__(self, path: str) -> None:
        self.path: Final = path

    def begin(self) -> Journal:
        """Make a new journal, locked."""
        folder = self._open(make=True)
        while True:
            name = f"{os.urandom(16).hex()}{_SUFFIX}"
            file = Descriptor(os.open(name, _NEW, 0o600, dir_fd=folder.number))
            fcntl.flock(file.number, fcntl.LOCK_EX)
            # A cleanup may have removed the file before it was locked.
            if os.fstat(file.number).st_nlink:
                return Journal(folder, name, file)

    def take_abandoned(self) -> Iterator[Journal]:
        """Lock and return every journal that no running process has locked."""
        try:
            folder = self._open(make=False)
        except FileNotFoundError:
            return
        for name in sorted(os.listdir(folder.number)):
            if not name.endswith(_SUFFIX):
                continue
            try:
                file = Descriptor(os.open(name, _FOUND, dir_fd=folder.number))
                fcntl.flock(file.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue  # a running transaction, or one that has just ended
            info = os.fstat(file.number)
            if info.st_nlink and stat.S_ISREG(info.st_mode):
                yield Journal(folder, name, file)

    def _open(self, *, make: bool) -> Descriptor:
        if make:
            _make_private(self.path)
        folder = Descriptor(os.open(self.path, READ_DIRECTORY))
        info = os.fstat(folder.number)
        if info.st_uid != os.geteuid() or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise SetupError("the journal directory must belong to this user, and no other user may write to it")
        return folder


def _make_private(path: str) -> None:
    """Make the directory and the missing ones above it; no other user may enter them."""
    above = os.path.dirname(path)
    if above != path and not os.path.isdir(above):
        _make_private(above)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)


# -- the format of the lines -------------------------------------------------------------------------------------------


def _plan_record(plan: TransactionPlan) -> dict[str, Any]:
    numbers = {id(folder): number for number, folder in enumerate(plan.folders)}
    return {
        "version": _VERSION,
        "roots": {key: [mark.name, mark.dev, mark.ino] for key, mark in plan.roots.items()},
        "folders": [
            {
                "root": folder.root,
                "names": folder.names,
                "ino": folder.ino,
                "parent": None if folder.parent is None else numbers[id(folder.parent)],
                "spare": folder.spare,
            }
            for folder in plan.folders
        ],
        "steps": [
            {"folder": numbers[id(step.folder)], "name": step.name, "spare": step.spare, "old": step.old}
            | {"shown": step.shown}
            for step in plan.steps
        ],
    }


def _parse_plan(data: bytes) -> TransactionPlan | None:
    lines = data.split(b"\n")[:-1]
    if not lines:
        return None
    plan = _parse_plan_record(json.loads(lines[0]))
    for line in lines[1:]:
        record = json.loads(line)
        if "made" in record:
            number, ino = int(record["number"]), int(record["ino"])
            if record["made"] == "folder":
                folder = _item_at(plan.folders, number)
                folder.ino, folder.spare = ino, record.get("spare", folder.spare)
            else:
                _item_at(plan.steps, number).made = ino
        elif "ready" in record:
            plan.is_ready = True
            for step, new in zip(plan.steps, record["ready"], strict=True):
                step.new = _parse_facts(new)
        plan.is_undoing |= "undoing" in record
        plan.is_done |= "done" in record
    return plan


def _parse_plan_record(record: dict[str, Any]) -> TransactionPlan:
    if record["version"] != _VERSION:
        raise ValueError("unsupported journal version")
    plan = TransactionPlan({key: RootMark(*mark) for key, mark in record["roots"].items()}, was_abandoned=True)
    for row in record["folders"]:
        parent = None if row["parent"] is None else _item_at(plan.folders, row["parent"])
        names = tuple(map(_check_name, row["names"]))
        if row["root"] not in plan.roots or (parent is not None and not names):
            raise ValueError("a directory without a root or a name")
        spare = _check_name(row["spare"]) if parent else ""
        plan.folders.append(StepFolder(row["root"], names, row["ino"], parent, spare))
    for row in record["steps"]:
        folder, name, spare = _item_at(plan.folders, row["folder"]), _check_name(row["name"]), _check_name(row["spare"])
        plan.steps.append(Step(folder, name, spare, row["shown"], _parse_facts(row["old"])))
    return plan


def _item_at(items: list[ItemT], number: int) -> ItemT:
    if number < 0:
        raise ValueError("a negative number")
    return items[number]


def _check_name(text: str) -> str:
    """Refuse what is not the name of an entry in a directory."""
    if text in ("", ".", "..") or "/" in text or "\0" in text:
        raise ValueError("not a file name")
    return text


def _parse_facts(row: Sequence[int] | None) -> Facts | None:
    if row is None:
        return None
    ino, size, mtime_ns = row
    return ino, size, mtime_ns


# -- the transaction ---------------------------------------------------------------------------------------------------


class FindPlace(Protocol):
    """Finds the place of a path that may be changed, checked by the rules of ``SandboxFS``."""

    def __call__(self, text: str, *, follow: bool) -> AbstractContextManager[Place]: ...


def transact(
    changes: Sequence[FileChange],
    find: FindPlace,
    rules: AccessRules,
    journals: JournalDirectory | None,
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
            hold_locks([place.real for place in transaction.places], check, rules.hold_elsewhere),
            rules.protect_repositories(transaction.places),
            accept_changes() as accept,
        ):
            transaction.run(journals)
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
        with _StepErrors(shown):
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
        info = os.fstat(place.folder)
        key = (info.st_dev, info.st_ino)
        if key not in self._existing:
            top = os.fstat(root.number)
            self._plan.roots[place.path.root] = RootMark(root.name, top.st_dev, top.st_ino)
            below = real_names(place.folder)[len(real_names(root.number)) :]
            held = Descriptor(os.dup(place.folder))
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
            with _StepErrors(step.shown):
                step.do()

    def _prepare(self, journal: Journal) -> None:
        for number, folder in enumerate(self._plan.folders):
            if folder.parent is not None:
                with _StepErrors(display("/".join(folder.names))):
                    self._make_folder(journal, number, folder, folder.parent)
        for number, change in enumerate(self._changes):
            if isinstance(change, Put):
                with _StepErrors(self._plan.steps[number].shown):
                    self._make_file(journal, number, change)

    def _make_folder(self, journal: Journal, number: int, folder: StepFolder, parent: StepFolder) -> None:
        """Make the directory under its spare name first, because only this transaction uses that name."""
        above, name = parent.number, folder.names[-1]
        os.mkdir(folder.spare, dir_fd=above)
        folder.ino = os.stat(folder.spare, dir_fd=above, follow_symlinks=False).st_ino
        with _JournalErrors():
            journal.note_made_folder(number, folder.ino)
        try:
            move_new(above, folder.spare, above, name)
            folder.held = Descriptor(open_folder(name, above))
        except FileExistsError:
            # It was created concurrently, so that one is used.
            os.rmdir(folder.spare, dir_fd=above)
            folder.held = Descriptor(open_folder(name, above))
            folder.ino, folder.spare = os.fstat(folder.held.number).st_ino, ""
            with _JournalErrors():
                journal.note_found_folder(number, folder.ino)

    def _make_file(self, journal: Journal, number: int, change: Put) -> None:
        step, mode = self._plan.steps[number], self._modes[number]
        file = create(step.folder.number, step.spare, mode, executable=change.executable)
        try:
            step.made = os.fstat(file).st_ino
            with _JournalErrors():
                journal.note_made_file(number, step.made)
            set_mode(file, mode)
            write_all(file, change.data, self._check)
            step.new = facts(os.fstat(file))
        finally:
            os.close(file)

    def _compare(self) -> None:
        for step, change in zip(self._plan.steps, self._changes, strict=True):
            self._check()
            with _StepErrors(step.shown):
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


class _StepErrors(FileErrors):
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


@dataclass(frozen=True, slots=True)
class Recovery:
    """The result for one transaction that a killed process left.

    ``stuck`` means that parts could be neither finished nor undone; ``kept`` means that nothing was tried, for a reason
    that may be temporary. ``troubles`` are sentences about both; paths in them are relative to the workspace.
    """

    outcome: Literal["finished", "undone", "stuck", "kept"]
    paths: tuple[str, ...]
    troubles: tuple[str, ...] = ()


def recover(journals: JournalDirectory, rules: AccessRules) -> Iterator[Recovery]:
    """Finish or undo every transaction below these roots whose process is gone.

    A journal is not trusted without checks. A directory is opened name by name from its root without following a link
    and must be the one that was noted. A file is touched only if it is the one that was noted, by inode, size and time.
    What somebody else put in its place stays, and the report says so.

    Idempotent: a process that is killed during it leaves the rest to the next one.
    """
    for journal in journals.take_abandoned():
        try:
            recovery = _recover_one(journal, rules)
        except OSError as error:
            problem = f"the transaction could not be examined: {os.strerror(error.errno or 0).lower()}"
            recovery = Recovery("kept", (), (problem,))
        except ToolFailed as busy:
            recovery = Recovery("kept", (), (busy.message,))
        finally:
            journal.close()
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
    with hold_locks(_real_paths(plan, rules), _no_check, rules.hold_elsewhere):
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
        info = os.fstat(root.number)
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
    held = Descriptor(os.dup(top))
    try:
        for name in names:
            held = Descriptor(open_folder(name, held.number))
    except OSError:
        return None
    return held if os.fstat(held.number).st_ino == folder.ino else None


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
