"""Splits HTML into tags and texts, in linear time whatever the input.

The standard library's ``html.parser`` takes quadratic time for unclosed tags, quotes and comments (45 s for 60 kB in
Python 3.11) and fails on some declarations and numbers. Here an unclosed construct extends to the end of the page, as in
browsers, so nothing is searched twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Final, NamedTuple

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


class Tag(NamedTuple):
    """A start or end tag; the name is in lower case, ``attributes`` holds those of ``ATTRIBUTES``."""

    name: str
    attributes: dict[str, str]
    is_end: bool = False
    is_closed: bool = False
    """Whether it ends in ``/>``, which has a meaning in XML and SVG."""


_NO_ATTRIBUTES: Final[dict[str, str]] = {}


def tokens(page: str, *, is_xml: bool = False) -> Iterator[Tag | str]:
    """Tags and the texts between them, in order; comments, declarations, scripts and styles are left out.

    In XML a tag may close itself; in HTML ``<script/>`` starts a script. A tag that is cut off by the end is left out.
    """
    at = 0
    while (start := _MARKUP.search(page, at)) is not None:
        mark = start.start()
        if mark > at:
            yield unescape_text(page[at:mark])
        at = mark + 1
        if page[at] in "!?":
            at = _skip_comment(page, at)
            continue
        is_end = page[at] == "/"
        name = _NAME.match(page, at + is_end)
        if name is None:
            at = _skip_to_bracket(page, at)  # "</>" and the like
            continue
        attributes, at = _read_attributes(page, name.end())
        if at < 0:
            return
        tag = Tag(name[0].lower(), attributes, is_end, page.startswith("/>", at - 2))
        is_raw = tag.name in _ENDS and not is_end and not (is_xml and tag.is_closed)
        if tag.name not in _INVISIBLE:
            yield tag
        if is_raw:
            end = _ENDS[tag.name].search(page, at)
            stop = len(page) if end is None else end.start()
            if tag.name in _RAW_TEXT:
                yield unescape_text(page[at:stop])
            at = stop
    if at < len(page):
        yield unescape_text(page[at:])


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
