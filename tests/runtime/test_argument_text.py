"""``execute_raw`` refuses text that two JSON parsers could read differently."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.conftest import Door
from toolkit import ToolkitError

REFUSED = {
    "is empty": ("", "Expecting value"),
    "is cut": ('{"a": 1, "b": ', "Expecting value"),
    "has a key twice": ('{"a": 1, "a": 2, "b": 3}', "'a' is duplicated"),
    "has a key twice inside": ('{"a": 1, "b": {"x": 1, "x": 2}}', "'x' is duplicated"),
    "has NaN": ('{"a": NaN, "b": 1}', "NaN is not a JSON number"),
    "has Infinity": ('{"a": -Infinity, "b": 1}', "-Infinity is not a JSON number"),
    "has a number beyond floats": ('{"a": 1e999, "b": 1}', "a: Input should be a valid integer"),
    "has a number of 5000 digits": ('{"a": ' + "1" * 5000 + ', "b": 1}', "integer string conversion"),
    "has trailing data": ('{"a": 1, "b": 2} and more', "Extra data"),
    "has two values": ('{"a": 1, "b": 2}{"a": 1, "b": 2}', "Extra data"),
    "has single quotes": ("{'a': 1, 'b': 2}", "Expecting property name"),
    "has a byte order mark": ('\ufeff{"a": 1, "b": 2}', "BOM"),
    "has a lone surrogate": ('{"a": 1, "b": 2, "note": "\\ud800"}', "note: Input should be a valid string"),
    "has a lone surrogate as it is": ('{"a": 1, "b": 2, "note": "\ud800"}', "note: Input should be a valid string"),
    "nests lists too deep": ('{"a": ' + "[" * 100_000, "nested more than 200 levels"),
    "nests objects too deep": ('{"a":' * 100_000, "nested more than 200 levels"),
    "has unclosed text full of quotes": ('{"a": [' + "[]," * 300 + ' "' + '\\"' * 100_000, "Unterminated string"),
    "is longer than any call": (" " * (64 * 1024 * 1024 + 1), "longer than"),
    "is bytes": (b'{"a": 1, "b": 2}', "must be JSON text, not bytes"),
}


@pytest.mark.each("what")
@pytest.mark.parametrize("what", REFUSED)
def test_text_is_refused_that(door: Door, what: str) -> None:
    text, words = REFUSED[what]
    with pytest.raises(ToolkitError) as failure:
        door.execute_raw("add", text)
    assert (failure.value.code, failure.value.tool_name) == ("INVALID_TOOL_ARGUMENTS", "add")
    assert words in failure.value.message


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 2, "b": 3}',
        ' \n{"b":3,"a":2.0}\t',
        '{"a": 2, "b": 3, "note": "' + "[{" * 500 + '"}',
        '{"a": 2, "b": 3, "note": "\\ud83d\\ude00 \\" \\\\"}',
    ],
)
def test_text_is_read(door: Door, text: str) -> None:
    assert door.execute_raw("add", text).content.sum == 5


class Lying(dict[str, Any]):
    def items(self) -> Any:
        return [("a", 1), ("b", 2)]


@pytest.mark.each("arguments")
@pytest.mark.parametrize(
    "arguments",
    [
        {"a": "12", "b": 1},
        {"a": True, "b": 1},
        {"a": 1.5, "b": 1},
        {"a": None, "b": 1},
        {"a": [1], "b": 1},
        {"a": b"1", "b": 1},
        {"a": {1}, "b": 1},
        {"a": 1},
        {"a": 1, "b": 2, "note": None},
        {"a": 1, "b": 2, "note": "\ud800"},
        {"a": 1, "b": 2, "__class__": "x"},
        {"a": 1, "b": 2, "model_config": {}},
        {"a": 1, "b": 2, 3: 4},
        Lying(a="1", b=2),
    ],
    ids=repr,
)
def test_values_the_schema_refuses(door: Door, arguments: Any) -> None:
    with pytest.raises(ToolkitError) as failure:
        door.invoke("add", arguments)
    assert failure.value.code == "INVALID_TOOL_ARGUMENTS"


def test_a_value_that_contains_itself_is_refused(door: Door) -> None:
    cycle: dict[str, Any] = {"text": "x"}
    cycle["extra"] = cycle
    with pytest.raises(ToolkitError) as failure:
        door.invoke("count-words", cycle)
    assert failure.value.code == "INVALID_TOOL_ARGUMENTS"
