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

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape, unescape
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from toolkit.visible import drop_hidden, to_one_line

# ----------------------------------------------------------------------------------------------------------------------
# Splits HTML into tags and texts, in linear time whatever the input.
#
# The standard library's ``html.parser`` takes quadratic time for unclosed tags, quotes and comments (45 s for 60 kB in
# Python 3.11) and fails on some declarations and numbers. Here an unclosed construct extends to the end of the page, as in
# browsers, so nothing is searched twice.

# Any other "<" is text.
_MARKUP: Final = re.compile(r"<(?=[A-Za-z/!?])")
_NAME: Final = re.compile(r"[A-Za-z][^\s/>]*+")
# A leading "=" belongs to the name; the second group says whether there is a value.
_ATTRIBUTE: Final = re.compile(r"[\s/]*+([^\s/>]?+[^\s/>=]*+)\s*+(=?+)\s*+")
_UNQUOTED: Final = re.compile(r"[^\s>]*+")

_COMMENT_END: Final = re.compile("--!?>")

# In attributes a reference without its semicolon is more likely a part of a URL (?a=1&copy=2).
_REFERENCE: Final = re.compile(r"&(?:#[0-9]{1,7};?|#[xX][0-9a-fA-F]{1,6};?|[A-Za-z][A-Za-z0-9]{1,31};)")
# More digits than any code point has; Python refuses to parse very long numbers.
_OVERLONG: Final = re.compile(r"&#[0-9]{8,}+")

# Invisible elements, and those whose content is not HTML. Each ends at the first end tag of its name.
_INVISIBLE: Final = frozenset({"script", "style", "iframe", "noembed", "noframes"})
_RAW_TEXT: Final = frozenset({"title", "textarea"})
_ENDS: Final = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _INVISIBLE | _RAW_TEXT}

# The attributes that are used; a page may have millions of others.
ATTRIBUTES: Final = frozenset(
    ("alt", "aria-hidden", "class", "colspan", "data-src", "height", "hidden", "href", "open", "rowspan", "src", "start",
     "style", "value", "width")
)  # fmt: skip


@dataclass(slots=True)
class Tag:
    """A start or end tag; the name is in lower case, ``attributes`` holds those of ``ATTRIBUTES``. Not to be changed."""

    name: str
    attributes: Mapping[str, str]
    is_end: bool = False
    is_closed: bool = False
    """Whether it ends in ``/>``, which has a meaning in XML and SVG."""


_NO_ATTRIBUTES: Final[dict[str, str]] = {}

# A page repeats a few short tags very often. Each is read once and then recognised by what is between its brackets; the
# limits keep a page of different tags from filling the memory, and a stray "<" from copying the rest of the page.
_MAX_KNOWN: Final = 2000
_MAX_KNOWN_LENGTH: Final = 80


def tokens(page: str, *, is_xml: bool = False) -> Iterator[Tag | str]:
    """Tags and the texts between them, in order; comments, declarations, scripts and styles are left out.

    In XML a tag may close itself; in HTML ``<script/>`` starts a script. A tag that is cut off by the end is left out.
    """
    known: dict[str, Tag] = {}
    find = page.find
    at = bracket = 0
    while (mark := find("<", at)) >= 0:
        if bracket < mark:
            bracket = find(">", mark)
            if bracket < 0:
                bracket = len(page)
        tag = known.get(page[mark + 1 : bracket]) if bracket - mark <= _MAX_KNOWN_LENGTH else None
        if tag is not None:
            if mark > at:
                text = page[at:mark]
                yield unescape_text(text) if "&" in text else text
            yield tag
            at = bracket + 1
            continue
        markup = _MARKUP.search(page, mark)
        if markup is None:
            break
        mark = markup.start()
        if mark > at:
            yield unescape_text(page[at:mark])
        tag, at = _read_tag(page, mark + 1)
        if tag is None:
            continue
        if tag.name not in _INVISIBLE:
            yield tag
        if tag.name not in _ENDS:
            if at == bracket + 1 and at - mark <= _MAX_KNOWN_LENGTH and len(known) < _MAX_KNOWN:
                known[page[mark + 1 : bracket]] = tag
        elif not tag.is_end and not (is_xml and tag.is_closed):
            end = _ENDS[tag.name].search(page, at)
            stop = len(page) if end is None else end.start()
            if tag.name in _RAW_TEXT:
                yield unescape_text(page[at:stop])
            at = stop
    if at < len(page):
        yield unescape_text(page[at:])


