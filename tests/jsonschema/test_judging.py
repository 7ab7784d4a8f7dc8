"""Values, judging and merging, with the ``jsonschema`` package as oracle."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.codegen.subset.random_schemas import schemas, values
from tests.examples import tries
from toolkit.schema import Judge, References, has_type, json_key, json_type, same_json
from toolkit.schema.keywords import TYPES, subschemas
from toolkit.schema.merge import NotMergeable, conjuncts, merge

NUMBERS = st.sampled_from([0, 0.0, -0.0, 1, 1.0, True, False, 2**53, float(2**53), 1.5])
JSON = st.recursive(
    st.none() | NUMBERS | st.sampled_from(["", "1", "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


def is_valid(value: Any, schema: Any) -> bool:
    return Draft202012Validator(schema).is_valid(value)


@given(JSON, JSON)
def test_equality_is_that_of_json_schema(one: Any, other: Any) -> None:
    assert same_json(one, other) == is_valid(one, {"const": other})
    assert same_json(one, other) == (json_key(one) == json_key(other))


@given(JSON)
def test_types_are_those_of_json_schema(value: Any) -> None:
    assert [has_type(value, name) for name in TYPES] == [is_valid(value, {"type": name}) for name in TYPES]
    assert has_type(value, json_type(value))
    assert not has_type(value, "text")
    assert not has_type(value, ["string"])


@tries(300)
@given(schemas(), values)
@pytest.mark.slow
def test_what_fits_is_valid_and_what_can_be_judged_is_judged(schema: dict[str, Any], value: Any) -> None:
    judged = Judge(schema).fits(value, schema)
    words = {word for _, node in subschemas(schema) for word in node}
    if judged or not any(word.startswith("unevaluated") for word in words):
        assert judged == is_valid(value, schema)


NOT_JUDGED: dict[str, tuple[Any, Any]] = {
    "a reference to elsewhere": (1, {"$ref": "https://example.com/x"}),
    "a reference to nowhere": (1, {"$ref": "#/$defs/x"}),
    "the opposite of what cannot be judged": (1, {"not": {"$ref": "#/$defs/x"}}),
    "a schema that is itself": (1, {"$ref": "#"}),
    "a dynamic reference": (1, {"$dynamicRef": "#x"}),
    "an exclusive limit of draft-04": (5, {"minimum": 5, "exclusiveMinimum": True}),
    "a keyword whose value makes no sense": ("a", {"minLength": "x"}),
    "too many steps": ([1] * 60_000, {"items": {"type": "integer"}}),
    "unevaluated properties beside a branch": (
        {"a": 1},
        {"anyOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False},
    ),
}


@pytest.mark.parametrize("name", NOT_JUDGED)
def test_what_cannot_be_judged_does_not_fit(name: str) -> None:
    value, schema = NOT_JUDGED[name]
    assert not Judge(schema).fits(value, schema)


def test_old_drafts_are_judged_as_they_were_written() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"a": {"type": "integer"}},
        "items": [{"$ref": "#/definitions/a", "minimum": 10}],
        "additionalItems": {"type": "string"},
        "dependencies": {"a": ["b"], "c": {"minProperties": 3}},
    }
    judge = Judge(schema)
    assert judge.fits([1, "a"], schema)
    assert not judge.fits([1, 2], schema)
    assert not judge.fits({"a": 1}, schema)
    assert not judge.fits({"c": 1}, schema)


def test_a_hostile_pattern_is_judged_in_linear_time() -> None:
    schema = {"pattern": "^(a+)+$"}
    assert not Judge(schema).fits("a" * 50_000 + "!", schema)


# -- merging ------------------------------------------------------------------------------------------------------------

PARTS = st.lists(schemas(), min_size=1, max_size=3)


def unfold(schema: Any) -> list[Any]:
    references = References(schema)

    def follow(ref: object, pointer: str) -> Any:
        target = references.find(ref)
        if target is None:
            raise NotMergeable("leads nowhere")
        return target

    return [found.schema for found in conjuncts(schema, references, follow, lambda pointer, depth: None)]


@tries(400)
@given(PARTS, values)
@pytest.mark.slow
def test_a_merged_schema_accepts_what_all_parts_accept_and_an_exact_one_nothing_else(
    parts: list[Any], value: Any
) -> None:
    definitions = parts[0].get("$defs", {})
    whole = {"allOf": [{k: v for k, v in part.items() if k != "$defs"} for part in parts], "$defs": definitions}
    try:
        merged = merge(unfold(whole))
    except NotMergeable:
        return
    accepts_all = is_valid(value, whole)
    accepts_merged = not merged.is_empty and is_valid(value, {**merged.schema, "$defs": definitions})
    assert not (accepts_all and not accepts_merged)
    if merged.exact:
        assert accepts_merged == accepts_all


MALFORMED: list[dict[str, Any]] = [
    {"type": 1}, {"properties": []}, {"properties": "ab"}, {"required": "ab"}, {"enum": 5}, {"minimum": "1"},
    {"items": [{}]}, {"allOf": []}, {"allOf": {}}, {"$ref": []},
]  # fmt: skip
SOUND: list[dict[str, Any]] = [
    {"type": "string"}, {"properties": {"a": {}}}, {"required": ["a"]}, {"enum": [1]}, {"minimum": 1},
    {"items": {"type": "null"}}, {"additionalProperties": {"type": "null"}}, {"const": 1},
]  # fmt: skip


@pytest.mark.parametrize("malformed", MALFORMED, ids=str)
def test_malformed_schemas_are_not_merged_and_do_not_raise(malformed: dict[str, Any]) -> None:
    for sound in SOUND:
        for parts in ([malformed, sound], [sound, malformed]):
            try:
                merged = merge(unfold({"allOf": parts}))
            except NotMergeable:
                continue
            word = next(iter(malformed))
            assert not merged.exact or word not in sound
