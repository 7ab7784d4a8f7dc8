"""JSON values as JSON Schema sees them: their types, and when two of them are equal."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from fractions import Fraction
from typing import Any, Final


def json_type(value: object) -> str:
    """The most specific JSON Schema type of a value: a number without a fraction is an integer.

    >>> [json_type(value) for value in (None, True, 1, 1.0, 1.5, "x", [], {})]
    ['null', 'boolean', 'integer', 'integer', 'number', 'string', 'array', 'object']
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) or value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def has_type(value: object, name: object) -> bool:
    """Whether a value is of a JSON Schema type: 1.0 is an integer, true is not a number.

    >>> has_type(1.0, "integer"), has_type(1, "number"), has_type(True, "number")
    (True, True, False)
    """
    if name in ("integer", "number"):
        return is_number(value) and (name == "number" or json_type(value) == "integer")
    kind = _PYTHON_TYPES.get(name) if isinstance(name, str) else None
    return kind is not None and isinstance(value, kind)


_PYTHON_TYPES: Final[dict[str, type]] = {
    "string": str,
    "boolean": bool,
    "null": type(None),
    "object": dict,
    "array": list,
}


def is_number(value: object) -> bool:
    """Whether a value is a finite number; booleans are not numbers."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def same_json(one: object, other: object) -> bool:
    """Whether two JSON values are equal as JSON Schema understands it.

    >>> same_json(1, 1.0), same_json(1, True), same_json([1], [1.0])
    (True, False, True)
    """
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    alike = type(one) is type(other) or (isinstance(one, int | float) and isinstance(other, int | float))
    return alike and one == other


def json_key(value: Any) -> Hashable:
    """A key that two values share exactly where ``same_json`` holds, to look one up among many.

    >>> json_key(1) == json_key(1.0), json_key(1) == json_key(True), json_key({"a": []}) == json_key({"a": {}})
    (True, False, False)
    """
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, dict):
        return dict, frozenset((key, json_key(item)) for key, item in value.items())
    if isinstance(value, list):
        return list, tuple(map(json_key, value))
    assert isinstance(value, Hashable)
    return value


def are_disjoint(values: Iterable[Any], others: Iterable[Any]) -> bool:
    """Whether no value of one list is equal to a value of the other."""
    return set(map(json_key, values)).isdisjoint(map(json_key, others))


def is_multiple(value: float, step: float) -> bool:
    """Whether a number is a multiple of another, fractions taken as they are written in decimal.

    >>> is_multiple(0.3, 0.1), is_multiple(1e17, 3)
    (True, False)
    """
    return (as_fraction(value) / as_fraction(step)).denominator == 1


def as_fraction(number: float) -> Fraction:
    """The exact number that the decimal text of a JSON number means."""
    whole = isinstance(number, int) or number.is_integer()
    return Fraction(number) if whole else Fraction(repr(number))
