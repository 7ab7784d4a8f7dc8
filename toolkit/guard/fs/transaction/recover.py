"""What becomes of the transactions of killed processes: each is finished or undone, so that all of it holds or none.

A journal names directories and files, but nothing is believed of it that is not so: a directory is opened name by name
from its root without following a link and must be the very one that was noted; a file is touched only if it is the one
that was noted, by inode, size and time. What somebody put in its place meanwhile stays, and the report says so.

Doing it twice is doing it once, and who is killed while doing it leaves it to the next.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

from toolkit.errors import SandboxViolation
from toolkit.guard.fs.path import SandboxPath
from toolkit.guard.fs.place import Descriptor, real_names
from toolkit.guard.fs.protect import Ground
from toolkit.guard.fs.resolve import HANDLE
from toolkit.guard.fs.transaction.apply import finish, undo
from toolkit.guard.fs.transaction.journal import Journal, JournalDirectory, Plan, RootMark
from toolkit.guard.fs.transaction.step import Changed, Folder

_STEP_DOWN: Final = HANDLE | os.O_DIRECTORY | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of one transaction that a killed process left.

    ``stuck`` means that parts could be neither finished nor undone; ``kept`` that nothing was tried, for a reason that
    may pass. ``troubles`` are sentences about both; paths in them are relative to the workspace.
    """

    outcome: Literal["finished", "undone", "stuck", "kept"]
    paths: tuple[str, ...]
    troubles: tuple[str, ...] = ()


def recover(journals: JournalDirectory, ground: Ground) -> Iterator[Recovered]:
    """Finish or undo every transaction below these roots whose process is gone."""
    for journal in journals.left():
        try:
            done = _recovered(journal, ground)
        except OSError as error:
            words = f"it could not be looked into: {os.strerror(error.errno or 0).lower()}"
            done = Recovered("kept", (), (words,))
        finally:
            journal.close()
        if done is not None:
            yield done


def _recovered(journal: Journal, ground: Ground) -> Recovered | None:
    try:
        plan = journal.read()
    except ValueError:
        journal.put_aside()
        return Recovered("stuck", (), ("a journal that cannot be read was put aside",))
    if plan is None:
        journal.remove()
        return None
    if not _is_below(plan, ground):
        return None  # another toolkit's, over other directories
    paths = tuple(step.shown for step in plan.steps)
    refusal = _refusal(plan, ground)
    if refusal is not None:
        return Recovered("kept", paths, (refusal,))
    for folder in plan.folders:
        folder.held = _opened(folder, ground)
    if _carried_on(plan):
        troubles = finish(plan, journal)
        if troubles:
            journal.put_aside()
        return Recovered("finished", paths, tuple(troubles))
    with suppress(OSError):
        journal.note_undoing()
    stuck = undo(plan)
    if stuck:
        journal.put_aside()
        return Recovered("stuck", paths, tuple(stuck))
    journal.remove()
    return Recovered("undone", paths)


def _is_below(plan: Plan, ground: Ground) -> bool:
    """Whether every root it works in is one of these."""
    for key, mark in plan.roots.items():
        try:
            root = ground.root(SandboxPath((), root=key))
        except KeyError:
            return False
        info = os.fstat(root.number)
        if not mark.is_same(RootMark(root.name, info.st_dev, info.st_ino)):
            return False
    return True


def _refusal(plan: Plan, ground: Ground) -> str | None:
    """Why nothing may be changed there now, whatever was allowed then."""
    for step in plan.steps:
        names = (*step.folder.names, step.name)
        path = SandboxPath(names, root=step.folder.root)
        try:
            ground.check_write(path, real_names(ground.root(path).number) + names)
        except SandboxViolation as violation:
            return violation.message
    return None


def _opened(folder: Folder, ground: Ground) -> Descriptor | None:
    """The directory that was noted, if it is still where it was."""
    if folder.parent is None:
        top: int | None = ground.root(SandboxPath((), root=folder.root)).number
        names = folder.names
    else:
        top = None if folder.parent.held is None else folder.parent.held.number
        names = folder.names[-1:]
    if top is None:
        return None
    held = Descriptor(os.dup(top))
    try:
        for name in names:
            held = Descriptor(os.open(name, _STEP_DOWN, dir_fd=held.number))
    except OSError:
        return None
    return held if os.fstat(held.number).st_ino == folder.ino else None


def _carried_on(plan: Plan) -> bool:
    """Whether all names mean what they were to mean, the rest of them since now."""
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
    except (OSError, Changed):
        return False
    return True
