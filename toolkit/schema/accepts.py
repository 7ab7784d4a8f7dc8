"""Whether a value fits a schema: for defaults, for null, and for the form an answer has.

Not the validator for arguments, which are judged by the tool's own model: it answers yes or no in a bounded number of
steps, and ``format`` is not asserted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from toolkit.schema.keywords import APPLIED_IN_PLACE, REFERENCES, References, for_linear_engine

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator


# ----------------------------------------------------------------------------------------------------------------------
# JSON values as JSON Schema sees them: their types, and when two of them are equal.


def json_type(value: object) -> str:
    """The most specific JSON Schema type of a value: a number without a fraction is an integer.

    >>> [json_type(value) for value in (None, True, 1, 1.0, 1.5, "x", [], {})]
    ['null', 'boolean', 'integer', 'integer', 'number', 'string', 'array', 'object']
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) or value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def has_type(value: object, name: object) -> bool:
    """Whether a value is of a JSON Schema type: 1.0 is an integer, true is not a number.

    >>> has_type(1.0, "integer"), has_type(1, "number"), has_type(True, "number")
    (True, True, False)
    """
    if name in ("integer", "number"):
        return is_number(value) and (name == "number" or json_type(value) == "integer")
    kind = _PYTHON_TYPES.get(name) if isinstance(name, str) else None
    return kind is not None and isinstance(value, kind)


_PYTHON_TYPES: Final[dict[str, type]] = {
    "string": str,
    "boolean": bool,
    "null": type(None),
    "object": dict,
    "array": list,
}


