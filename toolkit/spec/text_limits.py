"""The limits both text formats share: depth, numbers, Unicode."""

from __future__ import annotations

import math
import re
from typing import Final

from toolkit.spec.problems import clip

MAX_DEPTH: Final = 100  # of a whole file; a schema has its own, smaller limit in check.py
MAX_DIGITS: Final = 400
NOT_UNICODE: Final = "half of a surrogate pair is no Unicode text"

_SURROGATE = re.compile("[\ud800-\udfff]")


def too_deep(line: int, column: int) -> str:
    return f"nested deeper than {MAX_DEPTH} levels (line {line}, column {column})"


def is_unicode(text: str) -> bool:
    return text.isascii() or _SURROGATE.search(text) is None


def number(text: str) -> int | float:
    """The value of a decimal number; ``ValueError`` holds a sentence about one that is too large.

    >>> number("1e3"), number("-12")
    (1000.0, -12)
    """
    digits = sum(map(str.isdigit, text))
    if digits >= MAX_DIGITS:
        raise ValueError(f"a number of {digits} digits: fewer than {MAX_DIGITS} are read")
    if text.lstrip("+-").isdigit():
        return int(text)
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {clip(text)} is too large for a float")
    return value
