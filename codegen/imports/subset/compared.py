"""One of two schemas to be compared: its references resolved, older drafts rewritten as 2020-12."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from toolkit.jsonschema.keywords import (
    ANNOTATIONS,
    APPLIED_IN_PLACE,
    DEFINITIONS,
    IDENTIFIERS,
    SUBSCHEMA_LISTS,
    SUBSCHEMA_MAPS,
    UNIONS,
)
from toolkit.jsonschema.types import TYPES as _TYPES
from toolkit.jsonschema.types import types_of
from toolkit.jsonschema.values import json_key, json_type, same_json
from toolkit.jsonschema.walk import children, map_children, subschemas
from toolkit.schema.keywords import References

Node: TypeAlias = dict[str, Any] | bool

TYPES: Final = frozenset(_TYPES)
# Keywords that never refuse a value.
_SILENT: Final = ANNOTATIONS | IDENTIFIERS | DEFINITIONS | {"id"}
_DESCRIBES_OTHERS: Final = frozenset({"additionalProperties", "patternProperties", "unevaluatedProperties"})
_BASE_CHANGING: Final = ("$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor")
_MAX_DEPTH: Final = 12


@dataclass(frozen=True, slots=True)
class Named:
    """The properties that are named for one object."""

    names: frozenset[str]
    describes_others: bool
    """Whether anything is said about properties without a name."""


class ComparedSchema:
    """A schema and what its references lead to."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self._normal: dict[int, tuple[Node, Node]] = {}
        self._less: dict[tuple[int, str], Node] = {}
        self._references = References(root)
        self.is_plain = is_plain(root)

    def normal(self, node: Node) -> Node:
        """The node as 2020-12 would write it; the same object for the same node."""
        found = self._normal.get(id(node))
        if found is None:
            made = node if isinstance(node, bool) else _normal(node)
            # The node is kept, so that no other object gets its id.
            found = self._normal[id(node)] = (made, node)
        return found[0]

    def without(self, node: dict[str, Any], word: str) -> Node:
        """The node without one keyword; the same object each time."""
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
            target = self._references.find(node["$ref"]) if "$ref" in node and self.is_plain else None
            if target is not None and isinstance(target.schema, dict | bool):
                pending.append(target.schema)
                node = True if self._references.ignores_siblings else self.without(node, "$ref")
            if isinstance(node, dict) and isinstance(node.get("allOf"), list):
                pending += node["allOf"]
                node = self.without(node, "allOf")
            found.append(node)
        return found

    def find_named(self, given: Iterable[Node]) -> Named:
        """The properties these schemas name for one object, in any alternative."""
        found: set[str] = set()
        describes = False
        seen: set[int] = set()
        pending = list(given)
        while pending:
            for part in self.parts([pending.pop()]):
                if isinstance(part, bool) or id(part) in seen:
                    continue
                seen.add(id(part))
                found.update(part.get("properties", ()))
                describes = describes or not _DESCRIBES_OTHERS.isdisjoint(part)
                pending += [child for (word, *_), child in children(part) if word in APPLIED_IN_PLACE]
        return Named(frozenset(found), describes)

    def types(self, parts: Sequence[Node], depth: int = 0) -> frozenset[str]:
        """The JSON types of the values that fit all of these; ``number`` here means one that is not an integer."""
        found = TYPES
        for part in parts:
            if part is False:
                return frozenset()
            if part is True:
                continue
            found &= declared_types(part)
            if "enum" in part:
                found &= {json_type(value) for value in part["enum"]}
            for word in UNIONS:
                if word in part and depth < _MAX_DEPTH:
                    branches = [self.types(self.parts([branch]), depth + 1) for branch in part[word]]
                    found &= frozenset().union(*branches)
        return found

    def values(self, parts: Sequence[Node]) -> list[Any] | None:
        """All values these schemas can accept, if one of them lists its values."""
        lists = [part["enum"] for part in parts if isinstance(part, dict) and "enum" in part]
        if not lists:
            return None
        types = self.types(parts)
        others = [set(map(json_key, values)) for values in lists[1:]]
        return [v for v in lists[0] if json_type(v) in types and all(json_key(v) in other for other in others)]


def is_plain(root: Node) -> bool:
    """Whether a reference such as ``#/$defs/X`` means that place of the document, wherever it is, and none is dynamic."""
    return not any(
        word in node for pointer, node in subschemas(root) for word in (*_BASE_CHANGING, *(["$id"] if pointer else []))
    )


def is_well_formed(root: Node) -> bool:
    """Whether the value of every known keyword has the right type, so that nothing below needs to check again."""
    return all(_has_right_values(node) for _, node in subschemas(root))


def _has_right_values(node: dict[str, Any]) -> bool:
    for word, kind in _KINDS.items():
        is_wrong = not isinstance(node.get(word), kind) or kind in (int, _NUMBER) and isinstance(node[word], bool)
        if word in node and is_wrong:
            return False
    texts = [*node.get("required", ()), *(node["type"] if isinstance(node.get("type"), list) else ())]
    return (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(names, list) for names in node.get("dependentRequired", {}).values())
        and all(isinstance(child, dict | bool) for _, child in children(node))
    )


_NUMBER: Final = (int, float)
_KINDS: Final[dict[str, Any]] = {
    **dict.fromkeys((*SUBSCHEMA_MAPS, "dependentRequired"), dict),
    **dict.fromkeys((*(SUBSCHEMA_LISTS - {"items"}), "enum", "required"), list),
    **dict.fromkeys(("maxContains", "maxItems", "maxLength", "maxProperties"), int),
    **dict.fromkeys(("minContains", "minItems", "minLength", "minProperties"), int),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), _NUMBER),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), (int, float, bool)),
    **dict.fromkeys(("$ref", "pattern"), str),
    "type": (str, list),
    "uniqueItems": bool,
}


def _normal(node: dict[str, Any]) -> dict[str, Any]:
    made = {word: value for word, value in node.items() if word not in _SILENT and not word.startswith("x-")}
    if "const" in made:
        const = made.pop("const")
        made["enum"] = [value for value in made.get("enum", [const]) if same_json(value, const)]
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
    """The types that ``type`` allows."""
    names = types_of(part)
    if names is None:
        return TYPES
    return frozenset(names) | ({"integer"} if "number" in names else frozenset())


def without_annotations(node: Any, *, silent: frozenset[str] = _SILENT) -> Any:
    """A schema without the keywords that never refuse a value."""
    if not isinstance(node, dict):
        return node
    kept = {word: value for word, value in node.items() if word not in silent and not word.startswith("x-")}
    return map_children(kept, lambda child, _: without_annotations(child, silent=silent))
