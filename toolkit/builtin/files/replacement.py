"""Finds the text to edit: exactly, else by lines that differ in whitespace, else by a similar block.

A match is never longer than the wanted text: the same characters, or as many lines. Line endings are always ignored. The
first two methods take time proportional to the file; the last gives up at a fixed budget.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from math import gcd
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from toolkit.builtin.text.similar import LineChange, Region, copy_hints, line_changes, nearest_regions, similarity
from toolkit.errors import ToolFailed
from toolkit.visible import BOM, escape_hidden

if TYPE_CHECKING:
    from toolkit.generated import EditInput


MatchMode: TypeAlias = Literal["exact", "line-trimmed", "block-anchor"]

BLOCK_FLOOR: Final = 0.6
"""Minimum average similarity of the lines between the first and the last, weighted by length."""
LINE_FLOOR: Final = 0.5
"""Minimum similarity of each of them."""

MAX_LINES: Final = 500_000
"""Files with more lines are only searched for an exact match."""

_MAX_STEPS: Final = 500_000


class Span(NamedTuple):
    """``text[start:end]``."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Matches:
    """All matches of one method. Each call of ``spans`` yields them in order, without overlaps.

    ``overlap`` says that another match, which is not counted, starts inside the first one.
    """

    mode: MatchMode
    count: int
    overlap: bool
    spans: Callable[[], Iterator[Span]]


def find_exact(text: str, old: str) -> Matches | None:
    """The places of ``old``, whose lines end in ``\\n``, whatever the line endings of ``text``."""
    crlf = text.count("\r\n") if "\n" in old else 0
    if not crlf:
        return _find_literal(text, old)
    if crlf == text.count("\n"):
        return _find_literal(text, old.replace("\n", "\r\n"))
    plain = text.replace("\r\n", "\n")
    found = _find_literal(plain, old)
    if found is None:
        return None
    # Number of carriage returns removed before each line.
    removed = array("I", accumulate((line.endswith("\r") for line in text.split("\n")), initial=0))
    height = old.count("\n")

    def spans() -> Iterator[Span]:
        line = at = 0
        for start, end in found.spans():
            line += plain.count("\n", at, start)
            yield Span(start + removed[line], end + removed[line + height])
            at = start

    return Matches("exact", found.count, found.overlap, spans)


def _find_literal(text: str, old: str) -> Matches | None:
    first = text.find(old)
    if first < 0:
        return None

    def spans() -> Iterator[Span]:
        start = first
        while start >= 0:
            yield Span(start, start + len(old))
            start = text.find(old, start + len(old))

    overlap = 0 <= text.find(old, first + 1) < first + len(old)
    return Matches("exact", text.count(old), overlap, spans)


def find_by_lines(text: str, old: str) -> Matches | None:
    """Lines equal to those of ``old`` except for the whitespace around each, else similar blocks of lines."""
    if has_too_many_lines(text):
        return None
    lines = _TrimmedLines(text)
    wanted = [line.strip() for line in old.removesuffix("\n").split("\n")]
    places, overlap = lines.places(wanted)
    mode: MatchMode = "line-trimmed"
    if not places:
        places = _find_similar_blocks(lines, wanted)
        mode = "block-anchor"
    if not places:
        return None

    def spans() -> Iterator[Span]:
        for place in places:
            yield lines.span(place, len(wanted), with_end=old.endswith("\n"))

    return Matches(mode, len(places), overlap, spans)


def has_too_many_lines(text: str) -> bool:
    return text.count("\n") >= MAX_LINES


