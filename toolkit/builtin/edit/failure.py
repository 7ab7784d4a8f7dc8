"""Errors for an edit with no match or too many, detailed enough to retry without reading the file again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from toolkit.builtin.files.replacement import (
    Matches,
    find_by_lines,
    find_exact,
    has_too_many_lines,
    line_ranges,
)
from toolkit.builtin.text.copy_hints import copy_hints
from toolkit.builtin.text.similar import Region, nearest_regions
from toolkit.errors import ToolFailed
from toolkit.visible import escape_hidden

if TYPE_CHECKING:
    from toolkit.generated import EditInput

MAX_RANGES: Final = 100
MAX_SHOWN_LINES: Final = 12
MAX_SHOWN_CHARACTERS: Final = 200

# A shorter text may occur by chance.
_MIN_SIGNIFICANT: Final = 10


def ambiguous(path: str, text: str, matches: Matches) -> ToolFailed:
    """Several matches where one was expected."""
    if matches.mode == "block-anchor":
        way_out = "give old_string exactly as it is in the file"
    else:
        way_out = "add surrounding lines to old_string, or set replace_all"
    ranges = line_ranges(text, matches.spans(), MAX_RANGES)
    what = f"{_times(matches)} in '{path}', at {_format_ranges(ranges, matches.count)}"
    if matches.count == 1:
        what = f"at overlapping places in '{path}', from line {ranges[0][0]} on"
    message = f"old_string occurs {what}; {way_out}. Nothing was changed"
    return ToolFailed("AMBIGUOUS", message, path=path, count=matches.count, ranges=ranges)


def unexpected_count(path: str, text: str, matches: Matches, expected: int | None) -> ToolFailed:
    """A different number of matches than the caller expects."""
    ranges = line_ranges(text, matches.spans(), MAX_RANGES)
    message = (
        f"old_string occurs {_times(matches)} in '{path}', at {_format_ranges(ranges, matches.count)}, but"
        f" expected_replacements is {expected}. Nothing was changed"
    )
    return ToolFailed("AMBIGUOUS", message, path=path, count=matches.count, ranges=ranges)


def not_found(args: EditInput, path: str, text: str, old: str) -> ToolFailed:
    """No match; shows the most similar places and possible reasons."""
    only_exact = args.match_mode == "exact" or has_too_many_lines(text)
    regions = [] if has_too_many_lines(text) else nearest_regions(text.replace("\r\n", "\n"), old)
    tried = "" if only_exact else ", not even with different whitespace or as a similar block"
    rows = [f"old_string was not found in '{path}'{tried}. Nothing was changed.", *_reasons(args, text, old)]
    if not text.strip():
        rows.append("The file is empty: use write_file.")
    elif has_too_many_lines(text):
        rows.append("The file has too many lines to search for similar ones: read the relevant part again.")
    elif not regions:
        rows.append("Nothing in the file is similar: read the file again.")
    for number, region in enumerate(regions):
        at = _format_ranges([(region.first_line, region.last_line)], 1)
        rows.append(f"{'Most similar: ' if not number else 'Also similar: '}{at}, {region.similarity:.0%} similar")
        rows += _region_rows(region, old, 3 if number else MAX_SHOWN_LINES)
    nearest = [
        {"first_line": region.first_line, "last_line": region.last_line, "similarity": round(region.similarity, 2)}
        for region in regions
    ]
    return ToolFailed("NO_MATCH", "\n".join(rows), path=path, nearest=nearest)


def _reasons(args: EditInput, text: str, old: str) -> Iterator[str]:
    yield from copy_hints(text, old.removesuffix("\n").split("\n"), "leave them out of old_string")
    by_lines = find_by_lines(text, old) if args.match_mode == "exact" else None
    if by_lines is not None:
        ranges = line_ranges(text, by_lines.spans(), 1)
        yield f"match_mode auto would match {_format_ranges(ranges, by_lines.count)} ({by_lines.mode} match)."
    new = args.new_string.replace("\r\n", "\n")
    present = find_exact(text, new) if len(new.strip()) >= _MIN_SIGNIFICANT else None
    if present is not None:
        ranges = line_ranges(text, present.spans(), MAX_RANGES)
        yield f"new_string already occurs, at {_format_ranges(ranges, present.count)}: was the change made before?"


def _region_rows(region: Region, old: str, most: int) -> Iterator[str]:
    """Numbered lines of the file, starting shortly before the first one that differs from the wanted text."""
    wanted = old.strip("\n").split("\n")
    pairs = zip(wanted, region.lines, strict=True)
    differs = next((at for at, (one, other) in enumerate(pairs) if one.strip() != other.strip()), 0)
    start = max(0, min(differs - 2, len(region.lines) - most))
    for number, line in enumerate(region.lines[start : start + most], region.first_line + start):
        readable = _clip(line, region.column).encode(errors="surrogateescape").decode(errors="backslashreplace")
        yield f"{number:>6}\t{escape_hidden(readable)}"


def _clip(line: str, column: int) -> str:
    if len(line) <= MAX_SHOWN_CHARACTERS:
        return line
    start = max(0, column - MAX_SHOWN_CHARACTERS // 4)
    return f"{'…' * (start > 0)}{line[start : start + MAX_SHOWN_CHARACTERS]}…"


def _times(matches: Matches) -> str:
    return "once" if matches.count == 1 else f"{matches.count} times"


def _format_ranges(ranges: Sequence[tuple[int, int]], count: int) -> str:
    """``line 3``, ``lines 3-5 and 9``; if there are very many, only the first ones."""
    shown = list(dict.fromkeys(str(first) if first == last else f"{first}-{last}" for first, last in ranges))
    noun = "line" if len(shown) == 1 and shown[0].isdecimal() else "lines"
    if count > len(ranges):
        return f"{noun} {', '.join(shown)} and {count - len(ranges)} more places"
    *rest, last = shown
    return f"{noun} {', '.join(rest)} and {last}" if rest else f"{noun} {last}"
