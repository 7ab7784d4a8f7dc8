"""``grep``: matching lines in one file or in all files below a directory.

Each file is read once. Small ones are read as a whole, and most are ruled out by one search for a text that every match must
contain; large ones are read in chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from toolkit.builtin.files.whole_file import open_dir, open_file
from toolkit.builtin.search.ignored import IgnoreRules
from toolkit.builtin.search.lines import Hit, Search, decode_chunks, read_text
from toolkit.builtin.search.path_globs import PathMatcher, parse_any
from toolkit.builtin.search.regex import Matcher, compile
from toolkit.builtin.search.walk import Steps, Visit, Walk, denied_note
from toolkit.builtin.text.diff import format_count
from toolkit.builtin.text.encoding import marked_encoding
from toolkit.errors import SandboxViolation, ToolFailed
from toolkit.generated import GrepInput, GrepOutput
from toolkit.generated.models.grep import GrepOutputMatch
from toolkit.runtime.tool_context import ToolContext
from toolkit.visible import escape_hidden

if TYPE_CHECKING:
    from toolkit.guard.files.handles import OpenFile, SandboxDir

# Files up to this size are read as a whole.
_SMALL: Final = 256 * 1024
# Limit for the result, because matches can have many context lines.
_MAX_CHARACTERS: Final = 1024 * 1024
# How much more is read to count matches when there is no more room for them.
_MAX_COUNTED: Final = 256 * 1024 * 1024


def run(args: GrepInput, ctx: ToolContext) -> GrepOutput:
    finder = _Finder(args, compile(args.pattern, regex=args.regex, ignore_case=args.ignore_case))
    file_filter = _FileFilter(args)
    fs = ctx.fs
    walk: Walk | None = None
    try:
        start = open_dir(fs, args.path)
    except ToolFailed as error:
        if error.reason != "NOT_DIRECTORY":
            raise
        with open_file(fs, args.path) as file:
            finder.search_named_file(file)
    else:
        with start:
            rules = IgnoreRules.at(fs, args.path)
            walk = Walk(start, rules, include_hidden=False)
            finder.search_below(walk, file_filter)
    return finder.finish(walk)


class _FileFilter:
    """Selects the files to search by their paths."""

    def __init__(self, args: GrepInput) -> None:
        exclude = _as_list(args.exclude)
        self._include = parse_any(_as_list(args.include))
        self._exclude = parse_any([pattern for pattern in exclude if not pattern.endswith("/")])
        self._exclude_directories = parse_any([pattern.rstrip("/") for pattern in exclude])

    def files(self, visit: Visit) -> list[str]:
        """The selected files of a directory, in order; also removes excluded directories from the walk."""
        steps = visit.steps
        files = visit.files if self._include is None else self._include.matching(steps, visit.files)
        if self._exclude_directories is not None:
            visit.directories = _without(self._exclude_directories, steps, visit.directories)
        return sorted(visit.keep(files if self._exclude is None else _without(self._exclude, steps, files)))


def _as_list(patterns: str | Sequence[str]) -> Sequence[str]:
    return [patterns] if isinstance(patterns, str) else patterns


def _without(exclude: PathMatcher, steps: Steps, names: list[str]) -> list[str]:
    excluded = set(exclude.matching(steps, names))
    return [name for name in names if name not in excluded]


class _Finder:
    """Collects matches until there is no more room, then counts the rest within a budget."""

    def __init__(self, args: GrepInput, matcher: Matcher) -> None:
        self._mode = args.output
        self._matcher = matcher
        self._search = Search(matcher, before=args.before, after=args.after, wanted=args.limit, room=_MAX_CHARACTERS)
        self._limit = args.limit
        self._left_to_count = _MAX_COUNTED
        self._matches: list[GrepOutputMatch] = []
        self._files_found = 0
        self._files_searched = 0

    def search_below(self, walk: Walk, file_filter: _FileFilter) -> None:
        """Search every selected file of the walk; files that vanished or may not be read are skipped."""
        for visit in walk:
            for name in file_filter.files(visit):
                if self._left_to_count < 0:
                    return
                try:  # costs nothing per file, unlike suppress
                    self._search_child(visit.folder, name)
                except (ToolFailed, SandboxViolation):
                    continue

    def search_named_file(self, file: OpenFile) -> None:
        """Search the one file that was requested."""
        text = read_text(file)
        if text is None:
            message = f"'{file.path}' is not a text file: it has NUL bytes near its start ({file.size} bytes in all)"
            raise ToolFailed("BINARY_NOT_SUPPORTED", message, path=file.path, size=file.size)
        self._search_text(file.path, text)

    def _search_child(self, folder: SandboxDir, name: str) -> None:
        data = folder.read_child_file(name, _SMALL)
        if data is None:
            with folder.open_child_file(name) as file:
                text = read_text(file)
                if text is not None:
                    self._search_text(file.path, text)
        elif marked_encoding(data) is not None:
            text = decode_chunks([data])
            if text is not None:
                self._search_text(folder.path_of(name), text)
        elif b"\0" not in data:
            if self._matcher.may_match(data):
                self._search_text(folder.path_of(name), [data])
            else:
                self._files_searched += 1

    def _search_text(self, path: str, text: Iterable[bytes]) -> None:
        self._files_searched += 1
        if self._mode == "content":
            for hit in self._search.hits(self._charge(text)):
                self._add(path, hit)
        else:
            self._search_first(path, self._charge(text))

    def _search_first(self, path: str, text: Iterable[bytes]) -> None:
        search = Search(self._matcher, wanted=1)
        hits = search.hits(text)
        first = next(hits, None)
        if first is None:
            return
        self._files_found += 1
        if self._is_full:
            return
        if self._mode == "files":
            self._add(path, first)
            return
        for _ in hits:
            pass  # none are returned, but reading to the end counts them
        self._add(path, first, count=search.total)

    def _add(self, path: str, hit: Hit, **count: int) -> None:
        match = GrepOutputMatch(
            path=path, line=hit.line, column=hit.column, text=hit.text, before=hit.before, after=hit.after, **count
        )
        self._matches.append(match)

    @property
    def _is_full(self) -> bool:
        return self._search.is_full or len(self._matches) >= self._limit

    def _charge(self, text: Iterable[bytes]) -> Iterator[bytes]:
        for piece in text:
            if self._is_full:
                self._left_to_count -= len(piece)
                if self._left_to_count < 0:
                    return
            yield piece

    def finish(self, walk: Walk | None) -> GrepOutput:
        """The result; ``walk`` is None if a single file was searched."""
        total = self._search.total if self._mode == "content" else self._files_found
        is_complete = self._left_to_count >= 0 and not (walk and walk.is_cut)
        return GrepOutput(
            output=self._mode,
            matches=self._matches,
            files_searched=self._files_searched,
            hidden=walk.hidden if walk else 0,
            truncated=not is_complete or total > len(self._matches),
            total=total if is_complete else None,
        )


def text(output: GrepOutput) -> str:
    if output.output == "content":
        rows = list(_content_rows(output.matches))
    elif output.output == "files":
        rows = [match.path for match in output.matches]
    else:
        rows = [f"{match.path}: {match.count}" for match in output.matches]
    notes = [_summary(output), *denied_note(output.hidden)]
    if output.truncated:
        notes.append("raise limit, or narrow pattern, path or include")
    return "\n".join([*rows, f"[{'; '.join(notes)}]"])


def _content_rows(matches: Sequence[GrepOutputMatch]) -> Iterator[str]:
    """Each path once, then its lines: a colon marks matches, a hyphen context lines."""
    has_gaps = any(match.before or match.after for match in matches)
    for number, (path, some) in enumerate(groupby(matches, key=lambda match: match.path)):
        if number:
            yield ""
        yield path
        rows: dict[int, str] = {}
        for match in some:
            around = enumerate((*match.before, match.text, *match.after), match.line - len(match.before))
            for line, row in around:
                rows.setdefault(line, f"{line}-{escape_hidden(row)}")
            rows[match.line] = f"{match.line}:{escape_hidden(match.text)}"
        last = min(rows)
        for line in sorted(rows):
            if has_gaps and line > last + 1:
                yield "--"
            yield rows[line]
            last = line


def _summary(output: GrepOutput) -> str:
    shown, searched = len(output.matches), format_count(output.files_searched, "file")
    what = ("match", "matches") if output.output == "content" else ("file", "files")
    if not output.files_searched:
        return "no file to search: hidden, binary and git-ignored files are skipped unless path names them"
    if output.truncated and output.total is None:
        return f"the first {format_count(shown, *what)}, {searched} searched so far"
    if output.truncated:
        return f"the first {shown} of {format_count(output.total or 0, *what)}"
    if not shown:
        return f"no match in {searched}"
    if output.output != "content":
        return f"{shown} of {searched} searched"
    return f"{format_count(shown, *what)}, {searched} searched"
