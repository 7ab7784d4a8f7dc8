"""Proofs that one schema accepts everything that another accepts.

A schema is a set of conditions that must all hold. Each condition of the right side needs something on the left that
implies it; where nothing does, the left is divided into its alternatives, its values or its types, and each is proven
separately. Keywords that are not understood, or that invert the meaning (``not``, ``if``), must be equal on both sides.
What is proven is true; what is true is not always proven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from toolkit.schema.accepts import CHECKS as VALUE_CHECKS
from toolkit.schema.accepts import are_disjoint, is_multiple, json_key, json_type, same_json
from toolkit.schema.keywords import (
    ANNOTATIONS,
    APPLIED_IN_PLACE,
    APPLIES_TO,
    DEFINITIONS,
    IDENTIFIERS,
    REFERENCES,
    SUBSCHEMA_LISTS,
    SUBSCHEMA_MAPS,
    UNIONS,
    References,
    children,
    map_children,
    subschemas,
    types_of,
)
from toolkit.schema.keywords import TYPES as _TYPES
from toolkit.schema.problems import below

OBJECT_WORDS: Final = ("properties", "patternProperties", "additionalProperties")
MAX_STEPS: Final = 20_000

Node: TypeAlias = dict[str, Any] | bool
Parts: TypeAlias = Sequence[dict[str, Any]]
TYPES: Final = frozenset(_TYPES)

# Keywords that only have a meaning together; the first represents all.
_GROUPED: Final = {
    word: group
    for group in (
        OBJECT_WORDS,
        ("items", "prefixItems"),
        ("contains", "minContains", "maxContains"),
        ("if", "then", "else"),
    )
    for word in group
}
# Keywords by which a single value is judged.
_JUDGED: Final = frozenset(
    {"type", "enum", "minLength", "maxLength", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}
)


@dataclass(frozen=True, slots=True)
class Gap:
    """A condition of the right side that the left does not imply."""

    pointer: str
    word: str
    left: Any = None
    right: Any = None
    name: str | None = None
    """The property it is about, for ``required`` and ``properties``."""


def gaps(left: Node, right: Node, *, only_named: bool) -> list[Gap]:
    """Why ``right`` may refuse what ``left`` accepts; empty if it never does.

    ``only_named``: an object that names properties and does not mention others has those and no others.

    >>> gaps({"type": "integer", "minimum": 1}, {"type": "number"}, only_named=True)
    []
    >>> [gap.word for gap in gaps({"type": "string"}, {"enum": ["a", "b"]}, only_named=True)]
    ['enum']
    """
    if same_json(without_annotations(left), without_annotations(right)) and _have_same_definitions(left, right):
        return []
    if not is_well_formed(left) or not is_well_formed(right):
        return [Gap("", "schema")]
    proof = _Proof(left, right, only_named=only_named)
    try:
        found = proof.gaps([left], right, "")
    except _ProofTooLong:
        return [Gap("", "schema")]
    return list({(gap.pointer, gap.word, gap.name): gap for gap in found}.values())


class _ProofTooLong(Exception):
    pass


@dataclass(frozen=True, slots=True)
class _Left:
    """The schemas of a value on the left side, and what follows from them."""

    given: Sequence[Node]
    parts: Parts
    types: frozenset[str]
    named: Named
    """By all schemas of the value, not only in the case at hand."""


class _Proof:
    def __init__(self, left: Node, right: Node, *, only_named: bool) -> None:
        self._left, self._right = ComparedSchema(left), ComparedSchema(right)
        self._only_named = only_named
        self._same_definitions = self._left.is_plain and self._right.is_plain and _have_same_definitions(left, right)
        self._assumed: set[tuple[frozenset[int], int]] = set()
        self._steps = 0
        self._of_type: dict[str, Node] = {word: {"type": word} for word in TYPES}

    def gaps(self, left: Sequence[Node], right: Node, pointer: str, named: Named | None = None) -> list[Gap]:
        """``left`` are schemas that hold together. ``named``: the properties all of them name for this value, where they
        are only a part of what was said of it."""
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise _ProofTooLong
        if right is True or len(left) == 1 and self._same(left[0], right):
            return []
        parts = self._left.parts(left)
        types = self._left.types(parts)
        if not types:
            return []
        if right is False:
            return [Gap(pointer, "properties")]
        # A schema that contains itself: what is being proven is assumed for the smaller value inside.
        key = (frozenset(map(id, left)), id(right))
        if key in self._assumed:
            return []
        plain = [part for part in parts if isinstance(part, dict)]
        names = self._left.find_named(parts) if named is None else named
        self._assumed.add(key)
        try:
            return self._direct_or_divided(_Left(left, plain, types, names), right, pointer, is_new=named is None)
        finally:
            self._assumed.discard(key)

    def _direct_or_divided(self, left: _Left, right: Node, pointer: str, *, is_new: bool) -> list[Gap]:
        values = self._left.values(left.parts)
        if values is not None and all(self._fits(value, right) for value in values):
            return []
        found: list[Gap] = []
        for condition in self._right.parts([right]):
            if condition is False:
                return [Gap(pointer, "properties")]
            if isinstance(condition, dict):
                found += self._condition(left, condition, pointer)
        if is_new and self._only_named and "object" in left.types:
            found += self._unknown_names(left.named, right, pointer)
        ways = self._divisions(left) if found else ()
        proven = any(not any(self.gaps(case, right, pointer, left.named) for case in cases) for cases in ways)
        return [] if proven else found

    # -- the left side, case by case ---------------------------------------------------------------------------------

    def _divisions(self, left: _Left) -> Iterator[list[list[Node]]]:
        """Ways to divide the left into cases that together are all of it."""
        for part in left.parts:
            for word in UNIONS:
                if word in part:
                    others = [other for other in left.parts if other is not part]
                    yield [[*others, self._left.without(part, word), branch] for branch in part[word]]
        words = left.types - {"integer"} if "number" in left.types else left.types
        if len(words) > 1:
            yield [[*left.given, self._of_type[word]] for word in sorted(words)]

    # -- one condition of the right side -----------------------------------------------------------------------------

    def _condition(self, left: _Left, right: dict[str, Any], pointer: str) -> Iterator[Gap]:
        if not left.types <= declared_types(right):
            yield Gap(below(pointer, "type"), "type", sorted(left.types), right["type"])
        groups = {next(iter(_GROUPED.get(word, (word,)))): word for word in right if word != "type"}
        for group, word in groups.items():
            if word in APPLIES_TO and left.types.isdisjoint(APPLIES_TO[word]):
                continue
            if group == "properties":
                yield from self._properties(left, right, pointer)
            elif group == "items":
                yield from self._items(left.parts, right, pointer)
            elif word in CHECKS:
                if not any(CHECKS[word](part, right) for part in left.parts or [{}]):
                    yield Gap(below(pointer, word), word, _first(left.parts, word), right[word])
            else:
                yield from self._other(group, left, right, pointer)

    def _other(self, word: str, left: _Left, right: dict[str, Any], pointer: str) -> Iterator[Gap]:
        parts, value, place = left.parts, right.get(word), below(pointer, word)
        if word == "required":
            assert isinstance(value, list)
            names = {name for part in parts for name in part.get("required", ())}
            yield from (Gap(place, word, name=name) for name in value if name not in names)
        elif word == "propertyNames":
            assert value is not None
            given = [part[word] for part in parts if word in part]
            yield from self.gaps([self._of_type["string"], *given], value, place)
        elif not self._implies(word, left, right, pointer):
            yield Gap(place, word, _first(parts, word), value)

    def _implies(self, word: str, left: _Left, right: dict[str, Any], pointer: str) -> bool:
        """Whether the left implies a keyword that holds as a whole or not at all."""
        value = right.get(word)
        if word == "enum":
            values = self._left.values(left.parts)
            known = set(map(json_key, right["enum"]))
            return values is not None and all(json_key(item) in known for item in values)
        if word in REFERENCES:
            # Local ones have been resolved: this one is remote, or its meaning is unknown.
            remote = not str(value).startswith("#") and self._left.is_plain and self._right.is_plain
            return remote and any(part.get(word) == value for part in left.parts)
        if word.startswith("unevaluated"):
            return False
        if (
            word == "contains"
            and word not in right
            or self._is_same_word(left.parts, right, _GROUPED.get(word, (word,)))
        ):
            return True
        return word in UNIONS and self._some_branch(word, left, right[word], pointer)

    def _some_branch(self, word: str, left: _Left, branches: list[Node], pointer: str) -> bool:
        if word == "oneOf" and not self._are_apart(branches):
            return False
        return any(not self.gaps(left.given, branch, pointer, left.named) for branch in branches)

    def _are_apart(self, branches: list[Node]) -> bool:
        """Whether no value can satisfy two of the branches, as their types or a listed property show."""
        parts = [self._right.parts([branch]) for branch in branches]
        return all(self._apart(a, b) for index, a in enumerate(parts) for b in parts[index + 1 :])

    def _apart(self, a: Sequence[Node], b: Sequence[Node], depth: int = 0) -> bool:
        shared = self._right.types(a) & self._right.types(b)
        if not shared:
            return True
        ours, theirs = self._right.values(a), self._right.values(b)
        if ours is not None and theirs is not None:
            return are_disjoint(ours, theirs)
        if shared != {"object"} or depth:
            return False
        one, other = ([part for part in side if isinstance(part, dict)] for side in (a, b))
        needed = {name for part in one for name in part.get("required", ())}
        needed &= {name for part in other for name in part.get("required", ())}
        return any(
            self._apart(
                self._right.parts(_property_schemas(one, name)),
                self._right.parts(_property_schemas(other, name)),
                depth + 1,
            )
            for name in needed
        )

    # -- objects and arrays ------------------------------------------------------------------------------------------

    def _properties(self, left: _Left, right: dict[str, Any], pointer: str) -> list[Gap]:
        parts = left.parts
        properties, patterns = right.get("properties", {}), right.get("patternProperties", {})
        counted = self._only_named and left.named.names and not left.named.describes_others
        only = left.named.names if counted else None
        found: list[Gap] = []
        for name, node in properties.items():
            if only is None or name in only:
                place = below(below(pointer, "properties"), name)
                found += self.gaps(_property_schemas(parts, name), node, place)
        for pattern, node in patterns.items():
            place = below(below(pointer, "patternProperties"), pattern)
            given = [
                part["patternProperties"][pattern] for part in parts if pattern in part.get("patternProperties", {})
            ]
            if not given or self.gaps(given, node, place):
                found += self._every_property(parts, node, (), (), place, only)
        if right.get("additionalProperties", True) is not True:
            more = right["additionalProperties"]
            found += self._every_property(parts, more, properties, patterns, pointer, only)
        return found

    def _every_property(
        self,
        parts: Parts,
        node: Node,
        but_names: Any,
        but_patterns: Any,
        pointer: str,
        only: frozenset[str] | None,
    ) -> list[Gap]:
        """Every value of the left object, except some names, against one schema; any part may prove it."""
        attempts: list[list[Gap]] = []
        for part in parts or [{}]:
            names = part.get("properties", {}) if only is None else sorted(only)
            found: list[Gap] = []
            for name in names:
                if name not in but_names:
                    place = below(below(pointer, "properties"), name)
                    inside = self.gaps(_property_schemas(parts, name), node, place)
                    found += [Gap(place, "properties", name=name)] if inside and node is False else inside
            for pattern, inner in part.get("patternProperties", {}).items():
                if pattern not in but_patterns:
                    found += self.gaps([inner], node, below(below(pointer, "patternProperties"), pattern))
            if only is None:
                more = part.get("additionalProperties", True)
                place = below(pointer, "additionalProperties")
                found += [Gap(place, "additionalProperties", more, node)] if self.gaps([more], node, place) else []
            attempts.append(found)
        return min(attempts, key=len)

    def _unknown_names(self, named: Named, right: Node, pointer: str) -> list[Gap]:
        """Properties that the left object names and the right one does not, which names some and does not mention others."""
        known = self._right.find_named([right])
        lost = sorted(named.names - known.names) if known.names and not known.describes_others else ()
        return [Gap(below(below(pointer, "properties"), name), "properties", name=name) for name in lost]

    def _items(self, parts: Parts, right: dict[str, Any], pointer: str) -> list[Gap]:
        ahead, rest = right.get("prefixItems", []), right.get("items", True)
        most = min((part["maxItems"] for part in parts if "maxItems" in part), default=None)
        length = max([len(ahead), *(len(part.get("prefixItems", ())) for part in parts)])
        found: list[Gap] = []
        for index in range(length if most is None else min(length, most)):
            place = below(below(pointer, "prefixItems"), index)
            node = ahead[index] if index < len(ahead) else rest
            found += self.gaps(_item(parts, index), node, place)
        if most is None or most > length:
            found += self.gaps(_item(parts, length), rest, below(pointer, "items"))
        return found

    # -- sameness, and single values ---------------------------------------------------------------------------------

    def _is_same_word(self, parts: Parts, right: dict[str, Any], words: Sequence[str]) -> bool:
        """Whether some part has the same values for these keywords, or lacks the same keywords."""
        return any(
            all((word in part) == (word in right) and self._same(part.get(word), right.get(word)) for word in words)
            for part in parts
        )

    def _same(self, left: Any, right: Any) -> bool:
        one, other = _without_annotations(left), _without_annotations(right)
        return same_json(one, other) and (self._same_definitions or not _mentions_references(one))

    def _fits(self, value: Any, right: Node, depth: int = 0) -> bool:
        """Whether a value that is neither a list nor an object is certainly accepted."""
        if isinstance(value, list | dict) or depth > 8:
            return False
        for part in self._right.parts([right]):
            if part is False or isinstance(part, dict) and not self._fits_part(value, part, depth):
                return False
        return True

    def _fits_part(self, value: Any, part: dict[str, Any], depth: int) -> bool:
        kind = json_type(value)
        for word, wanted in part.items():
            if word == "anyOf":
                fits = any(self._fits(value, branch, depth + 1) for branch in wanted)
            elif kind not in APPLIES_TO.get(word, (kind,)):
                fits = True
            else:
                fits = word in _JUDGED and VALUE_CHECKS[word](value, wanted)
            if not fits:
                return False
        return True


def _have_same_definitions(left: Node, right: Node) -> bool:
    """Whether references mean the same: by all of the schemas, if some lead elsewhere than to their definitions."""
    return same_json(_definitions(left), _definitions(right))


def _definitions(root: Node) -> Any:
    if isinstance(root, bool):
        return root
    sections = {word: root.get(word, {}) for word in DEFINITIONS}
    known = {word: {name: without_annotations(one) for name, one in each.items()} for word, each in sections.items()}
    references = [str(node["$ref"]) for _, node in subschemas(root) if "$ref" in node]
    inside = is_plain(root) and all(ref.startswith(("#/$defs/", "#/definitions/")) for ref in references)
    # What identifies a schema decides what the other references mean.
    return [known, root.get("$schema", ""), None if inside else without_annotations(root, silent=ANNOTATIONS)]


def _without_annotations(value: Any) -> Any:
    return [without_annotations(item) for item in value] if isinstance(value, list) else without_annotations(value)


def _mentions_references(value: Any) -> bool:
    """Whether there is a reference anywhere inside, also where no keyword leads."""
    if isinstance(value, dict):
        return any(word in value for word in REFERENCES) or any(map(_mentions_references, value.values()))
    return isinstance(value, list) and any(map(_mentions_references, value))


def _first(parts: Parts, word: str) -> Any:
    return next((part[word] for part in parts if word in part), None)


def _property_schemas(parts: Parts, name: str) -> list[Node]:
    """The schemas that all parts have for one property; a pattern that matches its name may add to them."""
    found: list[Node] = []
    for part in parts:
        if name in part.get("properties", {}):
            found.append(part["properties"][name])
        elif "additionalProperties" in part and not part.get("patternProperties"):
            found.append(part["additionalProperties"])
    return found or [True]


def _item(parts: Parts, index: int) -> list[Node]:
    found: list[Node] = []
    for part in parts:
        ahead = part.get("prefixItems", ())
        if index < len(ahead):
            found.append(ahead[index])
        elif "items" in part:
            found.append(part["items"])
    return found or [True]


# ----------------------------------------------------------------------------------------------------------------------
# One of the two schemas: its references resolved, older drafts rewritten as 2020-12.

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


# ----------------------------------------------------------------------------------------------------------------------
# Limits: whether one implies another.


def _at_least(word: str) -> Callable[[dict[str, Any], dict[str, Any]], bool]:
    def check(left: dict[str, Any], right: dict[str, Any]) -> bool:
        least: int = left.get(word, 0)
        if word == "minProperties":
            least = max(least, len(set(left.get("required", ()))))
        return least >= int(right[word])

    return check


def _at_most(word: str) -> Callable[[dict[str, Any], dict[str, Any]], bool]:
    return lambda left, right: word in left and left[word] <= right[word]


def _is_above(left: dict[str, Any], right: dict[str, Any]) -> bool:
    bounds = [left[word] for word in ("minimum", "exclusiveMinimum") if word in left]
    return any(bound >= right["minimum"] for bound in bounds)


def _is_strictly_above(left: dict[str, Any], right: dict[str, Any]) -> bool:
    limit = right["exclusiveMinimum"]
    return bool("minimum" in left and left["minimum"] > limit or left.get("exclusiveMinimum", limit - 1) >= limit)


def _is_below(left: dict[str, Any], right: dict[str, Any]) -> bool:
    bounds = [left[word] for word in ("maximum", "exclusiveMaximum") if word in left]
    return any(bound <= right["maximum"] for bound in bounds)


def _is_strictly_below(left: dict[str, Any], right: dict[str, Any]) -> bool:
    limit = right["exclusiveMaximum"]
    return bool("maximum" in left and left["maximum"] < limit or left.get("exclusiveMaximum", limit + 1) <= limit)


def _is_multiple(left: dict[str, Any], right: dict[str, Any]) -> bool:
    if "multipleOf" not in left or not right["multipleOf"]:
        return False
    return is_multiple(left["multipleOf"], right["multipleOf"])


def _is_unique(left: dict[str, Any], right: dict[str, Any]) -> bool:
    return bool(not right["uniqueItems"] or left.get("uniqueItems") is True or left.get("maxItems", 2) < 2)


def _has_pattern(left: dict[str, Any], right: dict[str, Any]) -> bool:
    return bool(left.get("pattern") == right["pattern"])


def _needs_the_same(left: dict[str, Any], right: dict[str, Any]) -> bool:
    own, always = left.get("dependentRequired", {}), set(left.get("required", ()))
    return all(set(names) <= {*own.get(name, ()), *always} for name, names in right["dependentRequired"].items())


CHECKS: Final[dict[str, Callable[[dict[str, Any], dict[str, Any]], bool]]] = {
    **{word: _at_least(word) for word in ("minLength", "minItems", "minProperties")},
    **{word: _at_most(word) for word in ("maxLength", "maxItems", "maxProperties")},
    "minimum": _is_above,
    "exclusiveMinimum": _is_strictly_above,
    "maximum": _is_below,
    "exclusiveMaximum": _is_strictly_below,
    "multipleOf": _is_multiple,
    "uniqueItems": _is_unique,
    "pattern": _has_pattern,
    "dependentRequired": _needs_the_same,
}
