"""The part of OpenAPI older models know: nothing else is sent, and what cannot be is told in words."""

from __future__ import annotations

import re
from typing import Any

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import tries
from toolkit import JsonObject, ToolDefinition
from toolkit.adapters.gemini import decode_tools, encode_tools, schema
from toolkit.adapters.gemini.schema import from_openapi, to_openapi

# What the service's own client knows; title and the rest come with its names.
ALLOWED = {
    "type", "format", "title", "description", "nullable", "enum", "items", "minItems", "maxItems", "properties", "required",
    "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering", "default",
    "minimum", "maximum",
}  # fmt: skip


def test_the_allowed_keywords_are_those_the_sdk_knows_and_the_docs_list() -> None:
    known = {field.alias for field in types.Schema.model_fields.values()}
    assert known >= ALLOWED
    documented = re.search(r"Kept: (.*?)\.\n", schema.__doc__ or "", re.DOTALL)
    assert documented is not None
    assert set(re.findall(r"\w+", documented[1].replace("(of texts)", ""))) == ALLOWED


KEPT: list[dict[str, Any]] = [
    {"type": "STRING", "format": "date", "title": "T", "description": "D", "minLength": 1, "maxLength": 2, "pattern": "a", "default": "a", "example": "a"},
    {"type": "INTEGER", "minimum": 1, "maximum": 2},
    {"type": "ARRAY", "items": {"type": "STRING"}, "minItems": 1, "maxItems": 2},
    {"type": "OBJECT", "properties": {"a": {"type": "BOOLEAN"}}, "required": ["a"], "minProperties": 1, "maxProperties": 2, "propertyOrdering": ["a"]},
    {"type": "STRING", "enum": ["a", "b"]},
    {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]},
]  # fmt: skip


@pytest.mark.parametrize("kept", KEPT)
def test_keeps(kept: dict[str, Any]) -> None:
    assert to_openapi(from_openapi(kept)) == kept
    assert to_openapi(from_openapi({**kept, "nullable": True})) == {**kept, "nullable": True}


@pytest.mark.parametrize(
    ("given_schema", "made"),
    [
        ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}),
        ({"type": "null"}, {"nullable": True}),
        ({"anyOf": [{"type": "string"}, {"type": "null", "title": "none"}]}, {"type": "STRING", "nullable": True}),
        ({"anyOf": [{"type": "string", "description": "in"}, {"type": "null"}], "description": "out"}, {"type": "STRING", "nullable": True, "description": "out in"}),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}),
        ({"const": "a"}, {"type": "STRING", "enum": ["a"]}),
        ({"enum": ["a", None]}, {"type": "STRING", "enum": ["a"], "nullable": True}),
        ({"const": None}, {"nullable": True}),
        ({"exclusiveMinimum": 1, "type": "integer"}, {"type": "INTEGER", "minimum": 2}),
        ({"exclusiveMaximum": 9, "type": "integer", "maximum": 5}, {"type": "INTEGER", "maximum": 5}),
        ({"exclusiveMinimum": 9, "type": "integer", "minimum": 5}, {"type": "INTEGER", "minimum": 10}),
        ({"$ref": "#/$defs/a~1b", "description": "D", "$defs": {"a/b": {"type": "string"}}}, {"type": "STRING", "description": "D"}),
        ({"$schema": "x", "$id": "x", "$anchor": "x", "$comment": "x", "examples": [1], "x-a": 1, "additionalProperties": False}, {}),
        ({"properties": {"$ref": {"type": "string"}, "x-a": {"const": "b"}}}, {"properties": {"$ref": {"type": "STRING"}, "x-a": {"type": "STRING", "enum": ["b"]}}}),
        (True, {}),
    ],
)  # fmt: skip
def test_puts_otherwise_or_loses(given_schema: Any, made: dict[str, Any]) -> None:
    assert to_openapi(given_schema) == made


