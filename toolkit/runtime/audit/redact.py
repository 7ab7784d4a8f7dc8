"""Removes from arguments what their schema marks as secret, before the audit log sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolkit.jsonschema.keywords import APPLIED_IN_PLACE, REFERENCES, Schema
from toolkit.jsonschema.walk import children
from toolkit.schema.accepts import compile_pattern, matches
from toolkit.schema.keywords import References

_REFERENCES: Final = frozenset(REFERENCES)
_EXPANDING: Final = frozenset((*REFERENCES, *APPLIED_IN_PLACE))


def redact(value: object, schema: Mapping[str, Any]) -> object:
    """A copy in which null replaces every value that some schema which may apply to it marks as ``x-secret``.

    All branches of a schema may apply. A value whose schema is behind a reference that cannot be followed is taken for a
    secret.

    >>> redact({"user": "me", "key": "k"}, {"properties": {"key": {"x-secret": True}}})
    {'user': 'me', 'key': None}
    """
    return _redact(value, [schema], References(schema))


def may_mark_secrets(schema: Mapping[str, Any]) -> bool:
    """Whether ``redact`` could find a secret: somewhere in the schema is a mark, or a reference to another place.

    >>> may_mark_secrets({"properties": {"path": {"type": "string"}}})
    False
    """
    pending: list[object] = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if "x-secret" in node or not _REFERENCES.isdisjoint(node):
                return True
            pending += node.values()
        elif isinstance(node, list):
            pending += node
    return False


def _redact(value: object, schemas: list[Any], references: References) -> object:
    found = _all_in_place(schemas, references)
    if found is None or any(schema.get("x-secret") for schema in found):
        return None
    if isinstance(value, dict) and found:
        return {key: _redact(item, _for_property(found, key), references) for key, item in value.items()}
    if isinstance(value, list) and found:
        return [_redact(item, _for_item(found, at), references) for at, item in enumerate(value)]
    return value


def _all_in_place(schemas: list[Any], references: References) -> list[Schema] | None:
    """Every schema that may apply to the same value; None if a reference among them cannot be followed."""
    found: dict[int, Schema] = {}
    for schema in schemas:  # grows on the way
        if not isinstance(schema, dict) or id(schema) in found:
            continue
        found[id(schema)] = schema
        if _EXPANDING.isdisjoint(schema):
            continue
        for word in REFERENCES:
            if word in schema:
                target = references.find(schema[word])
                if target is None:
                    return None
                schemas.append(target.schema)
        schemas += [child for (word, *_), child in children(schema) if word in APPLIED_IN_PLACE]
    return list(found.values())


def _for_property(schemas: list[Schema], key: str) -> list[Any]:
    found: list[Any] = []
    for schema in schemas:
        named, patterns = schema.get("properties"), schema.get("patternProperties")
        fitting = [named[key]] if isinstance(named, dict) and key in named else []
        if isinstance(patterns, dict):
            fitting += [inner for pattern, inner in patterns.items() if _may_match(pattern, key)]
        found += fitting or [schema.get("additionalProperties")]
        found.append(schema.get("unevaluatedProperties"))
    return found


def _may_match(pattern: str, key: str) -> bool:
    return compile_pattern(pattern) is None or matches(pattern, key)


def _for_item(schemas: list[Schema], at: int) -> list[Any]:
    found: list[Any] = []
    for schema in schemas:
        first, rest = schema.get("prefixItems"), schema.get("items")
        if isinstance(rest, list):  # as drafts up to 2019-09 write ``prefixItems``
            first, rest = rest, schema.get("additionalItems")
        found.append(first[at] if isinstance(first, list) and at < len(first) else rest)
        found += (schema.get("contains"), schema.get("unevaluatedItems"))
    return found
