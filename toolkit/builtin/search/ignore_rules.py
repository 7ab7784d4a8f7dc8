"""What a walk leaves out: ``.git``, what ``.gitignore`` files ignore, and what the caller excludes.

Limits: only ``.gitignore`` files from the workspace root down are read, not ``.git/info/exclude``, a user's global file or
files above the workspace, nor those that the policy keeps from the call. For a walk that starts below a link, the given
names count, not those of the link's target. A start directory that is ignored itself is walked anyway, because the caller
named it.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from toolkit.builtin.search.ignored import Patterns, raw_bytes
from toolkit.errors import SandboxViolation, ToolFailed

if TYPE_CHECKING:
    from toolkit.guard.files.handles import EntryNames, SandboxDir
    from toolkit.guard.files.sandbox_fs import SandboxFS

# Longer files were not written by people. They are not read, which shows too much rather than too little.
MAX_LIST_BYTES: Final = 256 * 1024
# Lines plus stars, the cost of compiling patterns. This many take about a second.
MAX_WEIGHT: Final = 10_000

_LIST_NAME: Final = ".gitignore"


class _PlacedPatterns(NamedTuple):
    """Patterns and their directory: ``lead`` above the start of a walk, or ``depth`` steps below it."""

    patterns: Patterns
    lead: bytes = b""
    depth: int = 0

    def way_to(self, steps: Sequence[str]) -> bytes:
        """The path from there to the directory at ``steps``, with a trailing slash."""
        return self.lead + raw_bytes("".join([f"{step}/" for step in steps[self.depth :]]))


class IgnoreRules:
    """The rules that apply in a directory of a walk; immutable.

    ``steps`` are always the raw names from the start of the walk to a directory. Use only for directories that are not
    ignored themselves: below one that is, everything is ignored.
    """

    __slots__ = ("_all", "_excluded", "_lists", "_reads_lists", "are_empty")

    def __init__(
        self, excluded: tuple[_PlacedPatterns, ...], lists: tuple[_PlacedPatterns, ...], *, reads_lists: bool
    ) -> None:
        self._excluded = excluded
        self._lists = lists  # the deepest comes first
        self._all = (*excluded, *lists)
        self._reads_lists = reads_lists
        self.are_empty: Final = not self._all
        """Whether only ``.git`` is left out."""

    @classmethod
    def at(cls, fs: SandboxFS, path: str, *, gitignore: bool = True, exclude: Sequence[str] = ()) -> IgnoreRules:
        """The rules in the start directory of a walk, to which the patterns in ``exclude`` are relative."""
        given = [line.encode() for line in exclude]
        if _weight(given) > MAX_WEIGHT:
            raise ToolFailed("TOO_LARGE", f"exclude has too many patterns and stars: at most {MAX_WEIGHT} in all")
        excluded = (_PlacedPatterns(Patterns(given)),) if given else ()
        return cls(excluded, _read_lists_above(fs, path) if gitignore else (), reads_lists=gitignore)

    def enter(self, folder: SandboxDir, steps: Sequence[str], names: EntryNames) -> IgnoreRules:
        """The rules in ``folder``, one step below the directory of these rules; ``names`` are its entries."""
        if not self._reads_lists or _LIST_NAME not in names.files:
            return self
        patterns = _read_list(folder)
        if patterns is None:
            return self
        return IgnoreRules(
            self._excluded, (_PlacedPatterns(patterns, depth=len(steps)), *self._lists), reads_lists=True
        )

    def keep(self, names: list[str], steps: Sequence[str], mark: bytes) -> list[str]:
        """Those of some names of a directory that are not left out; ``mark`` is ``DIRECTORY`` for directories, else empty."""
        suspects = [".git"] if ".git" in names else []
        for one in self._all:
            patterns = one.patterns
            suspects += patterns.suspects(names, one.way_to(steps) if patterns.look_at_paths else b"", mark)
        if not suspects:
            return names
        ignored = {name for name in suspects if self._is_ignored(raw_bytes(name), steps, mark)}
        return [name for name in names if name not in ignored]

    def _is_ignored(self, name: bytes, steps: Sequence[str], mark: bytes) -> bool:
        if name == b".git":
            return True
        for one in self._excluded:
            if one.patterns.decide(name, mark, partial(one.way_to, steps)):
                return True
        for one in self._lists:
            verdict = one.patterns.decide(name, mark, partial(one.way_to, steps))
            if verdict is not None:
                return verdict
        return False


def _read_lists_above(fs: SandboxFS, path: str) -> tuple[_PlacedPatterns, ...]:
    """The lists from the workspace root to the start of a walk, the deepest first."""
    parts = fs.path(path).parts
    above: list[tuple[_PlacedPatterns, ...]] = [_add_list_at(fs, ".", ())]
    for depth, name in enumerate(parts, start=1):
        if name != "..":
            lists = tuple(one._replace(lead=one.lead + raw_bytes(f"{name}/")) for one in above[-1])
            above.append(_add_list_at(fs, "/".join(parts[:depth]), lists))
        elif len(above) > 1:
            above.pop()
    return above[-1]


def _add_list_at(fs: SandboxFS, path: str, lists: tuple[_PlacedPatterns, ...]) -> tuple[_PlacedPatterns, ...]:
    try:
        with fs.open_dir(path) as folder:
            patterns = _read_list(folder)
    except (ToolFailed, SandboxViolation):
        return lists  # it can be traversed but not listed, or this call may not use it
    return lists if patterns is None else (_PlacedPatterns(patterns), *lists)


def _read_list(folder: SandboxDir) -> Patterns | None:
    """The patterns of the directory's ``.gitignore``; None if it is missing, unreadable, a link or too long."""
    try:
        data = folder.read_child_file(_LIST_NAME, MAX_LIST_BYTES)
    except (ToolFailed, SandboxViolation):
        return None
    lines = (data or b"").removeprefix(codecs.BOM_UTF8).split(b"\n")
    return Patterns(lines) if any(lines) and _weight(lines) <= MAX_WEIGHT else None


def _weight(lines: Sequence[bytes]) -> int:
    return len(lines) + sum(line.count(b"*") for line in lines)
