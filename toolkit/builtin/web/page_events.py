"""Turns a page into balanced events for its visible, meaningful elements, in linear time.

Promise: scripts, styles, comments, event handlers and parts that the page marks as hidden never get through; only elements
of ``BLOCKS`` and ``FORMATS``, those in ``VOID`` and a few attributes do. Blocks are balanced and nested no deeper than
``MAX_OPEN``; formats are inside blocks, never around them, and never empty. White space is what a browser shows: one space
between words, none at the edges of a block, unchanged in ``pre``. URLs are absolute.

Limit: text hidden by a style sheet is not recognised.

A page has a hundred thousand tags and texts per megabyte, so the usual case of each step comes first and calls nothing it
does not need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from toolkit.builtin.web.elements import (
    CELLS,
    DROPPED,
    ELEMENTS,
    KEPT_EMPTY,
    OTHER,
    Element,
    image_attributes,
    is_hidden,
    kept_attributes,
    language_of,
)
from toolkit.builtin.web.events import ENDS, STARTS, End, Event, Start
from toolkit.builtin.web.links import BaseUrl
from toolkit.builtin.web.pace import EVERY
from toolkit.builtin.web.tokens import Tag, tokens
from toolkit.visible import drop_hidden, to_one_line

MAX_OPEN: Final = 200
"""Maximum number of open elements; the text of deeper ones goes to their ancestors."""

MAX_TITLE: Final = 300


class _Format(NamedTuple):
    """A format as written: its kind, the URL of a link, and its number among its kind on the page."""

    kind: str
    link: str
    number: int


class _OpenElement:
    """An open element: the name it is written as (if any), whether it is shown, and the state where it started."""

    __slots__ = ("formats", "is_in_pre", "is_shown", "language", "link", "name", "written")

    def __init__(
        self,
        name: str,
        written: str,
        is_shown: bool,
        is_in_pre: bool,
        formats: Mapping[str, int],
        link: str,
        language: str,
    ) -> None:
        self.name = name
        self.written = written
        self.is_shown = is_shown
        self.is_in_pre = is_in_pre
        self.formats = formats
        self.link = link
        self.language = language


class Page:
    """One page, cleaned while its ``events`` are read; ``title`` is set when they have passed it.

    ``check`` is called from time to time and may raise to cancel.
    """

    def __init__(self, text: str, url: str, *, is_xml: bool = False, check: Callable[[], None] = lambda: None) -> None:
        self.title: str | None = None
        self._tokens = tokens(text, is_xml=is_xml)
        self._is_xml = is_xml
        self._base = BaseUrl(url)
        self._check = check
        self._out: list[Event] = []
        # The first is the page itself, which never closes; the height of an element is its index here.
        self._open: list[_OpenElement] = [_OpenElement("", "", True, False, {}, "", "")]
        self._heights: dict[str, list[int]] = {}
        self._too_deep: Counter[str] = Counter()
        # Height of the outermost open element of DROPPED, if any: tags inside cannot end what is around it.
        self._dropped = 0
        # Blocks that have started but are still empty.
        self._waiting: list[Start] = []
        # How often each format is open. Open elements refer to it, so it is replaced, never changed.
        self._formats: Mapping[str, int] = {}
        self._numbers: Counter[str] = Counter()
        self._link = ""
        self._written_formats: list[_Format] = []
        self._is_at_edge = True
        self._is_at_line_start = True
        self._is_line_due = False
        self._space = False

    def events(self) -> Iterator[Event]:
        out = self._out
        while batch := list(islice(self._tokens, EVERY)):
            for token in batch:
                if isinstance(token, str):
                    self._add_text(token)
                elif token.is_end:
                    self._end(token.name)
                else:
                    self._start(token)
            yield from out
            out.clear()
            if len(batch) == EVERY:
                self._check()
        self._close_down_to(1)
        self._break()
        yield from out

    # -- tags ----------------------------------------------------------------------------------------------------------

    def _start(self, tag: Tag) -> None:
        name = tag.name
        element = ELEMENTS.get(name, OTHER)
        if element.is_void:
            if self._open[-1].is_shown:
                self._add_void(tag)
            return
        if element.block is not None:
            self._close_ended_by(element)
        if (is_hidden(tag) if tag.attributes else element.is_hidden) or not self._open[-1].is_shown:
            if not tag.is_closed or (name != "svg" and not self._height("svg")):
                self._push(self._known_name(name, element), "", is_shown=False)
        elif element.block is not None:
            self._begin_block(tag, element, element.block)
        elif element.format:
            self._begin_format(tag, element.format)
        elif name == "q":
            self._add_text("“")
        if tag.is_closed and self._is_xml:
            self._end(name)

    def _known_name(self, name: str, element: Element) -> str:
        """The name of an element among the open ones. A table part outside any table is "stray": not a boundary."""
        return f"stray {name}" if element.parents and not self._heights.get("table") else name

    def _begin_block(self, tag: Tag, element: Element, written: str) -> None:
        self._break()
        name, parent = tag.name, self._open[-1]
        if element.parents and not self._heights.get("table"):
            name, written = f"stray {name}", "div"
        if parent.is_in_pre:
            written = ""
        if not tag.attributes and written != "pre":
            language, start = parent.language, STARTS[written]
        else:
            language = language_of(tag, parent.language)
            start = Start(written, kept_attributes(tag, written, language))
        if self._push(name, written, is_shown=True, language=language) and written:
            self._waiting.append(start)
            if written in KEPT_EMPTY:
                self._begin_waiting()

    def _end(self, tag_name: str) -> None:
        element = ELEMENTS.get(tag_name, OTHER)
        name = self._known_name(tag_name, element) if element.parents else tag_name
        if name == "br":
            self._start(Tag("br", {}))
        elif self._too_deep and self._too_deep[name] > 0:
            self._too_deep[name] -= 1
            self._break()
        elif name == self._open[-1].name:
            self._close()
        elif height := self._height(name):
            walls = CELLS if name != tag_name else element.walls
            if height >= max(map(self._height, walls), default=0):
                self._close_down_to(height)
        elif element.format:
            if self._open[-1].is_shown:
                self._end_format(element.format)
        elif name == "q" and self._open[-1].is_shown:
            self._add_text("”")

    def _add_void(self, tag: Tag) -> None:
        if self._open[-1].is_in_pre:
            if tag.name == "br":
                self._add_raw("\n")
        elif tag.name == "br":
            if not self._waiting:
                self._break()
                self._write_block(STARTS["br"])
        elif tag.name == "hr":
            self._close_paragraph()
            self._break()
            self._begin_waiting()
            self._write_block(STARTS["hr"])
        elif tag.name == "img" and not is_hidden(tag):
            attributes = image_attributes(tag, self._base)
            if attributes:
                self._begin_content()
                self._out.append(Start("img", attributes))
        elif tag.name == "base":
            base = BaseUrl(self._base.resolve(tag.attributes.get("href", "")))
            if base.has_host:
                self._base = base

    # -- open elements -------------------------------------------------------------------------------------------------

    def _height(self, name: str) -> int:
        """Height of the innermost open element with this name; 0 if there is none."""
        heights = self._heights.get(name)
        return heights[-1] if heights else 0

    def _push(self, name: str, written: str, *, is_shown: bool, language: str = "") -> bool:
        height = len(self._open)
        if height > MAX_OPEN:
            self._too_deep[name] += 1
            self._break()
            return False
        if name in DROPPED and not self._dropped:
            self._dropped = height
        heights = self._heights.get(name)
        if heights is None:
            self._heights[name] = [height]
        else:
            heights.append(height)
        is_in_pre = written == "pre" or self._open[-1].is_in_pre
        self._open.append(_OpenElement(name, written, is_shown, is_in_pre, self._formats, self._link, language))
        return True

    def _close_ended_by(self, element: Element) -> None:
        """Close what the start of this block ends."""
        self._close_paragraph()
        innermost = self._open[-1].name
        if element.is_heading:
            if ELEMENTS.get(innermost, OTHER).is_heading:
                self._close()
        elif element.ends is not None:
            self._close_above_walls(*element.ends)
        elif element.parents and innermost not in element.parents:
            context = max(map(self._height, element.parents))
            if context > self._dropped and self._height("table"):
                self._close_down_to(context + 1)

    def _close_paragraph(self) -> None:
        if self._heights.get("p"):
            self._close_above_walls(("p",), CELLS)

    def _close_above_walls(self, names: tuple[str, ...], walls: tuple[str, ...]) -> None:
        if self._open[-1].name in walls:
            return
        heights = [self._heights[name][-1] for name in names if self._heights.get(name)]
        if heights:
            wall = max(self._dropped, *map(self._height, walls))
            self._close_down_to(min((height for height in heights if height > wall), default=len(self._open)))

    def _close_down_to(self, height: int) -> None:
        while len(self._open) > height:
            self._close()

    def _close(self) -> None:
        """Close the innermost open element."""
        element = self._open.pop()
        self._heights[element.name].pop()
        if self._too_deep:
            self._too_deep.clear()
        if self._dropped >= len(self._open):
            self._dropped = 0
        if not element.is_shown:
            return
        self._break()
        if element.written:
            if self._waiting:
                self._waiting.pop()
            else:
                self._out.append(ENDS[element.written])
                self._is_line_due = False
        # A format that was not ended inside ends here; one started outside and ended inside stays ended.
        if self._formats is not element.formats:
            now = self._formats
            self._formats = {kind: min(count, now[kind]) for kind, count in element.formats.items() if kind in now}
        self._link = element.link

    def _break(self) -> None:
        """Mark the edge of a block: formats end, white space is dropped, what follows starts a new line."""
        if not self._is_at_edge:
            self._is_line_due = self._is_at_edge = True
        self._space = False
        if self._written_formats:
            self._write_formats([])

    # -- content -------------------------------------------------------------------------------------------------------

    def _begin_format(self, tag: Tag, kind: str) -> None:
        formats = dict(self._formats)
        self._numbers[kind] += kind not in formats or kind == "a"
        if kind == "a":
            formats.pop("a", None)
            self._link = self._base.resolve(tag.attributes.get("href", ""))
            if self._link:
                formats["a"] = 1
        else:
            formats[kind] = formats.get(kind, 0) + 1
            if kind == "code" and self._waiting and self._waiting[-1].name == "pre":
                language = language_of(tag, "")
                if language:
                    self._waiting[-1] = Start("pre", {"class": f"language-{language}"})
        self._formats = formats

    def _end_format(self, kind: str) -> None:
        count = self._formats.get(kind, 0)
        if count:
            formats = dict(self._formats)
            if count > 1:
                formats[kind] = count - 1
            else:
                del formats[kind]
            self._formats = formats

    def _add_text(self, text: str) -> None:
        innermost = self._open[-1]
        if not innermost.is_shown:
            if innermost.name == "title" and self.title is None and len(self._open) == 2:
                self.title = to_one_line(text)[:MAX_TITLE] or None
            return
        if innermost.is_in_pre:
            self._add_raw(drop_hidden(text))
            return
        line = " ".join(text.split())
        if not line.isprintable():
            line = to_one_line(text)
        if not line:
            if text.isspace():
                self._space = not self._is_at_edge
            return
        if text[0].isspace() and not self._is_at_edge:
            self._space = True
        self._begin_content()
        self._out.append(line)
        self._space = text[-1].isspace()

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
        if self._waiting:
            self._begin_waiting()
        if self._is_line_due:
            self._write_block(STARTS["br"])  # where empty blocks were left out
        if self._formats or self._written_formats:
            numbers, link = self._numbers, self._link
            self._write_formats([_Format(kind, link if kind == "a" else "", numbers[kind]) for kind in self._formats])
        elif self._space:
            self._out.append(" ")
            self._space = False
        self._is_at_edge = False

    def _begin_waiting(self) -> None:
        if self._waiting:
            self._out += self._waiting
            self._waiting.clear()
            self._is_line_due = False

    def _write_block(self, event: Start | End) -> None:
        self._out.append(event)
        self._is_line_due = False

    def _write_formats(self, wanted: list[_Format]) -> None:
        """End and start formats until ``wanted`` are open; a pending space is written in between.

        A format that ends and starts again with nothing between is one format; with a space between, it is two.
        """
        written = self._written_formats
        kept = 0
        for before, after in zip(written, wanted, strict=False):
            if not self._is_same_format(before, after):
                break
            kept += 1
        while len(written) > kept:
            self._out.append(ENDS[written.pop().kind])
        if self._space:
            self._out.append(" ")
            self._space = False
        for format in wanted[kept:]:
            self._out.append(Start(format.kind, {"href": format.link}) if format.link else STARTS[format.kind])
        self._written_formats = wanted

    def _is_same_format(self, before: _Format, after: _Format) -> bool:
        return before[:2] == after[:2] and (before.number == after.number or not self._space)
