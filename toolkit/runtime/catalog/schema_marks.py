"""The toolkit's own marks in schemas, which are not shown to models."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

_MARKS: Final = frozenset({"x-resource", "x-secret"})
_BY_NAME: Final = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_DATA: Final = frozenset({"default", "const", "enum", "examples"})


def strip_marks(schema: Any) -> Any:
    """A copy of the schema without our marks. A property that has the name of a mark stays.

    >>> strip_marks({"properties": {"x-secret": {"type": "string", "x-secret": True}}})
    {'properties': {'x-secret': {'type': 'string'}}}
    """
    if isinstance(schema, list):
        return [strip_marks(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _strip_value(key, value) for key, value in schema.items() if key not in _MARKS}


def _strip_value(key: str, value: Any) -> Any:
    if key in _DATA:
        return deepcopy(value)
    if key in _BY_NAME and isinstance(value, dict):
        return {name: strip_marks(item) for name, item in value.items()}
    return strip_marks(value)
