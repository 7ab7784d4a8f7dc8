"""Errors for a hunk that does not match, detailed enough to fix the patch without reading the file again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from toolkit.builtin.patch.model import Hunk
from toolkit.builtin.patch.seek import EXACT, LEVELS, SearchableLines
from toolkit.builtin.text.copy_hints import copy_hints
from toolkit.builtin.text.counts import format_count
from toolkit.builtin.text.similar import Region, nearest_regions
from toolkit.errors import ToolFailed
from toolkit.visible import escape_hidden

MAX_SHOWN_LINES: Final = 8
MAX_SHOWN_CHARACTERS: Final = 200
_MAX_LINES: Final = 200_000
_MAX_WANTED: Final = 200
# A shorter text may occur by chance.
_MIN_SIGNIFICANT: Final = 10
_LINE_NUMBERS: Final = re.compile(r"-\d+(,\d+)? \+\d+(,\d+)?( @@|$)")


class HunkNotPlaced(Exception):
    """The wanted lines do not occur in the file from line ``at`` on, or occur in several places."""

    def __init__(
        self,
        number: int,
        hunk: Hunk,
        wanted: Sequence[str],
        index: SearchableLines,
        at: int,
        *,
        is_ambiguous: bool = False,
    ) -> None:
        super().__init__()
        self.number: Final = number
        self.hunk: Final = hunk
        self.wanted: Final = wanted
        self.index: Final = index
        self.at: Final = at
        self.is_ambiguous: Final = is_ambiguous


def hunk_failure(path: str, text: str, trouble: HunkNotPlaced) -> ToolFailed:
    """The error for the model, with the file, the hunk and the nearest region."""
    hunk, wanted = trouble.hunk, trouble.wanted
    which = f"hunk {trouble.number} of '{path}' (line {hunk.line} of the patch)"
    details = {"path": path, "hunk": trouble.number, "line": hunk.line}
    if trouble.is_ambiguous:
        problem = f"{which} matches in several places, none of them exactly; copy the lines exactly from the file"
        return ToolFailed("AMBIGUOUS", f"{problem}. Nothing was changed", **details)
    if not wanted:
        count = format_count(len(trouble.index.lines), "line")
        problem = f"{which} cannot insert lines after line {hunk.old_start}"
        return ToolFailed("NO_MATCH", f"{problem}: the file has {count}. Nothing was changed", **details)
    what = f"the line '{_clip(wanted[0])}' after '@@' is" if wanted == [hunk.anchor] else _describe_wanted(len(wanted))
    where = f"in the file after line {trouble.at}" if trouble.at else "in the file"
    rows = [f"{which} does not match: {what} not {where}. Nothing was changed.", *_hints(text, trouble)]
    regions = [] if len(trouble.index.lines) > _MAX_LINES else nearest_regions(text, "\n".join(wanted[:_MAX_WANTED]))
    for region in regions[:1]:
        rows += _region_rows(region, wanted)
    if not regions and len(rows) == 1:
        rows.append("Nothing in the file is similar: read the file again.")
    nearest = [{"first_line": one.first_line, "last_line": one.last_line} for one in regions]
    return ToolFailed("NO_MATCH", "\n".join(rows), nearest=nearest, **details)


def _describe_wanted(count: int) -> str:
    return "the line it changes or keeps is" if count == 1 else f"the {count} lines it changes or keeps are"


def _hints(text: str, trouble: HunkNotPlaced) -> Iterator[str]:
    hunk, wanted, index = trouble.hunk, trouble.wanted, trouble.index
    if hunk.anchor is not None and wanted == [hunk.anchor]:
        if _LINE_NUMBERS.match(hunk.anchor):
            yield "This format has no line numbers: write '@@' alone, or '@@' and a line of the file."
        else:
            yield "The text after '@@' must be a whole line of the file, above the lines to change."
    earlier = [at for level in LEVELS if (at := index.first(wanted, 0, level=level)) is not None] if trouble.at else []
    if earlier:
        yield f"It would match at line {earlier[0] + 1}: hunks must be in the order of the file and must not overlap."
    new = hunk.new
    there = index.first(new, 0, level=EXACT) if sum(map(len, new)) >= _MIN_SIGNIFICANT and hunk.added else None
    if there is not None:
        yield f"Its result is already in the file, at line {there + 1}: was the patch applied before?"
    yield from copy_hints(text, wanted, "leave such lines out")


def _region_rows(region: Region, wanted: Sequence[str]) -> Iterator[str]:
    """Numbered lines of the file, starting shortly before the first that differs, and what the patch has instead."""
    at = f"line {region.first_line}" if len(region.lines) == 1 else f"lines {region.first_line}-{region.last_line}"
    yield f"Nearest: {at}"
    # The region is as long as the wanted lines without empty lines at both ends.
    skipped = next((number for number, line in enumerate(wanted) if line), 0)
    pairs = enumerate(zip(wanted[skipped:], region.lines, strict=False))
    differs = next((number for number, (one, other) in pairs if one.strip() != other.strip()), None)
    start = max(0, min((differs or 0) - 2, len(region.lines) - MAX_SHOWN_LINES))
    shown = region.lines[start : start + MAX_SHOWN_LINES]
    for number, line in enumerate(shown, region.first_line + start):
        yield f"{number:>6}\t{_clip(line.removesuffix(chr(13)))}"
    if differs is not None:
        yield f"For line {region.first_line + differs} the patch has:\n      \t{_clip(wanted[skipped + differs])}"


def _clip(line: str) -> str:
    return escape_hidden(line if len(line) <= MAX_SHOWN_CHARACTERS else line[:MAX_SHOWN_CHARACTERS] + "…")
