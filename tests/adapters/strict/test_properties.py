"""Whatever the schema: the transform is the same every time, its result is clean, and what it reads back is valid."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.adapters.strict.answers import Answers
from tests.adapters.strict.judged import followed, untold
from tests.examples import tries
from toolkit.adapters.strict import ANTHROPIC, BEDROCK, OPENAI, StrictRules, check_strict, to_strict

TARGETS = {"openai": OPENAI, "anthropic": ANTHROPIC, "anthropic, no room": ANTHROPIC.leaner(), "bedrock": BEDROCK}

NAMES = st.sampled_from(["a", "b", "key", "value", "a/b", "additional_properties", "arguments"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "é"]) | st.just(0.5)
SPOKEN = st.fixed_dictionaries({}, optional={"description": st.just("d"), "title": st.just("t"), "default": SCALARS})
LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={
            "minLength": st.integers(0, 3), "maxLength": st.integers(3, 9), "format": st.sampled_from(["uri", "date"]),
            "pattern": st.sampled_from(["^a", "^[a-z]*$", "(?=x)"]),
        },
    ),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={"minimum": st.integers(-5, 0), "exclusiveMaximum": st.integers(2, 9), "multipleOf": st.just(1)},
    ),
    st.fixed_dictionaries({"type": st.sampled_from(["boolean", "null", ["string", "null"], ["integer", "boolean"]])}),
    st.fixed_dictionaries({"enum": st.lists(SCALARS, min_size=1, max_size=4)}),
    st.fixed_dictionaries({"const": SCALARS}),
    st.fixed_dictionaries({"$ref": st.sampled_from(["#/$defs/A", "#/$defs/B", "#"])}),
    st.sampled_from([{}, True, False, {"type": "object"}, {"type": "array"}, {"not": {}}]),
)  # fmt: skip


def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)},
        optional={
            "required": st.lists(NAMES, unique=True, max_size=2), "additionalProperties": st.just(False) | inner,
            "minProperties": st.integers(0, 2),
        },
    )  # fmt: skip
    return st.one_of(
        objects,
        objects,
        st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner}),
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner},
            optional={"minItems": st.integers(0, 1), "maxItems": st.integers(1, 3), "uniqueItems": st.booleans()},
        ),
        st.builds(lambda parts: {"type": "array", "prefixItems": parts, "minItems": len(parts), "items": False}, st.lists(inner, min_size=1, max_size=3)),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=2)}),
        st.builds(lambda one, spoken: {**one, **spoken} if isinstance(one, dict) else one, inner, SPOKEN),
    )  # fmt: skip


SCHEMAS = st.recursive(LEAVES, grown, max_leaves=8)
ROOTS = st.builds(
    lambda properties, required, a, b: {
        "type": "object", "properties": properties, "required": [name for name in required if name in properties], "$defs": {"A": a, "B": b},
    },
    st.dictionaries(NAMES, SCHEMAS, max_size=3), st.lists(NAMES, unique=True), SCHEMAS, SCHEMAS,
)  # fmt: skip


MERGED_REFERENCE = {
    "type": "object",
    "properties": {"b": {"allOf": [{"$ref": "#/$defs/A"}]}},
    "required": ["b"],
    "$defs": {"A": {"type": "integer", "exclusiveMaximum": 2}},
}
"""Where a transform merges a branch, its notes are at the place that the branch was merged into."""


def _ends(schema: dict[str, Any]) -> bool:
    """Whether answers come to an end: a schema that needs itself has none, which is not the transform's fault."""
    try:
        for seed in range(3):
            Answers(schema, seed).any()
    except RecursionError:
        return False
    return True


@pytest.mark.parametrize("rules", TARGETS.values(), ids=TARGETS)
@tries(400)
@given(schema=ROOTS, seed=st.integers(0, 1000))
@example(schema=MERGED_REFERENCE, seed=3)
@pytest.mark.slow
def test_answers_come_back_valid(rules: StrictRules, schema: dict[str, Any], seed: int) -> None:
    before = copy.deepcopy(schema)
    receipt = to_strict(schema, rules)
    assert schema == before
    assert receipt == to_strict(json.loads(json.dumps(schema)), rules)
    if not receipt.is_strict:
        for problem in receipt.problems:
            followed(schema, problem.pointer)
        return
    assert check_strict(receipt.schema, rules) == []
    if not rules.asks_for_defaults:
        assert to_strict(receipt.schema, rules).schema == receipt.schema
    if not _ends(receipt.schema):
        return
    answer = Answers(receipt.schema, seed).any()
    Draft202012Validator(receipt.schema).validate(answer)
    given = copy.deepcopy(answer)
    assert untold(receipt, schema, receipt.decode(answer)) == []
    assert answer == given


KEYWORDS = st.sampled_from([
    "type", "properties", "required", "items", "anyOf", "oneOf", "allOf", "$ref", "enum", "const", "minLength",
    "additionalProperties", "patternProperties", "prefixItems", "$defs", "default", "pattern", "format", "minimum",
    "propertyNames", "description", "minItems", "minProperties", "unevaluatedProperties", "contains", "title",
])  # fmt: skip
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(["object", "array", "string", "#", "#/$defs", "null", "("]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS | NAMES, inner, max_size=4),
    max_leaves=15,
)  # fmt: skip


@pytest.mark.parametrize("rules", TARGETS.values(), ids=TARGETS)
@tries(400)
@given(schema=st.dictionaries(KEYWORDS, JSON, max_size=6), answer=JSON)
@pytest.mark.slow
def test_nothing_that_is_json_breaks_it(rules: StrictRules, schema: dict[str, Any], answer: Any) -> None:
    receipt = to_strict({"type": "object", "properties": {"a": schema}}, rules)
    assert receipt.is_strict == (not check_strict(receipt.schema, rules)) or not receipt.is_strict
    receipt.decode({"a": answer})
    to_strict(schema, rules)
    check_strict(schema, rules)
