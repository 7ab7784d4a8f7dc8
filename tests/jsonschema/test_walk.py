"""Pointers, the walker and the mapper."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.schema import join_pointer, map_children, split_pointer, subschemas
from toolkit.schema.keywords import find_at

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"a/b": {"items": [{}, True]}, "$ref": {"enum": [{"not": {}}]}},
    "dependencies": {"a": ["b"], "c": {"minProperties": 1}},
    "default": {"properties": {"x": {}}},
    "allOf": [{"if": {}, "then": {"const": {"items": {}}}}],
    "x-own": {"not": {}},
    "$defs": {"d": {"additionalProperties": {"$defs": {"e": {}}}}},
}
PLACES = [
    "",
    "/properties/a~1b",
    "/properties/a~1b/items/0",
    "/properties/$ref",
    "/dependencies/c",
    "/allOf/0",
    "/allOf/0/if",
    "/allOf/0/then",
    "/$defs/d",
    "/$defs/d/additionalProperties",
    "/$defs/d/additionalProperties/$defs/e",
]


def test_finds_every_schema_in_the_order_of_the_document() -> None:
    found = list(subschemas(SCHEMA))
    assert [pointer for pointer, _ in found] == PLACES
    for pointer, schema in found:
        assert find_at(SCHEMA, split_pointer(pointer)) == (schema, len(split_pointer(pointer)))


@pytest.mark.parametrize(
    "schema", [True, None, [], {"properties": 1, "items": None, "allOf": {}, "$defs": [{}], "not": 3}]
)
def test_takes_what_is_malformed(schema: Any) -> None:
    assert len(list(subschemas(schema))) == isinstance(schema, dict)


def test_maps_each_schema_and_leaves_the_original_alone() -> None:
    before = repr(SCHEMA)
    seen: list[str] = []

    def mark(schema: Any, pointer: str) -> Any:
        seen.append(pointer)
        return {**map_children(schema, mark, pointer), "title": pointer} if isinstance(schema, dict) else schema

    made = map_children(SCHEMA, mark)
    assert repr(SCHEMA) == before
    assert list(made) == list(SCHEMA)
    assert {pointer: schema.get("title") for pointer, schema in subschemas(made) if pointer} == {
        p: p for p in PLACES[1:]
    }
    assert set(seen) == {*PLACES[1:], "/properties/a~1b/items/1"}
    assert made["default"] is SCHEMA["default"]


@given(st.lists(st.text()))
@pytest.mark.slow
def test_a_pointer_leads_through_the_keys_it_is_made_of(keys: list[str]) -> None:
    assert split_pointer(join_pointer("", *keys)) == keys
    document: Any = 7
    for key in reversed(keys):
        document = {key: document}
    assert find_at(document, keys) == (7, len(keys))
