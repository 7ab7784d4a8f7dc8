"""A document with other names for its types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from toolkit.codegen.schema.document import Document
from toolkit.codegen.schema.naming.flat_nodes import map_nodes, reference_to, referred_name
from toolkit.codegen.schema.naming.name_hint import NameHint
from toolkit.jsonschema.keywords import Schema


def rename_types(document: Document, names: Mapping[str, str]) -> Document:
    """The document with these names. Of types that get one name, the first stays; types without a name are left out."""
    hints: dict[str, NameHint] = {}
    for name, new in names.items():
        hints[new] = hints.get(new, NameHint()) | document.hints.get(name, NameHint())
    return replace(
        document,
        root=_renamed(document.root, names),
        objects=_all_renamed(document.objects, names),
        aliases=_all_renamed(document.aliases, names),
        recursive={names[name] for name in document.recursive if name in names},
        hints=hints,
    )


def _all_renamed(types: Mapping[str, Schema], names: Mapping[str, str]) -> dict[str, Schema]:
    found: dict[str, Schema] = {}
    for name, node in types.items():
        if name in names and names[name] not in found:
            found[names[name]] = _renamed(node, names)
    return found


def _renamed(node: Schema, names: Mapping[str, str]) -> Schema:
    def change(inner: Schema) -> Schema:
        name = referred_name(inner)
        if name is not None:
            return {**inner, **reference_to(names.get(name, name))}
        return _without_repetition(inner) if "anyOf" in inner else inner

    return map_nodes(node, change)


def _without_repetition(union: Schema) -> Schema:
    """A union with each of its branches once: two of them may have become one type."""
    branches = [branch for index, branch in enumerate(union["anyOf"]) if branch not in union["anyOf"][:index]]
    rest = {word: value for word, value in union.items() if word != "anyOf"}
    return {**rest, **(branches[0] if len(branches) == 1 else {"anyOf": branches})}
