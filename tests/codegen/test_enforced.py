"""What types cannot say of a value is judged at run time, by the schema itself; and both agree with JSON Schema."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from tests.corpus.oracle import Oracle
from tests.findings import short_forms
from tests.modules import documents, input_model, load_module, module_text
from toolkit.codegen.schema.document import Loss
from toolkit.codegen.schema.flatten import flatten
from toolkit.codegen.schema.keywords import ANNOTATION, ENFORCED, REFUSED, TYPED
from toolkit.errors import SetupError, SpecError
from toolkit.runtime.arguments import Reader

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
DEFINITIONS = {
    "text": TEXT,
    "named": {"type": "object", "properties": {"name": TEXT}, "required": ["name"]},
    "closed": {"type": "object", "properties": {"name": TEXT}, "additionalProperties": False},
    "tree": {"anyOf": [TEXT, {"type": "array", "items": {"$ref": "#/$defs/tree"}}]},
    "maybe_node": {"type": ["object", "null"], "properties": {"next": {"$ref": "#/$defs/maybe_node"}}},
    "loop": {"$ref": "#/$defs/loop"},
}

# A schema for the property `v`, and values it is tried with; what each must give, jsonschema says.
CASES: dict[str, tuple[Any, list[Any]]] = {
    "not": ({"type": "string", "not": {"const": "x"}}, ["x", "y", 1]),
    "if then else": ({"type": "integer", "if": {"minimum": 10}, "then": {"multipleOf": 5}, "else": {"maximum": 3}}, [10, 11, 3, 4]),
    "allOf of limits": ({"allOf": [{"type": "integer", "minimum": 2}, {"maximum": 4}]}, [1, 2, 4, 5, "x"]),
    "allOf of objects": ({"allOf": [{"$ref": "#/$defs/named"}, {"type": "object", "properties": {"age": WHOLE}}]}, [{"name": "a", "age": 1}, {"age": 1}, {"name": "a", "age": "x"}, {"name": 1}]),
    "allOf of objects, one closed": ({"allOf": [{"$ref": "#/$defs/closed"}, {"properties": {"age": WHOLE}}]}, [{"name": "a"}, {"age": 1}, {"name": 1}]),
    "allOf of two types": ({"allOf": [TEXT, WHOLE]}, ["x", 1]),
    "allOf of one": ({"allOf": [{"$ref": "#/$defs/text"}]}, ["x", 1]),
    "patternProperties": ({"type": "object", "patternProperties": {"^n": WHOLE}, "additionalProperties": False}, [{"n": 1}, {"n": "x"}, {"m": 1}, {}]),
    "propertyNames": ({"type": "object", "propertyNames": {"maxLength": 2}}, [{"ab": 1}, {"abc": 1}]),
    "dependentRequired": ({"type": "object", "dependentRequired": {"a": ["b"]}}, [{"a": 1}, {"a": 1, "b": 2}, {"b": 1}]),
    "dependentSchemas": ({"type": "object", "dependentSchemas": {"a": {"required": ["b"]}}}, [{"a": 1}, {"b": 1}]),
    "contains": ({"type": "array", "contains": WHOLE, "maxContains": 1}, [[1], [1, 2], ["x"], []]),
    "uniqueItems": ({"type": "array", "items": WHOLE, "uniqueItems": True}, [[1, 2], [1, 1], [1, 1.0]]),
    "minProperties": ({"type": "object", "minProperties": 1, "maxProperties": 2}, [{}, {"a": 1}, {"a": 1, "b": 1, "c": 1}]),
    "prefixItems": ({"type": "array", "prefixItems": [TEXT, WHOLE], "items": False}, [["x", 1], ["x"], [1, "x"], ["x", 1, 2]]),
    "unevaluatedProperties": ({"type": "object", "properties": {"a": WHOLE}, "unevaluatedProperties": False}, [{"a": 1}, {"b": 1}]),
    "oneOf that overlaps": ({"oneOf": [TEXT, {"type": "string", "minLength": 2}]}, ["x", "xy", 1]),
    "anyOf beside properties": ({"type": "object", "properties": {"a": TEXT, "b": TEXT}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, [{"a": "x"}, {"b": "x"}, {}, {"a": 1}]),
    "anyOf beside a type": ({"type": "string", "anyOf": [{"const": "a"}, {"minLength": 3}]}, ["a", "b", "abc", 1]),
    "enum of objects": ({"enum": [{"a": 1}, "x", 2.5]}, [{"a": 1}, {"a": 2}, "x", "y", 2.5, 3.5, [1]]),
    "enum with a limit": ({"enum": ["a", "abc"], "minLength": 2}, ["a", "abc"]),
    "words beside a reference": ({"$ref": "#/$defs/text", "minLength": 2}, ["x", "xy", 1]),
    "limit without type": ({"minLength": 2}, ["x", "xy", 1, None]),
    "properties without type": ({"properties": {"a": WHOLE}}, [{"a": 1}, {"a": "x"}, "text"]),
    "giant limit": ({"type": "integer", "minimum": 10**30}, [10**30, 1]),
    "steps that are no whole numbers": ({"type": "integer", "multipleOf": 1.5}, [3, 2]),
    "pattern in another language": ({"type": "string", "pattern": r"^\w\d[\s\w]$", "not": {"const": "x"}}, ["é߀\u2003", "a1b", "a1-", "-1b"]),
    "names by pattern": ({"type": "object", "patternProperties": {r"^\w$": WHOLE}, "additionalProperties": False}, [{"é": 1}, {"é": "x"}, {"-": 1}]),
    "false": (False, [1, None]),
    "recursion that is no class": ({"$ref": "#/$defs/tree"}, ["x", ["x", ["y"]], [1], 1]),
    "recursion of a class or null": ({"$ref": "#/$defs/maybe_node"}, [None, {"next": None}, {"next": {"next": {}}}, {"next": 1}]),
    "pointer to a property": ({"$ref": "#/properties/other"}, [1, "x"]),
    "the whole again": ({"$ref": "#"}, [{}, {"v": {}}, {"other": "x"}, 1]),
    "the whole again, merged": ({"oneOf": [{"anyOf": [{"$ref": "#"}], "type": "object"}]}, [{}, {"v": {}}, {"other": "x"}, 1]),
    "the whole again, beside words": ({"$ref": "#", "type": "object", "required": ["other"]}, [{"other": 1}, {}, {"other": "x"}]),
    "the whole again, or any object": ({"anyOf": [{"$ref": "#"}, {"type": "null"}], "default": {}}, [{}, None, {"other": "x"}, 1]),
    "the whole again, with a default that lies": ({"$ref": "#", "default": 1.5}, [{}, {"v": 1.5}, {"v": {}}]),
    "anchor": ({"$ref": "#here"}, [True, 1]),
    "array form of items": ({"type": "array", "items": TEXT, "additionalItems": False}, [["x"], [1]]),
}  # fmt: skip


def schema_of(what: str) -> dict[str, Any]:
    definitions = {**DEFINITIONS, **({"b": {"$anchor": "here", "type": "boolean"}} if what == "anchor" else {})}
    return {"type": "object", "properties": {"v": CASES[what][0], "other": WHOLE}, "$defs": definitions}


@pytest.mark.parametrize("what", CASES)
@pytest.mark.slow
def test_verdicts_are_those_of_json_schema(what: str) -> None:
    schema = schema_of(what)
    model, oracle = input_model(schema), Oracle(schema)
    verdicts = set()
    for value in ({"v": value} for value in CASES[what][1]):
        expected = oracle.verdict(value).accepted
        try:
            made = model.model_validate(value)
        except ValidationError:
            assert not expected, value
        else:
            assert expected, value
            assert made.model_dump(mode="json", by_alias=True, exclude_unset=True) == value
        verdicts.add(expected)
    assert False in verdicts, "a case that refuses nothing proves nothing"


def test_every_keyword_has_one_row() -> None:
    rows = [TYPED, ENFORCED, ANNOTATION, frozenset(REFUSED)]
    assert sum(map(len, rows)) == len(frozenset.union(*rows))


ROOTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "oneOf closed objects": (
        {
            "type": "object",
            "oneOf": [
                {"properties": {"op": {"const": "add"}, "n": WHOLE}, "required": ["op", "n"], "additionalProperties": False},
                {"properties": {"op": {"const": "clear"}}, "required": ["op"], "additionalProperties": False},
            ],
        },
        ["op: Literal['add', 'clear']", "n: Omissible[int] = None"],
    ),
    "reference to an object": ({"$ref": "#/$defs/named", "$defs": DEFINITIONS}, ["name: str"]),
    "allOf": ({"allOf": [{"$ref": "#/$defs/named"}, {"required": ["age"], "properties": {"age": WHOLE}}], "$defs": DEFINITIONS}, ["name: str", "age: int"]),
}  # fmt: skip


@pytest.mark.parametrize("what", ROOTS)
def test_arguments_are_one_class_however_their_schema_is_put_together(what: str) -> None:
    schema, fields = ROOTS[what]
    text = module_text(schema)
    body = re.split(r"class XInput\(ToolModel.*\):", text)[1].partition("\n\n\n")[0].replace('"', "'")
    for field in fields:
        assert field in body


def test_a_reference_to_arguments_without_a_type_takes_what_their_schema_takes() -> None:
    schema = {"properties": {"inner": {"$ref": "#"}, "n": {"type": "integer"}}}
    model = input_model(schema)
    for value in ({"inner": 1}, {"inner": {"n": 1}}, {"inner": {"inner": "x"}}):
        assert model.model_validate(value).model_dump() == value
    with pytest.raises(ValidationError):
        model.model_validate({"inner": {"n": "x"}})
    document, _ = flatten(schema, "XInput", is_input=True)
    assert document.losses == [(Loss.NO_TYPE, "/properties/inner")]


def test_further_properties_with_a_type_are_no_argument() -> None:
    schema = {"type": "object", "properties": {"a": TEXT}, "additionalProperties": WHOLE}
    assert "    __pydantic_extra__: dict[str, int] = Field(init=False)\n" in module_text(schema)
    model = input_model(schema)
    assert model(a="x").model_dump(exclude_unset=True) == {"a": "x"}
    assert model.model_validate({"b": 1}).model_extra == {"b": 1}
    with pytest.raises(ValidationError):
        model.model_validate({"b": "x"})


def test_what_is_refused_is_told_without_the_value() -> None:
    model = input_model(schema_of("uniqueItems"))
    with pytest.raises(ValidationError) as failure:
        model.model_validate({"v": [77777, 77777]})
    (error,) = failure.value.errors()
    assert (error["type"], error["msg"]) == ("json_schema", "v: the value has non-unique elements")
    assert "77777" not in str(failure.value)


def test_python_names_are_judged_by_their_names_on_the_wire() -> None:
    schema = {"type": "object", "properties": {"a-b": {"type": "array", "uniqueItems": True}}}
    model = input_model(schema)
    assert model(a_b=[1, 2]).model_dump(by_alias=True) == {"a-b": [1, 2]}
    with pytest.raises(ValidationError):
        model(a_b=[1, 1])


def test_without_the_validator_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model = input_model(schema_of("uniqueItems"))
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(SetupError, match=r"XInput: .* pip install 'typed-toolkit\[schema\]'"):
        Reader(model)
    with pytest.raises(ImportError, match=r"pip install 'typed-toolkit\[schema\]'"):
        model.model_validate({"v": []})


def test_schemas_that_types_can_tell_are_not_judged_twice() -> None:
    exact = ["allOf of limits", "allOf of objects", "allOf of one"]
    for what in exact:
        assert documents(schema_of(what) | {"$defs": {"text": TEXT, "named": DEFINITIONS["named"]}})[0].enforced is None
    without_effect = {"uniqueItems": False, "propertyNames": TEXT, "then": {"type": "null"}, "minProperties": 0}
    assert documents({"type": "object", **without_effect})[0].enforced is None


def test_a_root_that_is_no_object_is_judged_too() -> None:
    text = module_text({"type": "object"}, {"type": "array", "items": WHOLE, "uniqueItems": True})
    output = load_module(text).XOutput
    assert output.model_validate([1, 2]).root == [1, 2]
    with pytest.raises(ValidationError):
        output.model_validate([1, 1])


def test_prose_is_not_carried_into_the_code() -> None:
    schema = {"type": "object", "description": "Long.", "properties": {"description": {"not": {}, "title": "T"}}}
    enforced = documents(schema)[0].enforced
    assert enforced is not None
    assert json.loads(enforced) == {"type": "object", "properties": {"description": {"not": {}}}}


WAYS_OUT: dict[str, tuple[dict[str, Any], str, str]] = {
    "a tuple": (
        {"type": "array", "items": [{"type": "string"}]},
        "write 'prefixItems' instead, or name the draft",
        "/items",
    ),
    "a tuple without a type": ({"items": [{}, {}]}, "write 'prefixItems' instead", "/items"),
    "a tuple in a branch": ({"not": {"items": [{}]}}, "write 'prefixItems' instead", "/not/items"),
    "a type": ({"type": "float"}, "instead of 'float', write 'number'", "/type"),
    "a type in a condition": ({"not": {"type": "float"}}, "instead of 'float', write 'number'", "/not/type"),
}


@pytest.mark.parametrize("name", WAYS_OUT)
def test_usual_mistakes_name_the_way_out(name: str) -> None:
    schema, way_out, place = WAYS_OUT[name]
    with pytest.raises(SpecError) as caught:
        module_text({"type": "object", "properties": {"a": schema}})
    [problem] = short_forms(caught.value)
    assert way_out in problem
    assert problem.endswith(f" @ x.json:/inputSchema/properties/a{place}")


def test_tuples_of_a_draft_that_has_them_are_accepted() -> None:
    tuples = {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}
    draft = "http://json-schema.org/draft-07/schema#"
    model = input_model({"$schema": draft, "type": "object", "properties": {"a": tuples}})
    model.model_validate({"a": ["x", 1]})
    with pytest.raises(ValidationError):
        model.model_validate({"a": [1, "x"]})


@pytest.mark.parametrize("name", ["n", "n-x"])
@pytest.mark.parametrize("more", [{}, {"not": {"required": ["never"]}}], ids=["types alone", "enforced"])
def test_a_class_inside_itself_is_as_exact_as_outside(name: str, more: dict[str, Any]) -> None:
    items = {"type": "array", "items": {"$ref": "#"}}
    model = input_model({"type": "object", "properties": {name: {"type": "boolean"}, "children": items}, **more})
    assert model.model_validate({"children": [{name: True}]}).model_dump() == {"children": [{name: True}]}
    for value in ("false", 1, None):
        with pytest.raises(ValidationError):
            model.model_validate({"children": [{"children": [{name: value}]}]})
