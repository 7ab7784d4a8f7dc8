"""Writes page events as Markdown, or as plain text without marks, in linear time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from toolkit.builtin.web.elements import FORMATS
from toolkit.builtin.web.escapes import TextEscaper, escape_line_start, fence_for, in_parentheses, quote_code
from toolkit.builtin.web.events import Event, Start
from toolkit.builtin.web.pace import Pace
from toolkit.builtin.web.sheet import OpenList, Sheet
from toolkit.builtin.web.tables import Table

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
