"""Schemas and answers that are out to do harm: every one of these ends, and in a few steps."""

from __future__ import annotations

from typing import Any

import pytest

from toolkit.adapters.strict import to_strict


def in_a(inner: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": inner}, "required": ["a"], **more}


def deep(word: str, levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema} if word == "items" else {word: [schema]}
    return schema


def doubling(word: str, levels: int) -> dict[str, Any]:
    """Each definition leads to the next one twice: written out, there would be 2 to the power of ``levels``."""
    definitions: dict[str, Any] = {f"d{levels}": {"type": "object", "properties": {"x": {"type": "string"}}}}
    for level in range(levels):
        onward = {"$ref": f"#/$defs/d{level + 1}"}
        definitions[f"d{level}"] = {word: [onward, {**onward, "minProperties": 1}]}
    return in_a({"$ref": "#/$defs/d0"}, **{"$defs": definitions})


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "a list in a list": (in_a(deep("items", 3000)), "nested deeper than 64 schemas"),
    "allOf in allOf": (in_a(deep("allOf", 3000)), "more than 32 schemas"),
    "anyOf in anyOf": (in_a(deep("anyOf", 3000)), "nested deeper than 64 schemas"),
    "oneOf in oneOf": (in_a(deep("oneOf", 3000)), "nested deeper than 64 schemas"),
    "allOf that doubles": (doubling("allOf", 40), "more than"),
    "too many schemas": (
        {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(30_000)}}, "the schema has more than 20000 parts",
    ),
    "a chain of some references": (
        in_a({"$ref": "#/$defs/d0"}, **{"$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(3000)}}), "'#/$defs/d3000' refers to nothing",
    ),
    "a chain of references": (
        in_a({"$ref": "#/$defs/d0"}, **{"$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(30_000)}}), "more than",
    ),
    "too many values": (in_a({"enum": [f"v{n}" for n in range(5000)]}), "5000 values in enums"),
    "a huge pattern": (in_a({"type": "string", "pattern": "(a{1000}){1000}", "not": {}}), "'not'"),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.whole] * (name == "a chain of references")) for name in HOSTILE]
)
@pytest.mark.slow
def test_hostile_schemas_are_told(name: str) -> None:
    schema, why = HOSTILE[name]
    receipt = to_strict(schema)
    assert not receipt.is_strict
    assert why in " ".join(problem.why for problem in receipt.problems)
    assert len(receipt.problems) <= 100


def test_a_long_chain_of_definitions_is_no_deep_one() -> None:
    definitions: dict[str, Any] = {
        f"d{n}": {"type": "object", "properties": {"next": {"$ref": f"#/$defs/d{n + 1}"}}} for n in range(2000)
    }
    definitions["d2000"] = {"type": "string"}
    receipt = to_strict(in_a({"$ref": "#/$defs/d0"}, **{"$defs": definitions}))
    assert receipt.is_strict
    assert receipt.decode({"a": {"next": {"next": None}}}) == {"a": {"next": {}}}


def test_definitions_of_the_same_name_stay_apart() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/x"},
            "b": {"$ref": "#/definitions/x"},
            "c": {"$ref": "#/properties/d/items"},
            "d": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}},
            "e": {"$ref": "#/$defs/a~1b c"},
        },
        "required": ["a", "b", "c", "d", "e"],
        "$defs": {"x": {"type": "string"}, "a/b c": {"type": "boolean"}},
        "definitions": {"x": {"type": "integer"}},
    }
    definitions = to_strict(schema).schema["$defs"]
    assert {name: one.get("type") for name, one in definitions.items()} == {
        "x": "string",
        "x--2": "integer",
        "items": "object",
        "a_b_c": "boolean",
    }


@pytest.mark.slow
def test_a_deep_answer_is_left_to_the_tool() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}, "n": {"type": "integer"}}}
    receipt = to_strict(in_a({"$ref": "#/$defs/N"}, **{"$defs": {"N": node}}))
    answer: dict[str, Any] = {"next": None, "n": None}
    for _ in range(100_000):
        answer = {"next": answer, "n": None}
    assert receipt.decode({"a": answer})["a"] is answer


def test_an_answer_of_many_forms_is_read_in_a_few_steps() -> None:
    branch = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}, "n": {"type": "integer"}}}
    union = {"anyOf": [{**branch, "required": ["next"]}, {**branch, "required": ["n"]}, branch]}
    receipt = to_strict(in_a({"$ref": "#/$defs/N"}, **{"$defs": {"N": union}}))
    answer: Any = "no answer at all"
    for _ in range(60):
        answer = {"next": answer, "n": 1}
    assert receipt.is_strict
    assert receipt.decode({"a": answer}) == {"a": answer}
