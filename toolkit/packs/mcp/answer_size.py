"""How much is in a message of a server, counted in its bytes before a parser makes objects of it.

A value of two bytes becomes an object of a hundred or more, so a limit of bytes alone does not limit memory. Counting takes
linear time, makes no object for a value, and ends at the first limit.
"""

from __future__ import annotations

import json
import re
from typing import Final

from toolkit.errors import ToolFailed

MAX_ITEMS: Final = 10_000
"""How many parts the content of one answer may have."""

MAX_VALUES: Final = 500_000
"""How many values one message may have, at all levels."""

# Scalars and whole strings, then what divides values. It matches everywhere, a string without an end too: a search that
# failed would begin again one byte later, and be quadratic.
_STEP: Final = re.compile(rb'((?:[^"\[\]{},]++|"[^"\\]*+(?:\\.[^"\\]*+)*+\\?(?:"|\Z))*+)([\[\]{},]|\Z)', re.DOTALL)
_KEY: Final = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*:\s*\Z', re.DOTALL)
_MAX_KEY: Final = 100
_IN_MESSAGE: Final = 2
_IN_RESULT: Final = 3


def find_excess(message: bytes) -> ToolFailed | None:
    """The error for a message that has too much in it.

    >>> find_excess(b'{"result": {"content": [' + b"{}, " * 10_000 + b"{}]}}").message
    "the server's answer has more than 10000 parts of content; no more are read"
    """
    if message.count(b",") + message.count(b"[") + message.count(b"{") < MAX_ITEMS:
        return None
    depth = values = items = 0
    is_result = is_content = was_opened = False
    for match in _STEP.finditer(message):
        token = match[2]
        if was_opened and (token in (b"[", b"{", b",") or match[1].strip()):  # the first value in it
            values += 1
        if token == b",":
            values += 1
            if is_content and depth == _IN_RESULT:
                items += 1
                if items > MAX_ITEMS:
                    return _too_large(MAX_ITEMS, "parts of content")
        elif token in (b"[", b"{"):
            depth += 1
            if depth == _IN_MESSAGE:
                is_result = _ends_in_key(match[1], "result")
            elif depth == _IN_RESULT:
                is_content, items = is_result and token == b"[" and _ends_in_key(match[1], "content"), 1
        else:
            depth -= 1
        was_opened = token in (b"[", b"{")
        if values > MAX_VALUES:
            return _too_large(MAX_VALUES, "values")
    return None


def _ends_in_key(text: bytes, name: str) -> bool:
    """Whether the text before a value ends in this key, however it is escaped."""
    found = _KEY.search(text[-_MAX_KEY:])
    try:
        return found is not None and json.loads(found[1]) == name
    except ValueError:
        return False


def _too_large(limit: int, what: str) -> ToolFailed:
    return ToolFailed("TOO_LARGE", f"the server's answer has more than {limit} {what}; no more are read")
