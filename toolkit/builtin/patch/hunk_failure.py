"""Why a hunk has no place in its file, told so that the next patch can be right without reading the file again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from toolkit.builtin.patch.model import Hunk
from toolkit.builtin.patch.seek import EXACT, LEVELS, Index
from toolkit.builtin.text.similar import Region, nearest_regions
from toolkit.errors import ToolFailed
from toolkit.visible import escape_hidden

MAX_SHOWN_LINES: Final = 8
MAX_SHOWN_CHARACTERS: Final = 200
_MAX_LINES: Final = 200_000
_MAX_WANTED: Final = 200
# A shorter text may well stand somewhere by chance.
_MIN_TELLING: Final = 10
_LINE_NUMBERS: Final = re.compile(r"-\d+(,\d+)? \+\d+(,\d+)?( @@|$)")
_NUMBERED: Final = re.compile(r"\s*\d+\t")
_UNREADABLE: Final = re.compile("[\udc80-\udcff]")


class NoPlace(Exception):
    """The wanted lines are not in the file from line ``at`` on, or in several places."""

    def __init__(
        self, number: int, hunk: Hunk, wanted: Sequence[str], index: Index, at: int, *, is_ambiguous: bool = False
    ) -> None:
        super().__init__()
        self.number: Final = number
        self.hunk: Final = hunk
        self.wanted: Final = wanted
        self.index: Final = index
        self.at: Final = at
        self.is_ambiguous: Final = is_ambiguous


def no_match(path: str, text: str, trouble: NoPlace) -> ToolFailed:
    """The failure, with the file, the hunk and the nearest region."""
    hunk, wanted = trouble.hunk, trouble.wanted
    which = f"hunk {trouble.number} of '{path}' (line {hunk.line} of the patch)"
    details = {"path": path, "hunk": trouble.number, "line": hunk.line}
    if trouble.is_ambiguous:
        words = (
            f"{which} fits in several places, and in none of them exactly; quote the lines as they stand in the file"
        )
        return ToolFailed("AMBIGUOUS", f"{words}. Nothing was changed", **details)
    if not wanted:
        words = f"{which} inserts lines behind line {hunk.old_start}, which is not there to be inserted behind"
        return ToolFailed(
            "NO_MATCH", f"{words}: the file has {len(trouble.index.lines)}. Nothing was changed", **details
        )
    what = f"the line '{_clipped(wanted[0])}' behind '@@' is" if wanted == [hunk.anchor] else _lines_are(len(wanted))
    where = f"in the file behind line {trouble.at}" if trouble.at else "in the file"
    rows = [f"{which} does not match: {what} not {where}. Nothing was changed.", *_hints(text, trouble)]
    regions = [] if len(trouble.index.lines) > _MAX_LINES else nearest_regions(text, "\n".join(wanted[:_MAX_WANTED]))
    for region in regions[:1]:
        rows += _nearest(region, wanted)
    if not regions and len(rows) == 1:
        rows.append("Nothing in the file is like it: read the file again.")
    nearest = [{"first_line": one.first_line, "last_line": one.last_line} for one in regions]
    return ToolFailed("NO_MATCH", "\n".join(rows), nearest=nearest, **details)


def _lines_are(count: int) -> str:
    return "the line it changes or keeps is" if count == 1 else f"the {count} lines it changes or keeps are"


def _hints(text: str, trouble: NoPlace) -> Iterator[str]:
    hunk, wanted, index = trouble.hunk, trouble.wanted, trouble.index
    if hunk.anchor is not None and wanted == [hunk.anchor]:
        if _LINE_NUMBERS.match(hunk.anchor):
            yield "Line numbers mean nothing in this format: write '@@' alone, or a line of the file behind it."
        else:
            yield "What stands behind '@@' must be a whole line of the file, above the ones to change."
    earlier = [at for level in LEVELS if (at := index.first(wanted, 0, level=level)) is not None] if trouble.at else []
    if earlier:
        yield f"It would match at line {earlier[0] + 1}: hunks must come in the order of the file, and not overlap."
    new = hunk.new
    there = index.first(new, 0, level=EXACT) if sum(map(len, new)) >= _MIN_TELLING and hunk.added else None
    if there is not None:
        yield f"What it would lead to stands there already, at line {there + 1}: was the patch applied before?"
    if all(_NUMBERED.match(line) for line in wanted):
        yield "Leave out the line numbers: they are not in the file."
    if any("\ufffd" in line for line in wanted) and _UNREADABLE.search(text):
        yield "The file has bytes that are not UTF-8, which read_file shows as \ufffd: leave such lines out."


def _nearest(region: Region, wanted: Sequence[str]) -> Iterator[str]:
    """Numbered lines of the file, from shortly before the first that differs, and what was wanted in its place."""
    at = f"line {region.first_line}" if len(region.lines) == 1 else f"lines {region.first_line}-{region.last_line}"
    yield f"Nearest: {at}"
    # The region is as long as what was wanted is without empty lines at both ends.
    skipped = next((number for number, line in enumerate(wanted) if line), 0)
    pairs = enumerate(zip(wanted[skipped:], region.lines, strict=False))
    differs = next((number for number, (one, other) in pairs if one.strip() != other.strip()), None)
    start = max(0, min((differs or 0) - 2, len(region.lines) - MAX_SHOWN_LINES))
    shown = region.lines[start : start + MAX_SHOWN_LINES]
    for number, line in enumerate(shown, region.first_line + start):
        yield f"{number:>6}\t{_clipped(line.removesuffix(chr(13)))}"
    if differs is not None:
        yield f"For line {region.first_line + differs} the patch has:\n      \t{_clipped(wanted[skipped + differs])}"


def _clipped(line: str) -> str:
    return escape_hidden(line if len(line) <= MAX_SHOWN_CHARACTERS else line[:MAX_SHOWN_CHARACTERS] + "…")
