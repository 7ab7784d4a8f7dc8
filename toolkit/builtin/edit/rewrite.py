"""Putting a new text in the place of one that was found: only what the caller changed is changed in the file.

Old and new text are compared line by line. A line that both have stays as the file has it, byte for byte; each of the
others takes the line end, and where whitespace was overlooked the indentation, of the line it stands for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from toolkit.builtin.edit.find import Matches
from toolkit.builtin.edit.indent import Indentation
from toolkit.builtin.text.line_match import Change, changes
from toolkit.errors import ToolFailed

MAX_PLACES: Final = 100_000
"""How many places are changed at once where not the same is to be put in all of them."""


def rewritten(text: str, matches: Matches, old: str, new: str, *, limit: int) -> str:
    """The text with ``new`` in every place where ``old``, whose lines end in ``\\n``, was found.

    ``TOO_LARGE`` before anything longer than ``limit`` characters is made.
    """
    line_ends = _LineEnds(text, new)
    new = new.replace("\r\n", "\n")
    if matches.mode == "exact" and (line_ends.are_alike or "\n" not in old + new):
        return _replaced_alike(text, matches, new.replace("\n", line_ends.last), limit)
    if matches.count > MAX_PLACES:
        words = f"old_string stands {matches.count} times in lines that end differently or are indented differently"
        raise ToolFailed("TOO_LARGE", f"{words}; at most {MAX_PLACES} such places are changed at once")
    change = _Change(old, new, indented_anew=matches.mode != "exact", limit=limit)
    return "".join(_bounded(_pieces(text, matches, change, line_ends), limit))


def _replaced_alike(text: str, matches: Matches, new: str, limit: int) -> str:
    """The quick way: the same is put in every place."""
    start, end = next(matches.spans())
    if len(text) + matches.count * (len(new) - (end - start)) > limit:
        raise _too_large(limit)
    return f"{text[:start]}{new}{text[end:]}" if matches.count == 1 else text.replace(text[start:end], new)


def _pieces(text: str, matches: Matches, change: _Change, line_ends: _LineEnds) -> Iterator[str]:
    made: dict[tuple[str, str], str] = {}
    at = 0
    for start, end in matches.spans():
        yield text[at:start]
        place = text[start:end], line_ends.behind(end)
        if place not in made:
            made[place] = change.made_in(*place)
        yield made[place]
        at = end
    yield text[at:]


def _bounded(pieces: Iterable[str], limit: int) -> Iterator[str]:
    room = limit
    for piece in pieces:
        room -= len(piece)
        if room < 0:
            raise _too_large(limit)
        yield piece


def _too_large(limit: int) -> ToolFailed:
    return ToolFailed("TOO_LARGE", f"the file would be larger than {limit} bytes; nothing was changed")


class _LineEnds:
    """The line ends of a text, ``\\n`` or ``\\r\\n``, asked for from front to back."""

    def __init__(self, text: str, new: str) -> None:
        """``new`` decides for a text that has none."""
        crlf = text.count("\r\n")
        self._text = text
        self._next = text.find("\n")
        self.are_alike: Final = crlf in (0, text.count("\n"))
        self.last: Final = self._at(text.rfind("\n")) if self._next >= 0 else "\r\n" if "\r\n" in new else "\n"

    def behind(self, place: int) -> str:
        """That of the line at ``place``; of a last line that has none, that of the line before."""
        if 0 <= self._next < place:
            self._next = self._text.find("\n", place)
        return self.last if self._next < 0 else self._at(self._next)

    def _at(self, place: int) -> str:
        return "\r\n" if self._text.endswith("\r", 0, place) else "\n"


class _Change:
    """What becomes of lines that stand for those of ``old``."""

    def __init__(self, old: str, new: str, *, indented_anew: bool, limit: int) -> None:
        self._texts: Final = (old, new)
        self._old: Final = old.split("\n")
        self._new: Final = new.split("\n")
        self._changes: Final = changes(self._old, self._new)
        self._indented_anew: Final = indented_anew
        self._limit: Final = limit

    def made_in(self, found: str, line_end: str) -> str:
        """What comes into the place of ``found``; ``line_end`` is that of its last line."""
        lines, ends = _taken_apart(found)
        if len(lines) < len(self._old):  # its last line was to have an end, but the file stops without one
            old, new = (text.removesuffix("\n") for text in self._texts)
            shorter = _Change(old, new, indented_anew=self._indented_anew, limit=self._limit)
            return shorter.made_in(found, line_end)
        return "".join(_bounded(self._rows(lines, [*ends, line_end]), self._limit))

    def _rows(self, lines: Sequence[str], ends: Sequence[str]) -> Iterator[str]:
        indentation = Indentation(self._old, lines, self._new) if self._indented_anew else None
        last = len(self._new) - 1
        at = 0
        nothing_more = Change(len(lines), len(lines), len(self._new), len(self._new))
        for change in (*self._changes, nothing_more):
            for kept in range(at, change.old_start):
                is_last = change.new_start - (change.old_start - kept) == last
                yield lines[kept] if is_last else lines[kept] + ends[kept]
            for number in range(change.new_start, change.new_end):
                stands_for = _counterpart(change, number)
                line = self._new[number]
                if indentation is not None:
                    line = indentation.fitted(line, stands_for)
                yield line if number == last else line + ends[stands_for]
            at = change.old_end


def _taken_apart(found: str) -> tuple[list[str], list[str]]:
    """The lines without their ends, and the ends of all but the last."""
    *rest, last = found.split("\n")
    ends = ["\r\n" if line.endswith("\r") else "\n" for line in rest]
    return [*(line.removesuffix("\r") for line in rest), last], ends


def _counterpart(change: Change, number: int) -> int:
    """The old line that a new one stands for: one of those it replaces, or the one above where it is inserted."""
    if change.old_start == change.old_end:
        return max(change.old_start - 1, 0)
    return min(change.old_start + number - change.new_start, change.old_end - 1)
