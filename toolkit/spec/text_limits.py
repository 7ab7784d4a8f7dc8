"""Limits that YAML and JSON texts share: depth, size, numbers, Unicode."""

from __future__ import annotations

import math
import re
from typing import Final

from toolkit.schema.problems import clip

MAX_DEPTH: Final = 100  # of a whole file; a schema has its own, smaller limit in check.py
MAX_JSON_CONTAINERS: Final = 1_000_000
"""Lists and objects in one JSON text. They make reading costly: ``[],`` takes 50 times its size while it is read."""
MAX_YAML_VALUES: Final = 3_000_000
"""Values in one YAML text, keys included; reading a million of them takes about two seconds."""
MAX_DIGITS: Final = 400
TOO_DEEP: Final = f"nested deeper than {MAX_DEPTH} levels"
NOT_UNICODE: Final = "the text contains a lone surrogate, which is not valid Unicode"

_SURROGATE = re.compile("[\ud800-\udfff]")


def is_unicode(text: str) -> bool:
    return text.isascii() or _SURROGATE.search(text) is None


def parse_number(text: str) -> int | float:
    """The value of a decimal number; ``ValueError`` if it is too large, with a sentence that says so.

    >>> parse_number("1e3"), parse_number("-12")
    (1000.0, -12)
    """
    digits = sum(map(str.isdigit, text))
    if digits >= MAX_DIGITS:
        raise ValueError(f"the number has {digits} digits; fewer than {MAX_DIGITS} are allowed")
    if text.lstrip("+-").isdigit():
        return int(text)
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {clip(text)} is too large for a float")
    return value
