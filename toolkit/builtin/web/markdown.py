"""Writes page events as Markdown, or as plain text without marks, in linear time.

Text is escaped only where it would be read as a mark, because models read the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from toolkit.builtin.web.elements import FORMATS
from toolkit.builtin.web.pace import Pace
from toolkit.builtin.web.page_events import End, Event, Start
from toolkit.builtin.web.tables import Table

MAX_INDENTED: Final = 8
"""Maximum nesting of lists and quotations that is indented; deeper ones get no further indent."""
MAX_TABLES: Final = 3
"""Maximum nesting of tables; deeper ones become text."""

_MARKS: Final = {"strong": "**", "em": "*", "del": "~~"}
# Formats whose text would mean something else without a mark.
_PLAIN_MARKS: Final = {"sup": ("^", ""), "sub": ("_", ""), "del": ("~~", "~~")}
_LEVELS: Final = {f"h{level}": level for level in range(1, 7)}

_SPECIAL: Final = re.compile(
    r"""
    \\(?![A-Za-z0-9\s])                 # a backslash that would escape what follows
    | `
    | \*(?!\s) | (?<!\s)\*              # stars that could start or end emphasis
    | (?<![A-Za-z0-9_])_++(?!\s) | (?<![\s_])_++(?![A-Za-z0-9])
    | ~(?=~)
    | <(?=[A-Za-z/!?])
    | &(?=\#?[A-Za-z0-9]{1,31};)
    | (?<=\])\(                         # the start of a link target
    """,
    re.VERBOSE,
)
_BRACKETS: Final = re.compile(r"[\[\]]")
# Line starts that would make a heading, a quotation, a list or a rule.
_LINE_START: Final = re.compile(
    r"(?:#{1,6}(?=\s|$)|>|[-+](?=\s|$)|(?:-\s*+){3,}+$|=++\s*+$)|([0-9]{1,9})([.)])(?=\s|$)"
)
_TICKS: Final = re.compile("`+")


def to_markdown(events: Iterable[Event], room: int, check: Callable[[], None] = lambda: None) -> str:
    """The events as Markdown; stops when there are more than ``room`` characters.

    ``check`` is called from time to time, also while no event is read, and may raise to cancel.
    """
    return _Writer(room, Pace(check), plain=False).write(events)


def to_text(events: Iterable[Event], room: int, check: Callable[[], None] = lambda: None) -> str:
    """The events as plain text, with list marks only; ``room`` and ``check`` are those of ``to_markdown``."""
    return _Writer(room, Pace(check), plain=True).write(events)


@dataclass(slots=True)
class _Indent:
    """The prefix of the lines in a list item or quotation, which may differ for the first line."""

    first: str
    rest: str
    is_used: bool = False

    def take(self) -> str:
        if self.is_used:
            return self.rest
        self.is_used = True
        return self.first


@dataclass(slots=True)
class _List:
    """A list being written; ``number`` is that of its next item, None for an unordered list."""

    number: int | None
    has_items: bool = False


@dataclass(slots=True)
class _Sheet:
    """The lines of the page, or of one table cell."""

    lines: list[str] = field(default_factory=list)
    indents: list[_Indent] = field(default_factory=list)
    lists: list[_List] = field(default_factory=list)
    gap: bool = True
    """Whether an empty line separates the next block from the last."""
    shared: int = 0
    """Number of indents that the last block and the next share."""
    is_plain: bool = True
    """Whether it contains only paragraphs."""


class _OpenFormat(NamedTuple):
    """An open format: its name, its position in the line, and the URL of a link."""

    name: str
    start: int
    address: str


