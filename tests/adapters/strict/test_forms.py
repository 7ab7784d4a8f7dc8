"""Every form a schema can have: what is asked of the model instead, and what its answer is turned back into."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator

from tests.adapters.strict.answers import Answers
from tests.adapters.strict.judged import followed, untold
from toolkit.adapters.strict import check_strict, to_strict

NULL = {"type": "null"}
TEXT = {"type": "string"}
NUMBER = {"type": "integer"}


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def pairs(value: dict[str, Any], key: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "array", "items": closed(key=key or TEXT, value=value)}


A_MAP = "a map, sent as a list of keys and values"


@dataclass
class Form:
    """``given`` is the schema of the argument ``a``, ``asked`` the strict one; ``answers`` are ``a`` before and after."""

    given: Any
    asked: Any
    answers: list[tuple[Any, Any]] = field(default_factory=list)
    required: bool = True
    definitions: dict[str, Any] = field(default_factory=dict)
    told: list[tuple[str, str]] = field(default_factory=list)

    @property
    def schema(self) -> dict[str, Any]:
        made = {"type": "object", "properties": {"a": self.given}, "required": ["a"] if self.required else []}
        return {**made, "$defs": self.definitions} if self.definitions else made


ABSENT = object()
TREE = {"type": "object", "properties": {"name": TEXT, "left": {"$ref": "#/$defs/Tree"}, "tags": {"type": "object", "additionalProperties": NUMBER}}, "required": ["name"]}  # fmt: skip

FORMS: dict[str, Form] = {
    # what may be left out
    "an optional text": Form(TEXT, {"type": ["string", "null"]}, [("x", "x"), (None, ABSENT)], False),
    "an optional enum": Form({"type": "string", "enum": ["x", "y"]}, {"type": ["string", "null"], "enum": ["x", "y", None]}, [("x", "x"), (None, ABSENT)], False),
    "an optional constant": Form({"const": 7}, {"type": ["integer", "null"], "enum": [7, None]}, [(7, 7), (None, ABSENT)], False),
    "an optional object": Form(closed(b=TEXT), {"anyOf": [closed(b=TEXT), NULL]}, [({"b": "x"}, {"b": "x"}), (None, ABSENT)], False),
    "an optional list": Form({"type": "array", "items": TEXT, "description": "d"}, {"anyOf": [{"type": "array", "items": TEXT}, NULL], "description": "d"}, [(["x"], ["x"]), (None, ABSENT)], False),
    "an optional union": Form({"anyOf": [TEXT, NUMBER]}, {"anyOf": [TEXT, NUMBER, NULL]}, [(1, 1), (None, ABSENT)], False),
    "an optional reference": Form({"$ref": "#/$defs/T"}, {"anyOf": [{"$ref": "#/$defs/T"}, NULL]}, [("x", "x"), (None, ABSENT)], False, {"T": TEXT}),
    "an optional reference with a description": Form({"$ref": "#/$defs/T", "description": "d"}, {"anyOf": [{"$ref": "#/$defs/T"}, NULL], "description": "d"}, [("x", "x"), (None, ABSENT)], False, {"T": TEXT}),
    "a default": Form({"type": "integer", "default": 30}, {"type": ["integer", "null"], "description": "(default: 30)"}, [(1, 1), (None, 30)], False, told=[("default", "moved")]),
    "a default that does not fit": Form({"type": "integer", "default": "thirty"}, {"type": ["integer", "null"], "description": '(default: "thirty")'}, [(None, ABSENT)], False, told=[("default", "moved"), ("default", "dropped")]),
    "a default that is an object": Form({**closed(b=TEXT), "default": {"b": "x"}}, {"anyOf": [closed(b=TEXT), NULL], "description": '(default: {"b":"x"})'}, [(None, {"b": "x"})], False, told=[("default", "moved")]),
    "null where null is the default": Form({"anyOf": [TEXT, NULL], "default": None}, {"anyOf": [TEXT, NULL], "description": "(default: null)"}, [("x", "x"), (None, None)], False, told=[("default", "moved")]),
    "null beside another default": Form({"type": ["integer", "null"], "default": 30}, {"type": ["integer", "null"], "description": "(default: 30)"}, [(30, 30), (None, None)], False, told=[("default", "moved")]),
    "null where it must be given": Form({"type": ["integer", "null"]}, {"type": ["integer", "null"]}, [(1, 1), (None, None)]),
    "an optional property of a list's items": Form({"type": "array", "items": {"type": "object", "properties": {"b": NUMBER}}}, {"type": "array", "items": closed(b={"type": ["integer", "null"]})}, [([{"b": None}, {"b": 1}], [{}, {"b": 1}])]),
    # maps
    "a map": Form({"type": "object", "additionalProperties": NUMBER}, {**pairs(NUMBER), "description": f"({A_MAP})"}, [([], {}), ([{"key": "x", "value": 1}], {"x": 1}), ([{"key": "x", "value": 1}, {"key": "x", "value": 2}], {"x": 2})], told=[("additionalProperties", "reshaped")]),
    "a map of maps": Form({"type": "object", "additionalProperties": {"type": "object", "additionalProperties": NUMBER}}, {**pairs({**pairs(NUMBER), "description": f"({A_MAP})"}), "description": f"({A_MAP})"}, [([{"key": "x", "value": [{"key": "y", "value": 1}]}], {"x": {"y": 1}})], told=[("additionalProperties", "reshaped")] * 2),
    "an optional map": Form({"type": "object", "additionalProperties": NUMBER, "description": "d"}, {"anyOf": [pairs(NUMBER), NULL], "description": f"d ({A_MAP})"}, [(None, ABSENT), ([], {})], False, told=[("additionalProperties", "reshaped")]),
    "a map with a rule for its keys": Form({"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}, "additionalProperties": NUMBER, "minProperties": 1}, {**pairs(NUMBER, {"type": "string", "pattern": "^[a-z]+$"}), "minItems": 1, "description": f"({A_MAP})"}, [([{"key": "x", "value": 1}], {"x": 1})], told=[("minProperties", "loosened"), ("additionalProperties", "reshaped")]),
    "a map by one pattern": Form({"type": "object", "patternProperties": {"^x": NUMBER}, "additionalProperties": False}, {**pairs(NUMBER, {"type": "string", "pattern": "^x"}), "description": f"({A_MAP})"}, [([{"key": "xy", "value": 1}], {"xy": 1})], told=[("patternProperties", "reshaped")]),
    "names and a map": Form({"type": "object", "properties": {"b": TEXT}, "required": ["b"], "additionalProperties": NUMBER}, closed(b=TEXT, additional_properties={**pairs(NUMBER), "description": f"({A_MAP})"}), [({"b": "x", "additional_properties": [{"key": "c", "value": 1}, {"key": "b", "value": 2}]}, {"b": "x", "c": 1})], told=[("additionalProperties", "reshaped")]),
    # unions
    "oneOf of types": Form({"oneOf": [TEXT, NUMBER]}, {"anyOf": [TEXT, NUMBER]}, [("x", "x")]),
    "oneOf told apart by a constant": Form({"oneOf": [closed(kind={"const": "x"}, n=NUMBER), closed(kind={"const": "y"}, n=NUMBER)]}, {"anyOf": [closed(kind={"type": "string", "const": "x"}, n=NUMBER), closed(kind={"type": "string", "const": "y"}, n=NUMBER)]}, [({"kind": "x", "n": 1}, {"kind": "x", "n": 1})]),
    "oneOf that overlaps": Form({"oneOf": [NUMBER, {"type": "number", "minimum": 5}]}, {"anyOf": [NUMBER, {"type": "number", "minimum": 5}]}, [(1, 1)], told=[("oneOf", "loosened")]),
    "branches with their own optional properties": Form({"anyOf": [{"type": "object", "properties": {"b": NUMBER}}, {"type": "object", "properties": {"c": NUMBER}, "required": ["c"]}]}, {"anyOf": [closed(b={"type": ["integer", "null"]}), closed(c=NUMBER)]}, [({"b": None}, {}), ({"c": 1}, {"c": 1})]),
    "what stands beside a union": Form({"type": "object", "properties": {"b": TEXT, "c": TEXT}, "anyOf": [{"required": ["b"]}, {"required": ["c"]}]}, {"anyOf": [closed(b=TEXT, c={"type": ["string", "null"]}), closed(b={"type": ["string", "null"]}, c=TEXT)]}, [({"b": "x", "c": None}, {"b": "x"}), ({"b": None, "c": "y"}, {"c": "y"})], told=[("anyOf", "reshaped")]),
    "a map or a text": Form({"anyOf": [TEXT, {"type": "object", "additionalProperties": NUMBER}]}, {"anyOf": [TEXT, {**pairs(NUMBER), "description": f"({A_MAP})"}]}, [("x", "x"), ([{"key": "x", "value": 1}], {"x": 1})], told=[("additionalProperties", "reshaped")]),
    "a map or a list of what looks like pairs": Form({"anyOf": [{"type": "object", "additionalProperties": NUMBER}, {"type": "array", "items": closed(key=TEXT, value=TEXT)}]}, {"anyOf": [{**pairs(NUMBER), "description": f"({A_MAP})"}, pairs(TEXT)]}, [([{"key": "x", "value": 1}], {"x": 1}), ([{"key": "x", "value": "y"}], [{"key": "x", "value": "y"}])], told=[("additionalProperties", "reshaped"), ("anyOf", "reshaped")]),
    "several types": Form({"type": ["string", "integer", "null"], "minLength": 1, "minimum": 0, "description": "d"}, {"anyOf": [{"type": "string", "pattern": r"^[\s\S]{1,}$", "description": "(minLength: 1)"}, {"type": "integer", "minimum": 0}, NULL], "description": "d"}, [("x", "x"), (1, 1), (None, None)], told=[("minLength", "reshaped")]),
    "a branch nothing fits": Form({"type": "string", "anyOf": [NUMBER, {"enum": ["x"]}]}, {"type": "string", "enum": ["x"]}, [("x", "x")]),
    # references
    "a reference with a description": Form({"$ref": "#/$defs/T", "description": "d"}, {"anyOf": [{"$ref": "#/$defs/T"}], "description": "d"}, [("x", "x")], definitions={"T": TEXT}),
    "a reference with a limit": Form({"$ref": "#/$defs/T", "minimum": 3}, {"type": "integer", "minimum": 3, "maximum": 9}, [(5, 5)], definitions={"T": {"type": "integer", "minimum": 1, "maximum": 9}}),
    "a reference to a reference": Form({"$ref": "#/$defs/S"}, {"$ref": "#/$defs/T"}, [("x", "x")], definitions={"S": {"$ref": "#/$defs/T"}, "T": TEXT}),
    "a tree": Form({"$ref": "#/$defs/Tree"}, {"$ref": "#/$defs/Tree"}, [({"name": "r", "left": {"name": "l", "left": None, "tags": [{"key": "x", "value": 1}]}, "tags": None}, {"name": "r", "left": {"name": "l", "tags": {"x": 1}}})], definitions={"Tree": TREE}, told=[("additionalProperties", "reshaped")]),
    "the root inside itself": Form({"type": "array", "items": {"$ref": "#"}}, {"type": "array", "items": {"$ref": "#"}}, [([{"a": []}], [{"a": []}])]),
    # merging
    "allOf of one": Form({"allOf": [TEXT], "description": "d"}, {"type": "string", "description": "d"}, [("x", "x")]),
    "allOf of limits": Form({"type": "integer", "allOf": [{"minimum": 1}, {"minimum": 3, "maximum": 9}, {"maximum": 7}]}, {"type": "integer", "minimum": 3, "maximum": 7}, [(5, 5)]),
    "allOf of objects": Form({"allOf": [{"type": "object", "properties": {"b": TEXT}, "required": ["b"]}, {"properties": {"c": NUMBER, "b": {"enum": ["x"]}}}]}, closed(b={"type": "string", "enum": ["x"]}, c={"type": ["integer", "null"]}), [({"b": "x", "c": None}, {"b": "x"})]),
    "allOf of enums": Form({"allOf": [{"enum": ["x", "y"]}, {"enum": ["y", "z"]}]}, {"type": "string", "enum": ["y"]}, [("y", "y")]),
    # lists
    "a place each": Form({"type": "array", "prefixItems": [TEXT, {"type": "object", "properties": {"b": NUMBER}}], "minItems": 2, "maxItems": 2}, {**closed(item_1=TEXT, item_2=closed(b={"type": ["integer", "null"]})), "description": "(a list, sent as an object with one property for each position)"}, [({"item_1": "x", "item_2": {"b": None}}, ["x", {}])], told=[("prefixItems", "reshaped")]),
    "the same in each place": Form({"type": "array", "prefixItems": [NUMBER, NUMBER], "items": False, "minItems": 2}, {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}, [([1, 2], [1, 2])]),
    "different items": Form({"type": "array", "items": TEXT, "uniqueItems": True, "minItems": 1}, {"type": "array", "items": TEXT, "minItems": 1, "description": "(uniqueItems: true)"}, [(["x"], ["x"])], told=[("uniqueItems", "moved")]),
    # leaves
    "lengths": Form({"type": "string", "minLength": 1, "maxLength": 5, "description": "d"}, {"type": "string", "pattern": r"^[\s\S]{1,5}$", "description": "d (minLength: 1; maxLength: 5)"}, [("x", "x")], told=[("minLength", "reshaped"), ("maxLength", "reshaped")]),
    "a length of one class": Form({"type": "string", "pattern": "^[0-9a-f]+$", "minLength": 24, "maxLength": 24}, {"type": "string", "pattern": "^[0-9a-f]{24,24}$", "description": "(minLength: 24; maxLength: 24)"}, [("0" * 24, "0" * 24)], told=[("minLength", "reshaped"), ("maxLength", "reshaped")]),
    "lengths beside a pattern": Form({"type": "string", "pattern": "^a|b", "minLength": 3}, {"type": "string", "pattern": "^a|b", "description": "(minLength: 3)"}, [("abc", "abc")], told=[("minLength", "moved")]),
    "a length too large for a pattern": Form({"type": "string", "maxLength": 100_000}, {"type": "string", "description": "(maxLength: 100000)"}, [("x", "x")], told=[("maxLength", "moved")]),
    "lengths of listed texts": Form({"enum": ["x", "abc"], "minLength": 2}, {"type": "string", "enum": ["abc"]}, [("abc", "abc")]),
    "a format that is known": Form({"type": "string", "format": "uuid"}, {"type": "string", "format": "uuid"}),
    "a format that is not known": Form({"type": "string", "format": "uri", "title": "T"}, {"type": "string", "title": "T", "description": '(format: "uri")'}, [("x", "x")], told=[("format", "moved")]),
    "lookaround": Form({"type": "string", "pattern": "^(?!x)"}, {"type": "string", "description": '(pattern: "^(?!x)")'}, [("y", "y")], told=[("pattern", "moved")]),
    "numbers": Form({"type": "number", "minimum": 0, "exclusiveMaximum": 1, "examples": [0.5]}, {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "description": "(examples: [0.5])"}, [(0.5, 0.5)], told=[("examples", "moved")]),
    "an enum of several types": Form({"enum": ["x", 1, None, True]}, {"anyOf": [{"type": "string", "enum": ["x"]}, {"type": "integer", "enum": [1]}, {"type": "boolean", "enum": [True]}, {"type": "null", "enum": [None]}]}, [("x", "x"), (1, 1), (None, None), (True, True)]),
    "an enum that its type thins out": Form({"type": "string", "enum": ["x", 1, "x"]}, {"type": "string", "enum": ["x"]}, [("x", "x")]),
    "an untyped object": Form({"properties": {"b": TEXT}, "required": ["b"]}, closed(b=TEXT), [({"b": "x"}, {"b": "x"})]),
    "what says nothing": Form({"type": "string", "x-resource": "read-path", "$comment": "c", "$id": "i"}, {"type": "string"}, [("x", "x")]),
    "a property that can never be given": Form({"type": "object", "properties": {"b": TEXT, "c": False}, "required": ["b"]}, closed(b=TEXT), [({"b": "x"}, {"b": "x"})], told=[("", "dropped")]),
    "rules every answer keeps": Form({**closed(b=TEXT, c=TEXT), "minProperties": 1, "maxProperties": 9, "propertyNames": {"type": "string"}}, closed(b=TEXT, c=TEXT), [({"b": "x", "c": "y"}, {"b": "x", "c": "y"})]),
    "a number of properties": Form({"type": "object", "properties": {"b": TEXT, "c": TEXT}, "minProperties": 1}, {**closed(b={"type": ["string", "null"]}, c={"type": ["string", "null"]}), "description": "(minProperties: 1)"}, [({"b": "x", "c": None}, {"b": "x"})], told=[("minProperties", "moved")]),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str) -> None:
    form = FORMS[name]
    receipt = to_strict(form.schema)

    assert receipt.problems == ()
    assert receipt.schema["properties"]["a"] == form.asked
    assert check_strict(receipt.schema) == []
    assert [(note.keyword, note.effect) for note in receipt.notes] == form.told
    for answer, expected in form.answers:
        Draft202012Validator(receipt.schema).validate({"a": answer})
        decoded = receipt.decode({"a": answer})
        assert decoded == ({} if expected is ABSENT else {"a": expected})
        Draft202012Validator(form.schema).validate(decoded)
    for seed in range(30):
        answer = Answers(receipt.schema, seed).any()
        Draft202012Validator(receipt.schema).validate(answer)
        assert untold(receipt, form.schema, receipt.decode(answer)) == []


ROOTS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "no parameters": ({"type": "object"}, {}, {}),
    "no type": ({"$schema": "http://json-schema.org/draft-07/schema#"}, {}, {}),
    "a union": ({"oneOf": [closed(kind={"const": "x"}), {"type": "object", "properties": {"n": NUMBER, "t": TEXT}, "required": ["n"]}]}, {"arguments": {"n": 1, "t": None}}, {"n": 1}),
    "a union beside properties": ({"type": "object", "properties": {"b": TEXT, "c": TEXT}, "anyOf": [{"required": ["b"]}, {"required": ["c"]}]}, {"arguments": {"b": None, "c": "x"}}, {"c": "x"}),
    "a map": ({"type": "object", "additionalProperties": NUMBER}, {"arguments": [{"key": "x", "value": 1}]}, {"x": 1}),
    "a reference": ({"$ref": "#/$defs/Tree", "$defs": {"Tree": TREE}}, {"name": "r", "left": None, "tags": None}, {"name": "r"}),
    "a union inside itself": ({"anyOf": [closed(leaf=TEXT), closed(inner={"$ref": "#"})]}, {"arguments": {"inner": {"leaf": "x"}}}, {"inner": {"leaf": "x"}}),
    "an object or null": ({"type": ["object", "null"], "properties": {"b": NUMBER}}, {"b": None}, {}),
    "allOf": ({"allOf": [{"properties": {"b": NUMBER}}, {"required": ["b"]}]}, {"b": 1}, {"b": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", ROOTS)
def test_roots(name: str) -> None:
    schema, answer, expected = ROOTS[name]
    receipt = to_strict(schema)
    assert receipt.problems == ()
    Draft202012Validator(receipt.schema).validate(answer)
    assert receipt.decode(answer) == expected
    assert check_strict(receipt.schema) == []
    Draft202012Validator(schema).validate(expected)
    for seed in range(30):
        assert untold(receipt, schema, receipt.decode(Answers(receipt.schema, seed).any())) == []


def in_a(inner: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": inner}, "required": ["a"], **more}


# The schema, and where and why strict mode cannot have it.
IMPOSSIBLE: dict[str, tuple[dict[str, Any], str, str]] = {
    "any value": (in_a({"description": "anything"}), "/properties/a", "any value"),
    "true": (in_a(True), "/properties/a", "any value"),
    "an open object": (in_a({"type": "object"}), "/properties/a", "any name and any value"),
    "an object that says it is open": (in_a({"type": "object", "properties": {"b": TEXT}, "additionalProperties": True}), "/properties/a/additionalProperties", "any name and any value"),
    "a map of anything": (in_a({"type": "object", "additionalProperties": {}}), "/properties/a/additionalProperties", "any name and any value"),
    "a list of anything": (in_a({"type": "array"}), "/properties/a", "any values"),
    "a list of whatever": (in_a({"type": "array", "items": {}}), "/properties/a/items", "any value"),
    "null or left out": ({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}, "/properties/a", "cannot distinguish the two"),
    "null through a reference": ({"type": "object", "properties": {"a": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"anyOf": [TEXT, NULL]}}}, "/properties/a", "cannot distinguish the two"),
    "null with a default that does not fit": ({"type": "object", "properties": {"a": {"type": ["string", "null"], "default": 1}}}, "/properties/a", "cannot distinguish the two"),
    "a required property nobody describes": (in_a(TEXT, required=["a", "b"]), "", "'b' is required but not described"),
    "no value": (in_a(False), "/properties/a", "no value is valid"),
    "an enum against its type": (in_a({"type": "integer", "enum": ["1", "2"]}), "/properties/a", "no value is valid"),
    "an enum of objects": (in_a({"enum": [{"b": 1}]}), "/properties/a", "whole objects"),
    "not": (in_a({"type": "string", "not": {"const": "x"}}), "/properties/a/not", "'not'"),
    "if": (in_a({"type": "object", "properties": {"b": TEXT}, "if": {}, "then": {"required": ["b"]}}), "/properties/a/if", "'if'"),
    "dependentRequired": (in_a(TEXT, dependentRequired={"a": ["b"]}), "/dependentRequired", "'dependentRequired'"),
    "dependentSchemas": (in_a(TEXT, dependentSchemas={}), "/dependentSchemas", "'dependentSchemas'"),
    "patternProperties beside names": (in_a({"type": "object", "properties": {"b": TEXT}, "patternProperties": {"x": TEXT}}), "/properties/a/patternProperties", "'patternProperties'"),
    "a place each, and more": (in_a({"type": "array", "prefixItems": [TEXT, NUMBER]}), "/properties/a/prefixItems", "fixed length"),
    "allOf of two patterns": (in_a({"type": "string", "allOf": [{"pattern": "a"}, {"pattern": "b"}]}), "/properties/a", "two different 'pattern'"),
    "allOf of closed objects": (in_a({"allOf": [closed(b=TEXT), closed(c=TEXT)]}), "/properties/a", "does not know all properties"),
    "allOf of contradictions": (in_a({"allOf": [TEXT, NUMBER]}), "/properties/a", "no value is valid"),
    "anyOf beside oneOf": (in_a({"anyOf": [TEXT], "oneOf": [TEXT]}), "/properties/a", "'anyOf' and 'oneOf'"),
    "a reference to nowhere": (in_a({"$ref": "#/$defs/no"}), "/properties/a", "refers to nothing"),
    "a reference to another document": (in_a({"$ref": "other.json"}), "/properties/a", "refers to something outside the schema"),
    "a reference that leads to itself": (in_a({"$ref": "#/$defs/A"}, **{"$defs": {"A": {"$ref": "#/$defs/A"}}}), "/properties/a", "is circular"),
    "a union that holds itself": (in_a({"$ref": "#/$defs/A"}, **{"$defs": {"A": {"anyOf": [TEXT, {"$ref": "#/$defs/A"}]}}}), "", "is circular"),
    "a type that is none": (in_a({"type": "text"}), "/properties/a", "'type'"),
    "properties that are none": (in_a({"type": "object", "properties": []}), "/properties/a", "'properties'"),
    "a root that is no object": ({"type": "array", "items": TEXT}, "", "arguments are an object"),
    "more levels than are allowed": (in_a(in_a(in_a(in_a(in_a(in_a(in_a(in_a(in_a(in_a(in_a(TEXT))))))))))), "", "levels of nested objects"),
}  # fmt: skip


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_cannot_be_carried_is_told_and_sent_as_it_is(name: str) -> None:
    schema, pointer, why = IMPOSSIBLE[name]
    receipt = to_strict(schema)

    assert not receipt.is_strict
    assert receipt.schema == schema
    assert receipt.decode({"a": None}) == {"a": None}
    assert [problem for problem in receipt.problems if problem.pointer == pointer and why in problem.why]
    for problem in receipt.problems:
        followed(schema, problem.pointer)


def test_all_that_is_in_the_way_is_told() -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {"type": "object"}, "c": TEXT, "d/e": {"type": "array"}}}
    assert [pointer for pointer, _ in to_strict(schema).problems] == [
        "/properties/a",
        "/properties/b",
        "/properties/d~1e",
    ]


def test_a_list_of_places_as_older_drafts_write_it() -> None:
    schema = in_a({"type": "array", "items": [TEXT, NUMBER], "additionalItems": False, "minItems": 2})
    receipt = to_strict(schema)
    decoded = receipt.decode({"a": {"item_1": "x", "item_2": 1}})
    assert decoded == {"a": ["x", 1]}
    Draft7Validator(schema).validate(decoded)


NOT_ASKED_FOR: list[tuple[Any, Any]] = [
    ({}, {"n": 30}),
    ({"m": {"x": 1}}, {"m": {"x": 1}, "n": 30}),
    ({"m": [{"key": "x"}]}, {"m": [{"key": "x"}], "n": 30}),
    ({"m": "x", "more": None}, {"m": "x", "more": None, "n": 30}),
]


@pytest.mark.parametrize(("answer", "expected"), NOT_ASKED_FOR)
def test_an_answer_that_is_not_what_was_asked_for_is_left_to_the_tool(answer: Any, expected: Any) -> None:
    properties = {"m": {"type": "object", "additionalProperties": NUMBER}, "n": {"type": "integer", "default": 30}}
    assert to_strict({"type": "object", "properties": properties}).decode(answer) == expected


def test_defaults_are_not_shared() -> None:
    receipt = to_strict({"type": "object", "properties": {"a": {"type": "array", "items": TEXT, "default": []}}})
    receipt.decode({"a": None})["a"].append("x")
    assert receipt.decode({"a": None}) == {"a": []}
