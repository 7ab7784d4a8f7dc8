"""Names a provider would refuse, made into names every provider takes; the toolkit that has the tool knows them again."""

from __future__ import annotations

import hashlib
import re
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]+")
_DIGEST: Final = 8


def is_plain(name: str) -> bool:
    """Whether every provider takes the name as it is."""
    return _PLAIN.match(name) is not None


def alias(name: str) -> str:
    """The name every provider takes: itself, or a readable form with a digest that keeps it apart from others.

    >>> alias("read_file"), alias("math.factorial")
    ('read_file', 'math_factorial-2f2114b7')
    """
    if is_plain(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    readable = _ODD.sub("_", name)
    if not readable or readable[0].isdigit() or readable[0] == "-":
        readable = f"t_{readable}"
    return f"{readable[: 63 - _DIGEST]}-{digest}"
