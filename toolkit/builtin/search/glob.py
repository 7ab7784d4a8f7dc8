"""``glob``: files whose paths match a pattern, most recently modified first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from toolkit.builtin.files.whole_file import open_dir
from toolkit.builtin.search.ignored import IgnoreRules
from toolkit.builtin.search.path_globs import Glob, parse_glob
from toolkit.builtin.search.walk import MAX_ENTRIES, Walk, denied_note
from toolkit.generated import GlobInput, GlobOutput
from toolkit.runtime.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.files.sandbox_fs import SandboxFS
    from toolkit.guard.files.handles import SandboxDir

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
        newest = _Newest(args.limit)
        _find(walk, glob, newest)
    paths = newest.paths()
    return GlobOutput(
        paths=paths,
        truncated=walk.is_cut or newest.total > len(paths),
        total=newest.total,
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


class _Newest:
    """The matches of a walk: ``total`` counts all, ``paths`` are the newest, at most ``limit``, the newest first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._found: list[tuple[int, str]] = []
        self._oldest = -math.inf  # older matches are certainly not among the newest
        self.total = 0

    def add(self, folder: SandboxDir, names: list[str]) -> None:
        times = folder.changed_ns(names)
        self.total += len(times)
        for name, changed in times.items():
            if changed >= self._oldest:
                self._found.append((-changed, folder.path_of(name)))
        if len(self._found) > 2 * self._limit:
            self._cut()
            self._oldest = -self._found[-1][0]

    def paths(self) -> list[str]:
        self._cut()
        return [path for _, path in self._found]

    def _cut(self) -> None:
        self._found.sort()
        del self._found[self._limit :]


def _find(walk: Walk, glob: Glob, newest: _Newest) -> None:
    depth = len(glob.names)
    is_shallow = glob.depth < math.inf
    for visit in walk:
        steps = visit.steps
        if len(steps) >= depth:
            candidates = visit.files + visit.symlinks if visit.symlinks else visit.files
            matching = glob.matching(steps, candidates) if candidates else candidates
            # The rules look at what matches only; most patterns leave few names of a directory.
            if matching and (matching := visit.keep(matching)):
                newest.add(visit.folder, matching)
        if is_shallow or len(steps) < depth:
            # Skip directories below which nothing can match.
            visit.directories = [name for name in visit.directories if glob.can_match_below((*steps, name))]


def text(output: GlobOutput) -> str:
    notes = denied_note(output.hidden)
    if output.total > len(output.paths):
        notes = [f"the newest {len(output.paths)} of {output.total}; narrow the pattern or raise limit", *notes]
    elif output.truncated:
        notes = [f"there may be more: the search stopped after {MAX_ENTRIES} entries; start in a subdirectory", *notes]
    if not output.paths:
        notes = [_NOTHING, *notes]
    return "\n".join([*output.paths, f"[{'; '.join(notes)}]"] if notes else output.paths)
