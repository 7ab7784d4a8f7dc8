"""Marks of ours in a schema, which say something to the toolkit and nothing to a model."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

_MARKS: Final = frozenset({"x-resource", "x-secret"})
_BY_NAME: Final = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_DATA: Final = frozenset({"default", "const", "enum", "examples"})


def told_schema(schema: Any) -> Any:
    """A copy without our marks: what a model is told. A property may be called as a mark is.

    >>> told_schema({"properties": {"x-secret": {"type": "string", "x-secret": True}}})
    {'properties': {'x-secret': {'type': 'string'}}}
    """
    if isinstance(schema, list):
        return [told_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _below(key, value) for key, value in schema.items() if key not in _MARKS}


def _below(key: str, value: Any) -> Any:
    if key in _DATA:
        return deepcopy(value)
    if key in _BY_NAME and isinstance(value, dict):
        return {name: told_schema(item) for name, item in value.items()}
    return told_schema(value)
