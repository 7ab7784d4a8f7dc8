"""Makes the smallest and the fullest instance of a JSON Schema, each validated by ``jsonschema``.

Values are tried, the preferred ones first, until ``jsonschema`` accepts one. So nothing here has to know exactly what a
keyword means; it is enough if one of the tried values is valid.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from typing import Any, TypeAlias
from urllib.parse import unquote

import hypothesis
import jsonschema
from hypothesis import strategies

Schema: TypeAlias = dict[str, Any] | bool

DEEPEST_FULL = 5
"""Below this depth, objects hold only required properties."""
DEEPEST = 24
TRIES = 60
"""How many values of one node are tried."""
JSON_TYPES = ("string", "object", "integer", "array", "number", "boolean", "null")


class NoInstance(Exception):
    """The schema accepts none of the values that were tried."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """Two valid instances: one with only the required properties, one with every property the schema names."""

    minimal: dict[str, Any]
    full: dict[str, Any]


def valid_arguments(schema: dict[str, Any]) -> Arguments:
    """Arguments that a tool with this input schema accepts.

    >>> valid_arguments({"properties": {"a": {"type": "integer", "minimum": 3}, "b": {"enum": ["x"]}}, "required": ["a"]})
    Arguments(minimal={'a': 3}, full={'a': 3, 'b': 'x'})
    """
    rooted = {"type": "object", **schema}
    return Arguments(Maker(rooted, full=False).instance(), Maker(rooted, full=True).instance())


class Maker:
    """Makes values for the nodes of one document."""

    def __init__(self, document: dict[str, Any], *, full: bool) -> None:
        self.document = document
        self.full = full
        old = "draft-07" in str(document.get("$schema"))
        self.validator = (jsonschema.Draft7Validator if old else jsonschema.Draft202012Validator)(document)

    def instance(self) -> Any:
        return self.make(self.document, 0)

    def make(self, node: Schema, depth: int) -> Any:
        """The first tried value that the node accepts."""
        return next(self.accepted(node, depth))

    def accepted(self, node: Schema, depth: int) -> Iterator[Any]:
        """Distinct values the node accepts, the preferred ones first; ``NoInstance`` if there is none."""
        judge = self.validator.evolve(schema=node)
        found: list[Any] = []
        if depth < DEEPEST:
            for value in islice(self.tries(node, depth), TRIES):
                if not any(_same(value, other) for other in found) and judge.is_valid(value):
                    found.append(value)
                    yield value
        if not found:
            raise NoInstance(f"no value was found for {str(node)[:200]}")

    def tries(self, node: Schema, depth: int) -> Iterator[Any]:
        if isinstance(node, bool):
            yield from ["x"] if node else []
        elif "const" in node:
            yield node["const"]
        elif "enum" in node:
            yield from node["enum"]
        else:
            ways = list(self.spread(node, depth))
            if ways != [node]:
                yield from chain.from_iterable(self.tries(way, depth + 1) for way in ways)
            for kind in self.kinds(node):
                yield from self.of_kind(kind, node, depth)

    def spread(self, node: dict[str, Any], depth: int) -> Iterator[dict[str, Any]]:
        """The node with references and combinations folded in: one node for each way to satisfy it."""
        rest = {word: value for word, value in node.items() if word not in _COMBINING}
        folded = [rest]
        for target in ("$ref", "$dynamicRef", "$recursiveRef"):
            if target in node:
                folded = [_both(way, self.target(node[target])) for way in folded]
        for part in node.get("allOf", ()):
            folded = [_both(way, part) for way in folded]
        for word in ("anyOf", "oneOf"):
            if word in node:
                folded = [_both(way, branch) for branch in self.ordered(node[word]) for way in folded]
        if "if" in node:
            yes = [_both(_both(way, node["if"]), node.get("then", True)) for way in folded]
            folded = [*(_both(way, node.get("else", True)) for way in folded), *yes]
        yield from folded

    def ordered(self, branches: Sequence[Schema]) -> list[Schema]:
        """A full instance prefers any value to null."""
        return sorted(branches, key=lambda branch: self.full and branch == {"type": "null"})

    def target(self, reference: str) -> Schema:
        found: Any = self.document
        if reference != "#" and not reference.startswith("#/"):
            return True
        for word in reference[2:].split("/") if len(reference) > 1 else ():
            word = unquote(word).replace("~1", "/").replace("~0", "~")
            found = found[int(word)] if isinstance(found, list) else found[word]
        assert isinstance(found, dict | bool)
        return found

    def kinds(self, node: dict[str, Any]) -> list[str]:
        kind = node.get("type")
        if kind is None:
            named = [kind for kind, words in _WORDS_OF.items() if words & node.keys()]
            return [*named, *(kind for kind in JSON_TYPES if kind not in named)]
        kinds = [kind] if isinstance(kind, str) else kind
        return sorted(kinds, key=lambda kind: self.full and kind == "null")

    def of_kind(self, kind: str, node: dict[str, Any], depth: int) -> Iterator[Any]:
        if kind == "object":
            yield from self.objects(node, depth)
        elif kind == "array":
            yield from self.arrays(node, depth)
        elif kind == "string":
            yield from _texts(node)
        elif kind in ("integer", "number"):
            yield from _numbers(node, whole=kind == "integer" or not self.full)
        elif kind == "boolean":
            yield from (True, False)
        elif kind == "null":
            yield None

    def objects(self, node: dict[str, Any], depth: int) -> Iterator[dict[str, Any]]:
        properties: dict[str, Schema] = node.get("properties", {})
        try:
            least = {name: self.make(self.member(node, name), depth + 1) for name in node.get("required", ())}
        except NoInstance:
            return
        optional = self.optional(properties, least, depth)
        if self.full and depth < DEEPEST_FULL:
            yield _in_order({**least, **optional}, properties)
            yield self.as_many_as_fit(node, least, optional)
        yield _in_order(least, properties)
        for extra in range(1, node.get("minProperties", 0) + 1):
            others = [*optional.items(), *((f"key{n}", self.extra_value(node, depth)) for n in range(extra))]
            yield {**least, **dict(others[:extra])}
        yield from ({**least, name: value} for name, value in optional.items())

    def member(self, node: dict[str, Any], name: str) -> Schema:
        """The schema of a property; a required name may be described only by a pattern, or not at all."""
        found = node.get("properties", {}).get(name)
        if found is None:
            fitting = (part for pattern, part in node.get("patternProperties", {}).items() if re.search(pattern, name))
            found = next(fitting, node.get("additionalProperties", True))
        assert isinstance(found, dict | bool)
        return found

    def optional(self, properties: dict[str, Schema], least: dict[str, Any], depth: int) -> dict[str, Any]:
        found = {}
        for name, part in properties.items():
            if name not in least:
                try:
                    found[name] = self.make(part, depth + 1)
                except NoInstance:
                    continue
        return found

    def as_many_as_fit(self, node: dict[str, Any], least: dict[str, Any], optional: dict[str, Any]) -> dict[str, Any]:
        """If properties exclude each other: adds each one that still fits."""
        judge, grown = self.validator.evolve(schema=node), dict(least)
        for name, value in optional.items():
            if judge.is_valid({**grown, name: value}):
                grown[name] = value
        return _in_order(grown, node.get("properties", {}))

    def extra_value(self, node: dict[str, Any], depth: int) -> Any:
        try:
            return self.make(node.get("additionalProperties", True), depth + 1)
        except NoInstance:
            return None

    def arrays(self, node: dict[str, Any], depth: int) -> Iterator[list[Any]]:
        first = node.get("prefixItems", [])
        rest = node.get("items", node.get("additionalItems", True))
        if isinstance(rest, list):
            first, rest = rest, node.get("additionalItems", True)
        least = node.get("minItems", 0)
        for length in dict.fromkeys([max(least, 1 if self.full else 0, len(first)), least, least + 1]):
            try:
                fixed = [self.make(part, depth + 1) for part in first[:length]]
                yield fixed + self.items(rest, length - len(fixed), depth)
                if "contains" in node:
                    yield [*fixed, self.make(node["contains"], depth + 1)]
            except NoInstance:
                continue

    def items(self, node: Schema, count: int, depth: int) -> list[Any]:
        """``count`` items, distinct ones as long as the node accepts distinct ones."""
        if count <= 0:
            return []
        found = list(islice(self.accepted(node, depth + 1), count))
        return [found[index % len(found)] for index in range(count)]


_COMBINING = frozenset({"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "if", "then", "else"})
_WORDS_OF = {
    "object": {"properties", "required", "additionalProperties", "minProperties", "patternProperties"},
    "array": {"items", "prefixItems", "minItems", "maxItems", "contains", "uniqueItems"},
    "string": {"pattern", "minLength", "maxLength", "format"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}


def _both(one: Schema, other: Schema) -> dict[str, Any]:
    """A node that combines both, as far as one node can."""
    if isinstance(one, bool) or isinstance(other, bool):
        plain = [part for part in (one, other) if isinstance(part, dict)]
        refused: dict[str, Any] = {"enum": []}
        return refused if False in (one, other) else (plain[0] if plain else {})
    both: dict[str, Any] = {**one, **other}
    for word in one.keys() & other.keys():
        left, right = one[word], other[word]
        if word in ("properties", "patternProperties", "$defs", "definitions"):
            both[word] = {**left, **right, **{key: _both(left[key], right[key]) for key in left.keys() & right.keys()}}
        elif word == "required":
            both[word] = [*left, *(name for name in right if name not in left)]
        elif word == "enum":
            both[word] = [value for value in left if value in right]
        elif word in ("allOf", "anyOf", "oneOf"):
            both = {**both, word: left, "allOf": [*both.get("allOf", ()), {word: right}]}
        elif word.startswith(("min", "exclusiveMin")):
            both[word] = max(left, right)
        elif word.startswith(("max", "exclusiveMax")):
            both[word] = min(left, right)
        elif word in ("items", "additionalProperties") and not isinstance(left, list) and not isinstance(right, list):
            both[word] = _both(left, right)
    return both


def _in_order(values: dict[str, Any], properties: dict[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in (*properties, *values) if name in values}


def _texts(node: dict[str, Any]) -> Iterator[str]:
    least, most = node.get("minLength", 0), node.get("maxLength", 1_000_000)
    if "pattern" in node:
        shown = [*node.get("examples", ()), node.get("example"), node.get("default")]
        yield from (value for value in shown if isinstance(value, str))
        yield from _matching(node["pattern"], least, most)
    for letter in "xyz":
        yield letter.ljust(least, letter)[:most]
    yield from (f"text {number}".ljust(least, "x")[:most] for number in range(40))


@cache
def _matching(pattern: str, least: int, most: int) -> tuple[str, ...]:
    """The shortest text that hypothesis finds for a pattern, and some variants of it."""
    spelled = re.sub(r"\(\?<(?=\w)", "(?P<", pattern).replace(r"\/", "/").replace(r"\d", "[0-9]")
    setting = hypothesis.settings(database=None, derandomize=True, max_examples=200)
    try:
        matches = strategies.from_regex(re.compile(spelled))
        found = hypothesis.find(matches, lambda text: 0 < len(text) <= most, settings=setting)
    except (re.error, hypothesis.errors.HypothesisException):
        return ()
    # A text that is too short can often be padded by repeating a letter; searching for a long one is slow.
    return found, found.rstrip("\n"), found.rstrip("\n").ljust(least, found[0])


def _numbers(node: dict[str, Any], *, whole: bool) -> Iterator[float]:
    """Integers first if they are allowed; limits and their neighbours."""
    limits = [node[word] for word in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum") if word in node]
    step = node.get("multipleOf", 1)
    near = [value for limit in limits for value in (limit, limit + step, limit - step)]
    near += [math.ceil(limit / step) * step for limit in limits if step > 0]
    between = [sum(limits) / len(limits)] if limits else []
    numbers = [number for number in (*near, 1, 0, step, *range(2, 30)) if isinstance(number, int | float)]
    if whole:
        yield from (int(number) for number in numbers if math.isfinite(number) and number == int(number))
    yield from (1.5, 0.5, *between, *(float(number) for number in numbers))


def _same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)
