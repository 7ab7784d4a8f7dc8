"""Turns a page into balanced events for its visible, meaningful elements, in linear time.

Promise: scripts, styles, comments, event handlers and parts that the page marks as hidden never get through; only elements
of ``BLOCKS`` and ``FORMATS``, those in ``VOID`` and a few attributes do. Blocks are balanced and nested no deeper than
``MAX_OPEN``; formats are inside blocks, never around them, and never empty. White space is what a browser shows: one space
between words, none at the edges of a block, unchanged in ``pre``. URLs are absolute.

Limit: text hidden by a style sheet is not recognised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from toolkit.builtin.web.elements import (
    BLOCKS,
    CELLS,
    CONTEXTS,
    DROPPED,
    ENDED_BY,
    FORMATS,
    HEADINGS,
    KEPT_EMPTY,
    WALLS,
    WITHOUT_END,
    image_attributes,
    is_hidden,
    kept_attributes,
    language_of,
)
from toolkit.builtin.web.links import BaseUrl
from toolkit.builtin.web.pace import Pace
from toolkit.builtin.web.tokens import Tag, tokens
from toolkit.visible import drop_hidden, to_one_line

MAX_OPEN: Final = 200
"""Maximum number of open elements; the text of deeper ones goes to their ancestors."""

MAX_TITLE: Final = 300

_NOTHING: Final[Mapping[str, str]] = {}


class Start(NamedTuple):
    """The start of an element, or a whole element of ``VOID``."""

    name: str
    attributes: Mapping[str, str] = _NOTHING


class End(NamedTuple):
    """The end of the innermost open element."""

    name: str


Event: TypeAlias = Start | End | str
VOID: Final = frozenset({"br", "hr", "img"})


class _Format(NamedTuple):
    """A format as written: its kind, the URL of a link, and its number among its kind on the page."""

    kind: str
    link: str
    number: int


class _OpenElement(NamedTuple):
    """An open element: the name it is written as (if any), whether it is shown, and the state where it started."""

    name: str
    written: str
    is_shown: bool
    is_in_pre: bool
    formats: dict[str, int]
    link: str
    language: str


class Page:
    """One page, cleaned while its ``events`` are read; ``title`` is set when they have passed it.

    ``check`` is called from time to time and may raise to cancel.
    """

    def __init__(self, text: str, url: str, *, is_xml: bool = False, check: Callable[[], None] = lambda: None) -> None:
        self.title: str | None = None
        self._tokens = tokens(text, is_xml=is_xml)
        self._is_xml = is_xml
        self._base = BaseUrl(url)
        self._pace = Pace(check)
        self._out: list[Event] = []
        self._open: list[_OpenElement] = []
        self._heights: dict[str, list[int]] = {}
        self._too_deep: Counter[str] = Counter()
        # Height of the outermost open element of DROPPED: tags inside cannot end what is around it.
        self._dropped = -1
        # Blocks that have started but are still empty.
        self._waiting: list[Start] = []
        self._formats: dict[str, int] = {}
        self._numbers: Counter[str] = Counter()
        self._link = ""
        self._written_formats: list[_Format] = []
        self._is_at_edge = True
        self._is_at_line_start = True
        self._is_line_due = False
        self._space = False

    def events(self) -> Iterator[Event]:
        for token in self._tokens:
            self._pace.step()
            if isinstance(token, str):
                self._add_text(token)
            elif token.is_end:
                self._end(token.name)
            else:
                self._start(token)
                if self._is_xml and token.is_closed and token.name not in WITHOUT_END:
                    self._end(token.name)
            if self._out:
                yield from self._out
                self._out.clear()
        self._close_down_to(0)
        self._break()
        yield from self._out

    # -- tags ----------------------------------------------------------------------------------------------------------

    def _start(self, tag: Tag) -> None:
        name = tag.name
        if name in WITHOUT_END:
            if self._is_shown:
                self._add_void(tag)
            return
        self._close_ended_by(name)
        known = self._known_name(name)
        if not self._is_shown or is_hidden(tag):
            if not tag.is_closed or (name != "svg" and self._height("svg") < 0):
                self._push(known, "", is_shown=False)
        elif name in BLOCKS:
            self._break()
            language = language_of(tag, self._language)
            written = self._written_name(name)
            if self._push(known, written, is_shown=True, language=language) and written:
                self._waiting.append(Start(written, kept_attributes(tag, written, language)))
                if written in KEPT_EMPTY:
                    self._begin_waiting()
        elif name in FORMATS:
            self._begin_format(tag)
        elif name == "q":
            self._add_text("“")

    def _known_name(self, name: str) -> str:
        """The name of an element among the open ones. A table part outside any table is "stray": not a boundary."""
        return f"stray {name}" if name in CONTEXTS and self._height("table") < 0 else name

    def _written_name(self, name: str) -> str:
        if self._is_in_pre:
            return ""
        return "div" if name in CONTEXTS and self._height("table") < 0 else BLOCKS[name]

    def _end(self, tag_name: str) -> None:
        name = self._known_name(tag_name)
        if name == "br":
            self._start(Tag("br", {}))
        elif self._too_deep[name] > 0:
            self._too_deep[name] -= 1
            self._break()
        elif (height := self._height(name)) >= 0:
            if height >= max((self._height(wall) for wall in WALLS.get(name, CELLS)), default=-1):
                self._close_down_to(height)
        elif self._is_shown and name in FORMATS:
            self._end_format(FORMATS[name])
        elif self._is_shown and name == "q":
            self._add_text("”")

    def _add_void(self, tag: Tag) -> None:
        if self._is_in_pre:
            if tag.name == "br":
                self._add_raw("\n")
        elif tag.name == "br":
            if not self._waiting:
                self._break()
                self._write_block(Start("br"))
        elif tag.name == "hr":
            self._close_ended_by("hr")
            self._break()
            self._begin_waiting()
            self._write_block(Start("hr"))
        elif tag.name == "img" and not is_hidden(tag):
            attributes = image_attributes(tag, self._base)
            if attributes:
                self._begin_content()
                self._out.append(Start("img", attributes))
        elif tag.name == "base":
            address = self._base.resolve(tag.attributes.get("href", ""))
            if address.startswith("http"):
                self._base = BaseUrl(address)

    # -- open elements -------------------------------------------------------------------------------------------------

    @property
    def _is_shown(self) -> bool:
        return not self._open or self._open[-1].is_shown

    @property
    def _is_in_pre(self) -> bool:
        return bool(self._open) and self._open[-1].is_in_pre

    @property
    def _language(self) -> str:
        return self._open[-1].language if self._open else ""

    def _height(self, name: str) -> int:
        """Height of the innermost open element with this name; negative if there is none."""
        heights = self._heights.get(name)
        return heights[-1] if heights else -1

    def _push(self, name: str, written: str, *, is_shown: bool, language: str = "") -> bool:
        if len(self._open) >= MAX_OPEN:
            self._too_deep[name] += 1
            self._break()
            return False
        if name in DROPPED and self._dropped < 0:
            self._dropped = len(self._open)
        self._heights.setdefault(name, []).append(len(self._open))
        is_in_pre = written == "pre" or self._is_in_pre
        self._open.append(_OpenElement(name, written, is_shown, is_in_pre, dict(self._formats), self._link, language))
        return True

    def _close_ended_by(self, name: str) -> None:
        if name in BLOCKS or name == "hr":
            self._close_above_walls(("p",), CELLS)
            if name in HEADINGS and self._open and self._open[-1].name in HEADINGS:
                self._close_down_to(len(self._open) - 1)
        if name in ENDED_BY:
            self._close_above_walls(*ENDED_BY[name])
        elif name in CONTEXTS:
            context = max(map(self._height, CONTEXTS[name]))
            if context > self._dropped and self._height("table") >= 0:
                self._close_down_to(context + 1)

    def _close_above_walls(self, names: tuple[str, ...], walls: tuple[str, ...]) -> None:
        heights = [self._heights[name][-1] for name in names if self._heights.get(name)]
        if heights:
            wall = max(self._dropped, *map(self._height, walls))
            self._close_down_to(min((height for height in heights if height > wall), default=len(self._open)))

    def _close_down_to(self, height: int) -> None:
        while len(self._open) > height:
            element = self._open.pop()
            self._heights[element.name].pop()
            self._too_deep.clear()
            if len(self._open) <= self._dropped:
                self._dropped = -1
            if not element.is_shown:
                continue
            self._break()
            if element.written and self._waiting:
                self._waiting.pop()
            elif element.written:
                self._write_block(End(element.written))
            # A format that was not ended inside ends here; one started outside and ended inside stays ended.
            now = self._formats
            self._formats = {kind: min(count, now[kind]) for kind, count in element.formats.items() if kind in now}
            self._link = element.link

    def _break(self) -> None:
        """Mark the edge of a block: formats end, white space is dropped, what follows starts a new line."""
        self._is_line_due |= not self._is_at_edge
        self._is_at_edge, self._space = True, False
        self._write_formats([])

    # -- content -------------------------------------------------------------------------------------------------------

    def _begin_format(self, tag: Tag) -> None:
        kind = FORMATS[tag.name]
        self._numbers[kind] += kind not in self._formats or kind == "a"
        if kind == "a":
            self._formats.pop("a", None)
            self._link = self._base.resolve(tag.attributes.get("href", ""))
            if self._link:
                self._formats["a"] = 1
            return
        self._formats[kind] = self._formats.get(kind, 0) + 1
        if kind == "code" and self._waiting and self._waiting[-1].name == "pre":
            language = language_of(tag, "")
            if language:
                self._waiting[-1] = Start("pre", {"class": f"language-{language}"})

    def _end_format(self, kind: str) -> None:
        count = self._formats.get(kind, 0)
        if count > 1:
            self._formats[kind] = count - 1
        elif count:
            del self._formats[kind]

    def _add_text(self, text: str) -> None:
        if not self._is_shown:
            if self.title is None and self._open[-1].name == "title" and len(self._open) == 1:
                self.title = to_one_line(text)[:MAX_TITLE] or None
            return
        if self._is_in_pre:
            self._add_raw(drop_hidden(text))
            return
        line = to_one_line(text)
        if line:
            self._space |= text[0].isspace() and not self._is_at_edge
            self._begin_content()
            self._out.append(line)
            self._space = text[-1].isspace()
        elif text.isspace():
            self._space = not self._is_at_edge

    def _add_raw(self, text: str) -> None:
        """Add preformatted text; a block inside starts and ends a line."""
        if self._waiting:
            text = text.lstrip("\n")
        if text:
            self._begin_waiting()
            if self._is_line_due and not self._is_at_line_start and not text.startswith("\n"):
                text = f"\n{text}"
            self._out.append(text)
            self._is_at_edge, self._is_line_due, self._is_at_line_start = False, False, text.endswith("\n")

    def _begin_content(self) -> None:
        """Start the blocks and formats of what comes next; a space before it goes into the formats both share."""
        self._begin_waiting()
        if self._is_line_due:
            self._write_block(Start("br"))  # where empty blocks were left out
        wanted = [_Format(kind, self._link if kind == "a" else "", self._numbers[kind]) for kind in self._formats]
        self._write_formats(wanted)
        self._is_at_edge = False

    def _begin_waiting(self) -> None:
        for start in self._waiting:
            self._write_block(start)
        self._waiting.clear()

    def _write_block(self, event: Start | End) -> None:
        self._out.append(event)
        self._is_line_due = False

    def _write_formats(self, wanted: list[_Format]) -> None:
        """End and start formats until ``wanted`` are open; a pending space is written in between.

        A format that ends and starts again with nothing between is one format; with a space between, it is two.
        """
        written = self._written_formats
        if written or wanted:
            kept = 0
            while kept < min(len(written), len(wanted)) and self._is_same_format(written[kept], wanted[kept]):
                kept += 1
            while len(written) > kept:
                self._out.append(End(written.pop().kind))
        if self._space:
            self._out.append(" ")
            self._space = False
        for format in wanted[len(written) :]:
            self._out.append(Start(format.kind, {"href": format.link} if format.link else _NOTHING))
        written[:] = wanted

    def _is_same_format(self, before: _Format, after: _Format) -> bool:
        return before[:2] == after[:2] and (before.number == after.number or not self._space)
