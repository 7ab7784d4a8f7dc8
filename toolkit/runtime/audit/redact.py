"""Leaves out of arguments what their schema marks as secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_ALTERNATIVES: Final = ("anyOf", "oneOf", "allOf")
_MAX_REFERENCES: Final = 64


def redacted(value: object, schema: Mapping[str, Any]) -> object:
    """A copy in which null stands for whatever lies under an ``x-secret``.

    >>> redacted({"user": "me", "key": "k"}, {"properties": {"key": {"x-secret": True}}})
    {'user': 'me', 'key': None}
    """
    return _below(value, schema, schema)


def _below(value: object, schema: object, root: Mapping[str, Any]) -> object:
    schema = _followed(schema, root)
    if not isinstance(schema, Mapping):
        return value
    if schema.get("x-secret"):
        return None
    for word in _ALTERNATIVES:
        for part in schema.get(word) or ():
            value = _below(value, part, root)
    if isinstance(value, dict):
        known = schema.get("properties") or {}
        others = schema.get("additionalProperties")
        return {key: _below(item, known.get(key, others), root) for key, item in value.items()}
    if isinstance(value, list):
        first = schema.get("prefixItems") or ()
        rest = schema.get("items")
        return [_below(item, first[at] if at < len(first) else rest, root) for at, item in enumerate(value)]
    return value


def _followed(schema: object, root: Mapping[str, Any]) -> object:
    """The schema a local reference leads to."""
    for _ in range(_MAX_REFERENCES):
        if not isinstance(schema, Mapping) or not isinstance(schema.get("$ref"), str):
            return schema
        found: object = root
        for part in schema["$ref"].removeprefix("#").strip("/").split("/"):
            part = part.replace("~1", "/").replace("~0", "~")
            found = found.get(part) if isinstance(found, Mapping) and part else found
        schema = found
    return None
