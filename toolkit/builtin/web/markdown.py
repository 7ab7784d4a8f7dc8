"""Events written as Markdown, or as plain text without any marks, in linear time.

Prose is escaped only where it would be read as a mark, because what is meant for models is read as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from toolkit.builtin.web.elements import FORMATS
from toolkit.builtin.web.page_events import End, Event, Start
from toolkit.builtin.web.tables import Table

MAX_INDENTED: Final = 8
"""How many lists and quotations in each other are indented; deeper ones stand where the last of these does."""
MAX_TABLES: Final = 3
"""How many tables in each other are told apart; deeper ones are text."""

_MARKS: Final = {"strong": "**", "em": "*", "del": "~~"}
# What would say something else without them.
_PLAIN_MARKS: Final = {"sup": ("^", ""), "sub": ("_", ""), "del": ("~~", "~~")}
_LEVELS: Final = {f"h{level}": level for level in range(1, 7)}

_SPECIAL: Final = re.compile(
    r"""
    \\(?![A-Za-z0-9\s])                 # a backslash that would escape what follows
    | `
    | \*(?!\s) | (?<!\s)\*              # stars that could begin or end emphasis
    | (?<![A-Za-z0-9_])_++(?!\s) | (?<![\s_])_++(?![A-Za-z0-9])
    | ~(?=~)
    | <(?=[A-Za-z/!?])
    | &(?=\#?[A-Za-z0-9]{1,31};)
    | (?<=\])\(                         # what would be the address of a link
    """,
    re.VERBOSE,
)
_BRACKETS: Final = re.compile(r"[\[\]]")
# What would make a heading, a quotation, a list or a rule of a line.
_LINE_START: Final = re.compile(
    r"(?:#{1,6}(?=\s|$)|>|[-+](?=\s|$)|(?:-\s*+){3,}+$|=++\s*+$)|([0-9]{1,9})([.)])(?=\s|$)"
)
_TICKS: Final = re.compile("`+")


def to_markdown(events: Iterable[Event], room: int) -> str:
    """The events as Markdown; stops when there are more than ``room`` characters."""
    return _Writer(room, plain=False).written(events)


def to_text(events: Iterable[Event], room: int) -> str:
    """The events as text to be read, with no marks but those of lists; stops when there is more than ``room``."""
    return _Writer(room, plain=True).written(events)


@dataclass(slots=True)
class _Indent:
    """What stands before every line inside a list item or a quotation; before the first, something else perhaps."""

    first: str
    rest: str
    is_begun: bool = False

    def take(self) -> str:
        if self.is_begun:
            return self.rest
        self.is_begun = True
        return self.first


@dataclass(slots=True)
class _List:
    """A list that is being written; ``number`` of its next item, None for one without numbers."""

    number: int | None
    has_items: bool = False


@dataclass(slots=True)
class _Sheet:
    """Lines that belong together: those of the page, or of one cell of a table."""

    lines: list[str] = field(default_factory=list)
    indents: list[_Indent] = field(default_factory=list)
    lists: list[_List] = field(default_factory=list)
    gap: bool = True
    """Whether the next block stands apart from the last by an empty line."""
    shared: int = 0
    """How many indents the last block and the next have in common."""
    is_plain: bool = True
    """Whether there are nothing but paragraphs on it."""


class _Mark(NamedTuple):
    """A format that has begun: its name, where in the line, and the address of a link."""

    name: str
    start: int
    address: str


