"""Answers a model could give under a strict schema: random, valid, the same for the same seed."""

from __future__ import annotations

import re
from random import Random

# The parser behind ``re``: the only one in the standard library that says what a pattern is made of.
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

FORMATS = {
    "date-time": "2026-01-02T03:04:05Z",
    "time": "03:04:05Z",
    "date": "2026-01-02",
    "duration": "P1D",
    "email": "a@example.org",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
    "uri": "https://example.org/a",
}
TEXTS = ("", "a", "null", "0", "true", "é ü", 'say "no"', "a b\nc", "key", "x" * 40)
MAX_DEPTH = 6


class Answers:
    """Answers to one strict schema."""

    def __init__(self, schema: dict[str, Any], seed: int) -> None:
        self._root = schema
        self._random = Random(seed)

    def any(self) -> dict[str, Any]:
        made: dict[str, Any] = self._value(self._root, 0)
        return made

    def _value(self, schema: dict[str, Any], depth: int) -> Any:
        if "$ref" in schema:
            return self._value(self._followed(schema["$ref"]), depth)
        if "anyOf" in schema:
            return self._value(self._branch(schema["anyOf"], depth), depth + 1)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        name = self._random.choice(types) if depth < MAX_DEPTH or "null" not in types else "null"
        return getattr(self, f"_{name}")(schema, depth)

    def _branch(self, branches: list[dict[str, Any]], depth: int) -> dict[str, Any]:
        """Any branch; far down one that comes to an end."""
        ends = [branch for branch in branches if branch.get("type") not in ("object", "array") and "$ref" not in branch]
        return self._random.choice(ends if depth > MAX_DEPTH and ends else branches)

    def _followed(self, ref: str) -> dict[str, Any]:
        found: Any = self._root
        for part in ref.removeprefix("#").split("/")[1:]:
            found = found[part.replace("~1", "/").replace("~0", "~")]
        assert isinstance(found, dict)
        return found

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        given = [name for name in schema["properties"] if name in schema["required"] or self._random.random() < 0.5]
        return {name: self._value(schema["properties"][name], depth + 1) for name in given}

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        fewest = int(schema.get("minItems", 0))
        most = int(min(schema.get("maxItems", fewest + 3), fewest + 3))
        count = fewest if depth > MAX_DEPTH else self._random.randint(fewest, most)
        return [self._value(schema["items"], depth + 1) for _ in range(count)]

    def _string(self, schema: dict[str, Any], depth: int) -> str:
        if "pattern" in schema:
            return text_for(schema["pattern"], self._random)
        if "format" in schema:
            return FORMATS[schema["format"]]
        return self._random.choice(TEXTS)

    def _integer(self, schema: dict[str, Any], depth: int) -> int:
        low, high = _bounds(schema, 1)
        step = schema.get("multipleOf", 1)
        first = -(-low // step)
        return int(self._random.randint(int(first), int(max(first, high // step))) * step)

    def _number(self, schema: dict[str, Any], depth: int) -> float:
        if "multipleOf" in schema:
            return self._integer(schema, depth)
        low, high = _bounds(schema, 0)
        inside = low + (high - low) * self._random.uniform(0.01, 0.99)
        whole = round(inside)
        return whole if low < whole < high and self._random.random() < 0.5 else inside

    def _boolean(self, schema: dict[str, Any], depth: int) -> bool:
        return self._random.random() < 0.5

    def _null(self, schema: dict[str, Any], depth: int) -> None:
        return None


def _bounds(schema: dict[str, Any], apart: int) -> tuple[float, float]:
    """Between which numbers to choose; ``apart`` is how far from an exclusive one."""
    lows = [schema.get("minimum"), _moved(schema.get("exclusiveMinimum"), apart)]
    highs = [schema.get("maximum"), _moved(schema.get("exclusiveMaximum"), -apart)]
    low = max((limit for limit in lows if limit is not None), default=None)
    high = min((limit for limit in highs if limit is not None), default=None)
    if low is None:
        low = -20 if high is None else high - 50
    return low, low + 50 if high is None else high


def _moved(limit: float | None, by: int) -> float | None:
    return None if limit is None else limit + by


def text_for(pattern: str, random: Random) -> str:
    """A text the pattern matches."""
    for _ in range(50):
        text = _sampled(parser.parse(pattern), random)
        if re.search(pattern, text):
            return text
    raise AssertionError(f"no text found for {pattern!r}")


def _sampled(tokens: Any, random: Random) -> str:
    return "".join(_sample(kind, value, random) for kind, value in tokens)


def _sample(kind: Any, value: Any, random: Random) -> str:
    if kind is sre.LITERAL:
        return chr(value)
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        low, high, inner = value
        return "".join(_sampled(inner, random) for _ in range(random.randint(low, min(int(high), low + 3))))
    if kind is sre.SUBPATTERN:
        return _sampled(value[-1], random)
    if kind is sre.BRANCH:
        return _sampled(random.choice(value[1]), random)
    if kind is sre.IN:
        return _member(value, random)
    if kind is sre.ANY:
        return random.choice("ab1 ")
    if kind is sre.NOT_LITERAL:
        return "a" if value != ord("a") else "b"
    if kind is sre.AT:
        return ""
    if kind is sre.CATEGORY:
        return _member([(kind, value)], random)
    raise AssertionError(f"no sample for {kind}")


_SAMPLES = "abcXYZ019 _-./:@+#~%é\n\t"


def _member(members: Any, random: Random) -> str:
    negated = members[0][0] is sre.NEGATE
    if negated:
        return random.choice([c for c in _SAMPLES if not _holds(members[1:], c)])
    kind, value = random.choice(members)
    if kind is sre.LITERAL:
        return chr(value)
    if kind is sre.RANGE:
        return chr(random.randint(*value))
    return random.choice([c for c in _SAMPLES if _holds([(kind, value)], c)])


def _holds(members: Any, character: str) -> bool:
    tests = {
        sre.CATEGORY_DIGIT: r"\d", sre.CATEGORY_NOT_DIGIT: r"\D", sre.CATEGORY_SPACE: r"\s",
        sre.CATEGORY_NOT_SPACE: r"\S", sre.CATEGORY_WORD: r"\w", sre.CATEGORY_NOT_WORD: r"\W",
    }  # fmt: skip
    for kind, value in members:
        if kind is sre.LITERAL and ord(character) == value:
            return True
        if kind is sre.RANGE and value[0] <= ord(character) <= value[1]:
            return True
        if kind is sre.CATEGORY and re.match(tests[value], character):
            return True
    return False
