"""Whether a value fits a schema: for defaults, for null, and for the form an answer has.

Not a validator for arguments, which are judged by the tool's own model: it answers yes or no in a bounded number of
steps, and ``format`` is not asserted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from toolkit.adapters.pointer import found_at, steps
from toolkit.models.exact import is_multiple, same_json

MAX_STEPS: Final = 50_000
MAX_DEPTH: Final = 150


class _TooMuch(Exception):
    """The value or the schema is larger than anybody needs."""


class Judge:
    """Judges values by the schemas of one document; references lead into its root.

    >>> Judge({}).fits(None, {"type": ["string", "null"]})
    True
    """

    def __init__(self, root: object) -> None:
        self._root = root
        self._steps = 0

    def fits(self, value: Any, schema: object) -> bool:
        """Whether it does; what cannot be judged within the limits does not."""
        self._steps = 0
        try:
            return self._fits(value, schema, 0)
        except (_TooMuch, RecursionError):
            return False
        except (TypeError, ValueError, AttributeError, ArithmeticError):  # a keyword whose value makes no sense
            return False

    def _fits(self, value: Any, schema: Any, depth: int) -> bool:
        self._steps += 1
        if self._steps > MAX_STEPS or depth > MAX_DEPTH:
            raise _TooMuch
        if not isinstance(schema, dict):
            return schema is True
        for word, limit in schema.items():
            check = _CHECKS.get(word)
            if check is not None and not check(value, limit):
                return False
        return all(
            test(self, value, schema[word], schema, depth + 1) for word, test in _APPLICATORS.items() if word in schema
        )

    def _ref(self, value: Any, ref: Any, schema: Any, depth: int) -> bool:
        if not isinstance(ref, str) or not ref.startswith("#"):
            raise _TooMuch
        path = steps(ref[1:])
        target, count = found_at(self._root, path)
        return count == len(path) and self._fits(value, target, depth)

    def _all_of(self, value: Any, parts: Any, schema: Any, depth: int) -> bool:
        return all(self._fits(value, part, depth) for part in parts)

    def _any_of(self, value: Any, parts: Any, schema: Any, depth: int) -> bool:
        return any(self._fits(value, part, depth) for part in parts)

    def _one_of(self, value: Any, parts: Any, schema: Any, depth: int) -> bool:
        return sum(self._fits(value, part, depth) for part in parts) == 1

    def _not(self, value: Any, part: Any, schema: Any, depth: int) -> bool:
        return not self._fits(value, part, depth)

    def _if(self, value: Any, part: Any, schema: Any, depth: int) -> bool:
        word = "then" if self._fits(value, part, depth) else "else"
        return self._fits(value, schema.get(word, True), depth)

    def _properties(self, value: Any, parts: Any, schema: Any, depth: int) -> bool:
        return not isinstance(value, dict) or all(
            self._fits(value[name], part, depth) for name, part in parts.items() if name in value
        )

    def _pattern_properties(self, value: Any, parts: Any, schema: Any, depth: int) -> bool:
        return not isinstance(value, dict) or all(
            self._fits(item, part, depth)
            for pattern, part in parts.items()
            for name, item in value.items()
            if matches(pattern, name)
        )

    def _additional(self, value: Any, part: Any, schema: Any, depth: int) -> bool:
        if not isinstance(value, dict):
            return True
        named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        return all(
            self._fits(item, part, depth)
            for name, item in value.items()
            if name not in named and not any(matches(pattern, name) for pattern in patterns)
        )

    def _property_names(self, value: Any, part: Any, schema: Any, depth: int) -> bool:
        return not isinstance(value, dict) or all(self._fits(name, part, depth) for name in value)

    def _dependent(self, value: Any, parts: Any, schema: Any, depth: int) -> bool:
        return not isinstance(value, dict) or all(
            self._fits(value, part, depth) for name, part in parts.items() if name in value
        )

    def _prefix(self, value: Any, parts: Any, schema: Any, depth: int) -> bool:
        return not isinstance(value, list) or all(
            self._fits(item, part, depth) for item, part in zip(value, parts, strict=False)
        )

    def _items(self, value: Any, part: Any, schema: Any, depth: int) -> bool:
        if not isinstance(value, list):
            return True
        if isinstance(part, list):  # as older drafts write ``prefixItems``
            return self._prefix(value, part, schema, depth)
        return all(self._fits(item, part, depth) for item in value[len(schema.get("prefixItems", ())) :])

    def _contains(self, value: Any, part: Any, schema: Any, depth: int) -> bool:
        if not isinstance(value, list):
            return True
        count = sum(self._fits(item, part, depth) for item in value)
        return bool(schema.get("minContains", 1) <= count <= schema.get("maxContains", count))


_APPLICATORS: Final[dict[str, Callable[[Judge, Any, Any, Any, int], bool]]] = {
    "$ref": Judge._ref,
    "allOf": Judge._all_of,
    "anyOf": Judge._any_of,
    "oneOf": Judge._one_of,
    "not": Judge._not,
    "if": Judge._if,
    "properties": Judge._properties,
    "patternProperties": Judge._pattern_properties,
    "additionalProperties": Judge._additional,
    "propertyNames": Judge._property_names,
    "dependentSchemas": Judge._dependent,
    "prefixItems": Judge._prefix,
    "items": Judge._items,
    "contains": Judge._contains,
}


def has_type(value: Any, name: Any) -> bool:
    """Whether a value is of a type of JSON Schema: 1.0 is an integer, true is no number.

    >>> has_type(1.0, "integer"), has_type(True, "number")
    (True, False)
    """
    if name == "integer":
        return _is_number(value) and (isinstance(value, int) or value.is_integer())
    if name == "number":
        return _is_number(value)
    kind = _KINDS.get(name)
    return kind is not None and isinstance(value, kind)


_KINDS: Final[dict[Any, type]] = {
    "string": str,
    "boolean": bool,
    "null": type(None),
    "object": dict,
    "array": list,
}


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def matches(pattern: Any, text: str) -> bool:
    """Whether a text matches, in time that grows with the text alone; a pattern that cannot be read matches nothing."""
    found = compiled(pattern) if isinstance(pattern, str) else None
    if found is None:
        return False
    try:
        found.validate_python(text)
    except ValidationError:
        return False
    return True


@lru_cache(maxsize=256)
def compiled(pattern: str) -> SchemaValidator | None:
    """The pattern for the engine without backtracking; None if it has lookarounds, back references or mistakes."""
    try:
        return SchemaValidator(
            core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"),
        )
    except SchemaError:
        return None


def _of_text(test: Callable[[str, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, limit: not isinstance(value, str) or test(value, limit)


def _of_number(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, limit: not _is_number(value) or test(value, limit)


def _of_list(test: Callable[[list[Any], Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, limit: not isinstance(value, list) or test(value, limit)


def _of_object(test: Callable[[dict[str, Any], Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, limit: not isinstance(value, dict) or test(value, limit)


def _distinct(items: list[Any]) -> bool:
    return not any(same_json(one, other) for at, one in enumerate(items) for other in items[:at])


_CHECKS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "type": lambda value, names: any(has_type(value, name) for name in (names if isinstance(names, list) else [names])),
    "enum": lambda value, values: any(same_json(value, one) for one in values),
    "const": same_json,
    "pattern": _of_text(lambda text, pattern: matches(pattern, text)),
    "minLength": _of_text(lambda text, limit: len(text) >= limit),
    "maxLength": _of_text(lambda text, limit: len(text) <= limit),
    "minimum": _of_number(lambda number, limit: number >= limit),
    "maximum": _of_number(lambda number, limit: number <= limit),
    "exclusiveMinimum": _of_number(lambda number, limit: number > limit),
    "exclusiveMaximum": _of_number(lambda number, limit: number < limit),
    "multipleOf": _of_number(is_multiple),
    "minItems": _of_list(lambda items, limit: len(items) >= limit),
    "maxItems": _of_list(lambda items, limit: len(items) <= limit),
    "uniqueItems": _of_list(lambda items, wanted: not wanted or _distinct(items)),
    "required": _of_object(lambda found, names: all(name in found for name in names)),
    "minProperties": _of_object(lambda found, limit: len(found) >= limit),
    "maxProperties": _of_object(lambda found, limit: len(found) <= limit),
    "dependentRequired": _of_object(
        lambda found, rules: all(needed in found for name, names in rules.items() if name in found for needed in names)
    ),
}
