"""Walking a schema: every schema inside it with its pointer, and copies with each inner schema changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from toolkit.jsonschema.keywords import SUBSCHEMA_LISTS, SUBSCHEMA_MAPS, SUBSCHEMAS, Schema
from toolkit.jsonschema.pointer import join_pointer

Keys: TypeAlias = tuple[str] | tuple[str, str | int]


def children(schema: Schema) -> Iterator[tuple[Keys, Any]]:
    """Whatever is where a schema contains a schema, well-formed or not, with the keys that lead there.

    >>> list(children({"items": True, "enum": [{}], "anyOf": [{}], "properties": {"a": {}}}))
    [(('items',), True), (('anyOf', 0), {}), (('properties', 'a'), {})]
    """
    for word, value in schema.items():
        if word in SUBSCHEMA_LISTS and isinstance(value, list):
            yield from (((word, at), item) for at, item in enumerate(value))
        elif word in SUBSCHEMA_MAPS and isinstance(value, dict):
            # Up to draft-07 a value of ``dependencies`` may also be a list of names.
            yield from (((word, key), item) for key, item in value.items() if not isinstance(item, list))
        elif word in SUBSCHEMAS:
            yield (word,), value


def subschemas(schema: object) -> Iterator[tuple[str, Schema]]:
    """The schema itself and every schema inside it, each with its pointer, in the order of the document."""
    pending: list[tuple[str, object]] = [("", schema)]
    while pending:
        pointer, node = pending.pop()
        if isinstance(node, dict):
            yield pointer, node
            inner = [(join_pointer(pointer, *keys), child) for keys, child in children(node)]
            pending += reversed(inner)


def map_children(schema: Schema, change: Callable[[Any, str], Any], pointer: str = "") -> Schema:
    """A copy in which ``change`` has replaced each schema directly inside; it is also given that schema's pointer."""
    made = dict(schema)
    for keys, child in children(schema):
        word, changed = keys[0], change(child, join_pointer(pointer, *keys))
        if len(keys) == 1:
            made[word] = changed
        else:
            if made[word] is schema[word]:
                made[word] = schema[word].copy()
            made[word][keys[1]] = changed
    return made
