"""One schema to be compared: its references resolved, older spellings written as 2020-12 has them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Node: TypeAlias = dict[str, Any] | bool

TYPES: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
# What says nothing of which values are accepted; `format` is not asserted here.
ANNOTATIONS: Final = frozenset(
    {
        "$anchor", "$comment", "$defs", "$id", "$schema", "contentEncoding", "contentMediaType", "contentSchema", "default",
        "definitions", "deprecated", "description", "example", "examples", "format", "id", "readOnly", "title", "writeOnly",
    }
)  # fmt: skip
NAMED: Final = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
LISTED: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
SINGLE: Final = (
    "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems",
    "unevaluatedProperties",
)  # fmt: skip
# Words that judge the same value as the schema they stand in.
_IN_PLACE: Final = ("allOf", "anyOf", "oneOf")
_IN_PLACE_SINGLE: Final = ("if", "then", "else", "not")
_SAYS_MORE: Final = frozenset({"additionalProperties", "patternProperties", "unevaluatedProperties"})
_BASE_CHANGING: Final = ("$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor")
_MAX_DEPTH: Final = 12


@dataclass(frozen=True, slots=True)
class Named:
    """The properties of one object."""

    names: frozenset[str]
    says_more: bool
    """Whether anything is said of properties without a name."""


class Document:
    """A schema and what its references stand for."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self._normal: dict[int, tuple[Node, Node]] = {}
        self._less: dict[tuple[int, str], Node] = {}
        dialect = str(root.get("$schema", "")) if isinstance(root, dict) else ""
        # Up to draft-07 words beside a reference mean nothing.
        self._refs_stand_alone = any(f"draft-0{number}" in dialect for number in (3, 4, 6, 7))
        self.is_plain = not any(word in node for node in nodes(root) for word in _BASE_CHANGING) and not any(
            "$id" in node for node in nodes(root) if node is not root
        )
        """Whether a reference such as ``#/$defs/X`` means that place of this document, wherever it stands."""

    def normal(self, node: Node) -> Node:
        """The node as 2020-12 would write it; the same object for the same node."""
        found = self._normal.get(id(node))
        if found is None:
            made = node if isinstance(node, bool) else _normal(node)
            # The node is kept, so that its id stays its own.
            found = self._normal[id(node)] = (made, node)
        return found[0]

    def without(self, node: dict[str, Any], word: str) -> Node:
        """The node less one word; the same object each time."""
        key = (id(node), word)
        if key not in self._less:
            self._less[key] = {key: value for key, value in node.items() if key != word}
        return self._less[key]

    def parts(self, given: Iterable[Node]) -> list[Node]:
        """All schemas that must hold together: the given ones, what they refer to, and their ``allOf``."""
        found: list[Node] = []
        seen: set[int] = set()
        pending = list(given)
        while pending:
            node = self.normal(pending.pop(0))
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, bool):
                found.append(node)
                continue
            target = self._target(node)
            if target is not None:
                pending.append(target)
                node = True if self._refs_stand_alone else self.without(node, "$ref")
            if isinstance(node, dict) and isinstance(node.get("allOf"), list):
                pending += node["allOf"]
                node = self.without(node, "allOf")
            found.append(node)
        return found

    def _target(self, node: dict[str, Any]) -> Node | None:
        reference = node.get("$ref", "")
        if reference != "#" and not reference.startswith("#/") or not self.is_plain:
            return None
        place: Any = self.root
        for step in reference[1:].split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(place, list) and step.isdigit() and int(step) < len(place):
                place = place[int(step)]
            elif isinstance(place, dict) and step in place:
                place = place[step]
            else:
                return None
        return place if isinstance(place, dict | bool) else None

    def named(self, given: Iterable[Node]) -> Named:
        """The properties these schemas name for one object, in whatever alternative."""
        found: set[str] = set()
        says = False
        seen: set[int] = set()
        pending = list(given)
        while pending:
            for part in self.parts([pending.pop()]):
                if isinstance(part, bool) or id(part) in seen:
                    continue
                seen.add(id(part))
                found.update(part.get("properties", ()))
                says = says or not _SAYS_MORE.isdisjoint(part)
                pending += [branch for word in _IN_PLACE for branch in part.get(word, ())]
                pending += [part[word] for word in _IN_PLACE_SINGLE if word in part]
                pending += part.get("dependentSchemas", {}).values()
        return Named(frozenset(found), says)

    def types(self, parts: Sequence[Node], depth: int = 0) -> frozenset[str]:
        """The JSON types a value of all these can have; ``number`` here means one that is no integer."""
        found = TYPES
        for part in parts:
            if part is False:
                return frozenset()
            if part is True:
                continue
            found &= declared_types(part)
            if "enum" in part:
                found &= {type_of(value) for value in part["enum"]}
            for word in ("anyOf", "oneOf"):
                if word in part and depth < _MAX_DEPTH:
                    branches = [self.types(self.parts([branch]), depth + 1) for branch in part[word]]
                    found &= frozenset().union(*branches)
        return found

    def values(self, parts: Sequence[Node]) -> list[Any] | None:
        """All values these schemas can accept, where one of them lists them."""
        lists = [part["enum"] for part in parts if isinstance(part, dict) and "enum" in part]
        if not lists:
            return None
        types = self.types(parts)
        others = [{canonical(value) for value in values} for values in lists[1:]]
        return [v for v in lists[0] if type_of(v) in types and all(canonical(v) in other for other in others)]


