"""JSON pointers: where in a schema something is."""

from __future__ import annotations

from typing import Any


def below(pointer: str, key: str | int) -> str:
    """The JSON pointer of a key or an index below another.

    >>> below("/properties", "a/b")
    '/properties/a~1b'
    """
    return f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"


def steps(pointer: str) -> list[str]:
    """The keys a JSON pointer leads through.

    >>> steps("/properties/a~1b")
    ['properties', 'a/b']
    """
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def found_at(root: object, path: list[str]) -> tuple[Any, int]:
    """What these keys lead to, and how many of them do: the last that exists, where not all do."""
    value: Any = root
    for count, key in enumerate(path):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return value, count
    return value, len(path)
