"""Why an edit found nothing, or too much: texts a model can act on at once, without reading the file again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from toolkit.builtin.edit.find import Matches, find_by_lines, find_exact, has_too_many_lines, line_ranges
from toolkit.builtin.text.similar import Region, nearest_regions
from toolkit.errors import ToolFailed
from toolkit.visible import escape_hidden

if TYPE_CHECKING:
    from toolkit.generated import EditInput

MAX_RANGES: Final = 100
MAX_SHOWN_LINES: Final = 12
MAX_SHOWN_CHARACTERS: Final = 200

_NUMBERED: Final = re.compile(r"\s*\d+\t")
_UNREADABLE: Final = re.compile("[\udc80-\udcff]")
# A shorter text may well stand somewhere by chance.
_MIN_TELLING: Final = 10


def ambiguous(path: str, text: str, matches: Matches) -> ToolFailed:
    """Several places where one was meant."""
    if matches.mode == "block-anchor":
        way_out = "give old_string exactly as it stands in the file"
    else:
        way_out = "add lines around the one you mean, or set replace_all"
    ranges = line_ranges(text, matches.spans(), MAX_RANGES)
    what = f"{_times(matches)} in '{path}', at {_lines(ranges, matches.count)}"
    if matches.count == 1:
        what = f"in '{path}' at places that overlap, from line {ranges[0][0]} on"
    words = f"old_string stands {what}; {way_out}. Nothing was changed"
    return ToolFailed("AMBIGUOUS", words, path=path, count=matches.count, ranges=ranges)


def unexpected_count(path: str, text: str, matches: Matches, expected: int | None) -> ToolFailed:
    """Another number of places than the caller counted on."""
    ranges = line_ranges(text, matches.spans(), MAX_RANGES)
    words = (
        f"old_string stands {_times(matches)} in '{path}', at {_lines(ranges, matches.count)}, not {expected} times as"
        " expected_replacements says. Nothing was changed"
    )
    return ToolFailed("AMBIGUOUS", words, path=path, count=matches.count, ranges=ranges)


def not_found(args: EditInput, path: str, text: str, old: str) -> ToolFailed:
    """No place at all; shows the most similar ones and says what may have gone wrong."""
    only_exact = args.match_mode == "exact" or has_too_many_lines(text)
    regions = [] if has_too_many_lines(text) else nearest_regions(text.replace("\r\n", "\n"), old)
    tried = "" if only_exact else ", not even with other whitespace or as a similar block"
    rows = [f"old_string was not found in '{path}'{tried}. Nothing was changed.", *_reasons(args, text, old)]
    if not text.strip():
        rows.append("The file is empty: write_file fills it.")
    elif has_too_many_lines(text):
        rows.append("The file has too many lines to look for similar ones: read the part you mean again.")
    elif not regions:
        rows.append("Nothing in the file is like it: read the file again.")
    for number, region in enumerate(regions):
        at = _lines([(region.first_line, region.last_line)], 1)
        rows.append(f"{'Most similar: ' if not number else 'Also similar: '}{at}, {region.similarity:.0%} alike")
        rows += _shown(region, old, 3 if number else MAX_SHOWN_LINES)
    nearest = [
        {"first_line": region.first_line, "last_line": region.last_line, "similarity": round(region.similarity, 2)}
        for region in regions
    ]
    return ToolFailed("NO_MATCH", "\n".join(rows), path=path, nearest=nearest)


def _reasons(args: EditInput, text: str, old: str) -> Iterator[str]:
    if all(_NUMBERED.match(line) for line in old.removesuffix("\n").split("\n")):
        yield "Leave out the line numbers: they are not in the file."
    if "\ufffd" in old and _UNREADABLE.search(text):
        yield "The file has bytes that are not UTF-8, which read_file shows as \ufffd: leave them out of old_string."
    other_way = find_by_lines(text, old) if args.match_mode == "exact" else None
    if other_way is not None:
        ranges = line_ranges(text, other_way.spans(), 1)
        yield f"match_mode auto would take {_lines(ranges, other_way.count)} ({other_way.mode} match)."
    new = args.new_string.replace("\r\n", "\n")
    there = find_exact(text, new) if len(new.strip()) >= _MIN_TELLING else None
    if there is not None:
        ranges = line_ranges(text, there.spans(), MAX_RANGES)
        yield f"new_string stands there already, at {_lines(ranges, there.count)}: was the change made before?"


def _shown(region: Region, old: str, most: int) -> Iterator[str]:
    """Numbered lines of the file, from shortly before the first one that differs from what was looked for."""
    wanted = old.strip("\n").split("\n")
    pairs = zip(wanted, region.lines, strict=True)
    differs = next((at for at, (one, other) in enumerate(pairs) if one.strip() != other.strip()), 0)
    start = max(0, min(differs - 2, len(region.lines) - most))
    for number, line in enumerate(region.lines[start : start + most], region.first_line + start):
        readable = _clipped(line, region.column).encode(errors="surrogateescape").decode(errors="backslashreplace")
        yield f"{number:>6}\t{escape_hidden(readable)}"


def _clipped(line: str, column: int) -> str:
    if len(line) <= MAX_SHOWN_CHARACTERS:
        return line
    start = max(0, column - MAX_SHOWN_CHARACTERS // 4)
    return f"{'…' * (start > 0)}{line[start : start + MAX_SHOWN_CHARACTERS]}…"


def _times(matches: Matches) -> str:
    return "once" if matches.count == 1 else f"{matches.count} times"


def _lines(ranges: Sequence[tuple[int, int]], count: int) -> str:
    """``line 3``, ``lines 3-5 and 9``; of a great many places the first ones."""
    words = list(dict.fromkeys(str(first) if first == last else f"{first}-{last}" for first, last in ranges))
    noun = "line" if len(words) == 1 and words[0].isdecimal() else "lines"
    if count > len(ranges):
        return f"{noun} {', '.join(words)} and {count - len(ranges)} more places"
    *rest, last = words
    return f"{noun} {', '.join(rest)} and {last}" if rest else f"{noun} {last}"
