"""Schemas that must hold at once, as one schema: references and ``allOf`` merged, unions of objects made one object."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from toolkit.codegen.schema.keywords import ENFORCED, has_effect, refusal
from toolkit.codegen.schema.objects import loosen
from toolkit.codegen.schema.report import Notes
from toolkit.jsonschema.keywords import ASSERTIONS, UNIONS, Schema
from toolkit.jsonschema.merge import NotMergeable, conjuncts, merge
from toolkit.jsonschema.pointer import join_pointer
from toolkit.jsonschema.references import References, ReferenceTarget
from toolkit.jsonschema.types import types_of

_OF_ITS_PLACE: Final = frozenset({"default", "description", "title"})


class Conjunction(NamedTuple):
    """One schema made of several."""

    schema: Schema
    exact: bool
    """Whether it accepts nothing that one of them refuses."""
    places: frozenset[str]
    """The places that references led to while it was made. While it is walked, none of them may be merged in again."""


class Conjunctions:
    """Makes the conjunctions of one document.

    A conjunction is made (``merge``, ``as_object``) and then walked inside ``inside(conjunction)``, so that a schema that
    refers to itself ends.
    """

    def __init__(self, references: References, notes: Notes) -> None:
        self._references = references
        self._notes = notes
        # What the conjunctions around the present place were made of.
        self._around: frozenset[str] = frozenset({""})

    @contextmanager
    def inside(self, conjunction: Conjunction) -> Iterator[Schema]:
        """The schema of a conjunction, to be walked in this context."""
        around = self._around
        self._around = around | conjunction.places
        try:
            yield conjunction.schema
        finally:
            self._around = around

    def merge(self, schema: object, pointer: str) -> Conjunction | None:
        """A schema with its references and ``allOf`` merged in; None where they lead in a circle or cannot be typed."""
        places: set[str] = set()

        def follow(ref: object, place: str) -> ReferenceTarget:
            target = self.find(ref, place)
            if target is None:
                raise NotMergeable("refers to nothing")
            places.add(target.pointer)
            return target

        def count_step(place: str, depth: int) -> None:
            self._notes.step(place)

        try:
            found = list(conjuncts(schema, self._references, follow, count_step, pointer, self._around))
        except NotMergeable as error:
            if error.is_mistake:
                self._notes.problem(str(error), error.pointer)
            return None
        parts = [_drop_place_keywords(part.schema, keep=part.is_of_this_place) for part in found]
        if any(part is False for part in parts):
            return None
        merged = merge(parts)
        # What one part calls its own properties or items is another matter in the merged schema.
        is_typed = len(parts) == 1 or ENFORCED.isdisjoint(merged.schema)
        return Conjunction(merged.schema, merged.exact and is_typed, frozenset(places))

    def as_object(self, conjunction: Conjunction, pointer: str) -> Conjunction:
        """A conjunction of objects with its unions merged into its properties; the unions are left to the validator."""
        schema, exact, places = conjunction
        for word in UNIONS:
            branches = schema.get(word)
            if isinstance(branches, list):
                self._notes.enforce(word, pointer)
                made = [self._branch(branch, f"{pointer}/{word}/{index}") for index, branch in enumerate(branches)]
                objects = [found for found in made if found is not None]
                places = places.union(*(found.places for found in objects))
                rest = {key: value for key, value in schema.items() if key != word}
                schema = loosen(rest, [found.schema for found in objects])
        for word in ("enum", "const"):
            if word in schema:
                self._notes.enforce(word, pointer)
        return Conjunction(schema, exact, places)

    def _branch(self, branch: object, pointer: str) -> Conjunction | None:
        """A branch as one object; None for one that takes no object."""
        whole = self.merge(branch, pointer)
        if whole is None:
            return None if branch is False else Conjunction({}, False, frozenset())
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
            self._notes.problem(f"{place!r} does not exist in this schema", pointer)
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
