"""Replaces matches with the new text, changing only what the caller changed.

Old and new text are compared line by line. Lines they share stay as they are in the file, byte for byte. Each new line gets
the line ending of the line it replaces and, if whitespace was ignored when matching, its indentation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from toolkit.builtin.edit.indent import Indentation
from toolkit.builtin.files.replacement import Matches
from toolkit.builtin.text.line_match import LineChange, line_changes
from toolkit.errors import ToolFailed

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
