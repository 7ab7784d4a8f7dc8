"""Several schemas that must hold at once (``allOf``, keywords next to a reference) as one schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolkit.schema.accepts import is_number, json_key, same_json
from toolkit.schema.keywords import (
    APPLIED_IN_PLACE,
    ASSERTIONS,
    DEFINITIONS,
    References,
    ReferenceTarget,
    Schema,
    as_types,
)

MAX_PRODUCTS: Final = 36
_TAKEN_APART: Final = frozenset({"$ref", "allOf", *DEFINITIONS})


class NotMergeable(Exception):
    """Why schemas cannot be taken apart or merged. ``is_mistake``: the schema itself is malformed at ``pointer``."""

    def __init__(self, why: str, pointer: str = "", *, is_mistake: bool = False) -> None:
        super().__init__(why)
        self.pointer = pointer
        self.is_mistake = is_mistake


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One of the schemas that must hold at once; it has no ``$ref`` and no ``allOf`` of its own."""

    schema: Schema | bool
    is_of_this_place: bool
    """Whether its title, description and default are those of the place where the conjunction is."""


def conjuncts(
    schema: object,
    references: References,
    follow: Callable[[object, str], ReferenceTarget],
    visit: Callable[[str, int], None],
    pointer: str = "",
    seen: frozenset[str] = frozenset(),
    depth: int = 0,
) -> Iterator[Conjunct]:
    """All schemas that must hold where ``schema`` does: itself, what it refers to, and its ``allOf``.

    :param follow: returns what a reference found at a pointer leads to; it may raise ``NotMergeable``.
    :param visit: is called for every schema with its pointer and how many references and ``allOf`` led there.
    :param seen: places that must not be entered again.
    """
    visit(pointer, depth)
    if not isinstance(schema, dict):
        if not isinstance(schema, bool):
            raise NotMergeable("is not a schema", pointer)
        yield Conjunct(schema, True)
        return
    own = references.without_ignored(schema)
    yield Conjunct({word: value for word, value in own.items() if word not in _TAKEN_APART}, own is schema)
    if "$ref" in own:
        place, target = follow(own["$ref"], f"{pointer}/$ref")
        if place in seen:
            raise NotMergeable("'$ref' is circular", pointer)
        for found in conjuncts(target, references, follow, visit, place, seen | {place}, depth + 1):
            yield Conjunct(found.schema, False)
    if "allOf" in own:
        branches = own["allOf"]
        if not isinstance(branches, list) or not branches:
            raise NotMergeable("'allOf' must be a list with at least one schema", f"{pointer}/allOf", is_mistake=True)
        for index, branch in enumerate(branches):
            yield from conjuncts(branch, references, follow, visit, f"{pointer}/allOf/{index}", seen, depth + 1)


@dataclass(slots=True)
class Merged:
    """One schema for several: it accepts at least what all of them accept together."""

    schema: Schema
    why_wider: str | None = None
    """Why it may accept more than they do; None if it accepts exactly the same."""
    is_empty: bool = False
    """Whether the schemas contradict each other, so that no value fits all of them."""

    @property
    def exact(self) -> bool:
        return self.why_wider is None


def merge(parts: Sequence[Schema | bool]) -> Merged:
    """One schema for parts that have no ``$ref`` and no ``allOf`` of their own; of annotations the first is kept.

    >>> merge([{"type": ["string", "null"]}, {"type": "string", "minLength": 2}, {"minLength": 3}]).schema
    {'type': 'string', 'minLength': 3}
    >>> merge([{"properties": {"a": {}}}, {"properties": {"b": {}}, "additionalProperties": False}]).exact
    False
    """
    merged = Merged({})
    for part in parts:
        if isinstance(part, bool):
            merged.is_empty |= not part
        else:
            _merge_part(merged, part)
    return merged


def _merge_part(merged: Merged, part: Schema) -> None:
    whole = merged.schema
    merged.why_wider = merged.why_wider or _find_changed_meaning(whole, part)
    extra = _widened_extra_properties(whole, part)
    for word, value in part.items():
        if word not in whole:
            whole[word] = value
        elif word in ASSERTIONS and not same_json(whole[word], value):
            _combine(merged, word, value)
    if extra is not None:
        whole["additionalProperties"] = extra


def _combine(merged: Merged, word: str, value: Any) -> None:
    try:
        if word not in _RULES:
            raise NotMergeable(f"two different {word!r} cannot be combined")
        merged.schema[word] = _RULES[word](merged.schema[word], value)
    except NotMergeable as error:
        merged.why_wider = merged.why_wider or str(error)
    if word == "const" or word in ("type", "enum") and merged.schema[word] == []:
        merged.is_empty = True


# -- keywords whose meaning depends on the keywords next to them -------------------------------------------------------

_EVALUATING: Final = {
    "unevaluatedProperties": ("additionalProperties", *APPLIED_IN_PLACE),
    "unevaluatedItems": ("items", "prefixItems", "additionalItems", "contains", *APPLIED_IN_PLACE),
}
"""Keywords that change what is left for the ``unevaluated`` keywords next to them."""
_GROUPS: Final = (
    ("if", "then", "else"),
    ("contains", "minContains", "maxContains"),
    ("prefixItems", "items", "additionalItems"),
)


