"""Collects the lines of a page or of one table cell, with the indents of lists and quotations."""

from __future__ import annotations

from typing import Final

from toolkit.builtin.web.pace import Pace

MAX_INDENTED: Final = 8
"""Maximum nesting of lists and quotations that is indented; deeper ones get no further indent."""


class Indent:
    """The prefix of the lines in a list item or quotation, which may differ for the first line."""

    __slots__ = ("_next", "is_used", "rest")

    def __init__(self, first: str, rest: str) -> None:
        self.rest = rest
        self.is_used = False
        self._next = first

    def take(self) -> str:
        prefix, self._next, self.is_used = self._next, self.rest, True
        return prefix


class OpenList:
    """A list being written; ``number`` is that of its next item, None for an unordered list."""

    __slots__ = ("has_items", "number")

    def __init__(self, number: int | None) -> None:
        self.number = number
        self.has_items = False

    def next_marker(self, value: str | None) -> str:
        """The marker of the next item, which may set its own number."""
        if self.number is None:
            return "- "
        number = self.number if value is None else int(value)
        self.number = number + 1
        return f"{number}. "


class Sheet:
    """The lines of the page, or of one table cell. A page may have very many cells, so it is small and made quickly."""

    __slots__ = ("_pace", "_shared", "gap", "indents", "is_plain", "lines", "lists")

    def __init__(self, pace: Pace) -> None:
        self.lines: list[str] = []
        self.indents: list[Indent] = []
        self.lists: list[OpenList] = []
        self.gap = True
        """Whether an empty line separates the next block from the last."""
        self.is_plain = True
        """Whether it contains only paragraphs."""
        self._shared = 0  # number of indents that the last block and the next share
        self._pace = pace

    def begin_item(self, value: str | None) -> None:
        """Begin an item of the innermost list, which may set its own number."""
        within = self.lists[-1] if self.lists else OpenList(None)
        marker = within.next_marker(value)
        if within.has_items or len(self.lists) > 1:
            self.gap = False
        self.indent(marker, " " * len(marker))

    def end_item(self) -> None:
        if self.outdent().is_used and self.lists:
            self.lists[-1].has_items = True

    def indent(self, first: str, rest: str) -> None:
        self.indents.append(Indent(first, rest) if len(self.indents) < MAX_INDENTED else Indent("", ""))

    def outdent(self) -> Indent:
        last = self.indents.pop()
        self._shared = min(self._shared, len(self.indents))
        return last

    def write(self, lines: list[str], *, is_paragraph: bool = True) -> int:
        """Add a block of lines; returns the number of characters it adds to them."""
        added = len(lines)
        indents = self.indents
        if indents or not is_paragraph:
            self.is_plain = False
        if self.gap and self.lines:
            self.lines.append("".join([indent.rest for indent in indents[: self._shared]]).rstrip())
        if indents:
            for line in lines:
                self._pace.step()
                before = "".join([indent.take() for indent in indents[:MAX_INDENTED]])
                self.lines.append((before + line).rstrip())
                added += len(before)
        else:
            self.lines += lines
        self.gap = True
        self._shared = len(indents)
        return added
