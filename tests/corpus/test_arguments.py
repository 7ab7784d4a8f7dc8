"""The maker of example arguments: they are valid, and small enough for a type checker to read."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from tests.corpus.arguments import NoInstance, valid_arguments

TEXT = {"type": "string"}
SCHEMAS: dict[str, dict[str, Any]] = {
    "required and optional": {"properties": {"a": TEXT, "b": TEXT}, "required": ["b"]},
    "required without a property": {"required": ["a"]},
    "limits": {"properties": {"n": {"type": "number", "exclusiveMinimum": 2, "maximum": 2.5}}, "required": ["n"]},
    "a pattern": {"properties": {"s": {**TEXT, "pattern": "^[a-f]{3}-\\d+$"}}, "required": ["s"]},
    "a pattern and a length": {
        "properties": {"s": {**TEXT, "pattern": "^[a-f]+$", "minLength": 24}},
        "required": ["s"],
    },
    "unique items": {"properties": {"l": {"type": "array", "items": TEXT, "minItems": 3, "uniqueItems": True}}},
    "a reference to itself": {"$defs": {"T": {"properties": {"t": {"$ref": "#/$defs/T"}}}}, "$ref": "#/$defs/T"},
    "one of two shapes": {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": TEXT, "b": TEXT}},
    "all of two": {"allOf": [{"properties": {"a": TEXT}, "required": ["a"]}, {"required": ["c"]}]},
    "if and then": {
        "properties": {"k": {"enum": ["x"]}, "v": TEXT},
        "if": {"required": ["k"]},
        "then": {"required": ["v"]},
    },
    "a map": {"properties": {"m": {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2}}},
    "tuples": {"properties": {"t": {"type": "array", "prefixItems": [TEXT, {"type": "integer"}], "minItems": 2}}},
    "an optional property that nothing fits": {"properties": {"never": {"enum": []}, "a": TEXT}},
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_both_instances_are_valid(schema: dict[str, Any]) -> None:
    made = valid_arguments(schema)
    for instance in (made.minimal, made.full):
        assert list(jsonschema.Draft202012Validator(schema).iter_errors(instance)) == []
    assert made.minimal.keys() <= made.full.keys()


def test_a_full_instance_holds_every_property_that_can_be_there() -> None:
    inner = {
        "type": "object",
        "properties": {"x": {"type": ["null", "integer"]}, "y": {"type": "array", "items": TEXT}},
    }
    made = valid_arguments({"properties": {"inner": inner, "never": False, "b": TEXT}, "required": ["b"]})
    assert made.minimal == {"b": "x"}
    assert made.full == {"inner": {"x": 1, "y": ["x"]}, "b": "x"}


def test_a_schema_without_any_instance_is_an_error() -> None:
    with pytest.raises(NoInstance, match="no value was found"):
        valid_arguments({"properties": {"a": {"enum": []}}, "required": ["a"]})
