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
    "any": "omit 'type'",
    "bool": "write 'boolean'",
    "dict": "write 'object'",
    "float": "write 'number'",
    "double": "write 'number'",
    "int": "write 'integer'",
    "list": "write 'array'",
    "long": "write 'integer'",
    "none": "write 'null'",
    "str": "write 'string'",
    "text": "write 'string'",
    "tuple": "write 'array'",
}


def unknown_type(names: Iterable[str]) -> str:
    """The sentence for types that JSON Schema does not know.

    >>> unknown_type(["float"]).partition("; ")[2]
    "instead of 'float', write 'number'"
    """
    name = next((name for name in names if name.lower() in _MEANT), None)
    meant = "" if name is None else f"; instead of {name!r}, {_MEANT[name.lower()]}"
    return f"'type' must be one of {', '.join(sorted(TYPES))}, or a list of them{meant}"
