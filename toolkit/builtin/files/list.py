"""``list``: the entries of a directory, or of everything below it, in the order of their paths."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush, nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from generated import ListInput, ListOutput
from generated.models.list import ListOutputEntry
from toolkit.builtin.files.opening import open_dir
from toolkit.builtin.search.walk import is_hidden, join, open_below
from toolkit.errors import ToolFailed
from toolkit.runtime.context import ToolContext

if TYPE_CHECKING:
    from toolkit.guard.handles import DirEntry, SandboxDir

_Steps: TypeAlias = "tuple[DirEntry, ...]"
"""How to get to an entry from the start: the directories above it, and the entry itself."""

_MARKS: Final = {"file": "f", "directory": "d", "symlink": "l", "other": "o"}


def run(args: ListInput, ctx: ToolContext) -> ListOutput:
    with open_dir(ctx.fs, args.path) as start:
        found = list(islice(_in_order(start, args), args.limit + 1))
        entries = [_row(path, entry) for path, entry in found[: args.limit]]
        return ListOutput(path=start.path, entries=entries, truncated=len(found) > args.limit)


def _in_order(start: SandboxDir, args: ListInput) -> Iterator[tuple[str, DirEntry]]:
    """Every entry with its path, smallest path first; a directory is opened only when its turn comes.

    A directory waits twice: as an entry, and under its path with a slash, below which all that it holds will sort.
    Between the two come names such as ``src.txt``, which are smaller than ``src/``.
    """
    waiting: list[tuple[str, tuple[str, ...], _Steps]] = []

    def wait(path: str, steps: _Steps) -> None:
        # The raw names keep apart what looks the same.
        heappush(waiting, (path, tuple(step.raw for step in steps), steps))

    for entry in _first_entries(start, args):
        wait(join(start.path, entry.name), (entry,))
    while waiting:
        path, _, steps = heappop(waiting)
        if path.endswith("/"):
            for entry in _entries_below(start, steps, args):
                wait(path + entry.name, (*steps, entry))
            continue
        entry = steps[-1]
        yield path, entry
        if args.recursive and entry.kind == "directory" and entry.raw != ".git":
            wait(path + "/", steps)


def _entries_below(start: SandboxDir, steps: _Steps, args: ListInput) -> list[DirEntry]:
    try:
        with open_below(start, steps) as folder:
            return _first_entries(folder, args)
    except ToolFailed:
        return []  # gone by now, or not ours to look into


def _first_entries(folder: SandboxDir, args: ListInput) -> list[DirEntry]:
    """As many entries as could be listed at most, so that a huge directory is never held as a whole."""
    shown = (entry for entry in folder.entries() if args.include_hidden or not is_hidden(entry))
    return nsmallest(args.limit + 1, shown, key=lambda entry: (entry.name, entry.raw))


def _row(path: str, entry: DirEntry) -> ListOutputEntry:
    size = entry.size if entry.kind == "file" else 0
    return ListOutputEntry(name=entry.name, path=path, kind=entry.kind, size=size, mtime=entry.mtime_ns / 1e9)


def text(output: ListOutput) -> str:
    rows = [_shown(entry) for entry in output.entries]
    if not rows:
        return "[no entries; hidden ones are listed with include_hidden]"
    if output.truncated:
        rows.append(f"[the first {len(rows)} entries; there are more: raise limit or list a directory below]")
    return "\n".join(rows)


def _shown(entry: ListOutputEntry) -> str:
    size = str(entry.size) if entry.kind == "file" else "-"
    slash = "/" if entry.kind == "directory" else ""
    return f"{_MARKS[entry.kind]} {size:>8} {entry.path}{slash}"
