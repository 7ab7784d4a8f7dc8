"""The journal of a transaction: the log from which another process finishes or undoes what a killed one left.

Journals are in a private directory outside every root. No tool can reach them, and what they say is checked all the same
before anybody acts on it (``recover``).
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from toolkit.errors import SetupError
from toolkit.files.steps import Facts, RootMark, Step, StepFolder, TransactionPlan
from toolkit.guard.files.path import is_entry_name
from toolkit.guard.files.place import Descriptor
from toolkit.guard.files.resolve import READ_DIRECTORY

ItemT = TypeVar("ItemT")

_VERSION: Final = 1
_SUFFIX: Final = ".journal"
_KEPT_SUFFIX: Final = ".left"
_MAX_BYTES: Final = 64 << 20
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOUND: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


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
    if not is_entry_name(text):
        raise ValueError("not a file name")
    return text


def _parse_facts(row: Sequence[int] | None) -> Facts | None:
    if row is None:
        return None
    ino, size, mtime_ns = row
    return ino, size, mtime_ns
