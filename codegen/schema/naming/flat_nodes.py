"""The nodes of a flat schema: what is inside them, and which named types they refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from toolkit.jsonschema.keywords import Schema

_PREFIX: Final = "#/$defs/"


def reference_to(name: str) -> Schema:
    """The node that stands for a named type."""
    return {"$ref": f"{_PREFIX}{name}"}


def referred_name(node: Schema) -> str | None:
    """The name of the type that a node stands for; None if it is no reference."""
    ref = node.get("$ref")
    return ref.removeprefix(_PREFIX) if isinstance(ref, str) else None


def is_null(node: Schema) -> bool:
    return node.get("type") == "null" or node.get("enum") == [None]


def alternatives(node: Schema) -> list[Schema]:
    """The branches of a union that are not null; any other node is its only alternative."""
    return [branch for branch in node["anyOf"] if not is_null(branch)] if "anyOf" in node else [node]


def sole_name(node: Schema) -> str | None:
    """The type that a node stands for, alone or next to null."""
    rest = alternatives(node)
    return referred_name(rest[0]) if len(rest) == 1 else None


def map_nodes(node: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """A copy of a node: first what is inside it is changed, then the node itself."""
    copy = dict(node)
    for word in ("items", "additionalProperties"):
        if isinstance(node.get(word), dict):
            copy[word] = map_nodes(node[word], change)
    if "properties" in node:
        copy["properties"] = {key: map_nodes(value, change) for key, value in node["properties"].items()}
    if "anyOf" in node:
        copy["anyOf"] = [map_nodes(branch, change) for branch in node["anyOf"]]
    return change(copy)


def references(node: Schema) -> Iterator[str]:
    """The names that a node refers to, in their order; a name may come several times."""
    name = referred_name(node)
    if name is not None:
        yield name
    inner = [node.get("items"), node.get("additionalProperties"), *node.get("anyOf", ())]
    for part in (*inner, *node.get("properties", {}).values()):
        if isinstance(part, dict):
            yield from references(part)
