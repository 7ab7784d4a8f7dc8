"""The checker: each rule of strict mode, broken alone, is found where it is broken."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from toolkit.adapters.strict import check_strict


def strict(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


# As OpenAI's own guide writes them, and what its users are known to send.
TAKEN: dict[str, dict[str, Any]] = {
    "no parameters": strict(),
    "no parameters, and nothing required": {"type": "object", "properties": {}, "additionalProperties": False},
    "texts": strict(a={"type": "string", "pattern": "^@[a-zA-Z0-9_]+$"}, b={"type": "string", "format": "email"}),
    "numbers": strict(a={"type": "number", "minimum": -130, "exclusiveMaximum": 130, "multipleOf": 0.5}),
    "null beside a type": strict(a={"type": ["string", "null"], "description": "optional", "enum": ["F", "C", None]}),
    "lists": strict(a={"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3}),
    "unions": strict(a={"anyOf": [strict(b={"type": "boolean"}), {"type": "null"}], "title": "A", "description": "so"}),
    "constants": strict(kind={"type": "string", "const": "city"}),
    "definitions": {**strict(a={"$ref": "#/$defs/A"}), "$defs": {"A": strict(next={"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]})}},
    "older definitions": {**strict(a={"$ref": "#/definitions/A"}), "definitions": {"A": {"type": "string"}}},
    "the root inside itself": strict(children={"type": "array", "items": {"$ref": "#"}}),
}  # fmt: skip


@pytest.mark.parametrize("case", TAKEN)
def test_takes(case: str) -> None:
    assert check_strict(TAKEN[case]) == []


REFUSED: dict[str, tuple[Any, str]] = {
    "no schema": ([], ""),
    "a root that is a list": ({"type": "array", "items": {"type": "string"}}, ""),
    "a root that is a union": ({**strict(), "anyOf": [strict()]}, "/anyOf"),
    "a root that is a reference": ({"$ref": "#/$defs/A", "$defs": {"A": strict()}}, "/$ref"),
    "an open root": ({"type": "object", "properties": {}}, ""),
    "an open object inside": (strict(a={**strict(), "additionalProperties": True}), "/properties/a"),
    "an object inside a union": (strict(a={"anyOf": [{"type": "object"}, {"type": "null"}]}), "/properties/a/anyOf/0"),
    "an optional property": ({**strict(a={"type": "string"}), "required": []}, ""),
    "a required property that is not there": ({**strict(), "required": ["a"]}, ""),
    "no properties": ({"type": "object", "additionalProperties": False}, ""),
    "any value": (strict(a={}), "/properties/a"),
    "true": (strict(a=True), "/properties/a"),
    "an untyped enum": (strict(a={"enum": ["x"]}), "/properties/a"),
    "an unknown type": (strict(a={"type": "text"}), "/properties/a/type"),
    "two types": (strict(a={"type": ["string", "integer"]}), "/properties/a/type"),
    "the same type twice": (strict(a={"type": ["null", "null"]}), "/properties/a/type"),
    "a default": (strict(a={"type": "string", "default": "x"}), "/properties/a/default"),
    "a length": (strict(a={"type": "string", "minLength": 1}), "/properties/a/minLength"),
    "oneOf": (strict(a={"oneOf": [{"type": "string"}]}), "/properties/a"),
    "oneOf beside a type": (strict(a={"type": "string", "oneOf": [{"type": "string"}]}), "/properties/a/oneOf"),
    "allOf": (strict(a={"type": "string", "allOf": []}), "/properties/a/allOf"),
    "a type beside anyOf": (strict(a={"type": "string", "anyOf": [{"type": "string"}]}), "/properties/a/type"),
    "anyOf of nothing": (strict(a={"anyOf": []}), "/properties/a/anyOf"),
    "a limit of another type": (strict(a={"type": "string", "minimum": 1}), "/properties/a/minimum"),
    "a limit that is no number": (strict(a={"type": "integer", "minimum": True}), "/properties/a/minimum"),
    "a format that is not known": (strict(a={"type": "string", "format": "uri"}), "/properties/a/format"),
    "lookahead": (strict(a={"type": "string", "pattern": "^(?!x)"}), "/properties/a/pattern"),
    "lookbehind": (strict(a={"type": "string", "pattern": "(?<=x)y"}), "/properties/a/pattern"),
    "a back reference": (strict(a={"type": "string", "pattern": r"(a)\1"}), "/properties/a/pattern"),
    "a list of anything": (strict(a={"type": "array"}), "/properties/a"),
    "prefixItems": (strict(a={"type": "array", "items": {"type": "string"}, "prefixItems": []}), "/properties/a/prefixItems"),
    "an enum of nothing": (strict(a={"type": "string", "enum": []}), "/properties/a/enum"),
    "an enum of objects": (strict(a={"type": ["string", "null"], "enum": [{}]}), "/properties/a"),
    "an enum of another type": (strict(a={"type": "string", "enum": ["x", None]}), "/properties/a"),
    "a description that is no text": (strict(a={"type": "string", "description": 1}), "/properties/a/description"),
    "a reference with a description": ({**strict(a={"$ref": "#", "description": "x"})}, "/properties/a"),
    "a reference to nowhere": (strict(a={"$ref": "#/$defs/A"}), "/properties/a/$ref"),
    "a reference to a property": (strict(a={"type": "null"}, b={"$ref": "#/properties/a"}), "/properties/b/$ref"),
    "a reference to another document": (strict(a={"$ref": "https://example.org/a"}), "/properties/a/$ref"),
    "a definition": ({**strict(), "$defs": {"A": {"type": "object"}}}, "/$defs/A"),
    "a definition that is itself": ({**strict(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}]}, "B": {"$ref": "#/$defs/A"}}}, "/$defs/A"),
    "definitions inside": (strict(a={**strict(), "$defs": {}}), "/properties/a/$defs"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case: str) -> None:
    schema, pointer = REFUSED[case]
    before = copy.deepcopy(schema)
    assert pointer in [problem.pointer for problem in check_strict(schema)]
    assert schema == before


def nested(levels: int) -> dict[str, Any]:
    schema = strict(a={"type": "string"})
    for _ in range(levels - 1):
        schema = strict(a=schema)
    return schema


SIZES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "levels": (nested(10), nested(11)),
    "properties": (
        strict(**{f"p{n}": {"type": "null"} for n in range(5000)}),
        strict(**{f"p{n}": {"type": "null"} for n in range(5001)}),
    ),
    "characters of names": (strict(**{"n" * 120_000: {"type": "null"}}), strict(**{"n" * 120_001: {"type": "null"}})),
    "values of enums": (
        strict(a={"type": "integer", "enum": list(range(1000))}),
        strict(a={"type": "integer", "enum": list(range(600))}, b={"type": "integer", "enum": list(range(401))}),
    ),
    "texts of a large enum": (
        strict(a={"type": "string", "enum": [f"{n:050}" for n in range(250)]}),
        strict(a={"type": "string", "enum": [f"{n:060}" for n in range(251)]}),
    ),
}


@pytest.mark.parametrize("case", SIZES)
def test_sizes(case: str) -> None:
    just, over = SIZES[case]
    assert check_strict(just) == []
    assert len(check_strict(over)) == 1


def test_depth_is_counted_in_each_definition_by_itself() -> None:
    schema = {**strict(a={"$ref": "#/$defs/A"}), "$defs": {"A": nested(10)}}
    assert check_strict(schema) == []


def test_a_hostile_schema_is_told_briefly() -> None:
    assert len(check_strict(strict(**{f"p{n}": {} for n in range(3000)}))) == 100
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(5000):
        deep = {"type": "array", "items": deep}
    assert [why for _, why in check_strict(strict(a=deep))] == ["nested deeper than 64 schemas"]


@pytest.mark.parametrize(("lists", "problems"), [(63, []), (64, ["nested deeper than 64 schemas"])])
def test_lists_may_be_nested_up_to_a_limit(lists: int, problems: list[str]) -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(lists):
        deep = {"type": "array", "items": deep}
    assert [why for _, why in check_strict(strict(a=deep))] == problems
