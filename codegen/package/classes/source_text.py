"""Python source with its syntax tree, and where each node is in the text."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import accumulate
from typing import TypeAlias

Edit: TypeAlias = tuple[int, int, str]
"""What takes the place of the text between two positions."""


class SourceText:
    """The positions are those of bytes, as in syntax trees."""

    def __init__(self, text: str) -> None:
        self.module = ast.parse(text)
        self._data = text.encode()
        self._lines = [0, *accumulate(len(line) + 1 for line in self._data.split(b"\n"))]

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node starts and ends."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._lines[node.lineno - 1] + node.col_offset, self._lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, start: int, end: int) -> str:
        return self._data[start:end].decode()

    def text_of(self, node: ast.expr | ast.stmt) -> str:
        return self.text(*self.span(node))

    def line_end_before(self, position: int) -> int:
        """Where the line before the one of this position ends."""
        return self._data.rindex(b"\n", 0, position)

    def edited(self, node: ast.stmt, edits: Iterable[Edit]) -> str:
        """The text of a statement after some edits."""
        place, end = self.span(node)
        parts = []
        for edit_start, edit_end, replacement in sorted(edits):
            parts += [self.text(place, edit_start), replacement]
            place = edit_end
        return "".join([*parts, self.text(place, end)])
