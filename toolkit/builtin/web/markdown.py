"""Writes page events as Markdown, or as plain text without marks, in linear time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from toolkit.builtin.web.html import FORMATS, Event, Pace, Start

# ----------------------------------------------------------------------------------------------------------------------
# Collects the lines of a page or of one table cell, with the indents of lists and quotations.

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


# ----------------------------------------------------------------------------------------------------------------------
# Collects a table and formats it as lines; tables that only arrange blocks are recognised.

_MAX_SPAN: Final = 50
_MAX_SPANNED: Final = 10_000
# The escape of a mark at the start of a line; a backslash of the text itself is doubled.
_ESCAPED_LINE_START: Final = re.compile(r"\A([0-9]*+)\\(?=[-+>#=.)])")
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
        line = _ESCAPED_LINE_START.sub(r"\1", line)
    return line.replace("|", "\\|")


# ----------------------------------------------------------------------------------------------------------------------
# Escapes text for Markdown, only where it would be read as a mark, because models read the source.

# Each alternative starts with a literal, so that the engine skips at once to the next of these characters.
_SPECIAL: Final = re.compile(
    r"""
    \\(?![A-Za-z0-9\s])                 # a backslash that would escape what follows
    | `
    | \*(?:(?!\s)|(?<!\s\*))            # stars that could start or end emphasis
    | _(?<![A-Za-z0-9_]_)_*+(?!\s) | _(?<![\s_]_)_*+(?![A-Za-z0-9])
    | ~(?=~)
    | <(?=[A-Za-z/!?])
    | &(?=\#?[A-Za-z0-9]{1,31};)
    | \((?<=\]\()                       # the start of a link target
    """,
    re.VERBOSE,
)
_BRACKETS: Final = re.compile(r"[\[\]]")
# Line starts that would make a heading, a quotation, a list or a rule.
_LINE_START: Final = re.compile(
    r"(?:#{1,6}(?=\s|$)|>|[-+](?=\s|$)|(?:-\s*+){3,}+$|=++\s*+$)|([0-9]{1,9})([.)])(?=\s|$)"
)
_TICKS: Final = re.compile("`+")


class TextEscaper:
    """Escapes text; calls ``step`` for each mark.

    >>> TextEscaper(lambda: None).escape("*a* [b]", is_link=True)
    '\\\\*a\\\\* \\\\[b\\\\]'
    """

    __slots__ = ("_step",)

    def __init__(self, step: Callable[[], None]) -> None:
        self._step = step

    def escape(self, text: str, *, is_link: bool) -> str:
        """Text that means itself, also inside the text of a link if ``is_link``."""
        text = _SPECIAL.sub(self._escape_mark, text)
        return _BRACKETS.sub(self._escape_mark, text) if is_link else text

    def _escape_mark(self, special: re.Match[str]) -> str:
        self._step()
        return "\\" + "\\".join(special[0])


def escape_line_start(line: str) -> str:
    """A line that does not start with a mark.

    >>> escape_line_start("1. one")
    '1\\\\. one'
    """
    start = _LINE_START.match(line)
    if start is None:
        return line
    at = start.start(2) if start[1] else 0
    return f"{line[:at]}\\{line[at:]}"


def quote_code(text: str) -> str:
    """The text as code, between enough backticks."""
    longest = _longest_ticks(text)
    ticks = "`" * (longest + 1)
    space = " " if longest and (text.startswith("`") or text.endswith("`")) else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def fence_for(code: str) -> str:
    """A line of backticks that does not occur in the code."""
    return "`" * max(3, _longest_ticks(code) + 1)


def _longest_ticks(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0) if "`" in text else 0


def in_parentheses(address: str) -> str:
    """A URL as it is written behind the text of a link."""
    return address.replace("(", "%28").replace(")", "%29")


MAX_TABLES: Final = 3
"""Maximum nesting of tables; deeper ones become text."""

_MARKS: Final = {"strong": "**", "em": "*", "del": "~~"}
# Formats whose text would mean something else without a mark.
_PLAIN_MARKS: Final = {"sup": ("^", ""), "sub": ("_", ""), "del": ("~~", "~~")}
_LEVELS: Final = {f"h{level}": level for level in range(1, 7)}


def to_markdown(events: Iterable[Event], room: int, check: Callable[[], None] = lambda: None) -> str:
    """The events as Markdown; stops when there are more than ``room`` characters.

    ``check`` is called from time to time, also while no event is read, and may raise to cancel.
    """
    return _Writer(room, Pace(check), plain=False).write(events)


def to_text(events: Iterable[Event], room: int, check: Callable[[], None] = lambda: None) -> str:
    """The events as plain text, with list marks only; ``room`` and ``check`` are those of ``to_markdown``."""
    return _Writer(room, Pace(check), plain=True).write(events)