def nodes(root: Node) -> Iterator[dict[str, Any]]:
    """Every schema in a schema."""
    pending: list[Any] = [root]
    while pending:
        node = pending.pop()
        if not isinstance(node, dict):
            continue
        yield node
        for word in (*NAMED, "dependencies"):
            inner = node.get(word)
            pending += inner.values() if isinstance(inner, dict) else ()
        for word in (*LISTED, "items"):
            inner = node.get(word)
            pending += inner if isinstance(inner, list) else ()
        pending += [node[word] for word in (*SINGLE, "additionalItems") if word in node]


def is_well_formed(root: Node) -> bool:
    """Whether every known word has a value of its kind, so that nothing below need look again."""
    for node in nodes(root):
        for word, kind in _KINDS.items():
            if word in node and (
                not isinstance(node[word], kind) or kind in (int, _NUMBER) and isinstance(node[word], bool)
            ):
                return False
        inner = [value for word in (*NAMED, "dependencies") for value in node.get(word, {}).values()]
        inner += [value for word in LISTED for value in node.get(word, ())]
        inner += [node[word] for word in (*SINGLE, "additionalItems") if word in node and word != "items"]
        items = node.get("items", True)
        inner += items if isinstance(items, list) else [items]
        texts = [*node.get("required", ()), *(node["type"] if isinstance(node.get("type"), list) else ())]
        needs = [value for value in node.get("dependentRequired", {}).values() if not isinstance(value, list)]
        lists = "dependencies" in node and any(isinstance(value, list) for value in node["dependencies"].values())
        wanted: tuple[type, ...] = (dict, bool, list) if lists else (dict, bool)
        if needs or not all(isinstance(value, wanted) for value in inner) or not all(isinstance(t, str) for t in texts):
            return False
    return True


_NUMBER: Final = (int, float)
_KINDS: Final[dict[str, Any]] = {
    **dict.fromkeys((*NAMED, "dependencies", "dependentRequired"), dict),
    **dict.fromkeys((*LISTED, "enum", "required"), list),
    **dict.fromkeys(("maxContains", "maxItems", "maxLength", "maxProperties"), int),
    **dict.fromkeys(("minContains", "minItems", "minLength", "minProperties"), int),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _NUMBER),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), (int, float, bool)),
    **dict.fromkeys(("$ref", "pattern"), str),
    "type": (str, list),
    "uniqueItems": bool,
}


def _normal(node: dict[str, Any]) -> dict[str, Any]:
    made = {word: value for word, value in node.items() if word not in ANNOTATIONS and not word.startswith("x-")}
    if "const" in made:
        const = made.pop("const")
        kept = [v for v in made.get("enum", [const]) if canonical(v) == canonical(const)]
        made["enum"] = kept
    if isinstance(made.get("items"), list):
        made["prefixItems"] = made.pop("items")
        if "additionalItems" in made:
            made["items"] = made["additionalItems"]
    made.pop("additionalItems", None)
    for word, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(made.get(word), bool):
            strict = made.pop(word)
            if strict and bound in made:
                made[word] = made.pop(bound)
    for name, needs in (made.pop("dependencies", None) or {}).items():
        word = "dependentRequired" if isinstance(needs, list) else "dependentSchemas"
        made[word] = {**made.get(word, {}), name: needs}
    return made


def declared_types(part: dict[str, Any]) -> frozenset[str]:
    """What ``type`` says."""
    if "type" not in part:
        return TYPES
    words = part["type"] if isinstance(part["type"], list) else [part["type"]]
    return frozenset(words) | ({"integer"} if "number" in words else frozenset())


def type_of(value: Any) -> str:
    """The JSON type of a value.

    >>> [type_of(value) for value in (None, True, 1, 1.0, 1.5, "x", [], {})]
    ['null', 'boolean', 'integer', 'integer', 'number', 'string', 'array', 'object']
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) or value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def canonical(value: Any) -> str:
    """A text that two values share exactly when JSON calls them equal: 1 is 1.0 and not true."""
    return json.dumps(_whole(value), sort_keys=True)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    return value


def bare(node: Any) -> Any:
    """A schema less everything that says nothing of values."""
    if not isinstance(node, dict):
        return node
    found: dict[str, Any] = {}
    for word, value in node.items():
        if word in ANNOTATIONS or word.startswith("x-"):
            continue
        if word in NAMED and isinstance(value, dict):
            found[word] = {name: bare(inner) for name, inner in value.items()}
        elif isinstance(value, list) and word in (*LISTED, "items"):
            found[word] = [bare(inner) for inner in value]
        else:
            found[word] = bare(value) if word in SINGLE else value
    return found
