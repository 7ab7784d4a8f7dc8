"""Limits: whether the one of a schema implies the one of another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from toolkit.jsonschema.values import is_multiple


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
OBJECT_WORDS: Final = ("properties", "patternProperties", "additionalProperties")
