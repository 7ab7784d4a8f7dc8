"""Schemas that must hold at once, as one schema: references and ``allOf`` merged, unions of objects made one object."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from toolkit.codegen.schema.document import DECLARED_BY_SOME, Loss, Notes
from toolkit.codegen.schema.keywords import ENFORCED, has_effect, refusal
from toolkit.schema.accepts import same_json
from toolkit.schema.keywords import (
    ASSERTIONS,
    TYPES,
    UNIONS,
    References,
    ReferenceTarget,
    Schema,
    escape_key,
    has_assertions,
    join_pointer,
    types_of,
)
from toolkit.schema.merge import NotMergeable, conjuncts, merge

# ----------------------------------------------------------------------------------------------------------------------
# The keywords of arrays and objects, in one form whichever draft they come from; and a union of objects as one object.


def takes_only_objects(schema: Schema) -> bool:
    """Whether a schema takes objects only, and no choice among them."""
    return types_of(schema) == ["object"] and not any(word in schema for word in (*UNIONS, "enum", "const"))


def schema_of_items(schema: Schema, pointer: str, notes: Notes) -> object | None:
    """The schema that every item of an array fits, whatever its place; None where none is known."""
    items, first = schema.get("items"), schema.get("prefixItems")
    if isinstance(items, list):
        notes.enforce("items", pointer)
        first, items = items, schema.get("additionalItems")
    if not isinstance(first, list):
        return items
    if items is None or items is True:
        if any(map(says_something, first)):
            notes.lose(Loss.OPEN_TUPLE, pointer)
        return None
    return {"anyOf": [*first, *([items] if items is not False else [])]} if first or items else items


def report_open_patterns(schema: Schema, pointer: str, notes: Notes) -> None:
    """Notes that patterns say something about properties of which the type says nothing."""
    patterns = schema.get("patternProperties")
    saying = any(map(says_something, patterns.values())) if isinstance(patterns, dict) else False
    if saying and schema.get("additionalProperties", True) is True:
        notes.lose(Loss.OPEN_PATTERNS, pointer)


def schema_of_extra_properties(schema: Schema) -> object:
    """What properties without a name of their own may hold: by their patterns, else by ``additionalProperties``."""
    extra, patterns = schema.get("additionalProperties", True), schema.get("patternProperties")
    if not isinstance(patterns, dict) or not patterns or extra is True:
        return extra
    return {"anyOf": [*patterns.values(), *([extra] if extra is not False else [])]}


def required_names(schema: Schema, properties: Schema, pointer: str, notes: Notes) -> list[str]:
    """The required properties, declared or not."""
    names = schema.get("required", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        notes.problem("'required' must be a list of property names", f"{pointer}/required")
        return []
    for name in (name for name in names if name not in properties):
        notes.finding(
            f"'required' names {name!r}, which 'properties' does not declare; declare it, or remove it",
            f"{pointer}/required",
        )
        if schema.get("additionalProperties", True) is not True:
            notes.enforce("additionalProperties", pointer)
    return list(dict.fromkeys(names))


def loosen(base: Schema, branches: Sequence[Schema], places: Sequence[str]) -> Schema:
    """One object that takes what ``base`` with any of the branches takes; the union itself is judged at run time.

    The arguments of a tool, which are given as keywords, must be one class.

    A property that an open branch does not declare may hold anything there; its type is what the others declare.

    :param places: the pointers of the branches.

    >>> branches = [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"required": ["a"]}]
    >>> loosen({"type": "object"}, branches, ["/oneOf/0", "/oneOf/1"])["properties"]
    {'a': {'type': 'string', 'x-declared-by-some': '/oneOf/0/properties/a'}}
    """
    properties = dict(_properties(base))
    for name in dict.fromkeys(name for branch in branches for name in _properties(branch)):
        if name in properties and says_something(properties[name]):
            continue
        schemas = [_properties(branch)[name] for branch in branches if name in _properties(branch)]
        distinct = [schema for index, schema in enumerate(schemas) if schema not in schemas[:index]]
        declared = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
        is_open = any(name not in _properties(branch) and not _is_closed(branch) for branch in branches)
        if is_open and all(map(says_something, distinct)):
            first = next(at for at, branch in zip(places, branches, strict=True) if name in _properties(branch))
            declared = {**declared, DECLARED_BY_SOME: f"{first}/properties/{escape_key(name)}"}
        elif is_open:
            declared = {}
        properties[name] = {**_as_dict(properties.get(name)), **_as_dict(declared)}
    always = (
        [name for name in _required(branches[0]) if all(name in _required(b) for b in branches)] if branches else []
    )
    whole = {**base, "type": "object"}
    if properties:
        whole["properties"] = properties
    if always or "required" in base:
        whole["required"] = list(dict.fromkeys([*_required(base), *always]))
    if "additionalProperties" not in base and branches and all(map(_is_closed, branches)):
        whole["additionalProperties"] = False
    return whole


def says_something(schema: object) -> bool:
    """Whether a schema can refuse any value."""
    return schema is False or isinstance(schema, dict) and has_assertions(schema)


def _as_dict(schema: object) -> Schema:
    return schema if isinstance(schema, dict) else {} if schema in (True, None) else {"not": {}}


def _is_closed(branch: Schema) -> bool:
    return branch.get("additionalProperties", True) is False and not branch.get("patternProperties")


def _properties(schema: Schema) -> Schema:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _required(schema: Schema) -> list[str]:
    names = schema.get("required", [])
    return names if isinstance(names, list) else []


_OF_ITS_PLACE: Final = frozenset({"default", "description", "title"})


MAX_DISTRIBUTED: Final = 64
"""Keywords next to a union of more branches are not merged into each of them."""


class Conjunction(NamedTuple):
    """One schema made of several."""

    schema: Schema
    exact: bool
    """Whether it accepts nothing that one of them refuses."""

    def key(self) -> str:
        """The same text for the same schema, whatever it was made of."""
        return json.dumps(self.schema, sort_keys=True)


class Conjunctions:
    """Makes the conjunctions of one document."""

    def __init__(self, references: References, notes: Notes) -> None:
        self._references = references
        self._notes = notes

    def merge(self, schema: object, pointer: str) -> Conjunction | None:
        """A schema with its references and ``allOf`` merged in; None where they lead in a circle or cannot be typed."""
        parts = self._parts(schema, pointer)
        if parts is None or any(part is False for part in parts):
            return None
        merged = merge(parts)
        # What one part calls its own properties or items is another matter in the merged schema.
        is_typed = len(parts) == 1 or ENFORCED.isdisjoint(merged.schema)
        return Conjunction(merged.schema, merged.exact and is_typed)

    def with_siblings(self, branch: object, siblings: Schema, pointer: str) -> object | None:
        """A branch of a union with the keywords next to it: the branch itself where they add nothing, None for no value."""
        alone = self._parts(branch, pointer)
        if alone is not None:
            both = merge([siblings, *alone])
            if both.is_empty:
                return None
            if both.exact and same_json(both.schema, merge(alone).schema):
                return branch
        return {"allOf": [siblings, branch]}

    def _parts(self, schema: object, pointer: str) -> list[Schema | bool] | None:
        def follow(ref: object, place: str) -> ReferenceTarget:
            target = self.find(ref, place)
            if target is None:
                raise NotMergeable("refers to nothing")
            return target

        def count_step(place: str, depth: int) -> None:
            self._notes.step(place)

        try:
            found = list(conjuncts(schema, self._references, follow, count_step, pointer))
        except NotMergeable as error:
            if error.is_mistake:
                self._notes.problem(str(error), error.pointer)
            return None
        return [_drop_place_keywords(part.schema, keep=part.is_of_this_place) for part in found]

    def as_object(self, conjunction: Conjunction, pointer: str) -> Conjunction:
        """A conjunction of objects with its unions merged into its properties; the unions are left to the validator."""
        schema, exact = conjunction
        for word in UNIONS:
            branches = schema.get(word)
            if isinstance(branches, list):
                self._notes.enforce(word, pointer)
                made = {
                    place: self._branch(branch, place)
                    for place, branch in (
                        (f"{pointer}/{word}/{index}", branch) for index, branch in enumerate(branches)
                    )
                }
                objects = {place: found.schema for place, found in made.items() if found is not None}
                rest = {key: value for key, value in schema.items() if key != word}
                schema = loosen(rest, list(objects.values()), list(objects))
        for word in ("enum", "const"):
            if word in schema:
                self._notes.enforce(word, pointer)
        return Conjunction(schema, exact)

    def have_types(self, siblings: Schema, branches: list[object], pointer: str) -> bool:
        """Whether the branches of a union, each with the keywords next to it, are types that differ from each other."""
        other = next((siblings[word] for word in UNIONS if isinstance(siblings.get(word), list)), [None])
        if len(branches) * len(other) > MAX_DISTRIBUTED:
            return False
        made = [self.merge(branch, f"{pointer}/{index}") for index, branch in enumerate(branches)]
        return any(whole is not None and _refines(siblings, whole.schema) for whole in made)

    def _branch(self, branch: object, pointer: str) -> Conjunction | None:
        """A branch as one object; None for one that takes no object."""
        whole = self.merge(branch, pointer)
        if whole is None:
            return None if branch is False else Conjunction({}, False)
        self.check_keywords(whole.schema, pointer)
        types = types_of(whole.schema)
        return None if types is not None and "object" not in types else self.as_object(whole, pointer)

    def check_keywords(self, schema: Schema, pointer: str) -> None:
        """Refuses what is refused, and notes what is left to the validator."""
        for word in schema:
            sentence = refusal(word)
            if sentence is not None:
                self._notes.problem(f"{word!r} is not supported: {sentence}", join_pointer(pointer, word))
            if word in ENFORCED and has_effect(word, schema):
                self._notes.enforce(word, pointer)

    def find(self, ref: object, pointer: str) -> ReferenceTarget | None:
        """Where a reference leads; None, and a note, for one that types cannot follow."""
        place = self._references.pointer_of(ref)
        target = None if place is None else self._references.find(ref)
        if target is not None:
            return target
        if place is not None:
            self._notes.problem(
                f"{place!r} does not exist in this schema; define it, or correct the reference", pointer
            )
        elif self._references.may_lead_inside(ref):
            self._notes.enforce("$ref", pointer)
        else:
            self._notes.problem(
                "only references inside this schema are supported, such as '#/$defs/<name>';"
                " nothing is read from elsewhere",
                pointer,
            )
        return None


def sole_part(schema: Schema) -> object | None:
    """The one part of an ``allOf`` that can refuse anything, where nothing else does."""
    branches = schema.get("allOf")
    if "$ref" in schema or not isinstance(branches, list):
        return None
    own = any(word in ASSERTIONS and word != "allOf" for word in schema)
    saying = [part for part in branches if not isinstance(part, dict) or not ASSERTIONS.isdisjoint(part)]
    return saying[0] if len(saying) == 1 and not own else None


def _drop_place_keywords(part: Schema | bool, *, keep: bool) -> Schema | bool:
    if keep or isinstance(part, bool):
        return part
    return {word: value for word, value in part.items() if word not in _OF_ITS_PLACE}


_OF_VALUES: Final = ("enum", "const", *UNIONS)
_OF_PARTS: Final = ("items", "additionalProperties")


def _refines(siblings: Schema, branch: Schema) -> bool:
    """Whether a branch says more about the type than the keywords next to its union; both are without references.

    Branches that only require names do not: they would become classes with the same fields.

    >>> _refines({"type": "object"}, {"properties": {"kind": {"const": "a"}}})
    True
    >>> _refines({"type": "object"}, {"required": ["a"]})
    False
    """
    named = types_of(branch)
    if named is not None and not set(named) >= set(types_of(siblings) or TYPES):
        return True
    if any(word in branch for word in _OF_VALUES):
        return True
    if any(_says_more(siblings.get(word), branch[word]) for word in _OF_PARTS if word in branch):
        return True
    known = _named_properties(siblings)
    return any(_says_more(known.get(name), schema) for name, schema in _named_properties(branch).items())


def _says_more(known: object, schema: object) -> bool:
    return isinstance(schema, dict) and has_assertions(schema) and schema != known


def _named_properties(schema: Schema) -> Schema:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}
