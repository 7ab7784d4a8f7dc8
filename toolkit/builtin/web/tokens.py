"""Splits HTML into tags and texts, in linear time whatever the input.

The standard library's ``html.parser`` takes quadratic time for unclosed tags, quotes and comments (45 s for 60 kB in
Python 3.11) and fails on some declarations and numbers. Here an unclosed construct extends to the end of the page, as in
browsers, so nothing is searched twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Final

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
