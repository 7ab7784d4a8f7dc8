"""Several schemas that all hold, as one: ``allOf``, what stands beside a ``$ref``, what stands beside an ``anyOf``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, TypeAlias

from toolkit.adapters.plain_json import JsonDict
from toolkit.models.exact import same_json

MAX_DEPTH: Final = 32
Merged: TypeAlias = JsonDict | Literal[False]
"""A schema without ``allOf``, or False where nothing can fit."""

# What says nothing about values; of several the first is kept.
SILENT: Final = frozenset({"$schema", "$id", "$comment", "$defs", "definitions", "$anchor", "$vocabulary"})
SPOKEN: Final = frozenset({
    "title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "format",
    "contentEncoding", "contentMediaType", "contentSchema",
})  # fmt: skip


class Unmergeable(Exception):
    """Two keywords that cannot be said as one."""


def constrains(word: str) -> bool:
    """Whether a keyword can say anything about values."""
    return word not in SILENT and word not in SPOKEN and not word.startswith("x-")


def flattened(schema: Any, resolve: Callable[[str], Any], seen: tuple[str, ...] = (), depth: int = 0) -> Merged:
    """The schema with all that ``allOf`` and ``$ref`` add to it, so that neither is left at its top.

    :param resolve: gives what a reference leads to; called once for every schema looked at.
    """
    if schema is False:
        return False
    if schema is True:
        return {}
    if not isinstance(schema, dict):
        raise Unmergeable("is no schema")
    if depth > MAX_DEPTH:
        raise Unmergeable(f"'allOf' and '$ref' lead through more than {MAX_DEPTH} schemas")
    whole: Merged = {word: value for word, value in schema.items() if word not in ("allOf", "$ref")}
    ref = schema.get("$ref")
    if ref is not None:
        if ref in seen:
            raise Unmergeable("'$ref' leads back to itself")
        whole = merged(whole, flattened(resolve(ref), resolve, (*seen, ref), depth + 1))
    parts = schema.get("allOf", [])
    if not isinstance(parts, list):
        raise Unmergeable("'allOf' must be a list")
    for part in parts:
        whole = merged(whole, flattened(part, resolve, seen, depth + 1))
    return whole


def merged(one: Merged, other: Merged) -> Merged:
    """Both as one schema; where both say something that says nothing about values, the first is kept."""
    if one is False or other is False:
        return False
    _check_extras(one, other)
    whole = {**other, **one}
    for word in one.keys() & other.keys():
        if not constrains(word) or same_json(one[word], other[word]):
            continue
        merge = _RULES.get(word)
        if merge is None:
            raise Unmergeable(f"two different {word!r} cannot be said as one")
        value = merge(one[word], other[word])
        if value is _NONE_FITS:
            return False
        whole[word] = value
    return whole


class _NoneFits:
    pass


_NONE_FITS: Final = _NoneFits()


def _check_extras(one: JsonDict, other: JsonDict) -> None:
    """What ``additionalProperties`` says is said of the names beside it: other names would change its meaning. The same
    holds of ``items`` and what comes before them."""
    for closed, extra in ((one, other), (other, one)):
        for word in ("additionalProperties", "unevaluatedProperties"):
            if closed.get(word, True) in (True, {}):
                continue
            foreign = set(_names(extra)) - set(_names(closed))
            if foreign or "patternProperties" in extra:
                raise Unmergeable(f"{word!r} is said without knowing all properties")
        if "items" in closed and "prefixItems" in extra and "prefixItems" not in closed:
            raise Unmergeable("'items' is said without knowing 'prefixItems'")


def _names(schema: JsonDict) -> Iterable[str]:
    names = schema.get("properties", {})
    return names if isinstance(names, dict) else ()


def _types(one: Any, other: Any) -> Any:
    mine, theirs = _listed(one), _listed(other)
    both = [name for name in mine if name in theirs or (name == "integer" and "number" in theirs)]
    both += [name for name in theirs if name == "integer" and "number" in mine and name not in both]
    if not both:
        return _NONE_FITS
    return both[0] if len(both) == 1 else both


def _listed(types: Any) -> list[Any]:
    return types if isinstance(types, list) else [types]


def _properties(one: Any, other: Any) -> Any:
    if not isinstance(one, dict) or not isinstance(other, dict):
        raise Unmergeable("'properties' must be an object")
    return {
        **{name: {"allOf": [one[name], other[name]]} if name in other else one[name] for name in one},
        **{name: other[name] for name in other if name not in one},
    }


def _required(one: Any, other: Any) -> Any:
    if not isinstance(one, list) or not isinstance(other, list):
        raise Unmergeable("'required' must be a list")
    return [*one, *(name for name in other if name not in one)]


def _common_values(one: Any, other: Any) -> Any:
    if not isinstance(one, list) or not isinstance(other, list):
        raise Unmergeable("'enum' must be a list")
    return [value for value in one if any(same_json(value, its) for its in other)] or _NONE_FITS


def _larger(one: Any, other: Any) -> Any:
    return max(_number(one), _number(other))


def _smaller(one: Any, other: Any) -> Any:
    return min(_number(one), _number(other))


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unmergeable("a limit must be a number")
    return value


_RULES: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "type": _types,
    "properties": _properties,
    "required": _required,
    "enum": _common_values,
    "const": lambda one, other: _NONE_FITS,
    "items": lambda one, other: {"allOf": [one, other]},
    "additionalProperties": lambda one, other: False if one is False or other is False else {"allOf": [one, other]},
    "propertyNames": lambda one, other: {"allOf": [one, other]},
    "uniqueItems": lambda one, other: bool(one or other),
    **dict.fromkeys(
        ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), _larger
    ),
    **dict.fromkeys(
        ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), _smaller
    ),
}  # fmt: skip
