"""``coerce=True`` repairs what models commonly get wrong, and says so."""

from __future__ import annotations

import pytest

from tests.runtime.conftest import MakeDoor
from toolkit import ToolkitError

REPAIRED = {
    "number as text": ({"a": "2", "b": 3}, [{"pointer": "/a", "what": "string read as integer"}]),
    "two numbers as text": (
        {"a": "2", "b": "3.0"},
        [{"pointer": "/a", "what": "string read as integer"}, {"pointer": "/b", "what": "string read as integer"}],
    ),
    "null for an absent optional": (
        {"a": 2, "b": 3, "note": None},
        [{"pointer": "/note", "what": "null read as omitted"}],
    ),
}


@pytest.mark.parametrize("what", REPAIRED)
def test_repair_of(make_door: MakeDoor, what: str) -> None:
    arguments, repairs = REPAIRED[what]
    with pytest.raises(ToolkitError):
        make_door().invoke("add", arguments)
    message = make_door(coerce=True).invoke("add", arguments)
    assert message.content.sum == 5
    assert message.metadata["repairs"] == repairs


def test_valid_arguments_are_not_touched(make_door: MakeDoor) -> None:
    message = make_door(coerce=True).invoke("add", {"a": 2, "b": 3, "note": "7"})
    assert (message.content.note, dict(message.metadata)) == ("7", {})


@pytest.mark.parametrize(
    "arguments", [{"a": "two", "b": 3}, {"a": 2}, {"a": 2, "b": 3, "extra": "1"}, {"a": None, "b": 3}]
)
def test_what_cannot_be_repaired_is_refused_as_it_was_sent(make_door: MakeDoor, arguments: dict[str, object]) -> None:
    def errors(coerce: bool) -> object:
        with pytest.raises(ToolkitError) as failure:
            make_door(coerce=coerce).invoke("add", arguments)
        assert failure.value.code == "INVALID_TOOL_ARGUMENTS"
        return failure.value.details

    assert errors(True) == errors(False)