class _Writer:
    def __init__(self, room: int, pace: Pace, *, plain: bool) -> None:
        self._room = room
        self._pace = pace
        self._plain = plain
        self._sheets = [_Sheet()]
        self._tables: list[Table | None] = []
        self._line: list[str] = []
        self._marks: list[_OpenFormat] = []
        self._pre: list[str] | None = None
        self._language = ""
        self._level = 0

    def write(self, events: Iterable[Event]) -> str:
        for event in events:
            if isinstance(event, str):
                self._add_text(event)
            elif isinstance(event, Start):
                self._begin(event)
            else:
                self._end(event)
            if self._room < 0:
                break
        self._finish()
        return "\n".join(self._sheets[0].lines)

    def _finish(self) -> None:
        """Close what is still open."""
        while self._marks:
            self._end(End(self._marks[-1].name))
        self._end_pre()
        while self._tables:
            self._end_cell()
            self._end_table()
        self._flush()

    # -- events ------------------------------------------------------------------------------------------------------

    def _add_text(self, text: str) -> None:
        self._room -= len(text)
        if self._pre is not None:
            self._pre.append(text)
        elif self._plain or self._is_code:
            self._line.append(text)
        else:
            text = _SPECIAL.sub(self._escape, text)
            self._line.append(_BRACKETS.sub(self._escape, text) if self._is_link else text)

    def _begin(self, event: Start) -> None:
        name = event.name
        if name in FORMATS:
            self._begin_format(event)
        elif name == "br":
            self._line.append("\n")
        elif name == "img":
            self._add_image(event)
        else:
            self._flush()
            self._begin_block(event)

    def _begin_block(self, event: Start) -> None:
        name, sheet = event.name, self._sheets[-1]
        if name in _LEVELS:
            self._level = _LEVELS[name]
        elif name == "pre":
            self._pre = []
            self._language = event.attributes.get("class", "").removeprefix("language-")
        elif name in ("ul", "ol"):
            sheet.lists.append(_List(int(event.attributes.get("start", 1)) if name == "ol" else None))
        elif name == "li":
            self._begin_item(event)
        elif name == "blockquote":
            self._indent("> ", "> ")
        elif name == "dt":
            sheet.gap = True
        elif name == "dd":
            self._indent("  " if self._plain else ": ", "  ")
        elif name == "hr":
            self._write(["---"], is_paragraph=False)
        elif name == "table":
            is_separate = sum(table is not None for table in self._tables) < MAX_TABLES
            self._tables.append(Table(self._pace) if is_separate else None)
        elif name == "tr" and self._table is not None:
            self._table.begin_row()
        elif name in ("td", "th") and self._table is not None:
            self._table.begin_cell(event.attributes, is_header=name == "th")
            self._sheets.append(_Sheet())

    def _end(self, event: End) -> None:
        name = event.name
        if name in FORMATS:
            self._end_format(name)
            return
        self._flush()
        if name in _LEVELS:
            self._level = 0
        elif name == "pre":
            self._end_pre()
        elif name in ("ul", "ol"):
            self._sheets[-1].lists.pop()
        elif name == "li":
            self._end_item()
        elif name in ("blockquote", "dd"):
            self._outdent()
            self._sheets[-1].gap = name != "dd"
        elif name in ("dt", "dl"):
            self._sheets[-1].gap = name != "dt"
        elif name in ("td", "th"):
            self._end_cell()
        elif name == "table":
            self._end_table()

    # -- blocks ------------------------------------------------------------------------------------------------------

    def _begin_item(self, event: Start) -> None:
        sheet = self._sheets[-1]
        within = sheet.lists[-1] if sheet.lists else _List(None)
        if within.number is None:
            marker = "- "
        else:
            number = int(event.attributes.get("value", within.number))
            marker = f"{number}. "
            within.number = number + 1
        if within.has_items or len(sheet.lists) > 1:
            sheet.gap = False
        self._indent(marker, " " * len(marker))

    def _end_item(self) -> None:
        sheet = self._sheets[-1]
        if self._outdent().is_used and sheet.lists:
            sheet.lists[-1].has_items = True

    def _indent(self, first: str, rest: str) -> None:
        indents = self._sheets[-1].indents
        indents.append(_Indent(first, rest) if len(indents) < MAX_INDENTED else _Indent("", ""))

    def _outdent(self) -> _Indent:
        sheet = self._sheets[-1]
        last = sheet.indents.pop()
        sheet.shared = min(sheet.shared, len(sheet.indents))
        return last

    def _end_pre(self) -> None:
        if self._pre is None:
            return
        code, self._pre = "".join(self._pre).rstrip(), None
        if not code.strip():
            return
        lines = code.split("\n")
        if not self._plain:
            longest = max((len(ticks) for ticks in _TICKS.findall(code)), default=0)
            fence = "`" * max(3, longest + 1)
            lines = [f"{fence}{self._language}", *lines, fence]
        self._write(lines, is_paragraph=False)

    def _flush(self) -> None:
        """Write the current text as a paragraph or heading."""
        if not self._line:
            return
        lines = [line.strip() for line in "".join(self._line).split("\n")]
        self._line.clear()
        if self._level:
            text = " ".join(filter(None, lines))
            if text:
                self._write([text if self._plain else f"{'#' * self._level} {text}"], is_paragraph=False)
            return
        kept = [line for at, line in enumerate(lines) if line or (at > 0 and lines[at - 1])]
        while kept and not kept[-1]:
            kept.pop()
        if not self._plain:
            kept = [line if (start := _LINE_START.match(line)) is None else _escape_start(start) for line in kept]
        if kept:
            self._write(kept)

    def _write(self, lines: list[str], *, is_paragraph: bool = True) -> None:
        sheet = self._sheets[-1]
        sheet.is_plain &= is_paragraph and not sheet.indents
        if sheet.lines and sheet.gap:
            sheet.lines.append("".join(indent.rest for indent in sheet.indents[: sheet.shared]).rstrip())
        if sheet.indents:
            for line in lines:
                self._pace.step()
                before = "".join([indent.take() for indent in sheet.indents[:MAX_INDENTED]])
                sheet.lines.append((before + line).rstrip())
                self._room -= len(before)
        else:
            sheet.lines += lines
        sheet.gap = True
        sheet.shared = len(sheet.indents)
        self._room -= len(lines)

    # -- tables ------------------------------------------------------------------------------------------------------

    @property
    def _table(self) -> Table | None:
        return self._tables[-1] if self._tables else None

    def _end_cell(self) -> None:
        """Finish the current cell of this table, if any."""
        table = self._table
        if table is not None and table.is_in_cell:
            self._flush()
            sheet = self._sheets.pop()
            table.end_cell(sheet.lines, is_plain=sheet.is_plain)

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

    # -- inside a line -----------------------------------------------------------------------------------------------

    @property
    def _is_code(self) -> bool:
        return any(mark.name == "code" for mark in self._marks)

    @property
    def _is_link(self) -> bool:
        return any(mark.name == "a" for mark in self._marks)

    def _begin_format(self, event: Start) -> None:
        name = event.name
        is_code = self._is_code
        self._marks.append(_OpenFormat(name, len(self._line), event.attributes.get("href", "")))
        if is_code or name == "code":
            return
        if self._plain:
            self._line.append(_PLAIN_MARKS.get(name, ("", ""))[0])
        elif name == "a":
            if self._line and self._line[-1].endswith("!"):
                self._line[-1] = self._line[-1][:-1] + "\\!"  # not an image
            self._line.append("[")
        else:
            self._line.append(_MARKS.get(name, f"<{name}>"))

    def _end_format(self, name: str) -> None:
        mark = self._marks.pop()
        if self._is_code:
            return
        if self._plain:
            self._line.append(_PLAIN_MARKS.get(name, ("", ""))[1])
        elif name in ("a", "code"):
            inside = "".join(self._line[mark.start :])
            self._line[mark.start :] = [_quote_code(inside) if name == "code" else self._link(inside[1:], mark.address)]
        else:
            self._line.append(_MARKS.get(name, f"</{name}>"))

    def _link(self, text: str, address: str) -> str:
        self._room -= len(address)
        return f"<{address}>" if text == address else f"[{text}]({_in_parentheses(address)})"

    def _add_image(self, event: Start) -> None:
        alt, address = event.attributes.get("alt", ""), event.attributes.get("src", "")
        self._room -= len(alt)
        if self._plain or self._is_code:
            self._line.append(f"[image: {alt}]" if alt else "")
        elif address:
            self._room -= len(address)
            text = _BRACKETS.sub(self._escape, _SPECIAL.sub(self._escape, alt))
            self._line.append(f"![{text}]({_in_parentheses(address)})")
        else:
            self._line.append(_SPECIAL.sub(self._escape, alt))

    def _escape(self, special: re.Match[str]) -> str:
        self._pace.step()
        return "\\" + "\\".join(special[0])


def _quote_code(text: str) -> str:
    """The text as code, between enough backticks."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    ticks = "`" * (longest + 1)
    space = " " if longest and (text.startswith("`") or text.endswith("`")) else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def _in_parentheses(address: str) -> str:
    return address.replace("(", "%28").replace(")", "%29")


def _escape_start(start: re.Match[str]) -> str:
    at = start.start(2) if start[1] else 0
    return f"{start.string[:at]}\\{start.string[at:]}"
