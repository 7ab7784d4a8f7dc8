"""Schemas for models that only know a part of OpenAPI."""

from __future__ import annotations

from typing import Any

from toolkit.adapters.gemini.schema import to_openapi

TREE = {"type": "object", "properties": {"left": {"$ref": "#/$defs/N"}, "right": {"$ref": "#/$defs/N"}}}


def test_a_schema_that_holds_itself_ends_there() -> None:
    """It used to be written out 32 levels deep: two references each are more than four thousand million schemas."""
    made = to_openapi({"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": TREE}})
    assert made == {
        "type": "OBJECT",
        "properties": {"n": {"type": "OBJECT", "properties": {"left": {}, "right": {}}}},
    }


def test_definitions_that_double_come_to_an_end() -> None:
    definitions: dict[str, Any] = {"d30": {"type": "string"}}
    for level in range(30):
        onward = {"$ref": f"#/$defs/d{level + 1}"}
        definitions[f"d{level}"] = {"type": "object", "properties": {"a": onward, "b": onward}}
    told: list[tuple[str, str, str]] = []
    to_openapi({"$ref": "#/$defs/d0", "$defs": definitions}, lambda *what: told.append(what))
    assert {effect for _, _, effect in told} == {"lost"}


def test_says_what_becomes_of_keywords() -> None:
    told: list[tuple[str, str, str]] = []
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "enum": [1]},
            "b": {"$ref": "#/$defs/B"},
            "c": {"$ref": "#/$defs/no"},
            "d": {"oneOf": [{"type": "string", "uniqueItems": True}, {"type": "integer"}]},
        },
        "$defs": {"B": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}},
    }
    to_openapi(schema, lambda *what: told.append(what))
    assert told == [
        ("/properties/a", "enum", "moved"),
        ("/$defs/B", "uniqueItems", "moved"),
        ("/properties/c", "$ref", "moved"),
        ("/properties/d", "oneOf", "loosened"),
        ("/properties/d/oneOf/0", "uniqueItems", "moved"),
    ]


def test_what_a_nullable_schema_says_inside_is_said() -> None:
    """It used to be lost where the outside had a description."""
    inner = {"type": "object", "additionalProperties": {"type": "string"}}
    for schema in (
        {"anyOf": [inner, {"type": "null"}], "description": "d"},
        {"description": "d", "anyOf": [inner, {"type": "null"}]},
    ):
        assert to_openapi(schema) == {
            "nullable": True,
            "type": "OBJECT",
            "description": 'd (additionalProperties: {"type":"string"})',
        }
