"""Makes values from a JSON Schema: some that it accepts, and the same values broken in one place.

The oracle decides which is which, never this module: a value made here is only likely to be valid or invalid. The same
schema and seed produce the same values.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.corpus import scalars
from tests.corpus.oracle import Oracle, Verdict
from tests.corpus.shapes import KINDS, Node, Shapes, kinds
from toolkit.codegen.package.python_names import field_names

VALID, INVALID = 24, 36
"""The most instances of each sort for one schema."""

_PER_NODE = 48
_DEPTH = 5
_NEEDED_AROUND = 12  # merged nodes are new objects each time, so a node that needs itself is not found by its identity
_ABSENT: Final = object()
_TOO_LARGE = 20_000
_ANYTHING: Final[tuple[Any, ...]] = ("text", 7, 1.0, True, None, [], {}, [1, [2.5, None]], {"a": {"b": [""]}})


@dataclass(frozen=True, slots=True)
class Instance:
    """A value, how it was made, and the verdict of JSON Schema."""

    made_by: str
    value: Any
    verdict: Verdict


def instances(schema: Any, seed: str) -> list[Instance]:
    """At most ``VALID + INVALID`` different values with the oracle's verdict; values it cannot judge are left out."""
    maker = _Maker(schema, seed)
    valid: list[Instance] = []
    invalid: list[Instance] = []
    seen: set[str] = set()
    for made_by, value in maker.candidates():
        text = json.dumps(value, sort_keys=True)
        if text in seen or len(text) > _TOO_LARGE:
            continue
        seen.add(text)
        verdict = maker.oracle.verdict(value)
        if verdict.accepted and len(valid) < VALID:
            valid.append(Instance(made_by, value, verdict))
        elif verdict.accepted is False and len(invalid) < INVALID:
            invalid.append(Instance(made_by, value, verdict))
        if len(valid) == VALID and len(invalid) == INVALID:
            break
    return valid + invalid


