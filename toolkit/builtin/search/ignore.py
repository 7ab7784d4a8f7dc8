"""What a walk leaves out: ``.git``, what ``.gitignore`` files name, and what the caller excludes.

Limits: only ``.gitignore`` files from the workspace root down are read, not ``.git/info/exclude``, a user's global
list or the lists above the workspace. A walk that starts below a link sees the names it was given, not the link's
target. A start that is ignored itself is walked all the same: it was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from toolkit.builtin.search.gitignore import DIRECTORY, Patterns, raw_bytes
from toolkit.errors import SandboxViolation, ToolFailed

if TYPE_CHECKING:
    from toolkit.guard.fs.handles import EntryNames, SandboxDir
    from toolkit.guard.fs.sandbox_fs import SandboxFS

# What is longer was not written by people. It is left unread, so that rather too much is shown than too little.
MAX_LIST_BYTES: Final = 256 * 1024
# Lines and stars: what it costs to get patterns ready. So many take about a second.
MAX_WEIGHT: Final = 10_000

_LIST_NAME: Final = ".gitignore"


class _Standing(NamedTuple):
    """Patterns, and where they stand: above the start of a walk by ``lead``, or below it by so many steps."""

    patterns: Patterns
    lead: bytes = b""
    depth: int = 0

    def way_to(self, steps: Sequence[str]) -> bytes:
        """The path from there to the directory that the steps lead to, with a slash at its end."""
        return self.lead + raw_bytes("".join([f"{step}/" for step in steps[self.depth :]]))


class IgnoreRules:
    """The rules that hold in some directories of a walk; nothing here ever changes.

    ``steps`` are always the raw names that lead from the start of the walk to a directory. Ask only about directories
    that are not ignored themselves: below one that is, everything is.
    """

    __slots__ = ("_all", "_excluded", "_lists", "_reads_lists")

    def __init__(self, excluded: tuple[_Standing, ...], lists: tuple[_Standing, ...], *, reads_lists: bool) -> None:
        self._excluded = excluded
        self._lists = lists  # the deepest comes first
        self._all = (*excluded, *lists)
        self._reads_lists = reads_lists

    @classmethod
    def at(cls, fs: SandboxFS, path: str, *, gitignore: bool = True, exclude: Sequence[str] = ()) -> IgnoreRules:
        """The rules in the directory a walk starts from; the patterns in ``exclude`` stand there."""
        given = [line.encode() for line in exclude]
        if _weight(given) > MAX_WEIGHT:
            raise ToolFailed("TOO_LARGE", f"exclude holds too many patterns or stars: at most {MAX_WEIGHT} of both")
        excluded = (_Standing(Patterns(given)),) if given else ()
        return cls(excluded, _lists_down_to(fs, path) if gitignore else (), reads_lists=gitignore)

    @property
    def are_empty(self) -> bool:
        """Whether nothing but ``.git`` is left out here."""
        return not self._all

    def enter(self, folder: SandboxDir, steps: Sequence[str], names: EntryNames) -> IgnoreRules:
        """The rules in ``folder``, one step below a directory that has these, which holds ``names``."""
        if not self._reads_lists or _LIST_NAME not in names.files:
            return self
        patterns = _read_list(folder)
        if patterns is None:
            return self
        return IgnoreRules(self._excluded, (_Standing(patterns, depth=len(steps)), *self._lists), reads_lists=True)

    def kept(self, names: EntryNames, steps: Sequence[str]) -> EntryNames:
        """Those names of a directory that are not left out."""
        directories, files, symlinks, others = names
        return type(names)(
            self._kept(directories, steps, DIRECTORY) if directories else directories,
            self._kept(files, steps, b"") if files else files,
            self._kept(symlinks, steps, b"") if symlinks else symlinks,
            self._kept(others, steps, b"") if others else others,
        )

    def _kept(self, names: list[str], steps: Sequence[str], mark: bytes) -> list[str]:
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


def _lists_down_to(fs: SandboxFS, path: str) -> tuple[_Standing, ...]:
    """The lists from the workspace root to the start of a walk, the deepest first."""
    parts = fs.path(path).parts
    above: list[tuple[_Standing, ...]] = [_with_list_at(fs, ".", ())]
    for depth, name in enumerate(parts, start=1):
        if name != "..":
            lists = tuple(one._replace(lead=one.lead + raw_bytes(f"{name}/")) for one in above[-1])
            above.append(_with_list_at(fs, "/".join(parts[:depth]), lists))
        elif len(above) > 1:
            above.pop()
    return above[-1]


def _with_list_at(fs: SandboxFS, path: str, lists: tuple[_Standing, ...]) -> tuple[_Standing, ...]:
    try:
        with fs.open_dir(path) as folder:
            patterns = _read_list(folder)
    except ToolFailed:
        return lists  # it can be passed through but not be looked into
    return lists if patterns is None else (_Standing(patterns), *lists)


def _read_list(folder: SandboxDir) -> Patterns | None:
    """The directory's ``.gitignore``; None if there is none that may be read, or one that is a link or too long."""
    try:
        data = folder.read_child_file(_LIST_NAME, MAX_LIST_BYTES)
    except (ToolFailed, SandboxViolation):
        return None
    lines = (data or b"").removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return Patterns(lines) if any(lines) and _weight(lines) <= MAX_WEIGHT else None


def _weight(lines: Sequence[bytes]) -> int:
    return len(lines) + sum(line.count(b"*") for line in lines)
