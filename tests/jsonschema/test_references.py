"""What a reference means inside one document, and that none of them raises."""

from __future__ import annotations

from typing import Any

import pytest

from toolkit.schema import References

NULL = {"type": "null"}
DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DOCUMENT: dict[str, Any] = {
    "$defs": {"a b": NULL, "a/b": NULL, "a~b": NULL, "": NULL, "list": {"anyOf": [{}, NULL]}, "ä": NULL},
    "items": {"$anchor": "here", "$dynamicAnchor": "there"},
}

FOUND: dict[str, tuple[Any, str]] = {
    "the root": ("#", ""),
    "a definition": ("#/$defs/list", "/$defs/list"),
    "percent encoding": ("#/$defs/a%20b", "/$defs/a b"),
    "percent encoding of UTF-8": ("#/$defs/%C3%A4", "/$defs/ä"),
    "no percent encoding": ("#/$defs/a b", "/$defs/a b"),
    "an escaped slash": ("#/$defs/a~1b", "/$defs/a~1b"),
    "an escaped tilde": ("#/$defs/a~0b", "/$defs/a~0b"),
    "an empty key": ("#/$defs/", "/$defs/"),
    "a place in a list": ("#/$defs/list/anyOf/1", "/$defs/list/anyOf/1"),
    "an anchor": ("#here", "/items"),
    "a dynamic anchor": ("#there", "/items"),
}
NOT_FOUND: dict[str, Any] = {
    "another document": "other.json",
    "another document's definition": "other.json#/$defs/list",
    "nothing": "",
    "no such definition": "#/$defs/none",
    "past the end": "#/$defs/list/anyOf/2",
    "a negative index": "#/$defs/list/anyOf/-1",
    "an index that is no number": "#/$defs/list/anyOf/²",
    "an endless index": "#/$defs/list/anyOf/" + "9" * 5000,
    "below a scalar": "#/$defs/list/anyOf/1/type/0",
    "no such anchor": "#nowhere",
    "a broken escape": "#/$defs/%ZZ~2",
    "not a text": ["#"],
    "a number": 7,
    "null": None,
}


@pytest.mark.parametrize("name", FOUND)
def test_leads_to(name: str) -> None:
    ref, pointer = FOUND[name]
    target = References(DOCUMENT).find(ref)
    assert target is not None
    assert target.pointer == pointer


@pytest.mark.parametrize("name", NOT_FOUND)
def test_leads_nowhere(name: str) -> None:
    assert References(DOCUMENT).find(NOT_FOUND[name]) is None
    assert References(DOCUMENT).follow({"$ref": NOT_FOUND[name]}) is None


@pytest.mark.parametrize("root", [True, None, 7, [], "x", {"$schema": 7, "$defs": 3, "properties": [], "$anchor": {}}])
def test_a_document_may_be_anything(root: Any) -> None:
    assert References(root).find("#x") is None
    assert References(root).find("#/x/y") is None
    assert not References(root).ignores_siblings


def test_follows_chains_and_stops_at_circles() -> None:
    references = References({"$defs": {"a": {"$ref": "#b"}, "b": {"$anchor": "b", "$ref": "#/$defs/c"}, "c": NULL}})
    assert references.follow({"$ref": "#/$defs/a"}) == NULL
    assert references.follow(NULL) == NULL
    circle = References({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#"}}})
    assert circle.follow(circle.root) is None


@pytest.mark.parametrize("inner", [{"$id": "https://example.com/a"}, {"$id": "a.json", "$anchor": "here"}])
def test_a_pointer_below_another_base_means_another_document(inner: dict[str, Any]) -> None:
    references = References({"$id": "https://example.com/root", "$defs": {"a": inner, "b": NULL}})
    assert references.find("#/$defs/b") is None
    assert references.find("#here") is None
    assert references.may_lead_inside("#/$defs/b")
    # What only looks like an identifier is none.
    assert References({"properties": {"$id": NULL}, "enum": [{"$id": "x"}]}).find("#/properties/$id") is not None


@pytest.mark.parametrize(("dialect", "word"), [(DRAFT_4, "id"), (DRAFT_7, "$id")])
def test_an_identifier_of_an_old_draft_can_be_an_anchor(dialect: str, word: str) -> None:
    references = References({"$schema": dialect, "definitions": {"a": {word: "#here", **NULL}}})
    found = references.find("#/definitions/a")
    assert found is not None
    assert references.find("#here") == found


@pytest.mark.parametrize(
    ("dialect", "ignored"), [(DRAFT_4, True), (DRAFT_7, True), ("https://json-schema.org/draft/2019-09/schema", False)]
)
def test_old_drafts_ignore_what_is_next_to_a_reference(dialect: str, ignored: bool) -> None:
    schema = {"$ref": "#", "type": "null", "description": "x"}
    expected = {"$ref": "#", "description": "x"} if ignored else schema
    assert References({"$schema": dialect}).without_ignored(schema) == expected
