"""Generated models accept a value exactly when its JSON Schema does; ``jsonschema`` is the oracle."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError

from tests.examples import tries
from tests.modules import input_model

SCHEMAS: dict[str, Any] = {
    "string": {"type": "string"},
    "string with length": {"type": "string", "minLength": 1, "maxLength": 2},
    "string with pattern": {"type": "string", "pattern": "^a+$"},
    "string with format": {"type": "string", "format": "date-time"},
    "integer": {"type": "integer"},
    "integer with limits": {"type": "integer", "minimum": 0, "exclusiveMaximum": 3},
    "integer in steps": {"type": "integer", "multipleOf": 2},
    "number": {"type": "number"},
    "number with limits": {"type": "number", "exclusiveMinimum": 0, "maximum": 2.5},
    "number of at least 0": {"type": "number", "minimum": 0},
    "number of at most 2**53": {"type": "number", "maximum": 2**53},
    "number below an odd limit": {"type": "number", "exclusiveMaximum": 2**53 + 1},
    "number from an odd limit": {"type": "number", "minimum": 2**53 + 1},
    "number in steps": {"type": "number", "multipleOf": 2},
    "number between fractions": {"type": "number", "minimum": 0.5, "exclusiveMaximum": 2.5},
    "nullable number with limits": {"type": ["number", "null"], "minimum": 1},
    "int64": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    "integer between fractions": {"type": "integer", "minimum": 0.5, "exclusiveMaximum": 2.5},
    "nullable integer with limits": {"type": ["integer", "null"], "minimum": 1},
    "boolean": {"type": "boolean"},
    "null": {"type": "null"},
    "nullable string": {"type": ["string", "null"]},
    "several types": {"type": ["string", "integer", "boolean"]},
    "several types with limits": {"type": ["string", "integer"], "minLength": 2, "minimum": 2},
    "integer or number": {"type": ["integer", "number"]},
    "enum of texts": {"enum": ["a", "b"]},
    "enum of numbers": {"enum": [0, 1, 2]},
    "enum of booleans": {"enum": [True]},
    "mixed enum": {"enum": ["a", 1, False, None]},
    "typed enum": {"type": "integer", "enum": [1, "a", 2]},
    "const text": {"const": "a"},
    "const number": {"const": 1},
    "const true": {"const": True},
    "const null": {"const": None},
    "array": {"type": "array"},
    "array of integers": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
    "array of limited texts": {"type": "array", "items": {"type": "string", "minLength": 1}},
    "array of limited arrays": {
        "type": "array",
        "items": {"type": "array", "items": {"type": "integer"}, "maxItems": 1},
    },
    "nullable limited array": {"type": ["array", "null"], "items": {"type": "string"}, "minItems": 1},
    "limited array or text": {
        "anyOf": [{"type": "array", "items": {"type": "integer"}, "maxItems": 2}, {"type": "string"}]
    },
    "array of arrays": {"type": "array", "items": {"type": "array", "items": {"type": "boolean"}}},
    "free object": {"type": "object"},
    "map": {"type": "object", "additionalProperties": {"type": "integer"}},
    "open object": {"type": "object", "properties": {"a": {"type": "integer"}}},
    "closed object": {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False},
    "empty closed object": {"type": "object", "additionalProperties": False},
    "object with typed rest": {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "additionalProperties": {"type": "string"},
    },
    "object with required": {
        "type": "object",
        "properties": {"a": {"type": ["integer", "null"]}, "b": {"enum": ["x"]}},
        "required": ["a"],
    },
    "anyOf": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
    "anyOf with limits": {"anyOf": [{"type": "integer", "minimum": 2}, {"type": "string", "maxLength": 1}]},
    "oneOf of types": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
    "oneOf by constant": {
        "oneOf": [
            {"type": "object", "properties": {"a": {"const": 1}, "b": {"type": "string"}}, "required": ["a"]},
            {"type": "object", "properties": {"a": {"const": 2}, "b": {"type": "integer"}}, "required": ["a"]},
        ]
    },
    "anything": {},
    "true": True,
    "recursive": {"$ref": "#/$defs/node"},
    "awkward names": {
        "type": "object",
        "properties": {"class": {"type": "integer"}, "a": {"type": "string"}, "_b": {"type": "integer"}, "list": {}},
        "additionalProperties": False,
    },
}
DEFINITIONS = {
    "node": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/$defs/node"}},
        "additionalProperties": False,
    }
}

_models: dict[str, tuple[type[BaseModel], Draft202012Validator]] = {}


def pair(name: str) -> tuple[type[BaseModel], Draft202012Validator]:
    """The model of ``{"v": schema}`` and the oracle for it."""
    if name not in _models:
        schema = {"type": "object", "properties": {"v": SCHEMAS[name]}, "$defs": DEFINITIONS}
        _models[name] = input_model(schema, f"exact_{len(_models)}"), Draft202012Validator(schema)
    return _models[name]


VALUES: list[Any] = [
    None, True, False, 0, 1, 2, 3, -1, 0.0, 1.0, 1.5, 2.5, 2.6, -0.0, 2**70, 1e300, 2**53, 2**53 + 1,
    float(2**53), float(2**53 + 2), 10000000001, 10000000001.0, 10**400, -(10**400), -(2**63), -(2**63) - 1, 2**63 - 1, 2**63, "", "a", "b", "aa", "aaa", "é", "7", "1",
    "true", [], [1], [1.0], [True], ["a"], [""], [1, 2, 3], ["a", 1], [None], [[True]], [[1]], {}, {"a": 1}, {"a": 1.0},
    {"a": "1"}, {"a": True}, {"a": None}, {"a": 1, "b": "x"}, {"a": 2, "b": 1}, {"a": 1, "b": None}, {"b": "x"}, {"c": "x"},
    {"c": 1}, {"a": 1, "c": "x"}, {"a": 1, "c": 1}, {"b": {"b": {"a": 1}}}, {"b": {"a": "x"}}, {"b": {"c": 1}}, {"class": 1},
    {"class_": 1}, {"_b": 1}, {"b_": 1}, {"list": [1]}, {"list_": 1}, {"class": "x"},
]  # fmt: skip


def disagreement(name: str, value: Any) -> str | None:
    model, oracle = pair(name)
    instance = {"v": value}
    wanted = oracle.is_valid(instance)
    validate = model.__pydantic_validator__
    try:
        made = validate.validate_python(instance, by_alias=True, by_name=False)
    except ValidationError as error:
        return f"{value!r} was refused: {error.errors(include_url=False)}" if wanted else None
    if not wanted:
        return f"{value!r} was accepted"
    text = json.dumps(instance)
    if validate.validate_json(text, by_alias=True, by_name=False) != made:
        return f"{value!r} reads differently from text"
    if json.loads(made.model_dump_json(by_alias=True, exclude_unset=True)) != instance:
        return f"{value!r} came out as {made.model_dump_json(by_alias=True, exclude_unset=True)}"
    return None


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.slow
def test_verdicts_agree_on_telling_values(name: str) -> None:
    differing = [words for value in VALUES if (words := disagreement(name, value)) is not None]
    assert not differing, "\n".join(differing)
    assert disagreement(name, VALUES[0]) is None
    model, oracle = pair(name)
    assert oracle.is_valid({}), "an optional property may be absent"
    assert model.model_validate({}).model_fields_set == set()


STEPS: list[tuple[float, float, bool]] = [
    (0.5, 10**400, True), (0.5, 2.25, False), (1.5, 3, True), (1.5, 4, False), (0.1, 0.3, True), (0.1, 7, True),
    (0.1, 0.35, False), (2, 1e300, True), (3, 1e17, False), (2, 10000000001.0, False), (2.0, 2**60 + 1, False), (0.01, 4.35, True),
]  # fmt: skip


@pytest.mark.parametrize(("step", "value", "fits"), STEPS)
def test_steps_are_meant_as_they_are_written(step: float, value: float, fits: bool) -> None:
    """In decimal: the oracle divides floats, and stumbles over 0.3 in steps of 0.1 and over large ints."""
    schema = {"type": "object", "properties": {"v": {"type": "number", "multipleOf": step}}}
    model = input_model(schema)
    if fits:
        assert model.model_validate({"v": value}).model_dump() == {"v": value}
    else:
        with pytest.raises(ValidationError, match="Input should be a multiple of"):
            model.model_validate({"v": value})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, -2.0]) | st.text("ab1é", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcv"), inner, max_size=3),
    max_leaves=6,
)


@tries(400)
@given(st.sampled_from(sorted(SCHEMAS)), json_values)
@pytest.mark.slow
def test_verdicts_agree_on_random_values(name: str, value: Any) -> None:
    assert disagreement(name, value) is None


NOT_JSON: list[Any] = [b"a", {1}, (1,), 1j, float("nan"), float("inf"), object(), "\ud800", {"a": {1: 2}}, range(3)]


@pytest.mark.parametrize("value", NOT_JSON, ids=lambda value: f"{type(value).__name__}")
@pytest.mark.parametrize(
    "name", ["anything", "array", "free object", "open object", "string", "number", "several types"]
)
def test_what_is_no_json_is_refused_everywhere(name: str, value: Any) -> None:
    model, _ = pair(name)
    for place in (value, [value], {"a": value}, {"zz": value}):
        with pytest.raises(ValidationError):
            model.model_validate({"v": place})


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.slow
def test_a_model_tells_a_json_schema_that_accepts_what_it_accepts(name: str) -> None:
    model, oracle = pair(name)
    told = Draft202012Validator(model.model_json_schema())
    for value in VALUES:
        if oracle.is_valid({"v": value}) and value is not None:
            assert told.is_valid({"v": value}), value


def test_models_are_frozen_and_hide_inputs() -> None:
    model, _ = pair("string")
    made: Any = model.model_validate({"v": "x"})
    with pytest.raises(ValidationError):
        made.v = "y"
    with pytest.raises(ValidationError) as failure:
        model.model_validate({"v": 12345})
    assert "12345" not in str(failure.value)
