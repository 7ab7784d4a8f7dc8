"""What holds at once in a schema: references and ``allOf`` taken apart, unions of objects made one object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from toolkit.codegen.schema.keywords import ASSERTIONS, ENFORCED, has_effect, refusal
from toolkit.codegen.schema.kinds import kinds_of
from toolkit.codegen.schema.merge import merge
from toolkit.codegen.schema.objects import loosened
from toolkit.codegen.schema.references import References, Schema, escaped
from toolkit.codegen.schema.report import Notes

UNIONS: Final = ("anyOf", "oneOf")
_TAKEN_APART: Final = frozenset({"$ref", "$defs", "allOf", "definitions"})
_OF_ITS_PLACE: Final = frozenset({"default", "description", "title"})


class Parts:
    """Takes the schemas of one document apart."""

    def __init__(self, references: References, notes: Notes) -> None:
        self._references = references
        self._notes = notes
        # What the merges around the present place have taken in; taking it in once more would never end.
        self._around: frozenset[str] = frozenset({""})
        self._taken_in: list[str] = []

    @contextmanager
    def frame(self) -> Iterator[Callable[[], None]]:
        """One merge and the walk over its result, which begins when the given function is called."""
        around, mark = self._around, len(self._taken_in)

        def enter() -> None:
            self._around = around | frozenset(self._taken_in[mark:])

        try:
            yield enter
        finally:
            self._around = around
            del self._taken_in[mark:]

    def check_keywords(self, schema: Schema, pointer: str) -> None:
        """Refuses what is refused, and notes what is left to the validator."""
        for word in schema:
            sentence = refusal(word)
            if sentence is not None:
                self._notes.problem(f"{word!r} is not supported: {sentence}", f"{pointer}/{escaped(word)}")
            if word in ENFORCED and has_effect(word, schema):
                self._notes.enforce(word, pointer)

    def target(self, ref: object, pointer: str) -> tuple[str | None, object]:
        """Where a reference leads and what stands there; no place for one that types cannot follow."""
        place = self._references.place(ref)
        if place is None:
            if self._references.may_lead_inside(ref):
                self._notes.enforce("$ref", pointer)
            else:
                self._notes.problem(
                    "only references inside this schema are followed, such as '#/$defs/<name>';"
                    " nothing is read from elsewhere",
                    pointer,
                )
            return None, {}
        try:
            return place, self._references.at(place)
        except LookupError:
            self._notes.problem(f"nothing stands at {place!r} in this schema", pointer)
            return None, {}

    def of(self, schema: object, pointer: str, seen: frozenset[str] | None = None) -> list[Schema] | None:
        """All schemas that must hold at once, none with a reference or ``allOf`` of its own; None where they lead in a
        circle, or where types cannot follow."""
        if not isinstance(schema, dict):
            return [{}] if schema is True else None
        self._notes.step(pointer)
        seen = self._around if seen is None else seen
        found: list[Schema] = []
        siblings = "$ref" not in schema or not self._references.ignores_siblings
        if siblings:
            found.append({word: value for word, value in schema.items() if word not in _TAKEN_APART})
        if "$ref" in schema:
            place, target = self.target(schema["$ref"], f"{pointer}/$ref")
            more = None if place is None or place in seen else self.of(target, place, seen | {place})
            if place is None or more is None:
                return None
            self._taken_in.append(place)
            found += [{word: part[word] for word in part if word not in _OF_ITS_PLACE} for part in more]
        branches = schema.get("allOf", []) if siblings else []
        if not isinstance(branches, list) or "allOf" in schema and not branches:
            self._notes.problem("'allOf' must be a list with at least one schema", f"{pointer}/allOf")
            return None
        for index, branch in enumerate(branches):
            more = self.of(branch, f"{pointer}/allOf/{index}", seen)
            if more is None:
                return None
            found += more
        return found

    def sole(self, schema: Schema) -> object | None:
        """The one part of an ``allOf`` that says something, where nothing else does."""
        branches = schema.get("allOf")
        if "$ref" in schema or not isinstance(branches, list):
            return None
        own = any(word in ASSERTIONS and word != "allOf" for word in schema)
        saying = [part for part in branches if not isinstance(part, dict) or any(word in ASSERTIONS for word in part)]
        return saying[0] if len(saying) == 1 and not own else None

    def as_object(self, schema: Schema, pointer: str) -> Schema:
        """A schema of objects with its unions taken into its properties; the unions themselves are left to the validator."""
        for word in UNIONS:
            branches = schema.get(word)
            if isinstance(branches, list):
                self._notes.enforce(word, pointer)
                objects = [self._branch(branch, f"{pointer}/{word}/{i}") for i, branch in enumerate(branches)]
                rest = {key: value for key, value in schema.items() if key != word}
                schema = loosened(rest, [found for found in objects if found is not None])
        for word in ("enum", "const"):
            if word in schema:
                self._notes.enforce(word, pointer)
        return schema

    def _branch(self, branch: object, pointer: str) -> Schema | None:
        """A branch as one object; None for one that takes no object."""
        parts = self.of(branch, pointer)
        if parts is None:
            return None if branch is False else {}
        whole = merge(parts).schema
        self.check_keywords(whole, pointer)
        kinds = kinds_of(whole)
        return None if kinds is not None and "object" not in kinds else self.as_object(whole, pointer)
