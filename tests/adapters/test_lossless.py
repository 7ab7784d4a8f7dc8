from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.adapters.lossless import residue, restored

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_what_came_is_put_back_exactly(raw: Any, made: Any) -> None:
    left = residue(raw, made)
    back = restored(made, json.loads(json.dumps(left)))
    assert json.dumps(back, sort_keys=True) == json.dumps(raw, sort_keys=True)


@pytest.mark.parametrize(
    ("raw", "made", "changed", "expected"),
    [
        pytest.param({"t": ["hi"], "x": 1}, {"t": "hi"}, {"t": "new"}, {"t": "new", "x": 1}, id="a changed text"),
        pytest.param({"l": [{"a": 1, "k": 0}]}, {"l": [{"a": 1}]}, {"l": [{"a": 2}]}, {"l": [{"a": 2, "k": 0}]}, id="a changed leaf"),
        pytest.param({"a": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 3}, {"a": 1, "b": 3}, id="a value that was left out"),
        pytest.param({"l": [1, 2]}, {"l": [1]}, {"l": [5]}, {"l": [5]}, id="a list of another length"),
        pytest.param({"a": None}, {}, {"a": 7}, {"a": 7}, id="a key that was not there"),
        pytest.param({"a": {"b": 1}}, {"a": {}}, {"a": 3}, {"a": 3}, id="another kind of value"),
    ],
)  # fmt: skip
def test_a_change_of_the_neutral_value_holds(raw: Any, made: Any, changed: Any, expected: Any) -> None:
    assert restored(changed, residue(raw, made)) == expected
