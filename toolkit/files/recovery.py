"""Finishes or undoes the transactions that killed processes left.

A journal is not trusted without checks. The rules of today decide whether its changes may be made at all. A directory is
opened name by name from its root without following a link, and must be the one that was noted. A file is touched only if
it is the one that was noted, by inode, size and time. What somebody else put in its place stays, and the report says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from toolkit.errors import SandboxViolation, ToolFailed
from toolkit.files.journal import Journal, JournalDirectory
from toolkit.files.steps import RootMark, StepConflict, StepFolder, TransactionPlan
from toolkit.files.transaction import finish, undo
from toolkit.guard.files.path import SandboxPath
from toolkit.guard.files.place import Descriptor, Names, open_folder, real_names
from toolkit.guard.files.protect import AccessRules
from toolkit.system_faults import describe_errno


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