class _TrimmedLines:
    """The lines of a text without surrounding whitespace, and the position of each."""

    def __init__(self, text: str) -> None:
        self._text = text
        whole = text.split("\n")
        self._starts = array("I", accumulate((len(line) + 1 for line in whole), initial=0))
        self.lines: Final = [line.strip() for line in whole]
        self.lines[0] = self.lines[0].removeprefix(BOM).lstrip()
        self._joined = _enclose(self.lines)

    def places(self, wanted: Sequence[str]) -> tuple[Sequence[int], bool]:
        """Line numbers, from 0, where the wanted lines start, and whether another place overlaps the first."""
        sought = _enclose(wanted)
        found = first = self._joined.find(sought)
        places = array("I")
        line = at = 0
        while found >= 0:
            line += self._joined.count("\n", at, found)
            places.append(line)
            at = found
            # The line end after the last line is also the one before the next.
            found = self._joined.find(sought, found + len(sought) - 1)
        overlap = bool(places) and 0 <= self._joined.find(sought, first + 1) < first + len(sought) - 1
        return places, overlap

    def span(self, first: int, height: int, *, with_end: bool) -> Span:
        """The span of ``height`` lines, with or without the line end after the last one."""
        start, end = self._starts[first], self._starts[first + height]
        if not first and self._text.startswith(BOM):
            start += 1
        if first + height == len(self.lines):
            return Span(start, len(self._text))
        if with_end:
            return Span(start, end)
        return Span(start, end - 1 - self._text.endswith("\r", start, end - 1))


def _enclose(lines: Sequence[str]) -> str:
    """The lines joined so that a search finds only whole lines."""
    return "\n".join(["", *lines, ""])


def _find_similar_blocks(lines: _TrimmedLines, wanted: Sequence[str]) -> list[int]:
    """Blocks with the first and last wanted line and similar lines between; none if the budget is used up."""
    if len(wanted) < 3 or not wanted[0] or not wanted[-1]:
        return []
    firsts, _ = lines.places(wanted[:1])
    comparison = _BlockComparison(lines.lines, wanted)
    similar = [place for place in firsts if comparison.is_similar_at(place)]
    return similar if comparison.steps > 0 else []


class _BlockComparison:
    """Compares blocks of a file with the wanted lines, line by line."""

    def __init__(self, lines: Sequence[str], wanted: Sequence[str]) -> None:
        self._lines = lines
        self._wanted = wanted
        self.steps = _MAX_STEPS

    def is_similar_at(self, place: int) -> bool:
        """Whether the block that starts with the first wanted line ends with the last and is similar between."""
        last = place + len(self._wanted) - 1
        if last >= len(self._lines) or self._lines[last] != self._wanted[-1]:
            return False
        similar = total = 0.0
        for at in range(1, len(self._wanted) - 1):
            one, other = self._wanted[at], self._lines[place + at]
            self.steps -= 1 if one == other else 1 + len(one) + len(other)
            share = similarity(one, other) if self.steps > 0 else 0.0
            if share < LINE_FLOOR:
                return False
            weight = max(len(one), len(other), 1)
            similar += weight * share
            total += weight
        return similar >= BLOCK_FLOOR * total


def line_ranges(text: str, spans: Iterator[Span], most: int) -> list[tuple[int, int]]:
    """First and last line, counted from 1, of the first ``most`` spans."""
    ranges = []
    line, at = 1, 0
    for start, end in islice(spans, most):
        line += text.count("\n", at, start)
        ends_with_line = end > start and text[end - 1] == "\n"
        ranges.append((line, line + text.count("\n", start, end) - ends_with_line))
        at = start
    return ranges


# ----------------------------------------------------------------------------------------------------------------------
# Translates the indentation of given lines to that of the file they are inserted into.


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


class _Scale(NamedTuple):
    """``given`` characters of indentation correspond to ``found`` times ``letter`` in the file."""

    given: int
    found: int
    letter: str

    def apply(self, indent: str) -> str:
        width, rest = divmod(len(indent) * self.found, self.given)
        return indent if rest else self.letter * width


