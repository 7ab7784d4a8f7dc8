"""Applies hunks to the text of a file. Everything else keeps every byte: line endings, marks, invalid UTF-8."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from toolkit.builtin.patch.parse import WHITE_SPACE, Hunk
from toolkit.builtin.text.diff import format_count
from toolkit.builtin.text.similar import Region, copy_hints, nearest_regions
from toolkit.errors import ToolFailed
from toolkit.visible import BOM, escape_hidden

# ----------------------------------------------------------------------------------------------------------------------
# Finds lines in a file: exactly, then ignoring trailing white space, surrounding white space, Unicode punctuation.
#
# Each line becomes a code of fixed width, so that a search for lines is a search for bytes, which takes linear time. Many
# searches over long distances would still add up, so all searches of a patch share a budget.

MAX_SEARCHED_LINES: Final = 400_000_000
"""Number of lines that all searches of one patch may pass; takes a second or two."""

EXACT: Final = 0

_WIDTH: Final = 4
_PUNCTUATION: Final = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\xa0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
    }
)


def _strip_end(line: str) -> str:
    return line.rstrip(WHITE_SPACE)


def _strip(line: str) -> str:
    return line.strip(WHITE_SPACE)


def _plain_punctuation(line: str) -> str:
    return line.strip(WHITE_SPACE).translate(_PUNCTUATION)


_SIMPLIFICATIONS: Final[tuple[Callable[[str], str] | None, ...]] = (None, _strip_end, _strip, _plain_punctuation)
LEVELS: Final = range(len(_SIMPLIFICATIONS))


class Budget:
    """The work that one patch may still cause."""

    def __init__(self, lines: int = MAX_SEARCHED_LINES) -> None:
        self._left = lines

    def spend(self, lines: int) -> None:
        self._left -= lines
        if self._left < 0:
            problem = "too many hunks are not where they should be, and searching for them would take too long"
            raise ToolFailed("TOO_LARGE", f"{problem}; split the patch, or copy the lines exactly from the files")


class SearchableLines:
    """The lines of one file, searchable at every level; a level is built when it is first needed."""

    def __init__(self, lines: Sequence[str], budget: Budget) -> None:
        self.lines: Final = lines
        self._budget = budget
        self._levels: dict[int, _EncodedLines] = {}

    def first(self, wanted: Sequence[str], start: int, *, level: int) -> int | None:
        """The first place of the wanted lines, from line ``start`` on."""
        encoded = self._level(level)
        needle = encoded.encode(wanted)
        if needle is None or start + len(wanted) > len(self.lines):
            return None
        at = encoded.text.find(needle, start * _WIDTH)
        self._budget.spend((at // _WIDTH if at >= 0 else len(self.lines)) - start)
        return at // _WIDTH if at >= 0 else None

    def last(self, wanted: Sequence[str], start: int, end: int) -> int | None:
        """The last exact match that starts between the lines ``start`` and ``end``."""
        encoded = self._level(EXACT)
        needle = encoded.encode(wanted[::-1])
        first = max(len(self.lines) - len(wanted) - end, 0)
        if needle is None:
            return None
        at = encoded.reversed_text.find(needle, first * _WIDTH)
        self._budget.spend((at // _WIDTH if at >= 0 else len(self.lines)) - first)
        found = len(self.lines) - len(wanted) - at // _WIDTH
        return found if at >= 0 and found >= start else None

    def matches_at(self, wanted: Sequence[str], line: int, *, level: int) -> bool:
        """Whether the wanted lines are at this line."""
        encoded = self._level(level)
        needle = encoded.encode(wanted)
        return needle is not None and line >= 0 and encoded.text.startswith(needle, line * _WIDTH)

    def _level(self, level: int) -> _EncodedLines:
        if level not in self._levels:
            self._levels[level] = _EncodedLines(self.lines, _SIMPLIFICATIONS[level])
        return self._levels[level]


class _EncodedLines:
    """All lines of a file at one level, encoded as one byte string."""

    def __init__(self, lines: Sequence[str], normalize: Callable[[str], str] | None) -> None:
        self._normalize = normalize
        self._codes: dict[str, bytes] = {}
        codes = self._codes
        numbers = range(1 << 28)
        self._units: Final = [
            codes.get(line) or codes.setdefault(line, _code(numbers[len(codes)]))
            for line in (lines if normalize is None else map(normalize, lines))
        ]
        self.text: Final = b"".join(self._units)
        self._reversed_text: bytes | None = None

    @property
    def reversed_text(self) -> bytes:
        if self._reversed_text is None:
            self._reversed_text = b"".join(reversed(self._units))
        return self._reversed_text

    def encode(self, wanted: Sequence[str]) -> bytes | None:
        """The codes of the wanted lines; None if one of them is not in the file."""
        codes = self._codes
        try:
            return b"".join(
                [codes[line] for line in (wanted if self._normalize is None else map(self._normalize, wanted))]
            )
        except KeyError:
            return None


def _code(number: int) -> bytes:
    """Seven bits per byte, and the eighth bit only in the first byte, so a search never matches across two codes."""
    return bytes((0x80 | number >> 21, number >> 14 & 0x7F, number >> 7 & 0x7F, number & 0x7F))


# ----------------------------------------------------------------------------------------------------------------------
# Errors for a hunk that does not match, detailed enough to fix the patch without reading the file again.

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


MAX_LINES: Final = 2_000_000

_LINE_END: Final = re.compile("(\r\n|\r|\n)")


def apply_envelope(text: str, hunks: Sequence[Hunk], path: str, budget: Budget) -> str:
    """The text after hunks that are located by the lines they quote, in the order of the file.

    New lines end like the first line of the file, and the last line of the file gets a line end if it has none.
    """
    _refuse_many_lines(text, path)
    # read_file does not show the byte order mark, so models seldom quote it.
    for mark in ("", BOM) if text.startswith(BOM) else ("",):
        try:
            return mark + _apply_quoted(text.removeprefix(mark), hunks, budget)
        except HunkNotPlaced as trouble:
            failure = hunk_failure(path, text.removeprefix(mark), trouble)
    raise failure


def apply_numbered(text: str, hunks: Sequence[Hunk], path: str, budget: Budget) -> str:
    """The text after hunks that are located by line numbers, or near them.

    Lines end at ``\\n``, and a carriage return before it is part of the line, as in git.
    """
    _refuse_many_lines(text, path)
    try:
        return _NumberedHunks(text, budget).apply_all(hunks)
    except HunkNotPlaced as trouble:
        raise hunk_failure(path, text, trouble) from None


def _refuse_many_lines(text: str, path: str) -> None:
    if text.count("\n") + text.count("\r") > MAX_LINES:
        raise ToolFailed("TOO_LARGE", f"'{path}' has more than {MAX_LINES} lines, too many for a patch", path=path)


# -- by the lines they quote -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _LineReplacement:
    """``count`` lines from ``start`` on are replaced."""

    start: int
    count: int
    lines: Sequence[str]


def _apply_quoted(text: str, hunks: Sequence[Hunk], budget: Budget) -> str:
    pieces = _LINE_END.split(text)
    lines, ends = pieces[0::2], pieces[1::2]
    first_end = ends[0] if ends else "\n"
    if lines[-1]:
        ends.append(first_end)
    else:
        lines.pop()
    index = SearchableLines(lines, budget)
    replacements: list[_LineReplacement] = []
    at = 0
    for number, hunk in enumerate(hunks, 1):
        at = _place_quoted(index, hunk, number, at, replacements)
    out: list[str] = []
    kept = 0
    for one in sorted(replacements, key=lambda one: one.start):
        out += chain.from_iterable(zip(lines[kept : one.start], ends[kept : one.start], strict=True))
        out += (line + first_end for line in one.lines)
        kept = one.start + one.count
    out += chain.from_iterable(zip(lines[kept:], ends[kept:], strict=True))
    return "".join(out)


def _place_quoted(index: SearchableLines, hunk: Hunk, number: int, at: int, found: list[_LineReplacement]) -> int:
    """Add what a hunk replaces, from line ``at`` on, to ``found``; returns where the next hunk may start."""
    if hunk.anchor is not None:
        anchor = _seek(index, [hunk.anchor], at)
        if anchor is None:
            raise HunkNotPlaced(number, hunk, [hunk.anchor], index, at)
        at = anchor + 1
    old, new = hunk.old, hunk.new
    if not old:
        found.append(_LineReplacement(len(index.lines), 0, new))
        return at
    start = _seek(index, old, at, at_end=hunk.at_end)
    old_count, new_count = len(old), len(new)
    if start is None and not old[-1]:
        # The empty line may represent the end of the last line of the file.
        old_count -= 1
        new_count -= bool(new) and not new[-1]
        start = _seek(index, old[:old_count], at, at_end=hunk.at_end)
    if start is None:
        raise HunkNotPlaced(number, hunk, old, index, at)
    for first, count, lines in _changed_runs(hunk.rows, old_count, new[:new_count]):
        found.append(_LineReplacement(start + first, count, lines))
    return start + old_count


def _seek(index: SearchableLines, wanted: Sequence[str], start: int, *, at_end: bool = False) -> int | None:
    if at_end:
        start = max(start, len(index.lines) - len(wanted))
    if not wanted:
        return start
    found = (index.first(wanted, start, level=level) for level in LEVELS)
    return next((at for at in found if at is not None), None)


def _changed_runs(rows: Sequence[str], old_count: int, new: Sequence[str]) -> Iterator[tuple[int, int, Sequence[str]]]:
    """The changes between kept lines: the first old line, the number of old lines, and the new lines."""
    old_at = new_at = old_from = new_from = 0
    for row in rows:
        if row[0] == " ":
            if old_at >= old_count or new_at >= len(new):
                break
            if (old_from, new_from) != (old_at, new_at):
                yield old_from, old_at - old_from, new[new_from:new_at]
            old_from, new_from = old_at + 1, new_at + 1
        old_at += row[0] != "+"
        new_at += row[0] != "-"
    if (old_from, new_from) != (old_count, len(new)):
        yield old_from, old_count - old_from, new[new_from:]


# -- by line numbers ---------------------------------------------------------------------------------------------------


class _NumberedHunks:
    """Applies hunks with line numbers to one file, front to back."""

    def __init__(self, text: str, budget: Budget) -> None:
        self._lines = text.split("\n")
        self._is_open = bool(self._lines[-1])
        if not self._is_open:
            self._lines.pop()
        self._return = "\r" if self._lines and self._lines[0].endswith("\r") else ""
        self._index = SearchableLines(self._lines, budget)
        self._out: list[str] = []
        self._done = 0
        self._shift = 0

    def apply_all(self, hunks: Sequence[Hunk]) -> str:
        for number, hunk in enumerate(hunks, 1):
            self._apply(hunk, number)
        is_open = self._is_open
        if self._done == len(self._lines) and hunks:
            is_open = self._ends_open(hunks[-1])
        self._out += self._lines[self._done :]
        return "\n".join(self._out) + ("" if is_open or not self._out else "\n")

    def _ends_open(self, last: Hunk) -> bool:
        """Whether the last line has no line end after a hunk that reaches the end of the file."""
        for row in reversed(last.rows):
            if row[0] == "+":
                return last.new_is_open
            if row[0] == " ":
                return self._is_open and row is last.rows[-1]
        return False

    def _apply(self, hunk: Hunk, number: int) -> None:
        old = hunk.old
        start, is_exact = self._place(hunk, number, old)
        self._out += self._lines[self._done : start]
        # If the patch has no carriage returns at all, new lines end like those of the file.
        takes_return = self._return and not is_exact and not any(row.endswith("\r") for row in hunk.rows)
        at = start
        for row in hunk.rows:
            if row[0] == "+":
                self._out.append(row[1:] + self._return if takes_return else row[1:])
                continue
            if row[0] == " ":
                self._out.append(self._lines[at])
            at += 1
        self._done = at

    def _place(self, hunk: Hunk, number: int, old: Sequence[str]) -> tuple[int, bool]:
        """Where a hunk belongs, and whether its lines match exactly."""
        given = hunk.old_start or 0
        expected = given + self._shift if not old else max(given - 1 + self._shift, 0)
        if not old:
            if not self._done <= expected <= len(self._lines):
                raise HunkNotPlaced(number, hunk, old, self._index, self._done)
            return expected, False
        is_last = hunk.old_is_open or hunk.new_is_open
        if is_last:
            expected = len(self._lines) - len(old)
        for level in LEVELS:
            found = self._matches_near(old, expected, level, is_last=is_last)
            if len(found) == 1:
                self._shift += found[0] - expected
                return found[0], level == EXACT
            if found:
                raise HunkNotPlaced(number, hunk, old, self._index, self._done, is_ambiguous=True)
        raise HunkNotPlaced(number, hunk, old, self._index, self._done)

    def _matches_near(self, old: Sequence[str], expected: int, level: int, *, is_last: bool) -> list[int]:
        """The exact match nearest to the expected place; for inexact matches, up to two, to detect ambiguity."""
        index, done = self._index, self._done
        if expected >= done and index.matches_at(old, expected, level=level):
            return [expected]
        if is_last:
            return []
        if level == EXACT:
            places = [index.first(old, max(done, expected), level=level), index.last(old, done, expected - 1)]
            found = [place for place in places if place is not None]
            return [min(found, key=lambda place: abs(place - expected))] if found else []
        first = index.first(old, done, level=level)
        second = None if first is None else index.first(old, first + 1, level=level)
        return [place for place in (first, second) if place is not None]
