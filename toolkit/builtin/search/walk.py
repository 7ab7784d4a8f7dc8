"""Going down from a directory: no link is followed, and few directories are open at any time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from toolkit.errors import SandboxViolation, ToolFailed

if TYPE_CHECKING:
    from toolkit.builtin.search.ignore import IgnoreRules
    from toolkit.guard.fs.handles import DirEntry, EntryNames, SandboxDir

# What a walk looks at in all, and how far down. Few projects have more, and what has more gets an end.
MAX_ENTRIES: Final = 1_000_000
MAX_DEPTH: Final = 256
# How many levels are kept open. To get back to one further up, the way is gone once more.
_OPEN_LEVELS: Final = 32

Steps: TypeAlias = tuple[str, ...]
"""The raw names that lead from the start of a walk to a directory."""


class Visit(NamedTuple):
    """One directory on a walk, open until the next is asked for, with the names in it that are not left out.

    What is taken out of ``names.directories`` meanwhile is not visited.
    """

    folder: SandboxDir
    steps: Steps
    names: EntryNames


class Walk:
    """Visits every directory from ``start`` down, each before those in it, these in the order of their names.

    ``rules`` are those of the start. A directory that cannot be opened is left out: it is gone by now, or not ours to
    look into. ``is_cut`` tells whether there is more than a walk looks at, ``hidden`` how many entries deny rules left out.
    """

    def __init__(self, start: SandboxDir, rules: IgnoreRules, *, include_hidden: bool) -> None:
        self._start = start
        self._rules = rules
        self._include_hidden = include_hidden
        self._scanned = 0
        self.hidden = 0
        self.is_cut = False

    def __iter__(self) -> Iterator[Visit]:
        names = self._names(self._start)
        visit = Visit(self._start, (), shown(names, (), self._rules, include_hidden=self._include_hidden))
        yield visit
        levels = [_Level(visit, self._rules)]
        while levels:
            level = levels[-1]
            if not level.pending:
                levels.pop()
            elif len(levels) > MAX_DEPTH or self._scanned > MAX_ENTRIES:
                self.is_cut = True
                levels.pop()
            else:
                below = self._step(level, level.pending.pop())
                if below is not None:
                    visit, rules = below
                    yield visit
                    if visit.names.directories:
                        levels.append(_Level(visit, rules))
                    if len(levels) > _OPEN_LEVELS + 1:  # the start is not ours to close
                        levels[-1 - _OPEN_LEVELS].folder = None  # which closes it: nobody else holds it

    def _step(self, level: _Level, name: str) -> tuple[Visit, IgnoreRules] | None:
        try:
            if level.folder is None:
                level.folder = open_below(self._start, level.steps)
            folder = level.folder.child(name)
            names = self._names(folder)
        except (ToolFailed, SandboxViolation):
            return None
        steps = (*level.steps, name)
        rules = level.rules.enter(folder, steps, names)
        return Visit(folder, steps, shown(names, steps, rules, include_hidden=self._include_hidden)), rules

    def _names(self, folder: SandboxDir) -> EntryNames:
        names = folder.names()
        self.hidden += folder.hidden
        self._scanned += sum(map(len, names))
        return names


class _Level:
    """A directory that was visited, and those in it that were not yet, the next one last."""

    __slots__ = ("folder", "pending", "rules", "steps")

    def __init__(self, visit: Visit, rules: IgnoreRules) -> None:
        self.folder: SandboxDir | None = visit.folder
        self.steps = visit.steps
        self.rules = rules
        self.pending = sorted(visit.names.directories, reverse=True)


def shown(names: EntryNames, steps: Steps, rules: IgnoreRules, *, include_hidden: bool) -> EntryNames:
    """Those of a directory's names that are neither hidden nor left out by its rules; ``names`` is used up for that."""
    if not include_hidden:
        for some in names:
            if some:
                some[:] = [name for name in some if name[0] != "."]
        if rules.are_empty:
            return names
    return rules.kept(names, steps)


def open_below(start: SandboxDir, steps: Sequence[DirEntry | str]) -> SandboxDir:
    """The directory that the steps, at least one, lead to; what was passed does not stay open."""
    folder = start.child(steps[0])
    for step in steps[1:]:
        with folder as above:
            folder = above.child(step)
    return folder


def join(folder: str, name: str) -> str:
    """The path of ``name`` in ``folder``, relative to the workspace."""
    return name if folder == "." else f"{folder}/{name}"


def is_hidden(entry: DirEntry) -> bool:
    return entry.raw.startswith(".")


def denied(count: int) -> list[str]:
    """A note about entries that deny rules left out, if there are any."""
    return [f"{count} {'entry' if count == 1 else 'entries'} left out, denied by the policy"] if count else []
