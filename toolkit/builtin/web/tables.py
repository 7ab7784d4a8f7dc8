"""Collects a table and formats it as lines; tables that only arrange blocks are recognised."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from toolkit.builtin.web.pace import Pace

_MAX_SPAN: Final = 50
_MAX_SPANNED: Final = 10_000
# The escape of a mark at the start of a line; a backslash of the text itself is doubled.
_LINE_START: Final = re.compile(r"\A([0-9]*+)\\(?=[-+>#=.)])")
_MAX_CELL_CHARACTERS: Final = 1000
_MAX_CELL_LINES: Final = 10


@dataclass(slots=True)
class Cell:
    """One cell: its lines, and whether they are only paragraphs."""

    is_header: bool
    columns: int
    rows: int
    lines: list[str] = field(default_factory=list)
    is_plain: bool = True


class Table:
    """Rows of cells. If ``is_in_cell``, the last cell of the last row is being read."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._rows: list[list[Cell]] = []
        self._spanned = 0
        self.is_in_cell = False
        self.size = 0

    def begin_row(self) -> None:
        self._rows.append([])

    def begin_cell(self, attributes: Mapping[str, str], *, is_header: bool) -> None:
        if not self._rows:
            self.begin_row()
        columns = rows = 1
        if attributes:
            columns, rows = (max(1, min(int(attributes.get(name, 1)), _MAX_SPAN)) for name in ("colspan", "rowspan"))
            self._spanned += columns * rows - 1
            if self._spanned > _MAX_SPANNED:
                columns = rows = 1
        self._rows[-1].append(Cell(is_header, columns, rows))
        self.is_in_cell = True

    def end_cell(self, lines: list[str], *, is_plain: bool) -> None:
        cell = self._rows[-1][-1]
        cell.lines = lines
        cell.is_plain = is_plain
        self.size += sum(map(len, lines))
        self.is_in_cell = False

    def cells(self) -> Iterator[Cell]:
        """The cells that are not empty, row by row."""
        return (cell for row in self._rows for cell in row if cell.lines)

    @property
    def is_grid(self) -> bool:
        """Whether this is a table of short texts, not a way to arrange blocks."""
        return any(len(row) > 1 for row in self._rows) and all(
            cell.is_plain and len(cell.lines) <= _MAX_CELL_LINES and sum(map(len, cell.lines)) <= _MAX_CELL_CHARACTERS
            for cell in self.cells()
        )

    def as_markdown(self) -> list[str]:
        """Rows between bars, the first of them the header; it is empty if the table has none."""
        rows = [list(map(self._markdown_cell, row)) for row in self._fill_spans()]
        width = max(map(len, rows))
        if not all(cell.is_header for cell in self._rows[0]):
            rows.insert(0, [])
        head, *body = rows
        head += [""] * (width - len(head))
        return [_format_row(head), "|" + " --- |" * width, *map(_format_row, body)]

    def as_text(self) -> list[str]:
        return [" | ".join(map(self._text_cell, row)).rstrip() for row in self._fill_spans()]

    def _markdown_cell(self, lines: list[str]) -> str:
        self._pace.step()
        return "<br>".join(map(_escape_cell, filter(None, lines)))

    def _text_cell(self, lines: list[str]) -> str:
        self._pace.step()
        return " ".join(filter(None, lines))

    def _fill_spans(self) -> list[list[list[str]]]:
        """The lines of every cell, row by row, with empty cells for those that others span."""
        rows: list[list[list[str]]] = []
        spanned: dict[int, int] = {}  # column -> number of further rows that a cell above spans
        for cells in self._rows:
            self._pace.step()
            row: list[list[str]] = []
            for cell in cells:
                self._pace.step()
                self._skip_taken(row, spanned)
                if cell.rows > 1:
                    spanned.update(dict.fromkeys(range(len(row), len(row) + cell.columns), cell.rows))
                row += [cell.lines, *[[]] * (cell.columns - 1)]
            self._skip_taken(row, spanned)
            spanned = {column: left - 1 for column, left in spanned.items() if left > 1}
            if cells:
                rows.append(row)
        return rows

    def _skip_taken(self, row: list[list[str]], spanned: dict[int, int]) -> None:
        while len(row) in spanned:
            row.append([])


def _format_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escape_cell(line: str) -> str:
    """Escape a line of a cell: bars would end it, but it cannot start a list or a rule."""
    if "\\" in line:
        line = _LINE_START.sub(r"\1", line)
    return line.replace("|", "\\|")