@pytest.mark.parametrize(
    ("given_schema", "told"),
    [
        ({"type": "number", "exclusiveMinimum": 1}, "(exclusiveMinimum: 1)"),
        ({"type": "integer", "exclusiveMinimum": True}, "(exclusiveMinimum: true)"),
        ({"type": "integer", "enum": [1, 2]}, "(enum: [1,2])"),
        ({"type": "array", "items": [{"type": "string"}]}, '(items: [{"type":"string"}])'),
        ({"type": "array", "items": {}, "uniqueItems": True, "description": "D"}, "D (uniqueItems: true)"),
        ({"additionalProperties": {"type": "string"}}, '(additionalProperties: {"type":"string"})'),
        ({"not": {"const": "é"}, "multipleOf": 2}, '(not: {"const":"é"}; multipleOf: 2)'),
        ({"allOf": [{"minLength": 1}]}, '(allOf: [{"minLength":1}])'),
        ({"type": ["string", "integer"], "anyOf": [{"minLength": 1}, {"minimum": 2}]}, '(anyOf: [{"minLength":1},{"minimum":2}])'),
        ({"oneOf": [{"title": "a"}, {"title": "b"}], "anyOf": [{}, {}]}, '(oneOf: [{"title":"a"},{"title":"b"}])'),
        ({"minLength": 2, "anyOf": [{"minLength": 1}]}, "(minLength: 1)"),
        ({"$ref": "https://example.com/a"}, '($ref: "https://example.com/a")'),
        ({"$ref": "#/$defs/none"}, '($ref: "#/$defs/none")'),
    ],
)  # fmt: skip
def test_tells_in_words(given_schema: Any, told: str) -> None:
    assert to_openapi(given_schema)["description"] == told


NODE = {"type": "object", "properties": {"left": {"$ref": "#/$defs/N"}, "right": {"$ref": "#/$defs/N"}}}


def test_a_reference_that_leads_to_itself_is_followed_once() -> None:
    end: dict[str, Any] = {}
    assert to_openapi({"$ref": "#/$defs/N", "$defs": {"N": NODE}}) == {"type": "OBJECT", "properties": {"left": end, "right": end}}  # fmt: skip
    assert to_openapi({"$ref": "#"}) == {}
    assert to_openapi({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}) == {}


def test_references_that_double_at_every_level_stay_bounded() -> None:
    levels = {
        f"L{at}": {"properties": {side: {"$ref": f"#/$defs/L{at + 1}"} for side in ("a", "b")}} for at in range(40)
    }
    made = to_openapi({"$ref": "#/$defs/L0", "$defs": levels})
    assert str(made).count("properties") <= 5000


def test_deep_schemas_stay_bounded() -> None:
    deep: dict[str, Any] = {}
    for _ in range(500):
        deep = {"type": "array", "items": deep}
    assert str(to_openapi(deep)).count("ARRAY") == 33


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
WORDS = sorted(
    {*ALLOWED, "$ref", "const", "oneOf", "allOf", "not", "additionalProperties", "exclusiveMinimum", "$defs", "x-a"}
)
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "null", ["string", "null"]])}) | JSON,
    lambda inner: st.dictionaries(st.sampled_from(WORDS), inner | JSON | st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3), max_size=4),
    max_leaves=8,
)  # fmt: skip


@tries(100)
@given(SCHEMAS)
@pytest.mark.slow
def test_only_allowed_keywords_come_out(given_schema: Any) -> None:
    _only_allowed(to_openapi(given_schema))


def _only_allowed(made: dict[str, Any]) -> None:
    assert made.keys() <= ALLOWED
    below = [*made.get("properties", {}).values()] if isinstance(made.get("properties"), dict) else []
    below += [made["items"]] if "items" in made else []
    for inner in [*below, *made.get("anyOf", [])]:
        _only_allowed(inner)


def test_definitions_for_older_models() -> None:
    parameters = JsonObject({"type": "object", "properties": {"n": {"type": ["integer", "null"]}}, "additionalProperties": False})  # fmt: skip
    sent = encode_tools([ToolDefinition("f", "F.", parameters)], openapi_subset=True)
    assert sent == [{"functionDeclarations": [{"name": "f", "description": "F.", "parameters": {"type": "OBJECT", "properties": {"n": {"type": "INTEGER", "nullable": True}}}}]}]  # fmt: skip
    types.Tool.model_validate(sent[0])
    assert encode_tools(decode_tools(sent)) == sent
