"""``glob``: files whose paths match a pattern, most recently modified first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from heapq import nsmallest
from typing import TYPE_CHECKING, Final

from toolkit.builtin.files.open_with_hint import open_dir
from toolkit.builtin.search.ignore_rules import IgnoreRules
from toolkit.builtin.search.path_globs import Glob, parse_glob
from toolkit.builtin.search.walk import MAX_ENTRIES, Visit, Walk, denied_note
from toolkit.generated import GlobInput, GlobOutput
from toolkit.runtime.context.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.guard.fs.sandbox_fs import SandboxFS

_NOTHING: Final = (
    "no file matches; without ** a pattern covers one level, [ ] is a set of characters unless escaped by a backslash, "
    "and hidden and git-ignored files are left out by default"
)


def run(args: GlobInput, ctx: ToolContext) -> GlobOutput:
    fs = ctx.fs
    glob = parse_glob(_make_relative(fs, args), include_hidden=args.include_hidden)
    with open_dir(fs, args.path) as start:
        rules = IgnoreRules.at(fs, args.path, gitignore=args.respect_gitignore)
        walk = Walk(start, rules, include_hidden=args.include_hidden or glob.has_dots)
        found = _FoundFiles(walk, glob)
        newest = nsmallest(args.limit, found)
    return GlobOutput(
        paths=[path for _, path in newest],
        truncated=walk.is_cut or found.total > len(newest),
        total=found.total,
        hidden=walk.hidden,
    )


def _make_relative(fs: SandboxFS, args: GlobInput) -> str:
    """The pattern relative to ``path``; an absolute one below it is accepted, as other tools accept such paths."""
    if not args.pattern.startswith("/"):
        return args.pattern
    pattern, start = fs.path(args.pattern), fs.path(args.path)
    depth = len(start.parts)
    if pattern.root != start.root or pattern.parts[:depth] != start.parts:
        return args.pattern
    return "/".join((*pattern.parts[depth:], *(["**"] if pattern.wants_directory else [])))


class _FoundFiles:
    """Iterates over matches as keys that sort the newest first; ``total`` counts them."""

    def __init__(self, walk: Walk, glob: Glob) -> None:
        self._walk = walk
        self._glob = glob
        self.total = 0

    def __iter__(self) -> Iterator[tuple[int, str]]:
        for visit in self._walk:
            folder, steps, names = visit
            if len(steps) >= len(self._glob.names):
                matching = self._glob.matching(steps, names.files + names.symlinks)
                for name, changed in folder.changed_ns(matching).items() if matching else ():
                    self.total += 1
                    yield -changed, folder.path_of(name)
            self._prune(visit)

    def _prune(self, visit: Visit) -> None:
        """Skip directories below which nothing can match."""
        if len(visit.steps) < len(self._glob.names) or self._glob.depth < math.inf:
            directories = visit.names.directories
            directories[:] = [name for name in directories if self._glob.can_match_below((*visit.steps, name))]


def text(output: GlobOutput) -> str:
    notes = denied_note(output.hidden)
    if output.total > len(output.paths):
        notes = [f"the newest {len(output.paths)} of {output.total}; narrow the pattern or raise limit", *notes]
    elif output.truncated:
        notes = [f"there may be more: the search stopped after {MAX_ENTRIES} entries; start in a subdirectory", *notes]
    if not output.paths:
        notes = [_NOTHING, *notes]
    return "\n".join([*output.paths, f"[{'; '.join(notes)}]"] if notes else output.paths)
