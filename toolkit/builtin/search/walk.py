"""Walks down from a directory, without following links and with few directories open at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from toolkit.builtin.search.ignored import DIRECTORY
from toolkit.builtin.text.diff import format_count
from toolkit.errors import SandboxViolation, ToolFailed

if TYPE_CHECKING:
    from toolkit.builtin.search.ignored import IgnoreRules
    from toolkit.guard.files.handles import DirEntry, EntryNames, SandboxDir

# Limits of a walk, in entries and levels. Few projects have more.
MAX_ENTRIES: Final = 1_000_000
MAX_DEPTH: Final = 256
# How many levels are kept open. To return to one further up, it is opened again from the start.
_OPEN_LEVELS: Final = 32

Steps: TypeAlias = tuple[str, ...]
"""The raw names from the start of a walk to a directory."""


class Visit:
    """One directory of a walk, open until the next one is requested.

    Directories that are hidden or left out by the rules are not in ``directories``, and those that the caller removes from it
    are not visited. ``files`` and ``symlinks`` are all that are there: pass what is selected among them to ``keep``.
    """

    __slots__ = ("_include_hidden", "directories", "files", "folder", "rules", "steps", "symlinks")

    def __init__(
        self, folder: SandboxDir, steps: Steps, names: EntryNames, rules: IgnoreRules, *, include_hidden: bool
    ) -> None:
        self.folder = folder
        self.steps = steps
        self.directories, self.files, self.symlinks, _ = names
        self.rules = rules
        self._include_hidden = include_hidden
        if self.directories:
            self.directories = keep_names(self.directories, steps, rules, DIRECTORY, include_hidden=include_hidden)

    def keep(self, names: list[str]) -> list[str]:
        """Those of some names in this directory, none of a directory, that are neither hidden nor left out by its rules."""
        return keep_names(names, self.steps, self.rules, b"", include_hidden=self._include_hidden)


class Walk:
    """Visits every directory from ``start`` down, parents first, siblings in the order of their names.

    ``rules`` are those of the start. A directory that cannot be opened is skipped. ``is_cut`` says whether the limits of a
    walk were reached, ``hidden`` how many entries deny and ask rules left out.
    """

    def __init__(self, start: SandboxDir, rules: IgnoreRules, *, include_hidden: bool) -> None:
        self._start = start
        self._rules = rules
        self._include_hidden = include_hidden
        self._scanned = 0
        self.hidden = 0
        self.is_cut = False

    def __iter__(self) -> Iterator[Visit]:
        names = self._read_names(self._start)
        visit = Visit(self._start, (), names, self._rules, include_hidden=self._include_hidden)
        yield visit
        levels = [_OpenDirectory(visit)]
        while levels:
            level = levels[-1]
            if not level.pending:
                levels.pop()
            elif len(levels) > MAX_DEPTH or self._scanned > MAX_ENTRIES:
                self.is_cut = True
                levels.pop()
            else:
                below = self._enter(level, level.pending.pop())
                if below is not None:
                    yield below
                    if below.directories:
                        levels.append(_OpenDirectory(below))
                        if len(levels) > _OPEN_LEVELS + 1:  # the caller closes the start
                            levels[-1 - _OPEN_LEVELS].folder = None  # closes it, because this is the only reference

    def _enter(self, level: _OpenDirectory, name: str) -> Visit | None:
        try:
            if level.folder is None:
                level.folder = open_below(self._start, level.steps)
            folder = level.folder.child(name)
            names = self._read_names(folder)
        except (ToolFailed, SandboxViolation):
            return None
        steps = (*level.steps, name)
        return Visit(folder, steps, names, level.rules.enter(folder, steps, names), include_hidden=self._include_hidden)

    def _read_names(self, folder: SandboxDir) -> EntryNames:
        names = folder.names()
        self.hidden += folder.hidden
        directories, files, symlinks, others = names
        self._scanned += len(directories) + len(files) + len(symlinks) + len(others)
        return names


class _OpenDirectory:
    """A visited directory and its subdirectories still to visit, the next one last."""

    __slots__ = ("folder", "pending", "rules", "steps")

    def __init__(self, visit: Visit) -> None:
        self.folder: SandboxDir | None = visit.folder
        self.steps = visit.steps
        self.rules = visit.rules
        self.pending = sorted(visit.directories, reverse=True)


def keep_names(names: list[str], steps: Steps, rules: IgnoreRules, mark: bytes, *, include_hidden: bool) -> list[str]:
    """Those of some names of one directory that are neither hidden nor left out by its rules.

    ``mark`` is ``DIRECTORY`` if they are directories, else empty.
    """
    if not include_hidden:
        names = [name for name in names if name[0] != "."]
        if rules.are_empty:
            return names
    return rules.keep(names, steps, mark) if names else names


def open_below(start: SandboxDir, steps: Sequence[DirEntry | str]) -> SandboxDir:
    """The directory at ``steps``, at least one; the directories on the way are closed."""
    folder = start.child(steps[0])
    for step in steps[1:]:
        with folder as above:
            folder = above.child(step)
    return folder


def join_path(folder: str, name: str) -> str:
    """The path of ``name`` in ``folder``, relative to the workspace."""
    return name if folder == "." else f"{folder}/{name}"


def is_hidden(entry: DirEntry) -> bool:
    return entry.raw.startswith(".")


def denied_note(count: int) -> list[str]:
    """A note about entries that deny and ask rules left out, if any."""
    return (
        [f"{format_count(count, 'entry', 'entries')} left out, denied by the policy or not approved"] if count else []
    )
