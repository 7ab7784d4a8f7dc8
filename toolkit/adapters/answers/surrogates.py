"""Lone surrogates: halves of characters, which JSON can express and UTF-8 cannot.

A model that is cut, or that writes a bad escape, sends them. A text with one of them cannot be sent in any later request.
"""

from __future__ import annotations

import re
from typing import Any, Final

_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE: Final = re.compile("[\ud800-\udfff]")
_FIRST_HALF_AT_END: Final = re.compile("[\ud800-\udbff]\\Z")
_REPLACEMENT: Final = "\ufffd"


def mend_text(text: str) -> str:
    """The text with pairs of halves joined. A first half at the end is dropped; other lone halves become U+FFFD.

    >>> mend_text("a\\ud83d\\ude00") == "a\\U0001f600", mend_text("\\ude00b"), mend_text("c\\ud83d")
    (True, '\ufffdb', 'c')
    """
    if text.isascii() or _LONE.search(text) is None:
        return text
    joined = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _LONE.sub(_REPLACEMENT, _FIRST_HALF_AT_END.sub("", joined))


def mend(value: Any) -> Any:
    """The same for all texts in a JSON value, keys included. Objects of other types stay as they are."""
    if isinstance(value, str):
        return mend_text(value)
    if isinstance(value, dict):
        return {mend(key): mend(item) for key, item in value.items()}
    if isinstance(value, list):
        return [mend(item) for item in value]
    return tuple(mend(item) for item in value) if type(value) is tuple else value


class WholeCharacters:
    """A text that comes in pieces, which may cut a character in two: its first half is returned with its second half."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, piece: str) -> str:
        text = self._half + piece if self._half else piece
        if text.isascii():
            return text
        half = _FIRST_HALF_AT_END.search(text)
        self._half = half[0] if half else ""
        return mend_text(text)
