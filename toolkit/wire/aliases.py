"""Aliases for tool names that a provider would refuse; the toolkit that has the tool resolves them."""

from __future__ import annotations

import hashlib
import re
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]+")
_DIGEST: Final = 8


def is_plain(name: str) -> bool:
    """Whether every provider accepts the name as it is."""
    return _PLAIN.match(name) is not None


def alias(name: str) -> str:
    """A name that every provider accepts: the name itself, or a readable form of it with a digest, which makes it unique.

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
