from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit import ToolCall
from toolkit.adapters.lossless import (
    add_difference,
    forget_difference,
    has_difference,
    keep_difference,
    keep_parts,
    provider_metadata,
    restore,
    restore_parts,
)

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_what_was_received_is_restored_exactly(received: Any, encoded: Any) -> None:
    kept = json.loads(json.dumps(add_difference({}, received, encoded)))
    assert json.dumps(restore(encoded, kept), sort_keys=True) == json.dumps(received, sort_keys=True)


@pytest.mark.parametrize(
    ("received", "encoded", "changed", "expected"),
    [
        pytest.param({"t": ["hi"], "x": 1}, {"t": "hi"}, {"t": "new"}, {"t": "new", "x": 1}, id="a changed text"),
        pytest.param({"l": [{"a": 1, "k": 0}]}, {"l": [{"a": 1}]}, {"l": [{"a": 2}]}, {"l": [{"a": 2, "k": 0}]}, id="a changed leaf"),
        pytest.param({"a": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 3}, {"a": 1, "b": 3}, id="a value that was left out"),
        pytest.param({"l": [1, 2]}, {"l": [1]}, {"l": [5]}, {"l": [5]}, id="a list of another length"),
        pytest.param({"a": None}, {}, {"a": 7}, {"a": 7}, id="a key that was not there"),
        pytest.param({"a": {"b": 1}}, {"a": {}}, {"a": 3}, {"a": 3}, id="another kind of value"),
    ],
)  # fmt: skip
def test_a_change_of_the_neutral_value_wins(received: Any, encoded: Any, changed: Any, expected: Any) -> None:
    assert restore(changed, add_difference({}, received, encoded)) == expected


def test_equal_values_store_nothing() -> None:
    call = ToolCall("1", "f", {}, {"acme": {}})
    assert not has_difference(add_difference({}, {"a": 1}, {"a": 1}))
    assert keep_difference(call, "acme", {"a": 1}, {"a": 1}).metadata == {}


def test_a_difference_is_stored_next_to_what_else_is_in_the_metadata() -> None:
    call = ToolCall("1", "f", {}, {"acme": {"type": "custom"}, "other": 1})
    kept = keep_difference(call, "acme", {"a": 1}, {})
    assert restore({}, provider_metadata(kept.metadata, "acme")) == {"a": 1}
    assert provider_metadata(kept.metadata, "acme")["type"] == "custom" and kept.metadata["other"] == 1
    assert forget_difference(kept, "acme") == call


def test_native_parts_keep_their_places() -> None:
    received = [{"native": 1}, {"text": "a", "cache": True}, {"native": 2}, {"text": "b"}]
    kept = json.loads(json.dumps(keep_parts(received, [None, {"text": "a"}, None, {"text": "b"}])))
    assert restore_parts([{"text": "a"}, {"text": "b"}], kept) == received
    assert restore_parts([{"text": "c"}], kept) == [{"native": 1}, {"text": "c", "cache": True}, {"native": 2}]
