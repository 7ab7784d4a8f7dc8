"""What the prover proves is true: no value is accepted by the left schema and refused by the right one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.codegen.subset.random_schemas import NAMES, neighbours, schemas, values
from toolkit.codegen import find_changes
from toolkit.codegen.imports.subset import gaps

TRIALS = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def accepts(schema: Any, value: Any) -> bool:
    return Draft202012Validator(schema).is_valid(value)


def judge(left: dict[str, Any], right: dict[str, Any], samples: list[Any]) -> None:
    assume(not gaps(left, right, only_named=False))
    for value in samples:
        assert not accepts(left, value) or accepts(right, value), value


@TRIALS
@given(neighbours(), st.lists(values, min_size=10, max_size=30))
@pytest.mark.slow
def test_a_proof_between_neighbours_holds(pair: tuple[dict[str, Any], dict[str, Any]], samples: list[Any]) -> None:
    judge(*pair, samples)


@TRIALS
@given(neighbours(), st.lists(values, min_size=10, max_size=30))
@pytest.mark.slow
def test_and_the_other_way_round(pair: tuple[dict[str, Any], dict[str, Any]], samples: list[Any]) -> None:
    judge(pair[1], pair[0], samples)


@TRIALS
@given(schemas(), schemas(), st.lists(values, min_size=10, max_size=30))
@pytest.mark.slow
def test_a_proof_between_strangers_holds(left: dict[str, Any], right: dict[str, Any], samples: list[Any]) -> None:
    judge(left, right, samples)


def says_of_others(node: Any) -> Any:
    """The schema with every object that names properties open in so many words."""
    if isinstance(node, list):
        return [says_of_others(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {key: says_of_others(value) for key, value in node.items()}
    return {"additionalProperties": True, **found} if isinstance(found.get("properties"), dict) else found


@TRIALS
@given(neighbours(), st.lists(st.fixed_dictionaries({"a": values}), min_size=10, max_size=30))
@pytest.mark.slow
def test_calls_of_a_tool_outlive_every_change_that_is_not_breaking(
    pair: tuple[dict[str, Any], dict[str, Any]], calls: list[dict[str, Any]]
) -> None:
    old, new = (
        {
            "name": "t",
            "inputSchema": {"type": "object", "properties": {"a": says_of_others(node)}, "$defs": node["$defs"]},
        }
        for node in pair
    )
    assume(not any(change.kind == "breaking" for change in find_changes([old], [new])))
    for call in calls:
        assert not accepts(old["inputSchema"], call) or accepts(new["inputSchema"], call), call


@TRIALS
@given(schemas())
def test_every_schema_is_proven_to_accept_what_it_accepts(schema: dict[str, Any]) -> None:
    assert gaps(schema, schema, only_named=False) == gaps(schema, schema, only_named=True) == []


@TRIALS
@given(neighbours(), st.lists(st.dictionaries(st.sampled_from(NAMES), values), min_size=10, max_size=30))
@pytest.mark.slow
def test_objects_with_the_properties_they_name(pair: tuple[dict[str, Any], dict[str, Any]], samples: list[Any]) -> None:
    """Objects that say nothing of other properties, and values that have none but those they name."""
    # What lies deeper would have to hold to it, too.
    assume('"properties"' not in json.dumps(pair))
    left, right = (
        {"type": "object", "properties": {"a": schema, "b": True}, "$defs": schema["$defs"]} for schema in pair
    )
    assume(not gaps(left, right, only_named=True))
    for value in samples:
        if value.keys() <= {"a", "b"} and accepts(left, value):
            assert accepts(right, value), value
