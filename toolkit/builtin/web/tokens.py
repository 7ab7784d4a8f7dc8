"""HTML taken apart into tags and texts, in linear time whatever it holds.

Our own, because the standard library's ``html.parser`` takes quadratic time for unclosed tags, quotes and comments (45 s
for 60 kB in Python 3.11) and fails on some declarations and numbers. Every construct that is not closed goes on to
the end of the page, as it does in browsers: nothing is searched for a second time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Final, NamedTuple

# Everything else that begins with "<" is text.
_MARKUP: Final = re.compile(r"<(?=[A-Za-z/!?])")
_NAME: Final = re.compile(r"[A-Za-z][^\s/>]*+")
# A first "=" belongs to the name; the second group says whether there is a value.
_ATTRIBUTE: Final = re.compile(r"[\s/]*+([^\s/>]?+[^\s/>=]*+)\s*+(=?+)\s*+")
_UNQUOTED: Final = re.compile(r"[^\s>]*+")

_COMMENT_END: Final = re.compile("--!?>")

# In attributes a reference without its semicolon is more likely a part of a URL (?a=1&copy=2).
_REFERENCE: Final = re.compile(r"&(?:#[0-9]{1,7};?|#[xX][0-9a-fA-F]{1,6};?|[A-Za-z][A-Za-z0-9]{1,31};)")
# More digits than any character has; Python refuses to read very long ones.
_OVERLONG: Final = re.compile(r"&#[0-9]{8,}+")

# What nobody sees and what is no HTML inside. The end tag of each is the first of its name.
_UNSEEN: Final = frozenset({"script", "style", "iframe", "noembed", "noframes"})
_TEXTS: Final = frozenset({"title", "textarea"})
_ENDS: Final = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _UNSEEN | _TEXTS}

# The attributes anybody asks for; a page may have millions of others.
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
    """Whether it ends in ``/>``, which means something in XML and in drawings."""


_NO_ATTRIBUTES: Final[dict[str, str]] = {}


def tokens(page: str, *, is_xml: bool = False) -> Iterator[Tag | str]:
    """Tags and the texts between them, in order; comments, declarations, scripts and styles are left out.

    In XML a tag may close itself, else ``<script/>`` begins a script. A tag that the page ends in is left out.
    """
    at = 0
    while (start := _MARKUP.search(page, at)) is not None:
        mark = start.start()
        if mark > at:
            yield unescaped(page[at:mark])
        at = mark + 1
        if page[at] in "!?":
            at = _behind_comment(page, at)
            continue
        is_end = page[at] == "/"
        name = _NAME.match(page, at + is_end)
        if name is None:
            at = _behind_bracket(page, at)  # "</>" and the like
            continue
        attributes, at = _attributes(page, name.end())
        if at < 0:
            return
        tag = Tag(name[0].lower(), attributes, is_end, page.startswith("/>", at - 2))
        is_raw = tag.name in _ENDS and not is_end and not (is_xml and tag.is_closed)
        if tag.name not in _UNSEEN:
            yield tag
        if is_raw:
            end = _ENDS[tag.name].search(page, at)
            stop = len(page) if end is None else end.start()
            if tag.name in _TEXTS:
                yield unescaped(page[at:stop])
            at = stop
    if at < len(page):
        yield unescaped(page[at:])


def _behind_comment(page: str, at: int) -> int:
    """Where a comment or declaration, begun before ``at``, is over."""
    if not page.startswith("!--", at):
        return _behind_bracket(page, at)
    if page.startswith((">", "->"), at + 3):
        return page.index(">", at) + 1
    end = _COMMENT_END.search(page, at + 3)
    return len(page) if end is None else end.end()


def _behind_bracket(page: str, at: int) -> int:
    return page.find(">", at) + 1 or len(page)


def _attributes(page: str, at: int) -> tuple[dict[str, str], int]:
    """The attributes of a tag from behind its name, and where it is over; less than 0 if the page ends before."""
    found = _NO_ATTRIBUTES
    while True:
        match = _ATTRIBUTE.match(page, at)
        assert match is not None, "it matches nothing, too"
        name, has_value = match[1], match[2]
        at = match.end()
        if at == len(page):
            return found, -1
        if not name:
            return found, at + 1  # there is nothing else left to stand here but ">"
        value = ""
        if has_value and page[at] in "\"'":
            end = page.find(page[at], at + 1)
            if end < 0:
                return found, -1
            value, at = page[at + 1 : end], end + 1
        elif has_value:
            unquoted = _UNQUOTED.match(page, at)
            assert unquoted is not None, "it matches nothing, too"
            value, at = unquoted[0], unquoted.end()
        lower = name.lower() if len(name) < 20 else ""
        if lower in ATTRIBUTES and lower not in found:
            found = {**found, lower: _REFERENCE.sub(_referred, value) if "&" in value else value}


def _referred(reference: re.Match[str]) -> str:
    return unescape(reference[0])


def unescaped(text: str) -> str:
    """The text with every character reference replaced."""
    if "&" not in text:
        return text
    return unescape(_OVERLONG.sub("&#xfffd", text))
