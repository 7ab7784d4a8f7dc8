"""Equal types of one document become one type.

Two types are equal if the code for them would be the same but for their names, all the way down. So the descriptions and
defaults of properties count: editors show them, and a default is behaviour. The description of a class counts, too, unless
every property that holds the class shows the same text: what a place is for is said at that place. An alias is only a
name for its type; two of them are equal only if they belong to properties of one name, because a shared name would be
wrong for one of them and save nothing.

Types are first taken for equal if they look alike apart from the types inside them, then told apart by the types inside
them until nothing changes. That way types that contain themselves are compared as well. The root is never merged with
another type: it alone is judged by the validator.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from toolkit.codegen.schema.document import Document
from toolkit.codegen.schema.naming.flat_nodes import map_nodes, reference_to, references, referred_name, sole_name
from toolkit.codegen.schema.naming.rename import rename_types
from toolkit.jsonschema.keywords import Schema


def share_equal_types(document: Document) -> Document:
    """The document with each type once. A type keeps the first of its names."""
    while len(document.objects) + len(document.aliases) > 1:
        representatives = _representatives(document)
        if all(name == first for name, first in representatives.items()):
            break
        # Unions may have become equal now, because two of their branches did.
        document = _merged(document, representatives)
    return document


def _representatives(document: Document) -> dict[str, str]:
    """For each named type but the root, the first type that is equal to it."""
    described = _described_where_used(document)
    keys = _keys_of_aliases(document)
    looks: dict[str, object] = {document.name: None}
    looks |= {name: _look(node, described=name in described) for name, node in document.objects.items()}
    looks |= {name: (_look(node, described=False), frozenset(keys[name])) for name, node in document.aliases.items()}
    inner = {name: tuple(references(node)) for name, node in document.nodes().items()}
    kinds = _number(looks)
    while True:
        finer = _number({name: (kind, *(kinds[part] for part in inner[name])) for name, kind in kinds.items()})
        if len(set(finer.values())) == len(set(kinds.values())):
            break
        kinds = finer
    first: dict[int, str] = {}
    return {name: first.setdefault(kind, name) for name, kind in kinds.items() if name != document.name}


def _look(node: Schema, *, described: bool) -> str:
    """All that counts in a node, except for which types it refers to."""
    bare = map_nodes(node, lambda inner: inner if referred_name(inner) is None else {**inner, **reference_to("")})
    if "required" in bare:
        bare["required"] = sorted(bare["required"])
    if described:
        bare.pop("description", None)
    return json.dumps(bare)


def _keys_of_aliases(document: Document) -> dict[str, set[str]]:
    """The properties that use each alias."""
    keys: dict[str, set[str]] = {name: set() for name in document.aliases}
    for node in document.nodes().values():
        for key, value in node.get("properties", {}).items():
            for name in references(value):
                if name in keys:
                    keys[name].add(key)
    return keys


def _number(keys: Mapping[str, object]) -> dict[str, int]:
    """A number for each name: the same where the keys are the same."""
    numbers: dict[object, int] = {}
    return {name: numbers.setdefault(key, len(numbers)) for name, key in keys.items()}


def _described_where_used(document: Document) -> set[str]:
    """The classes whose description is also that of every property that holds them."""
    shown: set[str] = set()
    hidden: set[str] = set()
    for node in document.nodes().values():
        properties = node.get("properties", {})
        for value in properties.values():
            name = sole_name(value)
            if name in document.objects and document.objects[name].get("description") == value.get("description"):
                shown.add(name)
            else:
                hidden.update(references(value))
        hidden.update(references({word: value for word, value in node.items() if word != "properties"}))
    return shown - hidden


def _merged(document: Document, representatives: Mapping[str, str]) -> Document:
    merged = rename_types(document, representatives)
    descriptions: dict[str, set[str | None]] = {}
    for name, first in representatives.items():
        if name in document.objects:
            descriptions.setdefault(first, set()).add(document.objects[name].get("description"))
    for name in (name for name, found in descriptions.items() if len(found) > 1):
        merged.objects[name].pop("description", None)
    return merged