def _find_changed_meaning(one: Schema, other: Schema) -> str | None:
    """Why a keyword of one schema would mean something else among the keywords of the other; None where none does."""
    for word in ("additionalProperties", "unevaluatedProperties"):
        if _misses_properties(one, other, word) or _misses_properties(other, one, word):
            return f"{word!r} does not know all properties"
    for word, evaluating in _EVALUATING.items():
        for part, adding in ((one, other), (other, one)):
            if part.get(word, True) is not True and any(each in adding for each in evaluating):
                return f"{word!r} does not know what other schemas evaluate"
    for group in _GROUPS:
        if not _keep_their_meaning(one, other, group):
            return f"{group[0]!r} and the keywords that depend on it are in several schemas"
    return None


def _misses_properties(closed: Schema, other: Schema, word: str) -> bool:
    """Whether a keyword that means all names but those next to it would lose some to the other schema's names."""
    if closed.get(word, True) in (True, {}):
        return False
    return bool(_names(other) - _names(closed)) or "patternProperties" in other


def _widened_extra_properties(one: Schema, other: Schema) -> bool | None:
    """``additionalProperties`` that refuses nothing both schemas accept; None where merging it does as well."""
    word = "additionalProperties"
    if not _misses_properties(one, other, word) and not _misses_properties(other, one, word):
        return None
    return not any(part.get(word) is False and not part.get("patternProperties") for part in (one, other))


def _names(schema: Schema) -> set[str]:
    names = schema.get("properties", {})
    return set(names) if isinstance(names, dict) else set()


def _keep_their_meaning(one: Schema, other: Schema, group: tuple[str, ...]) -> bool:
    mine, theirs = ({word: part[word] for word in group if word in part} for part in (one, other))
    if not mine or not theirs or same_json(mine, theirs):
        return True
    if group[0] != "prefixItems" or any(isinstance(part.get("items"), list) for part in (mine, theirs)):
        return False
    # Two ``items`` hold for the same places if the same number of places comes before them.
    return same_json(mine.get("prefixItems"), theirs.get("prefixItems"))


# -- two values of one keyword as one ----------------------------------------------------------------------------------


def _types(one: Any, other: Any) -> Any:
    mine, theirs = as_types(one), as_types(other)
    if mine is None or theirs is None:
        raise NotMergeable("'type' must be a type or a list of types")
    both = [name for name in mine if name in theirs]
    both += ["integer"] * ("integer" not in both and {"integer", "number"} <= {*mine, *theirs})
    return both[0] if len(both) == 1 else both


def _properties(one: Any, other: Any) -> Any:
    if not isinstance(one, dict) or not isinstance(other, dict):
        raise NotMergeable("'properties' must be an object")
    return {
        name: _both(one[name], other[name]) if name in one and name in other else value
        for name, value in {**one, **other}.items()
    }


def _both(one: Any, other: Any) -> Any:
    """Both schemas; each part once, so that a schema which is merged with itself again and again does not grow."""
    parts: list[Any] = []
    for part in (*_parts(one), *_parts(other)):
        if not any(same_json(part, known) for known in parts):
            parts.append(part)
    return parts[0] if len(parts) == 1 else {"allOf": parts}


def _parts(schema: Any) -> list[Any]:
    """The parts of a schema that is nothing but an ``allOf``; any other schema is its only part."""
    alone = isinstance(schema, dict) and schema.keys() == {"allOf"} and isinstance(schema["allOf"], list)
    return schema["allOf"] if alone and schema["allOf"] else [schema]


def _extra(one: Any, other: Any) -> Any:
    if one is False or other is False:
        return False
    return other if one in (True, {}) else one if other in (True, {}) else _both(one, other)


def _lists(word: str, combine: Callable[[list[Any], list[Any]], list[Any]]) -> Callable[[Any, Any], Any]:
    def combine_lists(one: Any, other: Any) -> Any:
        if not isinstance(one, list) or not isinstance(other, list):
            raise NotMergeable(f"{word!r} must be a list")
        return combine(one, other)

    return combine_lists


def _products(one: list[Any], other: list[Any]) -> list[Any]:
    """Each branch of one union with each of the other: as many of them hold as hold in one, times those in the other."""
    if len(one) * len(other) > MAX_PRODUCTS:
        raise NotMergeable("two unions have too many branches to be combined")
    return [_both(mine, theirs) for mine in one for theirs in other]


def _common(one: list[Any], other: list[Any]) -> list[Any]:
    wanted = set(map(json_key, other))
    return [value for value in one if json_key(value) in wanted]


def _limits(choose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def combine_limits(one: Any, other: Any) -> Any:
        if not is_number(one) or not is_number(other):
            raise NotMergeable("a limit must be a number")
        return choose(one, other)

    return combine_limits


_RULES: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "type": _types,
    "properties": _properties,
    "required": _lists("required", lambda one, other: [*one, *(name for name in other if name not in one)]),
    "enum": _lists("enum", _common),
    "anyOf": _lists("anyOf", _products),
    "oneOf": _lists("oneOf", _products),
    "items": _both,
    "additionalProperties": _extra,
    "propertyNames": _both,
    "uniqueItems": lambda one, other: bool(one or other),
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), _limits(max)),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), _limits(min)),
}
