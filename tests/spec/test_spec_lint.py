"""The advice of ``lint``, one row a finding."""

from __future__ import annotations

import json

import pytest

from tests.findings import short_form
from toolkit.schema.checks import lint_spec
from toolkit.schema.problems import Finding
from toolkit.schema.spec import Json
from toolkit.schema.spec_files import load_spec_text

BARE: Json = {"type": "string"}
TOLD: Json = {"type": "string", "description": "Told."}

ROWS: list[tuple[str, dict[str, Json], list[str]]] = [
    ("is_content", {"inputSchema": {"properties": {"a": TOLD}}}, []),
    ("misses_the_description", {"description": ""}, ["the tool has no description @ t.json:"]),
    ("misses_it_in_blanks", {"description": " \n"}, ["the tool has no description @ t.json:"]),
    ("takes_40_tokens", {"description": "\u00e9" * 80}, []),
    ("counts_41_tokens", {"description": "\u00e9" * 80 + "x"}, ["the description has 41 tokens: keep it to 40 and move the rest to a 'descriptionFile' @ t.json:/description"]),
    ("sees_a_fence", {"description": "Runs.\n```\nx\n```"}, ["the description contains code: describe what the tool does in plain language @ t.json:/description"]),
    ("sees_a_prompt", {"description": "Runs.\n  >>> x"}, ["the description contains code: describe what the tool does in plain language @ t.json:/description"]),
    ("lets_single_ticks_be", {"description": "Reads `path`; a >>> b."}, []),
    ("misses_a_property", {"inputSchema": {"properties": {"b": BARE, "a": True}}}, ["the property 'b' has no description @ t.json:/inputSchema/properties/b", "the property 'a' has no description @ t.json:/inputSchema/properties/a"]),
    ("looks_into_items", {"inputSchema": {"properties": {"a": {"description": "x", "items": {"properties": {"b/c": BARE}}}}}}, ["the property 'b/c' has no description @ t.json:/inputSchema/properties/a/items/properties/b~1c"]),
    ("looks_into_definitions", {"inputSchema": {"type": "object", "$defs": {"D": {"properties": {"a": BARE}}}}}, ["the property 'a' has no description @ t.json:/inputSchema/$defs/D/properties/a"]),
    ("looks_into_choices", {"inputSchema": {"type": "object", "anyOf": [{}, {"properties": {"a": BARE}}]}}, ["the property 'a' has no description @ t.json:/inputSchema/anyOf/1/properties/a"]),
    ("takes_defaults_for_data", {"inputSchema": {"type": "object", "default": {"properties": {"a": BARE}}}}, []),
    ("leaves_the_output_alone", {"outputSchema": {"properties": {"a": BARE}}}, []),
    ("doubts_a_read_only_writer", {"permissions": ["read", "write"], "annotations": {"readOnlyHint": True}}, ["'readOnlyHint' is true for a tool that may write @ t.json:/annotations/readOnlyHint"]),
    ("doubts_an_optional_right", {"permissions": {"optional": ["execute", "write"]}, "annotations": {"readOnlyHint": True}}, ["'readOnlyHint' is true for a tool that may write and execute @ t.json:/annotations/readOnlyHint"]),
    ("believes_a_reader", {"permissions": ["read", "network"], "annotations": {"readOnlyHint": True}}, []),
    ("keeps_the_order", {"description": "```", "inputSchema": {"properties": {"a": {}}}, "permissions": ["write"], "annotations": {"readOnlyHint": True}}, ["the description contains code: describe what the tool does in plain language @ t.json:/description", "the property 'a' has no description @ t.json:/inputSchema/properties/a", "'readOnlyHint' is true for a tool that may write @ t.json:/annotations/readOnlyHint"]),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_lint(keys: dict[str, Json], expected: list[str]) -> None:
    text = json.dumps({"name": "t", "description": "Does it.", "inputSchema": {}, **keys})
    (spec,) = load_spec_text(text, "t.json", None)
    assert [short_form(finding) for finding in lint_spec(spec)] == expected


def test_points_into_a_list_and_counts_as_told() -> None:
    text = json.dumps({"tools": [{"name": "t", "description": "a b", "inputSchema": {"properties": {"a": {}}}}]})
    (spec,) = load_spec_text(text, "t.json", None)
    tokens = "the description has 99 tokens: keep it to 40 and move the rest to a 'descriptionFile'"
    assert lint_spec(spec, count_tokens=lambda _: 99) == [
        Finding(tokens, "t.json", "/tools/0/description"),
        Finding("the property 'a' has no description", "t.json", "/tools/0/inputSchema/properties/a"),
    ]
