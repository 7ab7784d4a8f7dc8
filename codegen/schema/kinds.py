"""Which JSON types a schema names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from toolkit.codegen.schema.accepts import json_type
from toolkit.codegen.schema.keywords import LIMITS
from toolkit.codegen.schema.references import Schema


def kinds_of(schema: Schema) -> list[str] | None:
    """The types a schema names itself; None where it names none.

    >>> kinds_of({"type": ["string", "null"]}), kinds_of({"minLength": 1})
    (['string', 'null'], None)
    """
    kind = schema.get("type")
    if isinstance(kind, str):
        return [kind]
    if isinstance(kind, list) and all(isinstance(word, str) for word in kind):
        return kind
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


def unknown_type(kinds: Iterable[str]) -> str:
    """The sentence for types that JSON Schema does not know.

    >>> unknown_type(["float"])
    "'type' must be one of array, boolean, integer, null, number, object, string, or a list of them; 'float' is 'number'"
    """
    meant = next((f"; {kind!r} is {_MEANT[kind.lower()]}" for kind in kinds if kind.lower() in _MEANT), "")
    return f"'type' must be one of {', '.join(sorted(LIMITS))}, or a list of them{meant}"


def is_one_of(value: object, kinds: list[str]) -> bool:
    """Whether a value has one of these types; whole numbers are numbers as well."""
    kind = json_type(value)
    return kind in kinds or kind == "integer" and "number" in kinds


def takes_only_objects(schema: Schema) -> bool:
    """Whether a schema takes objects only, and no choice among them."""
    return kinds_of(schema) == ["object"] and not any(word in schema for word in ("anyOf", "oneOf", "enum", "const"))
