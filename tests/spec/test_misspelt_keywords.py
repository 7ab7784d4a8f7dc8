"""Keywords and required names that are most likely misspelt are mistakes in specs of a project, and never in imported ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.findings import short_forms
from toolkit.errors import SpecError
from toolkit.schema.spec_files import load_spec_text

MISSPELT = {
    "requird": (["a"], "required"),
    "propertes": ({}, "properties"),
    "typ": ("object", "type"),
    "Type": ("object", "type"),
    "any_of": ([], "anyOf"),
    "minlenght": (1, "minLength"),
    "desc": ("A text.", "description"),
    "x-resourse": ("url", "x-resource"),
}
FINE = {
    "note": "an annotation, not a misspelt 'not'",
    "x-order": 1,
    "id": "https://example.org/schema",
    "comment": "read by people",
    "enumNames": ["One"],
    "markdownDescription": "*text*",
    "options": {"a": 1},
    "default": None,
    "formats": {"a": 1},
}


def load(schema: dict[str, Any], **keys: Any) -> None:
    tool = {"name": "t", "inputSchema": {"type": "object", "properties": {"a": schema}}}
    load_spec_text(json.dumps({"tools": [tool], **keys}), "t.json", None)


@pytest.mark.parametrize("word", MISSPELT)
def test_names_what_was_meant(word: str) -> None:
    value, meant = MISSPELT[word]
    with pytest.raises(SpecError) as caught:
        load({word: value})
    place = f"t.json:/tools/0/inputSchema/properties/a/{word}"
    assert short_forms(caught.value) == (f"unknown keyword {word!r}. Did you mean {meant!r}? @ {place}",)


@pytest.mark.parametrize("word", FINE)
def test_leaves_annotations_alone(word: str) -> None:
    load({word: FINE[word]})


def test_says_nothing_about_imported_tools() -> None:
    load({"requird": ["a"], "more": None}, origin={"kind": "mcp", "name": "files"})


def test_properties_and_values_may_have_any_name() -> None:
    load({"properties": {"requird": {"type": "string"}}, "default": {"typ": None}, "enum": [{"propertes": 1}]})


def test_joins_a_text_that_a_comma_split() -> None:
    with pytest.raises(SpecError) as caught:
        load_spec_text("name: t\ninputSchema: {title: One, two, three}\n", "t.yaml", None)
    assert [found.message for found in caught.value.findings] == [
        f"{word!r} is not a keyword: an unquoted comma ends a text inside {{...}};"
        ' quote the text: title: "One, two, three"'
        for word in ("two", "three")
    ]


CLOSED = {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}
FORBIDDEN = "is required but not declared in 'properties', and 'additionalProperties: false' forbids other names"


@pytest.mark.parametrize(
    ("name", "way_out"), [("pth", ". Did you mean 'path'?"), ("c", "; declare it, or remove it here")]
)
def test_a_required_name_that_no_object_may_have(name: str, way_out: str) -> None:
    schema = {**CLOSED, "required": ["path", name]}
    with pytest.raises(SpecError) as caught:
        load(schema)
    place = "t.json:/tools/0/inputSchema/properties/a/required"
    assert short_forms(caught.value) == (f"{name!r} {FORBIDDEN}{way_out} @ {place}",)
    load(schema, origin={"kind": "mcp", "name": "files"})


@pytest.mark.parametrize(
    "keys",
    [
        {"additionalProperties": True},
        {"additionalProperties": {"type": "string"}},
        {"patternProperties": {"^c$": {}}},
        {"properties": {"c": {}}},
        {"required": []},
    ],
    ids=lambda keys: next(iter(keys)),
)
def test_a_required_name_that_an_object_may_have(keys: dict[str, Any]) -> None:
    load({**CLOSED, "required": ["c"], **keys})