class Indentation:
    """Compares lines as given with the same lines in the file, to translate indents from one to the other."""

    def __init__(self, given: Sequence[str], found: Sequence[str], new: Sequence[str]) -> None:
        """``new`` are the lines to indent; their indents help to find the width of a level."""
        self._lines: list[int] = []
        self._pairs: list[tuple[str, str]] = []
        self._same: dict[str, list[int]] = {}
        for number, (one, other) in enumerate(zip(given, found, strict=True)):
            if one.strip() and other.strip():
                self._same.setdefault(indent_of(one), []).append(number)
                self._lines.append(number)
                self._pairs.append((indent_of(one), indent_of(other)))
        self._found = [indent_of(line) for line in found]
        self._scale = _find_scale(self._pairs, [indent_of(line) for line in new if line.strip()])

    def fit(self, line: str, place: int) -> str:
        """The line with the indent it needs near the given line ``place``."""
        indent = indent_of(line)
        if len(indent) == len(line) or not self._pairs:
            return line
        return self._translate(indent, place) + line[len(indent) :]

    def _translate(self, indent: str, place: int) -> str:
        same = self._same.get(indent)
        if same is not None:
            return self._found[_nearest(same, place)]
        given, found = self._pairs[bisect_left(self._lines, _nearest(self._lines, place))]
        if indent.startswith(given):
            return found + self._scale_indent(indent[len(given) :])
        less = self._scale_indent(given[len(indent) :]) if given.startswith(indent) else None
        if less is None or not (found.endswith(less) or less.endswith(found)):
            return indent  # it has nothing in common with the file
        return found[: max(0, len(found) - len(less))]

    def _scale_indent(self, indent: str) -> str:
        return indent if self._scale is None else self._scale.apply(indent)


def _nearest(numbers: Sequence[int], wanted: int) -> int:
    """The number nearest to ``wanted`` in a sorted list; the smaller of two."""
    at = bisect_left(numbers, wanted)
    around = numbers[max(0, at - 1) : at + 1]
    return min(around, key=lambda number: abs(number - wanted))


def _find_scale(pairs: Sequence[tuple[str, str]], new: Sequence[str]) -> _Scale | None:
    """How the width of a level differs between the given lines and the file; None if it does not."""
    given, found = [*(one for one, _ in pairs), *new], [other for _, other in pairs]
    letter = "\t" if any("\t" in indent for indent in found) else " "
    for (one, other), (next_one, next_other) in pairwise(pairs):
        deeper, deeper_in_file = len(next_one) - len(one), len(next_other) - len(other)
        if deeper * deeper_in_file > 0:
            return _Scale(abs(deeper), abs(deeper_in_file), letter)
    given_tabs, found_tabs = any("\t" in indent for indent in given), letter == "\t"
    if given_tabs == found_tabs or not any(found):
        return None
    both = next(((one, other) for one, other in pairs if one and other), None)
    if both is not None:
        return _Scale(len(both[0]), len(both[1]), letter)
    # A level is the greatest common divisor of all indents; a tab is one level.
    level = gcd(*map(len, found if given_tabs else given)) or 1
    return _Scale(1, level, letter) if given_tabs else _Scale(level, 1, letter)


# ----------------------------------------------------------------------------------------------------------------------
# Replaces matches with the new text, changing only what the caller changed.
#
# Old and new text are compared line by line. Lines they share stay as they are in the file, byte for byte. Each new line gets
# the line ending of the line it replaces and, if whitespace was ignored when matching, its indentation.

MAX_PLACES: Final = 100_000
"""Maximum number of places to change at once if the replacement differs between them."""


def rewrite(text: str, matches: Matches, old: str, new: str, *, limit: int) -> str:
    """The text with every match of ``old``, whose lines end in ``\\n``, replaced by ``new``.

    Raises ``TOO_LARGE`` before building anything longer than ``limit`` characters.
    """
    line_ends = _LineEnds(text, new)
    new = new.replace("\r\n", "\n")
    if matches.mode == "exact" and (line_ends.are_uniform or "\n" not in old + new):
        return _replace_all_alike(text, matches, new.replace("\n", line_ends.last), limit)
    if matches.count > MAX_PLACES:
        problem = f"old_string occurs {matches.count} times in lines with different line endings or indentation"
        raise ToolFailed("TOO_LARGE", f"{problem}; at most {MAX_PLACES} such places can be changed at once")
    replacement = _TextReplacement(old, new, reindent=matches.mode != "exact", limit=limit)
    return "".join(_limit_size(_pieces(text, matches, replacement, line_ends), limit))


def _replace_all_alike(text: str, matches: Matches, new: str, limit: int) -> str:
    """The fast path: the same replacement everywhere."""
    start, end = next(matches.spans())
    if len(text) + matches.count * (len(new) - (end - start)) > limit:
        raise _too_large(limit)
    return f"{text[:start]}{new}{text[end:]}" if matches.count == 1 else text.replace(text[start:end], new)


