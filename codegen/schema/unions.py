"""A union with keywords next to it: whether each branch, together with them, has a type of its own."""

from __future__ import annotations

from typing import Any, Final

from toolkit.jsonschema.keywords import UNIONS, Schema, has_assertions
from toolkit.jsonschema.types import TYPES, types_of

_OF_VALUES: Final = ("enum", "const", *UNIONS)
_OF_PARTS: Final = ("items", "additionalProperties")


def refines(siblings: Schema, branch: Schema) -> bool:
    """Whether a branch says more about the type than the keywords next to its union; both are without references.

    >>> refines({"type": "object"}, {"properties": {"kind": {"const": "a"}}})
    True
    >>> refines({"type": "object"}, {"required": ["a"]})
    False
    """
    named = types_of(branch)
    if named is not None and not set(named) >= set(types_of(siblings) or TYPES):
        return True
    if any(word in branch for word in _OF_VALUES):
        return True
    if any(_says_more(siblings.get(word), branch[word]) for word in _OF_PARTS if word in branch):
        return True
    known = _properties(siblings)
    return any(_says_more(known.get(name), schema) for name, schema in _properties(branch).items())


def _says_more(known: object, schema: object) -> bool:
    return isinstance(schema, dict) and has_assertions(schema) and schema != known


def _properties(schema: Schema) -> dict[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}