class _OpenFormat(NamedTuple):
    """An open format: its name, its position in the line, and the URL of a link."""

    name: str
    start: int
    address: str


class _Writer:
    """Each event calls the one method that its name is listed with; blocks that are not listed only end a paragraph."""

    def __init__(self, room: int, pace: Pace, *, plain: bool) -> None:
        self._room = room
        self._pace = pace
        self._escape = TextEscaper(pace.step).escape
        self._plain = plain
        self._sheet = Sheet(pace)
        self._sheets_below: list[Sheet] = []
        self._tables: list[Table | None] = []
        self._line: list[str] = []
        self._marks: list[_OpenFormat] = []
        self._open_codes = 0
        self._open_links = 0
        self._pre: list[str] | None = None
        self._language = ""
        self._level = 0
        self._begin_inline = {
            **dict.fromkeys(FORMATS.values(), self._begin_format),
            "br": self._break_line,
            "img": self._add_image,
        }
        self._begin_block = {
            **dict.fromkeys(_LEVELS, self._begin_heading),
            **dict.fromkeys(("ul", "ol"), self._begin_list),
            **dict.fromkeys(("td", "th"), self._begin_cell),
            "pre": self._begin_pre,
            "li": self._begin_item,
            "blockquote": self._begin_quotation,
            "dt": self._begin_term,
            "dd": self._begin_definition,
            "hr": self._add_rule,
            "table": self._begin_table,
            "tr": self._begin_row,
        }
        self._end_block = {
            **dict.fromkeys(_LEVELS, self._end_heading),
            **dict.fromkeys(("ul", "ol"), self._end_list),
            **dict.fromkeys(("td", "th"), self._end_cell),
            "pre": self._end_pre,
            "li": self._end_item,
            "blockquote": self._end_quotation,
            "dt": self._end_term,
            "dd": self._end_definition,
            "dl": self._end_definitions,
            "table": self._end_table,
        }

    def write(self, events: Iterable[Event]) -> str:
        begin_inline, begin_block, end_block = self._begin_inline, self._begin_block, self._end_block
        for event in events:
            if isinstance(event, str):
                self._add_text(event)
            elif isinstance(event, Start):
                name = event.name
                if name in begin_inline:
                    begin_inline[name](event)
                else:
                    if self._line:
                        self._flush()
                    if name in begin_block:
                        begin_block[name](event)
            elif event.name in begin_inline:
                self._end_format()
            else:
                if self._line:
                    self._flush()
                if event.name in end_block:
                    end_block[event.name]()
            if self._room < 0:
                break
        self._finish()
        return "\n".join(self._sheet.lines)

    def _finish(self) -> None:
        """Close what is still open."""
        while self._marks:
            self._end_format()
        self._end_pre()
        while self._tables:
            self._end_cell()
            self._end_table()
        self._flush()

    # -- blocks --------------------------------------------------------------------------------------------------------

    def _begin_heading(self, event: Start) -> None:
        self._level = _LEVELS[event.name]

    def _end_heading(self) -> None:
        self._level = 0

    def _begin_pre(self, event: Start) -> None:
        self._pre = []
        self._language = event.attributes.get("class", "").removeprefix("language-")

    def _end_pre(self) -> None:
        if self._pre is None:
            return
        code, self._pre = "".join(self._pre).rstrip(), None
        if not code.strip():
            return
        lines = code.split("\n")
        if not self._plain:
            fence = fence_for(code)
            lines = [f"{fence}{self._language}", *lines, fence]
        self._write(lines, is_paragraph=False)

    def _begin_list(self, event: Start) -> None:
        self._sheet.lists.append(OpenList(int(event.attributes.get("start", 1)) if event.name == "ol" else None))

    def _end_list(self) -> None:
        self._sheet.lists.pop()

    def _begin_item(self, event: Start) -> None:
        self._sheet.begin_item(event.attributes.get("value"))

    def _end_item(self) -> None:
        self._sheet.end_item()

    def _begin_quotation(self, event: Start) -> None:
        self._sheet.indent("> ", "> ")

    def _end_quotation(self) -> None:
        self._sheet.outdent()
        self._sheet.gap = True

    def _begin_term(self, event: Start) -> None:
        self._sheet.gap = True

    def _end_term(self) -> None:
        self._sheet.gap = False

    def _begin_definition(self, event: Start) -> None:
        self._sheet.indent("  " if self._plain else ": ", "  ")

    def _end_definition(self) -> None:
        self._sheet.outdent()
        self._sheet.gap = False

    def _end_definitions(self) -> None:
        self._sheet.gap = True

    def _add_rule(self, event: Start) -> None:
        self._write(["---"], is_paragraph=False)

    def _flush(self) -> None:
        """Write the current text as a paragraph or heading."""
        text = "".join(self._line)
        self._line.clear()
        if self._level:
            text = " ".join(filter(None, map(str.strip, text.split("\n"))))
            if text:
                self._write([text if self._plain else f"{'#' * self._level} {text}"], is_paragraph=False)
            return
        lines = [text.strip()]
        if "\n" in text:
            lines = [line.strip() for line in text.split("\n")]
            lines = [line for at, line in enumerate(lines) if line or (at > 0 and lines[at - 1])]
        if lines and not lines[-1]:
            lines.pop()  # never two in a row
        if lines:
            self._write(lines if self._plain else [escape_line_start(line) for line in lines])

    def _write(self, lines: list[str], *, is_paragraph: bool = True) -> None:
        self._room -= self._sheet.write(lines, is_paragraph=is_paragraph)

    # -- tables --------------------------------------------------------------------------------------------------------

    def _begin_table(self, event: Start) -> None:
        is_separate = sum(table is not None for table in self._tables) < MAX_TABLES
        self._tables.append(Table(self._pace) if is_separate else None)

    def _begin_row(self, event: Start) -> None:
        table = self._tables[-1] if self._tables else None
        if table is not None:
            table.begin_row()

    def _begin_cell(self, event: Start) -> None:
        table = self._tables[-1] if self._tables else None
        if table is not None:
            table.begin_cell(event.attributes, is_header=event.name == "th")
            self._sheets_below.append(self._sheet)
            self._sheet = Sheet(self._pace)

    def _end_cell(self) -> None:
        """Finish the current cell of this table, if any."""
        table = self._tables[-1] if self._tables else None
        if table is not None and table.is_in_cell:
            if self._line:
                self._flush()
            table.end_cell(self._sheet.lines, is_plain=self._sheet.is_plain)
            self._sheet = self._sheets_below.pop()

    def _end_table(self) -> None:
        table = self._tables.pop() if self._tables else None
        if table is None:
            return
        if table.is_grid:
            lines = table.as_text() if self._plain else table.as_markdown()
            self._room -= sum(map(len, lines)) - table.size
            self._write(lines, is_paragraph=False)
        else:
            for cell in table.cells():
                self._write(cell.lines, is_paragraph=False)

    # -- inside a line -------------------------------------------------------------------------------------------------

    def _add_text(self, text: str) -> None:
        self._room -= len(text)
        if self._pre is not None:
            self._pre.append(text)
        elif self._plain or self._open_codes:
            self._line.append(text)
        else:
            self._line.append(self._escape(text, is_link=self._open_links > 0))

    def _break_line(self, event: Start) -> None:
        self._line.append("\n")

    def _begin_format(self, event: Start) -> None:
        name, line = event.name, self._line
        self._marks.append(_OpenFormat(name, len(line), event.attributes.get("href", "")))
        if name == "code":
            self._open_codes += 1
        elif name == "a":
            self._open_links += 1
        if self._open_codes:
            return
        if self._plain:
            line.append(_PLAIN_MARKS.get(name, ("", ""))[0])
        elif name == "a":
            if line and line[-1].endswith("!"):
                line[-1] = line[-1][:-1] + "\\!"  # not an image
            line.append("[")
        else:
            line.append(_MARKS.get(name) or f"<{name}>")

    def _end_format(self) -> None:
        name, start, address = self._marks.pop()
        if name == "code":
            self._open_codes -= 1
        elif name == "a":
            self._open_links -= 1
        if self._open_codes:
            return
        line = self._line
        if self._plain:
            line.append(_PLAIN_MARKS.get(name, ("", ""))[1])
        elif name == "code":
            line[start:] = [quote_code("".join(line[start:]))]
        elif name == "a":
            line[start:] = [self._link("".join(line[start + 1 :]), address)]
        else:
            line.append(_MARKS.get(name) or f"</{name}>")

    def _link(self, text: str, address: str) -> str:
        self._room -= len(address)
        return f"<{address}>" if text == address else f"[{text}]({in_parentheses(address)})"

    def _add_image(self, event: Start) -> None:
        alt, address = event.attributes.get("alt", ""), event.attributes.get("src", "")
        self._room -= len(alt)
        if self._plain or self._open_codes:
            self._line.append(f"[image: {alt}]" if alt else "")
        elif address:
            self._room -= len(address)
            self._line.append(f"![{self._escape(alt, is_link=True)}]({in_parentheses(address)})")
        else:
            self._line.append(self._escape(alt, is_link=False))
