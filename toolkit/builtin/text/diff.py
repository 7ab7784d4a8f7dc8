"""Unified diffs of bounded size and cost, for models and approvers to read.

Equal text at both ends is never split into lines, so a small change to a large file costs little. A diff that would be too
long is cut between two lines and ends in a note with the totals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import Final

from toolkit.builtin.text.similar import MAX_LINES, LineChange, line_changes
from toolkit.visible import escape_hidden

DIFF_LIMIT: Final = 32 * 1024
BRIEF_LIMIT: Final = 4 * 1024
MAX_BRIEF_LINES: Final = 60
MAX_LINE_CHARACTERS: Final = 500
MAX_REPLACED_LINES: Final = 200

_CUT: Final = "[diff cut here"
_CONTEXT: Final = 3
# How many equal characters to show before the first difference in a long line.
_LEAD: Final = 60


def unified_diff(old: str | None, new: str | None, path: str, *, limit: int = DIFF_LIMIT) -> str:
    """The change of one file, in the format of ``diff -u``; ``None`` stands for a file that does not exist.

    Empty for equal texts; every line ends in a line feed, including the last. Lines end at ``\\n`` only; a carriage return
    is part of the line. Bytes that are not UTF-8 (``surrogateescape``) are written as ``\\xNN``.
    Limit: a diff that was cut at ``limit`` characters, or that clips a long line or omits lines of a long block, cannot be
    applied. A note in brackets marks each of these.

    >>> print(unified_diff("one\\ntwo\\n", "one\\n2\\n", "a.txt"), end="")
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
     one
    -two
    +2
    """
    if old == new:
        return ""
    head = [f"--- {'/dev/null' if old is None else f'a/{path}'}", f"+++ {'/dev/null' if new is None else f'b/{path}'}"]
    middle = _Middle(old or "", new or "", limit)
    rows: list[str] = []
    room = limit
    for row in chain(head, middle.rows()):
        room -= len(row) + 1
        if room < 0 and rows:
            rows.append(f"{_CUT}; in all, {middle.removed} lines removed and {middle.added} added]")
            break
        rows.append(row)
    return "".join(f"{row}\n" for row in rows).encode(errors="surrogateescape").decode(errors="backslashreplace")


def binary_diff(path: str) -> str:
    """Stands in for a diff if one side is not text."""
    return f"Binary files a/{path} and b/{path} differ\n"


def visible_diff(diff: str) -> str:
    """The diff with hidden characters escaped, safe to show on a terminal or to a model."""
    return "\n".join(map(escape_hidden, diff.split("\n")))


def brief_diff(diff: str) -> str:
    """The visible diff for a model that knows the path: without the two header lines, and cut after a page."""
    rows = visible_diff(diff).removesuffix("\n").split("\n")
    if rows[0].startswith("--- "):
        rows = rows[2:]
    room, kept = BRIEF_LIMIT, 0
    while kept < min(len(rows), MAX_BRIEF_LINES) and (room := room - len(rows[kept]) - 1) >= 0:
        kept += 1
    if kept < len(rows):
        rest = f"[{len(rows) - kept} more lines of the diff; read_file shows the file]"
        rows[kept:] = [rows[-1] if rows[-1].startswith(_CUT) else rest]
    return "\n".join(rows)


class _Middle:
    """Two texts without most of what they share at both ends, split into lines.

    If there are too many lines to compare, only those that there is room to show are split off.
    """

    def __init__(self, old: str, new: str, room: int) -> None:
        start, old_end, new_end = _frame(old, new, _CONTEXT)
        old_count, new_count = _count(old, start, old_end), _count(new, start, new_end)
        if old_count + new_count > MAX_LINES:
            start, old_end, new_end = _frame(old, new, 0)
            old_count, new_count = _count(old, start, old_end), _count(new, start, new_end)
            self._old = _split_lines(old[start : min(old_end, start + room)])
            self._new = _split_lines(new[start : min(new_end, start + room)])
            self._changes = [LineChange(0, old_count, 0, new_count)]
        else:
            self._old = _split_lines(old[start:old_end])
            self._new = _split_lines(new[start:new_end])
            self._changes = line_changes(self._old, self._new)
        self._old_count = old_count
        self._first_line = old.count("\n", 0, start) + 1
        self.removed: Final = sum(change.old_end - change.old_start for change in self._changes)
        self.added: Final = sum(change.new_end - change.new_start for change in self._changes)

    def rows(self) -> Iterator[str]:
        for hunk in _hunks(self._changes):
            yield from self._hunk_rows(hunk)

    def _hunk_rows(self, hunk: Sequence[LineChange]) -> Iterator[str]:
        first, last = hunk[0], hunk[-1]
        lead = min(first.old_start, _CONTEXT)
        tail = min(self._old_count - last.old_end, _CONTEXT)
        at = first.old_start - lead
        old_range = self._range(at, last.old_end + tail)
        yield f"@@ -{old_range} +{self._range(first.new_start - lead, last.new_end + tail)} @@"
        for change in hunk:
            yield from _rows(" ", self._old[at : change.old_start])
            yield from _change_rows(self._old, self._new, change)
            at = change.old_end
        yield from _rows(" ", self._old[at : at + tail])

    def _range(self, start: int, end: int) -> str:
        count = end - start
        # An empty range is named by the line before it.
        line = self._first_line + start - (count == 0)
        return str(line) if count == 1 else f"{line},{count}"


def _frame(old: str, new: str, context: int) -> tuple[int, int, int]:
    """Where the part with all differences and some context starts in both texts, and where it ends in each."""
    start = old.rfind("\n", 0, common_start(old, new)) + 1
    tail = _tail_after_line_end(old, _common_end(old, new, min(len(old), len(new)) - start))
    for _ in range(context):
        start = old.rfind("\n", 0, start - 1) + 1 if start else 0
        tail = _tail_after_line_end(old, tail)
    return start, len(old) - tail, len(new) - tail


def _tail_after_line_end(text: str, tail: int) -> int:
    """Of the last ``tail`` characters, how many follow the first line end among them."""
    end = text.find("\n", len(text) - tail) if tail else -1
    return len(text) - end - 1 if end >= 0 else 0


def _count(text: str, start: int, end: int) -> int:
    return text.count("\n", start, end) + (end > start and text[end - 1] != "\n")


def common_start(one: str, other: str) -> int:
    """Number of equal characters at the start, found by binary search."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(one: str, other: str, most: int) -> int:
    """Number of equal characters at the end, at most ``most``."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _split_lines(text: str) -> list[str]:
    """The lines with their line ends; only the last may have none."""
    *whole, rest = text.split("\n")
    lines = [f"{line}\n" for line in whole]
    return [*lines, rest] if rest else lines


def _hunks(found: Sequence[LineChange]) -> Iterator[list[LineChange]]:
    """Groups of changes whose context lines meet."""
    hunk: list[LineChange] = []
    for change in found:
        if hunk and change.old_start - hunk[-1].old_end > 2 * _CONTEXT:
            yield hunk
            hunk = []
        hunk.append(change)
    if hunk:
        yield hunk


def _change_rows(old: Sequence[str], new: Sequence[str], change: LineChange) -> Iterator[str]:
    """Removed lines, then added ones; if a long block is replaced, only its first removed lines are shown."""
    removed, added = change.old_end - change.old_start, change.new_end - change.new_start
    shown = min(removed, MAX_REPLACED_LINES) if added else removed
    old_lines, new_lines = old[change.old_start : change.old_start + shown], new[change.new_start : change.new_end]
    for line, other in zip_longest(old_lines, new_lines[: len(old_lines)]):
        yield from _row("-", line, other)
    if removed > shown:
        yield f"[{removed - shown} more lines removed here]"
    for line, other in zip_longest(new_lines, old_lines[: len(new_lines)]):
        yield from _row("+", line, other)


def _rows(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield from _row(mark, line, None)


def _row(mark: str, line: str, other: str | None) -> Iterator[str]:
    yield mark + _clip(line.removesuffix("\n"), other)
    if not line.endswith("\n"):
        yield "\\ No newline at end of file"


def _clip(line: str, other: str | None) -> str:
    """A long line clipped to the piece where it starts to differ from ``other``, or to its start."""
    if len(line) <= MAX_LINE_CHARACTERS:
        return line
    start = 0 if other is None else max(0, common_start(line, other) - _LEAD)
    piece = line[start : start + MAX_LINE_CHARACTERS]
    before = f"[{start} characters]…" if start else ""
    after = len(line) - start - len(piece)
    return f"{before}{piece}…[{after} characters]" if after > 0 else f"{before}{piece}"


# ----------------------------------------------------------------------------------------------------------------------
# Numbers with their nouns, for texts and messages.


def format_count(number: int, noun: str, plural: str = "") -> str:
    """The number with its noun; ``plural`` is needed if it is not the noun with an ``s``.

    >>> format_count(1, "line"), format_count(2, "entry", "entries")
    ('1 line', '2 entries')
    """
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
