"""Which names a tool may have on the wire, and its name in Python."""

from __future__ import annotations

import keyword
import re
from typing import Final

NAME_RULE: Final = (
    "a name has 1 to 128 characters: an ASCII letter, a digit or '_' first, then also '.', '/', ':', '-' and spaces; "
    "no '..', and no part like '__init__'"
)
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./ :-]{0,127}")
_PARTS: Final = re.compile(r"[./: -]")


def is_wire_name(name: str) -> bool:
    """Whether a tool may have this name.

    >>> [is_wire_name(name) for name in ("math.factorial", "../x", "__class__")]
    [True, False, False]
    """
    dunder = any(part.startswith("__") and part.endswith("__") for part in _PARTS.split(name))
    return _NAME.fullmatch(name) is not None and ".." not in name and not dunder


def attribute_name(wire: str) -> str:
    """The method name for a tool.

    >>> [attribute_name(name) for name in ("hubspot-list-objects", "math.factorial", "class", "_hidden", "3d")]
    ['hubspot_list_objects', 'math_factorial', 'class_', 'tool_hidden', 'tool_3d']
    """
    name = re.sub(r"\W", "_", wire, flags=re.ASCII)
    if not name[0].isalpha():
        name = "tool_" + name.lstrip("_")
    return f"{name}_" if keyword.iskeyword(name) else name