def _read_tag(page: str, at: int) -> tuple[Tag | None, int]:
    """The tag that starts before ``at``, if it is one that does not end with the page, and the position after it."""
    if page[at] in "!?":
        return None, _skip_comment(page, at)
    is_end = page[at] == "/"
    name = _NAME.match(page, at + is_end)
    if name is None:
        return None, _skip_to_bracket(page, at)  # "</>" and the like
    attributes, at = _read_attributes(page, name.end())
    if at < 0:
        return None, len(page)
    return Tag(name[0].lower(), attributes, is_end, page.startswith("/>", at - 2)), at


def _skip_comment(page: str, at: int) -> int:
    """The position after a comment or declaration that starts before ``at``."""
    if not page.startswith("!--", at):
        return _skip_to_bracket(page, at)
    if page.startswith((">", "->"), at + 3):
        return page.index(">", at) + 1
    end = _COMMENT_END.search(page, at + 3)
    return len(page) if end is None else end.end()


def _skip_to_bracket(page: str, at: int) -> int:
    return page.find(">", at) + 1 or len(page)


def _read_attributes(page: str, at: int) -> tuple[dict[str, str], int]:
    """The attributes of a tag, read from after its name, and the position after it; negative if the page ends first."""
    found = _NO_ATTRIBUTES
    while True:
        match = _ATTRIBUTE.match(page, at)
        assert match is not None, "it also matches the empty string"
        name, has_value = match[1], match[2]
        at = match.end()
        if at == len(page):
            return found, -1
        if not name:
            return found, at + 1  # only ">" can be here
        value = ""
        if has_value and page[at] in "\"'":
            end = page.find(page[at], at + 1)
            if end < 0:
                return found, -1
            value, at = page[at + 1 : end], end + 1
        elif has_value:
            unquoted = _UNQUOTED.match(page, at)
            assert unquoted is not None, "it also matches the empty string"
            value, at = unquoted[0], unquoted.end()
        lower = name.lower() if len(name) < 20 else ""
        if lower in ATTRIBUTES and lower not in found:
            found = {**found, lower: _REFERENCE.sub(_unescape_reference, value) if "&" in value else value}


def _unescape_reference(reference: re.Match[str]) -> str:
    return unescape(reference[0])


def unescape_text(text: str) -> str:
    """The text with every character reference replaced."""
    if "&" not in text:
        return text
    return unescape(_OVERLONG.sub("&#xfffd", text))


# ----------------------------------------------------------------------------------------------------------------------
# Resolves links and image sources of a page to absolute URLs.

_MAX_ADDRESS: Final = 8192
_SCHEME: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_SCHEMES: Final = frozenset({"http", "https", "mailto", "tel"})
_URL_PARTS: Final = re.compile(r"(https?:)(//[^/?#]*)([^?#]*)")
# Characters that would end a URL, or have a meaning in the text around it.
_UNSAFE: Final = {ord(letter): f"%{ord(letter):02X}" for letter in ' "<>\\^`{|}'}


class BaseUrl:
    """The URL of a page, split once because a page may have very many links."""

    def __init__(self, url: str) -> None:
        found = _URL_PARTS.match(url)
        self.has_host: Final = found is not None
        """Whether links can be resolved against it; ``mailto:`` and ``http:path`` have none."""
        self._scheme, self._host, path = found.groups() if found else ("", "", "")
        self._path = path
        self._folder = path[: path.rfind("/") + 1] or "/"

    def resolve(self, reference: str) -> str:
        """The absolute URL of ``reference``; empty if it is not one that a reader could open.

        That is an anchor on the page itself, a script, inline data, or not a URL at all.
        Limit: ``..`` is resolved only at the start; elsewhere it is left to the server.

        >>> BaseUrl("http://example.org/x/y").resolve("../b c")
        'http://example.org/b%20c'
        """
        if not 0 < len(reference) <= _MAX_ADDRESS:
            return ""
        reference = to_one_line(reference)
        if not reference or reference.startswith("#"):
            return ""
        scheme = _SCHEME.match(reference)
        if scheme is not None:
            address = reference if scheme[1].lower() in _SCHEMES else ""
        elif reference.startswith("//"):
            address = f"{self._scheme}{reference}"
        elif reference.startswith("/"):
            address = f"{self._scheme}{self._host}{reference}"
        elif reference.startswith("?"):
            address = f"{self._scheme}{self._host}{self._path or '/'}{reference}"
        else:
            address = f"{self._scheme}{self._host}{self._resolve_relative(reference)}"
        return address.translate(_UNSAFE) if len(address) <= _MAX_ADDRESS else ""

    def _resolve_relative(self, reference: str) -> str:
        """The path of a reference relative to the folder of this page."""
        at, end = 0, len(self._folder)
        while True:
            if reference.startswith("./", at):
                at += 2
            elif reference.startswith("../", at):
                at, end = at + 3, self._parent_end(end)
            elif reference[at:] in (".", ".."):
                return self._folder[: end if reference[at:] == "." else self._parent_end(end)]
            else:
                return self._folder[:end] + reference[at:]

    def _parent_end(self, end: int) -> int:
        """The end of the parent of the folder that ends at ``end``; the root is its own parent."""
        return max(self._folder.rfind("/", 0, end - 1) + 1, 1)


