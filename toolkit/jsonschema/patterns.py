r"""Patterns as ECMA-262 reads them, which JSON Schema asks for: ``\d``, ``\w`` and ``\s`` are classes of ASCII.

The linear-time engine behind the generated types reads them as classes of Unicode, so for it they are written out. White
space has a few characters outside ASCII in ECMA-262 as well.
"""

from __future__ import annotations

import re
from typing import Final

_SPACE: Final = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_SETS: Final = {r"\d": "0-9", r"\w": "0-9A-Za-z_", r"\s": _SPACE}
_OUTSIDE: Final = {
    **{name: f"[{members}]" for name, members in _SETS.items()},
    **{name.upper(): f"[^{members}]" for name, members in _SETS.items()},
}
# Inside brackets the engine takes a set in a set, which a negation needs.
_INSIDE: Final = {**_OUTSIDE, **_SETS}
_TOKEN: Final = re.compile(r"\\.|[\[\]]|[^\\\[\]]+", re.DOTALL)


def for_linear_engine(pattern: str) -> str:
    r"""The pattern with its classes written out; one without them stays as it is.

    >>> for_linear_engine(r"^\d+[\w-]$")
    '^[0-9]+[0-9A-Za-z_-]$'
    """
    if not any(name in pattern for name in _OUTSIDE):
        return pattern
    written = []
    is_inside = False
    for token in _TOKEN.findall(pattern):
        written.append((_INSIDE if is_inside else _OUTSIDE).get(token, token))
        is_inside = token == "[" or (is_inside and token != "]")
    return "".join(written)
