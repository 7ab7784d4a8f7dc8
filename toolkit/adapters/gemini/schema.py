"""JSON Schema in the subset of OpenAPI that older Gemini models support, and back.

Kept: type, format, title, description, nullable, enum (of texts), items, minItems, maxItems, properties, required,
minProperties, maxProperties, minLength, maxLength, pattern, example, anyOf, propertyOrdering, default, minimum, maximum.
Rewritten: ``type: [T, "null"]`` and ``anyOf`` with null as ``nullable``, several types as ``anyOf``, ``const`` as an
enum of one, ``oneOf`` as ``anyOf``, ``exclusiveMinimum`` and ``exclusiveMaximum`` of integers as the next number, a local
``$ref`` as its target.
Moved into the description, in JSON: every other keyword, and those above where they have a form that cannot be kept (an
enum of numbers, items as a list, a second anyOf).
Lost: keywords that say nothing about values (``$schema``, ``$id``, ``$anchor``, ``$comment``, ``examples``, ``x-...``,
``additionalProperties: false``), ``$defs`` when their references are followed, the inside of a ``$ref`` that leads to
itself, and everything deeper than 32 levels or after the 5000th subschema.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from toolkit.adapters.values import JsonDict, compact
from toolkit.schema.keywords import DEFINITIONS, IDENTIFIERS, UNIONS, References, join_pointer

_KEPT: Final = frozenset({
    "format", "title", "description", "nullable", "minItems", "maxItems", "required", "minProperties", "maxProperties",
    "minLength", "maxLength", "pattern", "example", "propertyOrdering", "default", "minimum", "maximum",
})  # fmt: skip
_SILENT: Final = IDENTIFIERS | DEFINITIONS | {"examples"}
# The keyword that includes its bound, the step to it, and which of two bounds holds.
_EXCLUSIVE: Final[dict[str, tuple[str, int, Any]]] = {
    "exclusiveMinimum": ("minimum", 1, max),
    "exclusiveMaximum": ("maximum", -1, min),
}
_MAX_DEPTH: Final = 32
_MAX_NODES: Final = 5000


Report: TypeAlias = Callable[[str, str, str], None]
"""Receives what became of a keyword: the pointer of its schema, the keyword, and ``moved``, ``lost`` or ``loosened``."""


def to_openapi(schema: Any, report: Report = lambda pointer, keyword, effect: None) -> JsonDict:
    """The schema as older models take it; ``report`` receives what could not be kept.

    >>> to_openapi({"type": "object", "properties": {"n": {"type": ["integer", "null"]}}})
    {'type': 'OBJECT', 'properties': {'n': {'type': 'INTEGER', 'nullable': True}}}
    """
    return _Conversion(schema if isinstance(schema, dict) else {}, report).convert(schema, (), "")


def from_openapi(schema: Any) -> Any:
    """JSON Schema for a schema in OpenAPI's form: lower-case types, ``nullable`` as a type."""
    if isinstance(schema, list):
        return [from_openapi(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made: JsonDict = {
        key: {name: from_openapi(item) for name, item in value.items()}
        if key == "properties" and isinstance(value, dict)
        else from_openapi(value) if key in ("items", "anyOf") else value
        for key, value in schema.items()
        if key != "nullable"
    }  # fmt: skip
    nullable = bool(schema.get("nullable"))
    if isinstance(made.get("type"), str):
        made["type"] = [made["type"].lower(), "null"] if nullable else made["type"].lower()
    if nullable and isinstance(made.get("anyOf"), list):
        made["anyOf"] = [*made["anyOf"], {"type": "null"}]
    if nullable and isinstance(made.get("enum"), list) and None not in made["enum"]:
        made["enum"] = [*made["enum"], None]
    return made


class _Conversion:
    """One conversion. ``trail`` is the places that references led through: each is entered once on a path."""

    def __init__(self, root: JsonDict, report: Report) -> None:
        self._references = References(root)
        self._report = report
        self._nodes = 0

    def convert(self, schema: Any, trail: tuple[str, ...], pointer: str, depth: int = 0) -> JsonDict:
        self._nodes += 1
        if not isinstance(schema, dict):
            return {}
        if depth > _MAX_DEPTH or self._nodes > _MAX_NODES or self._is_in(trail, schema.get("$ref")):
            self._report(pointer, "", "lost")
        if depth > _MAX_DEPTH or self._nodes > _MAX_NODES:
            return {}
        schema, trail, pointer = self._follow(schema, trail, pointer)
        node = _OpenApiNode(schema, lambda keyword, effect: self._report(pointer, keyword, effect))
        for key, value in schema.items():
            place = join_pointer(pointer, key)
            if key == "properties" and isinstance(value, dict):
                node.made[key] = {
                    name: self.convert(item, trail, join_pointer(place, name), depth + 1)
                    for name, item in value.items()
                }
            elif key == "items" and (isinstance(value, dict) or value is True):
                node.made[key] = self.convert(value, trail, place, depth + 1)
            elif key not in UNIONS:
                node.take(key, value)
        for key in UNIONS:
            if key in schema:
                self._choice(key, schema[key], node, trail, join_pointer(pointer, key), depth)
        return node.finish()

    def _choice(
        self, key: str, options: Any, node: _OpenApiNode, trail: tuple[str, ...], pointer: str, depth: int
    ) -> None:
        if not isinstance(options, list) or "anyOf" in node.made:
            node.describe(key, options)
            return
        if key == "oneOf":
            node.report(key, "loosened")
        placed = [(option, join_pointer(pointer, at)) for at, option in enumerate(options)]
        real = [(one, at) for one, at in placed if not (isinstance(one, dict) and one.get("type") == "null")]
        if len(real) < len(options):
            node.made["nullable"] = True
        if len(real) == 1:
            node.merge(self.convert(real[0][0], trail, real[0][1], depth + 1))
        elif real:
            node.made["anyOf"] = [self.convert(option, trail, place, depth + 1) for option, place in real]

    def _follow(self, schema: JsonDict, trail: tuple[str, ...], pointer: str) -> tuple[JsonDict, tuple[str, ...], str]:
        """The target of a local reference with the keywords next to it. One without a target stays, to be reported."""
        while "$ref" in schema:
            siblings = {key: value for key, value in self._references.without_ignored(schema).items() if key != "$ref"}
            target = self._references.find(schema["$ref"])
            if target is None or not isinstance(target.schema, dict):
                return schema, trail, pointer
            if target.pointer in trail:
                return siblings, trail, pointer
            schema, trail, pointer = {**target.schema, **siblings}, (*trail, target.pointer), target.pointer
        return schema, trail, pointer

    def _is_in(self, trail: tuple[str, ...], ref: object) -> bool:
        target = self._references.find(ref)
        return target is not None and target.pointer in trail


class _OpenApiNode:
    """One subschema: its converted form, and what can only be written in its description."""

    def __init__(self, schema: JsonDict, report: Callable[[str, str], None]) -> None:
        self._schema = schema
        self.report = report
        self.made: JsonDict = {}
        self.notes: list[str] = []

    def take(self, key: str, value: Any) -> None:
        """One keyword: kept, rewritten, or written in the description."""
        if key == "type":
            self._type(value)
        elif key in ("enum", "const"):
            self._enum(value if isinstance(value, list) and key == "enum" else [value])
        elif key in _EXCLUSIVE and type(value) is int and self._schema.get("type") == "integer":
            bound, step, holds = _EXCLUSIVE[key]
            beside = self._schema.get(bound)
            self.made[bound] = holds(value + step, beside) if isinstance(beside, int) else value + step
        elif key in _KEPT:
            self.made.setdefault(key, value)
        elif key not in _SILENT and not key.startswith("x-") and not (key == "additionalProperties" and value is False):
            self.describe(key, value)

    def describe(self, key: str, value: Any) -> None:
        """Writes into the description what cannot be kept."""
        self.notes.append(f"{key}: {compact(value)}")
        self.report(key, "moved")

    def _type(self, value: Any) -> None:
        words = value if isinstance(value, list) else [value]
        named = [str(word).upper() for word in words if word != "null"]
        if len(named) == 1:
            self.made["type"] = named[0]
        elif named:
            self.made["anyOf"] = [{"type": word} for word in named]
        if len(named) < len(words):
            self.made["nullable"] = True

    def _enum(self, values: list[Any]) -> None:
        """Only strings may be listed; other values go into the description."""
        given = [value for value in values if value is not None]
        if len(given) < len(values):
            self.made["nullable"] = True
        if given and all(isinstance(value, str) for value in given):
            self.made["enum"] = given
            if "type" not in self._schema:
                self.made["type"] = "STRING"
        elif given:
            self.describe("enum", given)

    def merge(self, inner: JsonDict) -> None:
        """Merges in the only choice. Where both have a keyword, the inner one goes into the description."""
        for key, value in inner.items():
            if key == "description" and key in self.made:
                self.made[key] = f"{self.made[key]} {value}"
            elif key not in self.made:
                self.made[key] = value
            elif self.made[key] != value:
                self.describe(key, value)

    def finish(self) -> JsonDict:
        if self.notes:
            text = self.made.get("description", "")
            self.made["description"] = f"{text} ({'; '.join(self.notes)})".strip()
        return self.made
