"""Patterns mean the same to both engines: digits, letters and white space are those of Unicode.

The engine behind the types reads ``\\d``, ``\\w`` and ``\\s`` that way; the validator reads them as ECMA does, for ASCII.
"""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}"
_OUTSIDE: Final = {
    r"\d": r"\p{Nd}",
    r"\D": r"\P{Nd}",
    r"\w": f"[{_WORD}]",
    r"\W": f"[^{_WORD}]",
    r"\s": r"\p{White_Space}",
    r"\S": r"\P{White_Space}",
}
# Inside brackets only the negations of a single property can be written.
_INSIDE: Final = {**_OUTSIDE, r"\w": _WORD, r"\W": r"\W"}
_TOKEN: Final = re.compile(r"\\.|[\[\]]|[^\\\[\]]+", re.DOTALL)


def for_validator(pattern: str) -> str:
    r"""The pattern with Unicode's classes written out.

    >>> for_validator(r"^\d+[\s-]\w$")
    '^\\p{Nd}+[\\p{White_Space}-][\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}]$'
    """
    written = []
    is_inside = False
    for token in _TOKEN.findall(pattern):
        written.append((_INSIDE if is_inside else _OUTSIDE).get(token, token))
        is_inside = token == "[" or is_inside and token != "]"
    return "".join(written)
