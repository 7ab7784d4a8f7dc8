"""Pairs of schemas that look as if one accepted all the other does: each has a value that tells otherwise."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from toolkit.codegen.imports.subset import gaps

TEXT: dict[str, Any] = {"type": "string"}
COUNT: dict[str, Any] = {"type": "integer"}

TRAPS: list[tuple[str, Any, Any, Any]] = [
    ("another type", {"type": "number"}, COUNT, 0.5),
    ("true is not 1", {"const": True}, {"enum": [1, "x"]}, True),
    ("an alternative", {"anyOf": [TEXT, COUNT]}, TEXT, 1),
    ("two alternatives at once", {"minimum": 2}, {"oneOf": [{"minimum": 1}, {"minimum": 2}]}, 3),
    ("no alternative twice", {"oneOf": [COUNT, TEXT]}, {"oneOf": [COUNT, TEXT, {"minimum": 1}]}, 1),
    ("a wider not", {"not": TEXT}, {"not": {"type": ["string", "integer"]}}, 1),
    ("another condition", {"if": TEXT, "then": {"maxLength": 3}}, {"if": TEXT, "then": {"maxLength": 1}}, "ab"),
    ("the same word for another thing", {"$ref": "#/$defs/x", "$defs": {"x": {}}}, {"$ref": "#/$defs/x", "$defs": {"x": TEXT}}, 1),
    ("a reference below a word that is the same", {"not": {"$ref": "#/$defs/x"}, "$defs": {"x": TEXT}}, {"not": {"$ref": "#/$defs/x"}, "$defs": {"x": COUNT}}, 1),
    ("items behind the first", {"prefixItems": [TEXT]}, {"items": TEXT}, ["a", 1]),
    ("more of what it contains", {"contains": COUNT}, {"contains": COUNT, "maxContains": 1}, [1, 2]),
    ("equal items", {"items": COUNT}, {"uniqueItems": True}, [1, 1]),
    ("a name of its own", {"properties": {"a": {}}}, {"additionalProperties": TEXT}, {"a": 1}),
    ("a name that a pattern matches", {"patternProperties": {"^a": {}}, "additionalProperties": TEXT}, {"properties": {"a": TEXT}}, {"a": 1}),
    ("a pattern on the right", {"properties": {"a": COUNT}, "additionalProperties": TEXT}, {"patternProperties": {"a": TEXT}}, {"a": 1}),
    ("what nobody looked at", {"properties": {"a": {}}, "unevaluatedProperties": False}, {"properties": {}, "unevaluatedProperties": False}, {"a": 1}),
    ("items nobody looked at", {"prefixItems": [True], "unevaluatedItems": False}, {"unevaluatedItems": False}, [1]),
    ("a need of a name", {"required": ["a"]}, {"dependentRequired": {"a": ["b"]}}, {"a": 1}),
    ("a need of a whole schema", {"dependentSchemas": {"a": {"minProperties": 1}}}, {"dependentSchemas": {"a": {"minProperties": 2}}}, {"a": 1}),
    ("names of properties", {"propertyNames": {"maxLength": 3}}, {"propertyNames": {"maxLength": 1}}, {"ab": 1}),
    ("two limits that are none together", {"allOf": [{"minLength": 1}, {"maxLength": 5}]}, {"minLength": 2}, "a"),
    ("a bound that is met", {"minimum": 1}, {"exclusiveMinimum": 1}, 1),
    ("a multiple that is none", {"multipleOf": 0.5}, {"multipleOf": 1}, 0.5),
    ("listed values that are too long", {"enum": ["a", "abc"]}, {"maxLength": 2}, "abc"),
    ("a listed object", {"enum": [{"a": 1}]}, {"properties": {"a": TEXT}}, {"a": 1}),
    ("an anchor elsewhere", {"$ref": "#x", "$defs": {"A": {"$anchor": "x", **TEXT}, "B": COUNT}}, {"$ref": "#x", "$defs": {"A": TEXT, "B": {"$anchor": "x", **COUNT}}}, "a"),
    ("a dynamic anchor elsewhere", {"$dynamicRef": "#x", "$defs": {"A": {"$dynamicAnchor": "x", **TEXT}, "B": COUNT}}, {"$dynamicRef": "#x", "$defs": {"A": TEXT, "B": {"$dynamicAnchor": "x", **COUNT}}}, "a"),
    ("another dynamic anchor", {"allOf": [{"$dynamicRef": "#x"}], "$defs": {"A": {"$dynamicAnchor": "x", **TEXT}}}, {"allOf": [{"$dynamicRef": "#x"}], "$defs": {"A": {"$dynamicAnchor": "x", **COUNT}}}, "a"),
    ("an identifier elsewhere", {"$ref": "x", "$defs": {"A": {"$id": "x", **TEXT}, "B": COUNT}}, {"$ref": "x", "$defs": {"A": TEXT, "B": {"$id": "x", **COUNT}}}, "a"),
    ("a tree", {"properties": {"v": {}, "n": {"$ref": "#"}}}, {"properties": {"v": COUNT, "n": {"$ref": "#"}}}, {"n": {"v": "x"}}),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right", "value"), [row[1:] for row in TRAPS], ids=[row[0] for row in TRAPS])
def test_no_proof_where_a_value_tells_otherwise(left: Any, right: Any, value: Any) -> None:
    assert Draft202012Validator(left).is_valid(value) and not Draft202012Validator(right).is_valid(value)
    assert gaps(left, right, only_named=False)
    assert gaps({"properties": {"p": left}}, {"properties": {"p": right}}, only_named=False) or "$" in str(left)


def test_names_of_another_alternative_count() -> None:
    left = {"anyOf": [{"properties": {"a": COUNT}}, {"properties": {"b": TEXT}}]}
    assert gaps({"type": "object", **left}, {"type": "object", "properties": {"a": COUNT, "b": TEXT}}, only_named=True)


def test_who_says_something_of_others_may_have_them() -> None:
    left = {"type": "object", "anyOf": [{"properties": {"a": COUNT}, "additionalProperties": True}]}
    assert gaps(left, {"type": "object", "properties": {"a": COUNT, "b": TEXT}}, only_named=True)


def test_words_beside_a_reference_meant_nothing_in_older_drafts() -> None:
    old = {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"x": COUNT}}
    left = {**old, "properties": {"a": {"$ref": "#/definitions/x", "minimum": 5}}}
    right = {**old, "properties": {"a": {"type": "integer", "minimum": 5}}}
    assert gaps(left, right, only_named=False)
    assert not gaps({**left, "$schema": "https://json-schema.org/draft/2020-12/schema"}, right, only_named=False)
