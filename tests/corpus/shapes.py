"""Expands a node of a JSON Schema into plain nodes: references followed, ``allOf`` merged, one branch chosen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

Node: TypeAlias = dict[str, Any]

KINDS: Final = {
    "string": ("minLength", "maxLength", "pattern"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": (
        "items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains", "unevaluatedItems",
    ),
    "object": (
        "properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
        "maxProperties", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties",
    ),
}  # fmt: skip
_EVERY: Final = ("string", "integer", "number", "boolean", "null", "array", "object")
_MOST = 16
_DEPTH = 12


class Shapes:
    """Looks into one schema; its answers are guesses, which the oracle confirms."""

    def __init__(self, root: Any) -> None:
        self.root = root

    def of(self, node: Any, depth: int = 0) -> list[Node]:
        """The nodes without unions and references that ``node`` expands to; at most a few."""
        if node is False or depth > _DEPTH:
            return []
        if not isinstance(node, dict):
            return [{}]
        plain = {word: value for word, value in node.items() if word not in _APPLIED}
        found = [plain]
        for alternatives in self._applied(node, depth):
            found = [merged(one, other) for one in found for other in alternatives][:_MOST]
        return found

    def _applied(self, node: Node, depth: int) -> Iterator[list[Node]]:
        if isinstance(node.get("$ref"), str):
            yield self.of(self.target(node["$ref"]), depth + 1)
        for part in _list(node.get("allOf")):
            yield self.of(part, depth + 1)
        for word in ("anyOf", "oneOf"):
            if _list(node.get(word)):
                yield [shape for branch in node[word] for shape in self.of(branch, depth + 1)]
        if "if" in node:
            then = [
                merged(a, b) for a in self.of(node["if"], depth + 1) for b in self.of(node.get("then", {}), depth + 1)
            ]
            yield then + self.of(node.get("else", {}), depth + 1)

    def target(self, ref: str) -> Any:
        """The target of a reference inside the schema; an empty schema if it leads elsewhere."""
        if not ref.startswith("#"):
            return {}
        node = self.root
        for part in unquote(ref[1:]).split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and key.isdigit() and int(key) < len(node):
                node = node[int(key)]
            elif isinstance(node, dict) and key in node:
                node = node[key]
            else:
                return {}
        return node


_APPLIED: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "if", "then", "else"})


def merged(one: Node, other: Node) -> Node:
    """Combines both, as far as one node can."""
    both = {**one, **other}
    for word in one.keys() & other.keys():
        a, b = one[word], other[word]
        if word == "properties" and isinstance(a, dict) and isinstance(b, dict):
            both[word] = {
                key: {"allOf": [a[key], b[key]]} if key in a and key in b else (a | b)[key] for key in (*a, *b)
            }
        elif word == "required":
            both[word] = [*_list(a), *(key for key in _list(b) if key not in _list(a))]
        elif word == "enum":
            both[word] = [value for value in _list(a) if value in _list(b)]
        elif word == "type":
            both[word] = [kind for kind in kinds(one) if kind in kinds(other)]
        elif word.startswith("min") and _numbers(a, b):
            both[word] = max(a, b)
        elif word.startswith("max") and _numbers(a, b):
            both[word] = min(a, b)
        elif word in ("items", "additionalProperties") and isinstance(a, dict) and isinstance(b, dict):
            both[word] = {"allOf": [a, b]}
    return both


def kinds(shape: Node) -> list[str]:
    """The types a plain node may have: those it names; otherwise all types, those its keywords apply to first."""
    named = shape.get("type")
    if isinstance(named, str):
        return [named]
    if isinstance(named, list):
        return [kind for kind in named if isinstance(kind, str)]
    spoken = [kind for kind, words in KINDS.items() if any(word in shape for word in words)]
    return [*spoken, *(kind for kind in _EVERY if kind not in spoken)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