# ----------------------------------------------------------------------------------------------------------------------
# Tables of HTML elements: which are blocks, which format text, which are hidden, and which end others.

# Each block element and the name it is written as; empty if only its edges count.
BLOCKS: Final = {
    **{f"h{level}": f"h{level}" for level in range(1, 7)},
    **{name: name for name in ("p", "div", "ul", "ol", "li", "dl", "dt", "dd", "blockquote", "pre", "address")},
    **{name: name for name in ("table", "caption", "tr", "th", "td", "figure", "figcaption", "details", "summary")},
    **{name: name for name in ("main", "article", "section", "nav", "header", "footer", "aside")},
    **dict.fromkeys(("center", "dialog", "fieldset", "form", "hgroup", "legend", "search"), "div"),
    **dict.fromkeys(("dir", "menu"), "ul"),
    **dict.fromkeys(("listing", "xmp"), "pre"),
    **dict.fromkeys(("thead", "tbody", "tfoot", "colgroup"), ""),
}
FORMATS: Final = {
    "a": "a",
    **dict.fromkeys(("b", "strong"), "strong"),
    **dict.fromkeys(("i", "em"), "em"),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), "code"),
    **dict.fromkeys(("del", "s", "strike"), "del"),
    "sub": "sub",
    "sup": "sup",
}
WITHOUT_END: Final = frozenset(
    ("area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)  # fmt: skip
# Elements without readable text: drawings, players, form choices, duplicated formulas.
DROPPED: Final = frozenset(
    ("annotation", "annotation-xml", "applet", "audio", "canvas", "datalist", "map", "object", "select", "svg", "template",
     "textarea", "title", "video")
)  # fmt: skip
HEADINGS: Final = frozenset(f"h{level}" for level in range(1, 7))
_HIDING: Final = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_MAX_STYLE: Final = 2000

# Which open elements a start tag ends, unless one of the walls is between.
CELLS: Final = ("td", "th", "caption", "table")
_LISTS: Final = ("ul", "ol", "menu", "dir")
_PARTS: Final = ("thead", "tbody", "tfoot")
_ENDED_BY: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "li": (("li",), (*_LISTS, *CELLS)),
    **dict.fromkeys(("dt", "dd"), (("dt", "dd"), ("dl", *CELLS))),
}
# The parents of table parts: each part ends all that is open above the innermost of these; outside a table it means nothing.
_PARENTS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys((*_PARTS, "caption", "colgroup"), ("table",)),
    "tr": (*_PARTS, "table"),
    **dict.fromkeys(("td", "th"), ("tr", *_PARTS, "table")),
}
# Elements that an end tag does not reach across.
_WALLS: Final[Mapping[str, tuple[str, ...]]] = {
    "li": (*_LISTS, *CELLS),
    **dict.fromkeys(("dt", "dd"), ("dl", *CELLS)),
    **dict.fromkeys((*_PARTS, "tr", "td", "th", "caption"), ("table",)),
    "table": (),
}
# Kept even if empty, because they make up columns.
KEPT_EMPTY: Final = frozenset({"td", "th"})


@dataclass(frozen=True, slots=True)
class Element:
    """What the tables above say about the elements of one name, so that a tag needs one look-up."""

    is_void: bool
    is_hidden: bool
    """Whether it is hidden when it has no attributes."""
    block: str | None
    """The block it is written as: empty if only its edges count, None if it is no block."""
    format: str
    """The format it is written as, if any."""
    is_heading: bool
    parents: tuple[str, ...]
    ends: tuple[tuple[str, ...], tuple[str, ...]] | None
    walls: tuple[str, ...]


def _element(name: str) -> Element:
    return Element(
        is_void=name in WITHOUT_END,
        is_hidden=name in DROPPED or name == "dialog",
        block=BLOCKS.get(name),
        format=FORMATS.get(name, ""),
        is_heading=name in HEADINGS,
        parents=_PARENTS.get(name, ()),
        ends=_ENDED_BY.get(name),
        walls=_WALLS.get(name, CELLS),
    )


ELEMENTS: Final = {name: _element(name) for name in (*BLOCKS, *FORMATS, *WITHOUT_END, *DROPPED)}
OTHER: Final = _element("")

