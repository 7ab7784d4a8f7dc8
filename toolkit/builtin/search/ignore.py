"""What a walk leaves out: ``.git``, what ``.gitignore`` files name, and what the caller excludes.

Limits: only ``.gitignore`` files from the workspace root down are read, not ``.git/info/exclude``, a user's global
list or the lists above the workspace. A walk that starts below a link sees the names it was given, not the link's
target. A start that is ignored itself is walked all the same: it was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from toolkit.builtin.search.patterns import DIRECTORY, Patterns
from toolkit.errors import ToolFailed

if TYPE_CHECKING:
    from toolkit.guard.fs import SandboxFS
    from toolkit.guard.handles import DirEntry, SandboxDir

# What is longer was not written by people. It is left unread, so that rather too much is shown than too little.
MAX_LIST_BYTES: Final = 256 * 1024
# Lines and stars: what it costs to get patterns ready. So many take about a second.
MAX_WEIGHT: Final = 10_000

_LIST_NAME: Final = ".gitignore"


class IgnoreRules:
    """The rules that hold in one directory. ``enter`` gives those of a directory in it; nothing here ever changes.

    Ask only about names in a directory that is not ignored itself: below one that is, everything is.
    """

    __slots__ = ("_excluded", "_lists", "_reads_lists")

    def __init__(
        self, excluded: tuple[Patterns, bytes], lists: tuple[tuple[Patterns, bytes], ...], *, reads_lists: bool
    ) -> None:
        # Each with the path from where its patterns stand to here; the deepest comes first.
        self._excluded = excluded
        self._lists = lists
        self._reads_lists = reads_lists

    @classmethod
    def at(cls, fs: SandboxFS, path: str, *, gitignore: bool = True, exclude: Sequence[str] = ()) -> IgnoreRules:
        """The rules in the directory a walk starts from; the patterns in ``exclude`` stand there."""
        given = [line.encode() for line in exclude]
        if _weight(given) > MAX_WEIGHT:
            raise ToolFailed("TOO_LARGE", f"exclude holds too many patterns or stars: at most {MAX_WEIGHT} of both")
        excluded = (Patterns(given), b"")
        nothing = cls(excluded, (), reads_lists=gitignore)
        if not gitignore:
            return nothing
        parts = fs.path(path).parts
        above = [nothing._opened(fs, ".")]
        for depth, name in enumerate(parts, start=1):
            if name != "..":
                above.append(above[-1]._below(name)._opened(fs, "/".join(parts[:depth])))
            elif len(above) > 1:
                above.pop()
        return cls(excluded, above[-1]._lists, reads_lists=True)

    def enter(self, folder: SandboxDir, name: str) -> IgnoreRules:
        """The rules in ``folder``, whose own raw name in this directory is ``name``."""
        return self._below(name)._with_list_of(folder)

    def ignored(self, entry: DirEntry) -> bool:
        """Whether to leave out an entry of this directory."""
        if entry.raw == ".git":
            return True
        name = _raw_bytes(entry.raw) + DIRECTORY * (entry.kind == "directory")
        patterns, way = self._excluded
        if patterns.decide(name, way + name):
            return True
        for patterns, way in self._lists:
            verdict = patterns.decide(name, way + name)
            if verdict is not None:
                return verdict
        return False

    def _below(self, name: str) -> IgnoreRules:
        step = _raw_bytes(name) + b"/"
        patterns, way = self._excluded
        lists = tuple((one, start + step) for one, start in self._lists)
        return IgnoreRules((patterns, way + step), lists, reads_lists=self._reads_lists)

    def _opened(self, fs: SandboxFS, path: str) -> IgnoreRules:
        try:
            with fs.open_dir(path) as folder:
                return self._with_list_of(folder)
        except ToolFailed:
            return self  # it can be passed through but not be looked into

    def _with_list_of(self, folder: SandboxDir) -> IgnoreRules:
        lines = _read_list(folder).split(b"\n") if self._reads_lists else []
        if not any(lines) or _weight(lines) > MAX_WEIGHT:
            return self
        return IgnoreRules(self._excluded, ((Patterns(lines), b""), *self._lists), reads_lists=True)


def _weight(lines: Sequence[bytes]) -> int:
    return len(lines) + sum(line.count(b"*") for line in lines)


def _raw_bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _read_list(folder: SandboxDir) -> bytes:
    """The directory's ``.gitignore``; empty if there is none, or one that is a link (as git has it) or too long."""
    try:
        # Any entry will do to make one that has the name: opening looks at nothing else.
        some = next(folder.entries(), None)
        if some is None:
            return b""
        with folder.open_child_file(replace(some, name=_LIST_NAME, raw=_LIST_NAME)) as file:
            data = file.read(MAX_LIST_BYTES + 1)
    except ToolFailed:
        return b""
    return b"" if len(data) > MAX_LIST_BYTES else data.removeprefix(b"\xef\xbb\xbf")