class _Maker:
    """``good`` and ``broken`` walk the schema; depth limits how often a reference is followed again."""

    def __init__(self, schema: Any, seed: str) -> None:
        self.schema = schema
        self.random = Random(seed)
        self.shapes = Shapes(schema)
        self.oracle = Oracle(schema)
        self.smallest: dict[int, Any] = {}
        self.around = 0
        self.kept: list[Any] = []  # the nodes whose ids are the keys of ``smallest``

    def candidates(self) -> Iterable[tuple[str, Any]]:
        good = [("whole", value) for value in self.good(self.schema, 0)]
        yield from good[:VALID]
        yield from self.spread(self.broken(self.schema, 0), 3 * INVALID)
        yield from good[VALID:]

    def spread(self, made: Iterable[tuple[str, Any]], most: int) -> list[tuple[str, Any]]:
        """A deterministic selection in which every way of breaking a value gets its turn."""
        ways: dict[str, list[Any]] = {}
        for way, value in made:
            ways.setdefault(way, []).append(value)
        for values in ways.values():
            self.random.shuffle(values)
        chosen: list[tuple[str, Any]] = []
        while ways and len(chosen) < most:
            for way in list(ways):
                chosen.append((way, ways[way].pop()))
                if not ways[way]:
                    del ways[way]
        return chosen[:most]

    # -- likely to be accepted ---------------------------------------------------------------------------------------

    def smallest_of(self, node: Any) -> Any:
        """The smallest value that a node accepts, or ``_ABSENT`` if none was found (also while a node needs itself)."""
        if id(node) not in self.smallest and self.around < _NEEDED_AROUND:
            self.kept.append(node)
            self.smallest[id(node)] = _ABSENT
            self.around += 1
            made = (value for shape in self.shapes.of(node) for value in self.least(shape))
            self.smallest[id(node)] = next((value for value in made if self.oracle.accepts(node, value)), _ABSENT)
            self.around -= 1
        return self.smallest.get(id(node), _ABSENT)

    def least(self, shape: Node) -> Iterable[Any]:
        if "const" in shape or "enum" in shape:
            yield from _constants(shape)
            return
        for kind in kinds(shape):
            if kind == "object":
                names = [name for name in _list(shape.get("required")) if isinstance(name, str)]
                yield {name: value for name in names if (value := self.part(shape, name)) is not _ABSENT}
            elif kind == "array":
                made = [self.smallest_of(item) for item in self.items(shape, _count(shape, "minItems"))]
                yield [value for value in made if value is not _ABSENT]
            else:
                yield from self.scalar(shape, kind)

    def part(self, shape: Node, name: str) -> Any:
        return self.smallest_of(_property(shape, name))

    def items(self, shape: Node, count: int) -> list[Any]:
        """The schemas of the first items of an array."""
        items = shape.get("items", {})
        first = _list(shape.get("prefixItems")) or _list(items)
        rest = shape.get("additionalItems", {}) if isinstance(items, list) else items
        return [first[index] if index < len(first) else rest for index in range(min(count, 60))]

    def scalar(self, shape: Node, kind: str) -> list[Any]:
        if kind == "string":
            return scalars.strings(shape, self.random)
        if kind in ("integer", "number"):
            return scalars.numbers(shape, kind)
        return [True, False] if kind == "boolean" else [None]

    def good(self, node: Any, depth: int) -> list[Any]:
        """Values of every branch and size, the smallest first."""
        least = self.smallest_of(node)
        made: list[Any] = [] if least is _ABSENT else [least]
        if depth > _DEPTH:
            return made
        if isinstance(node, dict):
            made += [node["default"]] if "default" in node else []
            made += _list(node.get("examples"))[:2]
        by_shape = [self.good_shape(shape, depth) for shape in self.shapes.of(node)]
        return [*made, *_in_turn(by_shape)][:_PER_NODE]

    def good_shape(self, shape: Node, depth: int) -> list[Any]:
        if not _restricts(shape):
            return list(_ANYTHING)
        if "const" in shape or "enum" in shape:
            return _constants(shape)[:_PER_NODE]
        made: list[list[Any]] = []
        for kind in kinds(shape):
            if kind == "object":
                made.append(self.good_objects(shape, depth))
            elif kind == "array":
                made.append(self.good_arrays(shape, depth))
            else:
                made.append(self.scalar(shape, kind))
        return _in_turn(made)

    def good_objects(self, shape: Node, depth: int) -> list[Any]:
        names = [*_dict(shape.get("properties")), *(n for n in _list(shape.get("required")) if isinstance(n, str))]
        values = {name: self.good(_property(shape, name), depth + 1) for name in dict.fromkeys(names)}
        required = {name: values[name][0] for name in _list(shape.get("required")) if values.get(name)}
        full = {name: found[0] for name, found in values.items() if found}
        richest = {name: found[min(2, len(found) - 1)] for name, found in values.items() if found}
        alone = [{**required, name: found[0]} for name, found in values.items() if found and name not in required]
        others = [[{**required, name: value} for value in found[1:]] for name, found in values.items()]
        return [full, required, richest, *self.surplus(shape, required), *_in_turn([alone, *others])]

    def surplus(self, shape: Node, required: Node) -> list[Any]:
        """The same with properties that the schema does not name, but whose names and values it may restrict."""
        names = ["surplus", "x-é", *_dict(shape.get("properties"))]
        naming = shape.get("propertyNames")
        if naming is not None:
            names += [name for name in self.good(naming, _DEPTH) if isinstance(name, str)]
        for pattern in _dict(shape.get("patternProperties")):
            names += scalars.strings({"pattern": pattern}, self.random)
        unnamed = [name for name in dict.fromkeys(names) if name not in _dict(shape.get("properties"))]
        found = [(name, self.part(shape, name)) for name in unnamed[:8]]
        return [{**required, name: value} for name, value in found if value is not _ABSENT]

    def good_arrays(self, shape: Node, depth: int) -> list[Any]:
        least, most = _count(shape, "minItems"), _count(shape, "maxItems", 3)
        prefix = len(_list(shape.get("prefixItems")) or _list(shape.get("items")))
        longest = self.items(shape, max(prefix + 1, least + 1, min(most, 60)))
        values = [self.good(item, depth + 1) for item in longest[: prefix + 1]] or [[]]
        last = values[-1]
        filled = [found[0] for found in values[:-1] if found]
        made = [[*filled, *last[:length]][: max(length, len(filled))] for length in (0, least, least + 1, most)]
        made += [[(filled + [value] * max(1, least))[: max(least, 1)]][0] for value in last]
        made += [filled[:length] for length in range(len(filled))] + [[*filled, value] for value in last]
        return made

    # -- likely to be refused ----------------------------------------------------------------------------------------

    def broken(self, node: Any, depth: int) -> list[tuple[str, Any]]:
        if depth > _DEPTH:
            return []
        made: list[tuple[str, Any]] = []
        shapes = self.shapes.of(node)
        made += scalars.wrong_types([kind for shape in shapes for kind in kinds(shape)][:8])
        for shape in filter(_restricts, shapes):
            if "const" in shape or "enum" in shape:
                made += scalars.broken_constants(_constants(shape))
                continue
            for kind in kinds(shape):
                made += self.broken_kind(shape, kind, depth)
        if isinstance(node, dict) and isinstance(node.get("not"), dict):
            made += [("not", value) for value in self.good(node["not"], _DEPTH)]
        return self.spread(made, _PER_NODE if depth else 6 * _PER_NODE)

    def broken_kind(self, shape: Node, kind: str, depth: int) -> list[tuple[str, Any]]:
        if kind == "string":
            return scalars.broken_strings(shape, self.random)
        if kind in ("integer", "number"):
            return scalars.broken_numbers(shape)
        if kind == "array":
            return self.broken_arrays(shape, depth)
        return self.broken_objects(shape, depth) if kind == "object" else []

    def broken_objects(self, shape: Node, depth: int) -> list[tuple[str, Any]]:
        properties, required = _dict(shape.get("properties")), _list(shape.get("required"))
        names = dict.fromkeys([*properties, *(name for name in required if isinstance(name, str))])
        least = {name: self.part(shape, name) for name in names}
        least = {name: value for name, value in least.items() if value is not _ABSENT}
        base = {name: value for name, value in least.items() if name in required}
        made: list[tuple[str, Any]] = [("missing", _without(least, name)) for name in required if name in least]
        made += [("missing", {}), ("extra", {**base, "surplus": None}), ("extra", {**base, "surplus": [{"a": 1}]})]
        made += [("extra", {**_without(least, name), name.swapcase() + "_": least[name]}) for name in least]
        judged = isinstance(shape.get("additionalProperties"), dict)
        for extra in (*(["surplus"] if judged else []), *self.names_to_break(shape)):
            found = self.broken(_property(shape, extra), depth + 1)
            made += [(_nested(way), {**base, extra: value}) for way, value in found]
        for wire, name in field_names(names).items():
            if name != wire and wire in least:
                made += [
                    ("python name", {**_without(least, wire), name: least[wire]}),
                    ("python name", {**base, name: 7}),
                ]
        for name in names:
            found = self.broken(properties.get(name, {}), depth + 1)
            made += [(_nested(way), {**base, name: value}) for way, value in found]
        return made

    def names_to_break(self, shape: Node) -> list[str]:
        return [
            text
            for pattern in _dict(shape.get("patternProperties"))
            for text in scalars.strings({"pattern": pattern}, self.random)[:1]
        ]

    def broken_arrays(self, shape: Node, depth: int) -> list[tuple[str, Any]]:
        least, most = _count(shape, "minItems"), _count(shape, "maxItems", -1)
        parts = self.items(shape, max(least, 1) + 1)
        made: list[tuple[str, Any]] = []
        base = [value for part in parts[: max(least, 1)] if (value := self.smallest_of(part)) is not _ABSENT]
        if least:
            made.append(("items", base[: least - 1]))
        if 0 <= most <= 60 and base:
            made += [
                ("items", [base[0]] * (most + 1)),
                ("items", [base[index % len(base)] for index in range(most + 1)]),
            ]
        if base:
            made += [("duplicates", [base[0], base[0]]), ("duplicates", [*base, base[-1]])]
        for index, part in enumerate(parts[: len(base)][:3]):
            found = self.broken(part, depth + 1)
            made += [(_nested(way), [*base[:index], value, *base[index + 1 :]]) for way, value in found]
        return made