def is_number(value: object) -> bool:
    """Whether a value is a finite number; booleans are not numbers."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def same_json(one: object, other: object) -> bool:
    """Whether two JSON values are equal as JSON Schema understands it.

    >>> same_json(1, 1.0), same_json(1, True), same_json([1], [1.0])
    (True, False, True)
    """
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    alike = type(one) is type(other) or (isinstance(one, int | float) and isinstance(other, int | float))
    return alike and one == other


def json_key(value: Any) -> Hashable:
    """A key that two values share exactly where ``same_json`` holds, to look one up among many.

    >>> json_key(1) == json_key(1.0), json_key(1) == json_key(True), json_key({"a": []}) == json_key({"a": {}})
    (True, False, False)
    """
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, dict):
        return dict, frozenset((key, json_key(item)) for key, item in value.items())
    if isinstance(value, list):
        return list, tuple(map(json_key, value))
    assert isinstance(value, Hashable)
    return value


def are_disjoint(values: Iterable[Any], others: Iterable[Any]) -> bool:
    """Whether no value of one list is equal to a value of the other."""
    return set(map(json_key, values)).isdisjoint(map(json_key, others))


def is_multiple(value: float, step: float) -> bool:
    """Whether a number is a multiple of another, fractions taken as they are written in decimal.

    >>> is_multiple(0.3, 0.1), is_multiple(1e17, 3)
    (True, False)
    """
    return (as_fraction(value) / as_fraction(step)).denominator == 1


def as_fraction(number: float) -> Fraction:
    """The exact number that the decimal text of a JSON number means."""
    whole = isinstance(number, int) or number.is_integer()
    return Fraction(number) if whole else Fraction(repr(number))


MAX_STEPS: Final = 50_000
MAX_DEPTH: Final = 150


class _CannotJudge(Exception):
    """The value or the schema is too large, or a reference cannot be followed."""


class Judge:
    """Judges values by the schemas of one document.

    >>> Judge({"$defs": {"a": {"type": "null"}}}).fits(None, {"$ref": "#/$defs/a"})
    True

    :param lookup: returns the schema that a reference leads to, in place of the document.
    """

    def __init__(
        self, root: object, lookup: Callable[[Any], object] | None = None, *, max_steps: int = MAX_STEPS
    ) -> None:
        self._references = References(root)
        self._lookup = lookup or self._find
        self._max_steps = max_steps
        self._steps = 0

    def fits(self, value: Any, schema: object) -> bool:
        """Whether it does; what cannot be judged within the limits does not."""
        self._steps = 0
        try:
            return self._fits(value, schema, 0)
        except (_CannotJudge, RecursionError):
            return False
        except (TypeError, ValueError, AttributeError, ArithmeticError):  # a keyword whose value makes no sense
            return False

    def _fits(self, value: Any, schema: Any, depth: int) -> bool:
        self._steps += 1
        if self._steps > self._max_steps or depth > MAX_DEPTH:
            raise _CannotJudge
        if not isinstance(schema, dict):
            return schema is True
        schema = self._references.without_ignored(schema)
        for word, limit in schema.items():
            check = CHECKS.get(word)
            if check is not None and not check(value, limit):
                return False
        return all(
            test(self, value, schema[word], schema, depth + 1) for word, test in _APPLICATORS.items() if word in schema
        )

    def _find(self, ref: Any) -> Any:
        target = self._references.find(ref)
        if target is None:
            raise _CannotJudge
        return target.schema

    def _ref(self, value: Any, ref: Any, schema: Any, depth: int) -> bool:
        return self._fits(value, self._lookup(ref), depth)

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
        """``dependentSchemas``, and ``dependencies``, in which a list of names may replace a schema."""
        return not isinstance(value, dict) or all(
            self._fits(value, {"required": part} if isinstance(part, list) else part, depth)
            for name, part in parts.items()
            if name in value
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

    def _additional_items(self, value: Any, part: Any, schema: Any, depth: int) -> bool:
        first = schema.get("items")
        if not isinstance(value, list) or not isinstance(first, list):
            return True
        return all(self._fits(item, part, depth) for item in value[len(first) :])

    def _contains(self, value: Any, part: Any, schema: Any, depth: int) -> bool:
        if not isinstance(value, list):
            return True
        count = sum(self._fits(item, part, depth) for item in value)
        return bool(schema.get("minContains", 1) <= count <= schema.get("maxContains", count))

    def _unevaluated(self, value: Any, part: Any, schema: Any, depth: int) -> bool:
        """Judged only where only keywords next to it evaluate: it then applies to what none of them applies to."""
        if part is True or not isinstance(value, dict | list):
            return True
        if any(word in schema for word in (*APPLIED_IN_PLACE, *REFERENCES, "contains")):
            raise _CannotJudge
        if isinstance(value, dict):
            return "additionalProperties" in schema or self._additional(value, part, schema, depth)
        return "items" in schema or self._items(value, part, schema, depth)

    def _refuse(self, value: Any, part: Any, schema: Any, depth: int) -> bool:
        raise _CannotJudge


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
    "dependencies": Judge._dependent,
    "prefixItems": Judge._prefix,
    "items": Judge._items,
    "additionalItems": Judge._additional_items,
    "contains": Judge._contains,
    "unevaluatedProperties": lambda judge, value, *rest: (
        not isinstance(value, dict) or judge._unevaluated(value, *rest)
    ),
    "unevaluatedItems": lambda judge, value, *rest: not isinstance(value, list) or judge._unevaluated(value, *rest),
    "$dynamicRef": Judge._refuse,
    "$recursiveRef": Judge._refuse,
}


def matches(pattern: Any, text: str) -> bool:
    """Whether a text matches, in linear time; a pattern that the engine does not take matches nothing."""
    from pydantic_core import ValidationError

    found = compile_pattern(pattern) if isinstance(pattern, str) else None
    if found is None:
        return False
    try:
        found.validate_python(text)
    except ValidationError:
        return False
    return True


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> SchemaValidator | None:
    """The pattern, as ECMA-262 reads it, for the linear-time engine; None if it has lookarounds, back references or
    mistakes."""
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        return SchemaValidator(core_schema.str_schema(pattern=for_linear_engine(pattern), regex_engine="rust-regex"))
    except SchemaError:
        return None


def _of_text(test: Callable[[str, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, limit: not isinstance(value, str) or test(value, limit)


def _of_number(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def check(value: Any, limit: Any) -> bool:
        if isinstance(limit, bool):  # as draft-04 writes an exclusive limit
            raise _CannotJudge
        return not is_number(value) or test(value, limit)

    return check


def _of_list(test: Callable[[list[Any], Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, limit: not isinstance(value, list) or test(value, limit)


def _of_object(test: Callable[[dict[str, Any], Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, limit: not isinstance(value, dict) or test(value, limit)


def _is_distinct(items: list[Any]) -> bool:
    return len(set(map(json_key, items))) == len(items)


CHECKS: Final[dict[str, Callable[[Any, Any], bool]]] = {
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
    "uniqueItems": _of_list(lambda items, wanted: not wanted or _is_distinct(items)),
    "required": _of_object(lambda found, names: all(name in found for name in names)),
    "minProperties": _of_object(lambda found, limit: len(found) >= limit),
    "maxProperties": _of_object(lambda found, limit: len(found) <= limit),
    "dependentRequired": _of_object(
        lambda found, needs: all(name in found for given, names in needs.items() if given in found for name in names)
    ),
}
