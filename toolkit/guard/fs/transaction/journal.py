"""The journal of a transaction: what it is about to do, noted before it does it, in a directory no tool can reach.

A journal is one file of JSON lines, locked by the process that writes it for as long as that lives: one that can be
locked was left behind. Its lines, in this order:

- the plan: every directory and name concerned, and what each name means before;
- one ``made`` for each directory and file that was made, with its inode;
- ``ready``: all new files are complete, their facts follow; from here on names change;
- ``undoing``: it failed, and what was done is being undone;
- ``done``: all names have changed, only the old files are still to be removed.

A line that was not finished has not happened.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from toolkit.errors import SetupError
from toolkit.guard.fs.place import Descriptor
from toolkit.guard.fs.transaction.step import Facts, Folder, Step

NumberedT = TypeVar("NumberedT")

_VERSION: Final = 1
_SUFFIX: Final = ".journal"
_KEPT_SUFFIX: Final = ".left"
_MAX_BYTES: Final = 64 << 20
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOUND: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class RootMark:
    """By what a root is known again: its inode, and its device or the name it was given by."""

    name: str
    dev: int
    ino: int

    def is_same(self, other: RootMark) -> bool:
        return self.ino == other.ino and (self.dev == other.dev or self.name == other.name)


@dataclass(slots=True)
class Plan:
    """What a journal says: the steps of one transaction, and how far it got."""

    roots: dict[str, RootMark]
    """The workspace under an empty name, extra roots under theirs."""
    folders: list[Folder] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    is_ready: bool = False
    is_undoing: bool = False
    is_done: bool = False
    was_left: bool = False
    """Whether it was read from a journal, so that what was done last may not have been noted."""


class Journal:
    """One transaction's journal, open and locked. Without a file it notes nothing: then only errors can be undone."""

    def __init__(self, folder: Descriptor | None = None, name: str = "", file: Descriptor | None = None) -> None:
        self._folder = folder
        self._name = name
        self._file = file

    def note_plan(self, plan: Plan) -> None:
        """First of all: who finds this knows where to look."""
        self._note(_plan_record(plan))

    def note_made_folder(self, number: int, ino: int) -> None:
        """The folder of that number in the plan exists, under its spare name."""
        self._note({"made": "folder", "number": number, "ino": ino})

    def note_found_folder(self, number: int, ino: int) -> None:
        """It was not made after all: somebody else's was there by then."""
        self._note({"made": "folder", "number": number, "ino": ino, "spare": ""})

    def note_made_file(self, number: int, ino: int) -> None:
        """The new file of the step of that number exists, and is empty."""
        self._note({"made": "file", "number": number, "ino": ino})

    def note_ready(self, plan: Plan) -> None:
        """Nothing may be changed before this is on the disk."""
        self._note({"ready": [step.new for step in plan.steps]})
        if self._file is not None and self._folder is not None:
            os.fsync(self._file.number)
            os.fsync(self._folder.number)

    def note_undoing(self) -> None:
        """From here on there is no way forward."""
        self._note({"undoing": True})

    def note_done(self) -> None:
        """From here on there is no way back."""
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
            # The next line must not be glued to half of this one.
            os.ftruncate(number, before)
            raise

    def read(self) -> Plan | None:
        """The plan of a journal that was left; None if nothing was done yet.

        Raises ``ValueError`` if it is none of ours.
        """
        if self._file is None:
            return None
        data = bytearray()
        while piece := os.read(self._file.number, 1 << 20):
            data += piece
            if len(data) > _MAX_BYTES:
                raise ValueError("too long for a journal")
        try:
            return _plan(bytes(data))
        except (LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError("no journal") from error

    def remove(self) -> None:
        """The transaction is over, whatever its end."""
        if self._folder is not None:
            os.unlink(self._name, dir_fd=self._folder.number)
        self.close()

    def put_aside(self) -> None:
        """Keep it for somebody to look at; it will not be read again."""
        if self._folder is not None:
            kept = self._name.removesuffix(_SUFFIX) + _KEPT_SUFFIX
            os.rename(self._name, kept, src_dir_fd=self._folder.number, dst_dir_fd=self._folder.number)
        self.close()

    def close(self) -> None:
        """Give up the lock; a journal that is still there is left to the next ``recover``."""
        self._file = None


class JournalDirectory:
    """Where journals lie: a directory of this user's, made when the first is written."""

    def __init__(self, path: str) -> None:
        self.path: Final = path

    def begin(self) -> Journal:
        """A new journal, locked."""
        folder = self._open(make=True)
        while True:
            name = f"{os.urandom(16).hex()}{_SUFFIX}"
            file = Descriptor(os.open(name, _NEW, 0o600, dir_fd=folder.number))
            fcntl.flock(file.number, fcntl.LOCK_EX)
            # Somebody who cleaned up may have come between the two.
            if os.fstat(file.number).st_nlink:
                return Journal(folder, name, file)

    def left(self) -> Iterator[Journal]:
        """Every journal that no living process has locked, locked by us."""
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
                continue  # somebody's live transaction, or one that has just ended
            info = os.fstat(file.number)
            if info.st_nlink and stat.S_ISREG(info.st_mode):
                yield Journal(folder, name, file)

    def _open(self, *, make: bool) -> Descriptor:
        if make:
            _make_private(self.path)
        folder = Descriptor(os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        info = os.fstat(folder.number)
        if info.st_uid != os.geteuid() or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise SetupError("the journal directory must belong to this user, and nobody else may write there")
        return folder


def _make_private(path: str) -> None:
    """The directory and those above it that are missing, for nobody else to enter."""
    above = os.path.dirname(path)
    if above != path and not os.path.isdir(above):
        _make_private(above)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)


# -- what the lines say ------------------------------------------------------------------------------------------------


def _plan_record(plan: Plan) -> dict[str, Any]:
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


def _plan(data: bytes) -> Plan | None:
    lines = data.split(b"\n")[:-1]
    if not lines:
        return None
    plan = _planned(json.loads(lines[0]))
    for line in lines[1:]:
        record = json.loads(line)
        if "made" in record:
            number, ino = int(record["number"]), int(record["ino"])
            if record["made"] == "folder":
                folder = _numbered(plan.folders, number)
                folder.ino, folder.spare = ino, record.get("spare", folder.spare)
            else:
                _numbered(plan.steps, number).made = ino
        elif "ready" in record:
            plan.is_ready = True
            for step, new in zip(plan.steps, record["ready"], strict=True):
                step.new = _facts(new)
        plan.is_undoing |= "undoing" in record
        plan.is_done |= "done" in record
    return plan


def _planned(record: dict[str, Any]) -> Plan:
    if record["version"] != _VERSION:
        raise ValueError("a journal of another version")
    plan = Plan({key: RootMark(*mark) for key, mark in record["roots"].items()}, was_left=True)
    for row in record["folders"]:
        parent = None if row["parent"] is None else _numbered(plan.folders, row["parent"])
        names = tuple(map(_name, row["names"]))
        if row["root"] not in plan.roots or (parent is not None and not names):
            raise ValueError("a directory nowhere")
        plan.folders.append(Folder(row["root"], names, row["ino"], parent, _name(row["spare"]) if parent else ""))
    for row in record["steps"]:
        folder, name, spare = _numbered(plan.folders, row["folder"]), _name(row["name"]), _name(row["spare"])
        plan.steps.append(Step(folder, name, spare, row["shown"], _facts(row["old"])))
    return plan


def _numbered(found: list[NumberedT], number: int) -> NumberedT:
    if number < 0:
        raise ValueError("a number that no line has")
    return found[number]


def _name(text: str) -> str:
    """One name in a directory and no way out of it."""
    if text in ("", ".", "..") or "/" in text or "\0" in text:
        raise ValueError("no name of a file")
    return text


def _facts(row: Sequence[int] | None) -> Facts | None:
    if row is None:
        return None
    ino, size, mtime_ns = row
    return ino, size, mtime_ns
