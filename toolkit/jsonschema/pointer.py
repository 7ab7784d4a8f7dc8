"""JSON pointers (RFC 6901): where in a document something is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def escape_key(key: str | int) -> str:
    """A key as one part of a pointer.

    >>> escape_key("a/b~c")
    'a~1b~0c'
    """
    return str(key).replace("~", "~0").replace("/", "~1")


def unescape_key(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def join_pointer(pointer: str, *keys: str | int) -> str:
    """The pointer to a key or an index below another pointer.

    >>> join_pointer("/properties", "a/b", 0)
    '/properties/a~1b/0'
    """
    return "".join([pointer, *(f"/{escape_key(key)}" for key in keys)])


def split_pointer(pointer: str) -> list[str]:
    """The keys that a pointer leads through.

    >>> split_pointer("/properties/a~1b")
    ['properties', 'a/b']
    """
    return [unescape_key(part) for part in pointer.split("/")[1:]]


def find_at(root: object, keys: Sequence[str]) -> tuple[Any, int]:
    """What these keys lead to, and how many of them exist: the last value that does, where not all do.

    >>> find_at({"a": [1, 2]}, ["a", "1"]), find_at({"a": [1, 2]}, ["a", "7"])
    ((2, 2), ([1, 2], 1))
    """
    value: Any = root
    for count, key in enumerate(keys):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and _is_index(key) and int(key) < len(value):
            value = value[int(key)]
        else:
            return value, count
    return value, len(keys)


def _is_index(key: str) -> bool:
    # Bounded: Python refuses to read numbers of thousands of digits.
    return key.isascii() and key.isdecimal() and len(key) <= 18