def _pieces(text: str, matches: Matches, replacement: _TextReplacement, line_ends: _LineEnds) -> Iterator[str]:
    built: dict[tuple[str, str], str] = {}
    at = 0
    for start, end in matches.spans():
        yield text[at:start]
        place = text[start:end], line_ends.after(end)
        if place not in built:
            built[place] = replacement.build(*place)
        yield built[place]
        at = end
    yield text[at:]


def _limit_size(pieces: Iterable[str], limit: int) -> Iterator[str]:
    room = limit
    for piece in pieces:
        room -= len(piece)
        if room < 0:
            raise _too_large(limit)
        yield piece


def _too_large(limit: int) -> ToolFailed:
    return ToolFailed("TOO_LARGE", f"the file would be larger than {limit} bytes; nothing was changed")


class _LineEnds:
    """The line endings of a text, ``\\n`` or ``\\r\\n``; places must be queried in order."""

    def __init__(self, text: str, new: str) -> None:
        """``new`` decides if the text has no line end."""
        crlf = text.count("\r\n")
        self._text = text
        self._next = text.find("\n")
        self.are_uniform: Final = crlf in (0, text.count("\n"))
        self.last: Final = self._at(text.rfind("\n")) if self._next >= 0 else "\r\n" if "\r\n" in new else "\n"

    def after(self, place: int) -> str:
        """The line ending of the line at ``place``; for a last line without one, that of the line before."""
        if 0 <= self._next < place:
            self._next = self._text.find("\n", place)
        return self.last if self._next < 0 else self._at(self._next)

    def _at(self, place: int) -> str:
        return "\r\n" if self._text.endswith("\r", 0, place) else "\n"


class _TextReplacement:
    """Builds the replacement for lines that match ``old``."""

    def __init__(self, old: str, new: str, *, reindent: bool, limit: int) -> None:
        self._texts: Final = (old, new)
        self._old: Final = old.split("\n")
        self._new: Final = new.split("\n")
        self._changes: Final = line_changes(self._old, self._new)
        self._reindent: Final = reindent
        self._limit: Final = limit

    def build(self, found: str, line_end: str) -> str:
        """The replacement of ``found``; ``line_end`` is that of its last line."""
        lines, ends = _split_line_ends(found)
        if len(lines) < len(self._old):  # the file ends without the line end that old_string has
            old, new = (text.removesuffix("\n") for text in self._texts)
            shorter = _TextReplacement(old, new, reindent=self._reindent, limit=self._limit)
            return shorter.build(found, line_end)
        return "".join(_limit_size(self._rows(lines, [*ends, line_end]), self._limit))

    def _rows(self, lines: Sequence[str], ends: Sequence[str]) -> Iterator[str]:
        indentation = Indentation(self._old, lines, self._new) if self._reindent else None
        last = len(self._new) - 1
        at = 0
        end_of_text = LineChange(len(lines), len(lines), len(self._new), len(self._new))
        for change in (*self._changes, end_of_text):
            for kept in range(at, change.old_start):
                is_last = change.new_start - (change.old_start - kept) == last
                yield lines[kept] if is_last else lines[kept] + ends[kept]
            for number in range(change.new_start, change.new_end):
                counterpart = _counterpart(change, number)
                line = self._new[number]
                if indentation is not None:
                    line = indentation.fit(line, counterpart)
                yield line if number == last else line + ends[counterpart]
            at = change.old_end


def _split_line_ends(found: str) -> tuple[list[str], list[str]]:
    """The lines without line ends, and the line ends of all but the last."""
    *rest, last = found.split("\n")
    ends = ["\r\n" if line.endswith("\r") else "\n" for line in rest]
    return [*(line.removesuffix("\r") for line in rest), last], ends


def _counterpart(change: LineChange, number: int) -> int:
    """The old line that corresponds to a new one: one it replaces, or the one above the insertion."""
    if change.old_start == change.old_end:
        return max(change.old_start - 1, 0)
    return min(change.old_start + number - change.new_start, change.old_end - 1)


# ----------------------------------------------------------------------------------------------------------------------
# Errors for an edit with no match or too many, detailed enough to retry without reading the file again.

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
