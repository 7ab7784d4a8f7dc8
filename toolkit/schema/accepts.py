"""Whether a value fits a schema: for defaults, for null, and for the form an answer has.

Not the validator for arguments, which are judged by the tool's own model: it answers yes or no in a bounded number of
steps, and ``format`` is not asserted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from toolkit.jsonschema.keywords import APPLIED_IN_PLACE, REFERENCES
from toolkit.jsonschema.patterns import for_linear_engine
from toolkit.jsonschema.values import has_type, is_multiple, is_number, json_key, same_json
from toolkit.schema.keywords import References

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

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