_LANGUAGE: Final = re.compile(
    r"(?:^|\s)(?:(?:language|lang|highlight-source|highlight)-|brush:\s?)([a-zA-Z][\w+#.-]{0,19})", re.ASCII
)
_NOT_LANGUAGES: Final = frozenset({"default", "none", "notranslate", "plain", "plaintext", "text"})
_NUMBERS: Final = {"ol": ("start",), "li": ("value",), "td": ("colspan", "rowspan"), "th": ("colspan", "rowspan")}
_NUMBER: Final = re.compile(r"[0-9]{1,6}")


def is_hidden(tag: Tag) -> bool:
    attributes = tag.attributes
    if tag.name in DROPPED:
        return True
    if tag.name in ("html", "body"):
        return False  # scripts, which do not run here, would show it
    if not attributes:
        return tag.name == "dialog"
    return (
        "hidden" in attributes
        or (tag.name == "dialog" and "open" not in attributes)
        # On inline elements it marks ornaments and duplicated formulas; on a block, a page behind a dialog.
        or (tag.name not in BLOCKS and attributes.get("aria-hidden", "").lower() == "true")
        or ("style" in attributes and _HIDING.search(attributes["style"][:_MAX_STYLE]) is not None)
    )


def kept_attributes(tag: Tag, written: str, language: str) -> dict[str, str]:
    given = tag.attributes
    if written == "pre":
        return {"class": f"language-{language}"} if language else {}
    return {name: given[name] for name in _NUMBERS.get(written, ()) if _NUMBER.fullmatch(given.get(name, ""))}


def image_attributes(tag: Tag, base: BaseUrl) -> dict[str, str]:
    """The attributes to keep of an image; none for decoration and tracking pixels."""
    given = tag.attributes
    alt = to_one_line(given.get("alt", ""))
    is_pixel = given.get("width", "") in ("0", "1") or given.get("height", "") in ("0", "1")
    if is_pixel or ("alt" in given and not alt):
        return {}
    address = base.resolve(given.get("src", "")) or base.resolve(given.get("data-src", ""))
    if not address.startswith("http"):
        return {"alt": alt} if alt else {}
    return {"src": address, "alt": alt} if alt else {"src": address}


def language_of(tag: Tag, parent: str) -> str:
    """The language of code in this element, from the class that highlighters set, else that of the parent."""
    classes = tag.attributes.get("class", "")
    is_code = BLOCKS.get(tag.name) == "pre" or tag.name == "code"
    if not classes or not (is_code or "highlight" in classes):
        return parent
    found = _LANGUAGE.search(classes[:_MAX_STYLE])
    return found[1].lower() if found and found[1].lower() not in _NOT_LANGUAGES else parent


# ----------------------------------------------------------------------------------------------------------------------
# The events that a cleaned page consists of: starts and ends of elements, and the texts between them.


@dataclass(frozen=True, slots=True)
class Start:
    """The start of an element, or a whole element of ``VOID``."""

    name: str
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class End:
    """The end of the innermost open element."""

    name: str


Event: TypeAlias = Start | End | str
VOID: Final = frozenset({"br", "hr", "img"})

# Most events are one of these: made once.
_NAMES: Final = (*VOID, *BLOCKS.values(), *FORMATS.values())
STARTS: Final = {name: Start(name) for name in _NAMES}
ENDS: Final = {name: End(name) for name in _NAMES}


# ----------------------------------------------------------------------------------------------------------------------
# Asks whether to go on, now and then, while a page is converted.

EVERY: Final = 1024


class Pace:
    """Calls ``check``, which may raise, on every 1024th step: a step is a few microseconds of work.

    >>> asked = []
    >>> pace = Pace(lambda: asked.append("?"))
    >>> for _ in range(2048):
    ...     pace.step()
    >>> len(asked)
    2
    """

    __slots__ = ("_check", "_steps")

    def __init__(self, check: Callable[[], None] = lambda: None) -> None:
        self._check = check
        self._steps = 0

    def step(self) -> None:
        self._steps += 1
        if not self._steps % EVERY:
            self._check()


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


# ----------------------------------------------------------------------------------------------------------------------
# Writes page events as clean HTML; cleaning it again changes nothing.


def to_html(events: Iterable[Event], room: int) -> str:
    """The events as HTML; stops when there are more than ``room`` characters."""
    pieces: list[str] = []
    for event in events:
        if isinstance(event, str):
            piece = escape(event, quote=False)
        elif isinstance(event, Start):
            attributes = "".join(f' {name}="{escape(value)}"' for name, value in event.attributes.items())
            piece = f"<{event.name}{attributes}>"
        else:
            piece = f"</{event.name}>"
        if not isinstance(event, str) and (event.name in VOID or not isinstance(event, Start)):
            # A line break between blocks has no meaning, and makes the HTML readable.
            piece += "" if event.name in FORMATS or event.name == "img" else "\n"
        pieces.append(piece)
        room -= len(piece)
        if room < 0:
            break
    return "".join(pieces).strip()
