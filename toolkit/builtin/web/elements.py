"""Tables of HTML elements: which are blocks, which format text, which are hidden, and which end others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from toolkit.builtin.web.links import BaseUrl
from toolkit.builtin.web.tokens import Tag
from toolkit.visible import to_one_line

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
