"""Strings, numbers and constants that a plain node should accept, and ones it should refuse."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tests.corpus.regexes import texts_matching
from tests.corpus.shapes import Node

OF_EACH_TYPE: Final[tuple[Any, ...]] = ("text", 7, 1.5, True, None, [], {})
_LOOKALIKES: Final[dict[str, tuple[Any, ...]]] = {
    "integer": ("7", True, 1.5, 0.5),
    "number": ("1.5", False),
    "boolean": ("true", 0, 1),
    "string": (7, ["text"]),
    "null": ("null", 0, ""),
}
_BY_FORMAT: Final = {
    "date": "2024-02-29",
    "date-time": "2024-02-29T12:30:00Z",
    "email": "ada@example.org",
    "uri": "https://example.org/a?b=c",
    "uuid": "0b3a5c1e-7f52-4c5e-9d8c-2f6a3b1c4d5e",
}
_LONG = 4000


def strings(shape: Node, random: Random) -> list[Any]:
    """Strings a node probably accepts."""
    least, most = _whole(shape.get("minLength"), 0), _whole(shape.get("maxLength"), None)
    if isinstance(shape.get("pattern"), str):
        found = texts_matching(shape["pattern"], random)
        return [*found, *(text.ljust(min(least, _LONG), text[-1:] or "a") for text in found if len(text) < least)]
    made = [_BY_FORMAT.get(shape.get("format", ""), "text"), "", "naïve 語 😀", 'a "quoted"\nline\\', " 7 "]
    made += ["x" * length for length in (least, least + 1, most) if length is not None and length <= _LONG]
    made += ["😀" * most] if most is not None and most <= 40 else []
    return [text for text in made if least <= len(text) and (most is None or len(text) <= most)]


def broken_strings(shape: Node, random: Random) -> list[tuple[str, Any]]:
    least, most = _whole(shape.get("minLength"), 0), _whole(shape.get("maxLength"), None)
    made: list[tuple[str, Any]] = []
    if least:
        made += [("limit", "x" * (min(least, _LONG) - 1)), ("limit", "😀" * (min(least, _LONG) - 1))]
    if most is not None and most <= _LONG:
        made += [("limit", "x" * (most + 1)), ("limit", "😀" * (most + 1))]
    if isinstance(shape.get("pattern"), str):
        made += [("pattern", text) for text in ("", "!", "é☃", " ", "0", "Aa-_.")]
        for text in texts_matching(shape["pattern"], random, 2):
            made += [
                ("pattern", text + "☃"),
                ("pattern", "☃" + text),
                ("pattern", text[1:]),
                ("pattern", text.swapcase()),
            ]
    return made


def numbers(shape: Node, kind: str) -> list[Any]:
    """Numbers a node probably accepts, limits first."""
    near = [bound + step for _, bound in _bounds(shape) for step in (0, 1, -1)]
    step: Any = shape.get("multipleOf")
    multiples = [step * times for times in (1, 0, 3, -2)] if _is_number(step) else []
    plain: list[Any] = [7, 0, 1.0, -1, 2**53 + 1, 10**20, 1e15]
    fractions: list[Any] = [1.5, -0.25, 1e-7, 1e300, *(bound + 0.5 for _, bound in _bounds(shape))]
    made = [*multiples, *near, *plain, *(fractions if kind == "number" else [])]
    return [value for value in made if _inside(shape, value) and not (step and value not in multiples)]


def broken_numbers(shape: Node) -> list[tuple[str, Any]]:
    made: list[tuple[str, Any]] = []
    for word, bound in _bounds(shape):
        away = -1 if word.endswith("inimum") else 1
        made += [("limit", bound + away), ("limit", bound + away * 0.5), ("limit", bound), ("limit", float(bound))]
        made += [("limit", bound + away * 10**20)]
    step: Any = shape.get("multipleOf")
    if _is_number(step):
        made += [("multiple", step * 1.5), ("multiple", step + 1), ("multiple", float(step * 3)), ("multiple", 1)]
    return made


def broken_constants(values: list[Any]) -> list[tuple[str, Any]]:
    """Near misses of an ``enum``."""
    made: list[tuple[str, Any]] = [("enum", "not one of them"), ("enum", None), ("enum", 987654)]
    for value in values[:6]:
        if isinstance(value, str):
            made += [("enum", value + " "), ("enum", value.swapcase()), ("enum", value[:-1]), ("enum", [value])]
        elif isinstance(value, bool):
            made += [("enum", int(value)), ("enum", not value), ("enum", str(value).lower())]
        elif isinstance(value, int | float):
            made += [("enum", value + 1), ("enum", bool(value)), ("enum", str(value)), ("enum", float(value))]
        elif isinstance(value, list):
            made += [("enum", [*value, None]), ("enum", value[:-1])]
        elif isinstance(value, dict):
            made += [("enum", {**value, "surplus": 1})]
    return made


def wrong_types(kinds: list[str]) -> list[tuple[str, Any]]:
    """Values of other types, including those that careless code accepts as the right type."""
    made: list[tuple[str, Any]] = [("null" if value is None else "type", value) for value in OF_EACH_TYPE]
    for kind in kinds:
        made += [("type", value) for value in _LOOKALIKES.get(kind, ())]
        if kind == "array":
            made += [("type", {"0": "text"}), ("type", "[]")]
        if kind == "object":
            made += [("type", [{}]), ("type", "{}")]
    return made


def _bounds(shape: Node) -> list[tuple[str, Any]]:
    words = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    return [(word, shape[word]) for word in words if _is_number(shape.get(word))]


def _inside(shape: Node, value: Any) -> bool:
    checks = {
        "minimum": lambda bound: value >= bound,
        "maximum": lambda bound: value <= bound,
        "exclusiveMinimum": lambda bound: value > bound,
        "exclusiveMaximum": lambda bound: value < bound,
    }
    return all(checks[word](bound) for word, bound in _bounds(shape))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: Any, otherwise: Any) -> Any:
    return int(value) if _is_number(value) and value >= 0 else otherwise
