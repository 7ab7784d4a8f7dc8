"""The types that a schema names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from toolkit.jsonschema.keywords import TYPE_WORDS, Schema

TYPES: Final = tuple(TYPE_WORDS)


def types_of(schema: Schema) -> list[str] | None:
    """The types that ``type`` names; None where it names none or is malformed.

    >>> types_of({"type": ["string", "null"]}), types_of({"minLength": 1})
    (['string', 'null'], None)
    """
    return as_types(schema.get("type"))


def as_types(value: Any) -> list[str] | None:
    """The value of ``type`` as a list; None for one that is malformed."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return value
    return None


_MEANT: Final = {
    "any": "left out",
    "bool": "'boolean'",
    "dict": "'object'",
    "float": "'number'",
    "double": "'number'",
    "int": "'integer'",
    "list": "'array'",
    "long": "'integer'",
    "none": "'null'",
    "str": "'string'",
    "text": "'string'",
    "tuple": "'array'",
}


def unknown_type(names: Iterable[str]) -> str:
    """The sentence for types that JSON Schema does not know.

    >>> unknown_type(["float"])
    "'type' must be one of array, boolean, integer, null, number, object, string, or a list of them; 'float' is 'number'"
    """
    meant = next((f"; {name!r} is {_MEANT[name.lower()]}" for name in names if name.lower() in _MEANT), "")
    return f"'type' must be one of {', '.join(sorted(TYPES))}, or a list of them{meant}"