def _restricts(shape: Node) -> bool:
    """Whether a node restricts values at all."""
    return any(
        word in shape for word in ("type", "enum", "const", *(word for words in KINDS.values() for word in words))
    )


def _nested(way: str) -> str:
    return way if way.startswith("nested ") else f"nested {way}"


def _constants(shape: Node) -> list[Any]:
    values = _list(shape.get("enum"))
    return [shape["const"]] if "const" in shape else values


def _property(shape: Node, name: str) -> Any:
    """The schema of one property, as far as its name determines it."""
    properties = _dict(shape.get("properties"))
    found = [properties[name]] if name in properties else []
    found += [part for pattern, part in _dict(shape.get("patternProperties")).items() if _matches(pattern, name)]
    if not found:
        return shape.get("additionalProperties", {})
    return found[0] if len(found) == 1 else {"allOf": found}


def _matches(pattern: str, name: str) -> bool:
    import re

    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False


def _in_turn(lists: list[list[Any]]) -> list[Any]:
    longest = max(map(len, lists), default=0)
    return [values[index] for index in range(longest) for values in lists if index < len(values)]


def _without(value: Node, name: str) -> Node:
    return {key: item for key, item in value.items() if key != name}


def _count(shape: Node, word: str, otherwise: int = 0) -> int:
    value = shape.get(word, otherwise)
    return int(value) if isinstance(value, int | float) else otherwise


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> Node:
    return value if isinstance(value, dict) else {}