class _Writer:
    def __init__(self, room: int, *, plain: bool) -> None:
        self._room = room
        self._plain = plain
        self._sheets = [_Sheet()]
        self._tables: list[Table | None] = []
        self._line: list[str] = []
        self._marks: list[_Mark] = []
        self._pre: list[str] | None = None
        self._language = ""
        self._level = 0

    def written(self, events: Iterable[Event]) -> str:
        for event in events:
            if isinstance(event, str):
                self._text(event)
            elif isinstance(event, Start):
                self._start(event)
            else:
                self._end(event)
            if self._room < 0:
                break
        self._finish()
        return "\n".join(self._sheets[0].lines)

    def _finish(self) -> None:
        """End what is still open where the writing stopped."""
        while self._marks:
            self._end(End(self._marks[-1].name))
        self._end_pre()
        while self._tables:
            self._end_cell()
            self._end_table()
        self._flush()

    # -- events ------------------------------------------------------------------------------------------------------

    def _text(self, text: str) -> None:
        self._room -= len(text)
        if self._pre is not None:
            self._pre.append(text)
        elif self._plain or self._is_code:
            self._line.append(text)
        else:
            text = _SPECIAL.sub(_escaped, text)
            self._line.append(_BRACKETS.sub(_escaped, text) if self._is_link else text)

    def _start(self, event: Start) -> None:
        name = event.name
        if name in FORMATS:
            self._begin_format(event)
        elif name == "br":
            self._line.append("\n")
        elif name == "img":
            self._image(event)
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
            is_told = sum(table is not None for table in self._tables) < MAX_TABLES
            self._tables.append(Table() if is_told else None)
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
        if self._outdent().is_begun and sheet.lists:
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
        """The line of text so far as a paragraph or a heading."""
        if not self._line:
            return
        lines = [line.strip() for line in "".join(self._line).split("\n")]
        self._line.clear()
        if self._level:
            words = " ".join(filter(None, lines))
            if words:
                self._write([words if self._plain else f"{'#' * self._level} {words}"], is_paragraph=False)
            return
        kept = [line for at, line in enumerate(lines) if line or (at > 0 and lines[at - 1])]
        while kept and not kept[-1]:
            kept.pop()
        if not self._plain:
            kept = [line if (start := _LINE_START.match(line)) is None else _escaped_start(start) for line in kept]
        if kept:
            self._write(kept)

    def _write(self, lines: list[str], *, is_paragraph: bool = True) -> None:
        sheet = self._sheets[-1]
        sheet.is_plain &= is_paragraph and not sheet.indents
        if sheet.lines and sheet.gap:
            sheet.lines.append("".join(indent.rest for indent in sheet.indents[: sheet.shared]).rstrip())
        if sheet.indents:
            for line in lines:
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
        """The sheet of a cell is done, if one was begun in this table."""
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
        self._marks.append(_Mark(name, len(self._line), event.attributes.get("href", "")))
        if is_code or name == "code":
            return
        if self._plain:
            self._line.append(_PLAIN_MARKS.get(name, ("", ""))[0])
        elif name == "a":
            if self._line and self._line[-1].endswith("!"):
                self._line[-1] = self._line[-1][:-1] + "\\!"  # no image
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
            self._line[mark.start :] = [_code(inside) if name == "code" else self._link(inside[1:], mark.address)]
        else:
            self._line.append(_MARKS.get(name, f"</{name}>"))

    def _link(self, words: str, address: str) -> str:
        self._room -= len(address)
        return f"<{address}>" if words == address else f"[{words}]({_in_parentheses(address)})"

    def _image(self, event: Start) -> None:
        alt, address = event.attributes.get("alt", ""), event.attributes.get("src", "")
        self._room -= len(alt)
        if self._plain or self._is_code:
            self._line.append(f"[image: {alt}]" if alt else "")
        elif address:
            self._room -= len(address)
            words = _BRACKETS.sub(_escaped, _SPECIAL.sub(_escaped, alt))
            self._line.append(f"![{words}]({_in_parentheses(address)})")
        else:
            self._line.append(_SPECIAL.sub(_escaped, alt))


def _code(text: str) -> str:
    """Text between as many ticks as it takes."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    ticks = "`" * (longest + 1)
    space = " " if longest and (text.startswith("`") or text.endswith("`")) else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def _in_parentheses(address: str) -> str:
    return address.replace("(", "%28").replace(")", "%29")


def _escaped(special: re.Match[str]) -> str:
    return "\\" + "\\".join(special[0])


def _escaped_start(start: re.Match[str]) -> str:
    at = start.start(2) if start[1] else 0
    return f"{start.string[:at]}\\{start.string[at:]}"
