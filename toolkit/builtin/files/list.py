"""``list``: the entries of a directory, or of everything below it, sorted by path."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush, nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from toolkit.builtin.files.whole_file import open_dir
from toolkit.builtin.search.walk import denied_note, is_hidden, join_path, open_below
from toolkit.errors import SandboxViolation, ToolFailed
from toolkit.generated import ListInput, ListOutput
from toolkit.generated.models.list import ListOutputEntry
from toolkit.runtime.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.guard.files.handles import DirEntry, SandboxDir

_Steps: TypeAlias = "tuple[DirEntry, ...]"
"""The way from the start to an entry: the directories above it, and the entry itself."""

_MARKS: Final = {"file": "f", "directory": "d", "symlink": "l", "other": "o"}


def run(args: ListInput, ctx: ToolContext) -> ListOutput:
    with open_dir(ctx.fs, args.path) as start:
        listing = _Listing(start, args)
        found = list(islice(listing.sorted_entries(), args.limit + 1))
        entries = [_to_output(path, entry) for path, entry in found[: args.limit]]
        return ListOutput(path=start.path, entries=entries, truncated=len(found) > args.limit, hidden=listing.hidden)


class _Listing:
    """Lists entries; ``hidden`` counts those that deny and ask rules left out of the directories that were opened."""

    def __init__(self, start: SandboxDir, args: ListInput) -> None:
        self._start = start
        self._args = args
        self.hidden = 0

    def sorted_entries(self) -> Iterator[tuple[str, DirEntry]]:
        """Every entry with its path, smallest path first; a directory is opened only when its turn comes.

        A directory is queued twice: as an entry, and under its path with a slash, where its own entries sort. Between
        the two come names such as ``src.txt``, which sort before ``src/``.
        """
        queue: list[tuple[str, tuple[str, ...], _Steps]] = []

        def enqueue(path: str, steps: _Steps) -> None:
            # Raw names distinguish entries that are displayed alike.
            heappush(queue, (path, tuple(step.raw for step in steps), steps))

        for entry in self._first_entries(self._start):
            enqueue(join_path(self._start.path, entry.name), (entry,))
        while queue:
            path, _, steps = heappop(queue)
            if path.endswith("/"):
                for entry in self._entries_below(steps):
                    enqueue(path + entry.name, (*steps, entry))
                continue
            entry = steps[-1]
            yield path, entry
            if self._args.recursive and entry.kind == "directory" and entry.raw != ".git":
                enqueue(path + "/", steps)

    def _entries_below(self, steps: _Steps) -> list[DirEntry]:
        try:
            with open_below(self._start, steps) as folder:
                return self._first_entries(folder)
        except (ToolFailed, SandboxViolation):
            return []  # deleted concurrently, or not readable

    def _first_entries(self, folder: SandboxDir) -> list[DirEntry]:
        """At most as many entries as can be listed, so that a huge directory is never held in memory."""
        visible = (entry for entry in folder.entries() if self._args.include_hidden or not is_hidden(entry))
        first = nsmallest(self._args.limit + 1, visible, key=lambda entry: (entry.name, entry.raw))
        self.hidden += folder.hidden
        return first


def _to_output(path: str, entry: DirEntry) -> ListOutputEntry:
    size = entry.size if entry.kind == "file" else 0
    return ListOutputEntry(name=entry.name, path=path, kind=entry.kind, size=size, mtime=entry.mtime_ns / 1e9)


def text(output: ListOutput) -> str:
    rows = [_format_entry(entry) for entry in output.entries]
    notes = denied_note(output.hidden)
    if not rows:
        notes = ["no entries", *notes, "set include_hidden to list hidden ones"]
    elif output.truncated:
        notes = [f"the first {len(rows)} entries", *notes, "there are more: raise limit or list a subdirectory"]
    return "\n".join([*rows, f"[{'; '.join(notes)}]"] if notes else rows)


def _format_entry(entry: ListOutputEntry) -> str:
    size = str(entry.size) if entry.kind == "file" else "-"
    slash = "/" if entry.kind == "directory" else ""
    return f"{_MARKS[entry.kind]} {size:>8} {entry.path}{slash}"
