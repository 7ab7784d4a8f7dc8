"""Structured content that is not JSON, or more than a reader bears: a clear error that names the place, never INTERNAL."""

from __future__ import annotations

import pytest

from tests.packs.conftest import Doors
from tests.packs.test_mcp_endings import odd
from toolkit.errors import ToolFailed

DEEP = "[" * 150 + "]" * 150
TOO_DEEP = "[" * 5000 + "]" * 5000
LONG_KEY = "k" * 5000

# What is written, and what is said of it for a tool with an output schema and for one without.
REFUSED = {
    '{"n": NaN}': ("INVALID_OUTPUT", "NaN at 'n'"),
    '{"n": Infinity}': ("INVALID_OUTPUT", "Infinity at 'n'"),
    '{"n": -Infinity}': ("INVALID_OUTPUT", "-Infinity at 'n'"),
    '{"n": 1e999}': ("INVALID_OUTPUT", "Infinity at 'n'"),
    '{"n": 1, "more": [0, {"a b": [NaN]}]}': ("INVALID_OUTPUT", "NaN at 'more.1.a b.0'"),
    f'{{"n": 1, "{LONG_KEY}": NaN}}': ("INVALID_OUTPUT", f"NaN at '{'k' * 100}'"),
    '{"n": 1, "\\u202e": NaN}': ("INVALID_OUTPUT", r"NaN at '\u202e'"),
    '{"n": "\\ud800"}': ("REMOTE", "' sent an answer that cannot be read: "),
    f'{{"n": {TOO_DEEP}}}': ("REMOTE", "' sent an answer that cannot be read: "),
    f'{{"n": {"9" * 10_000}}}': ("REMOTE", "' sent an answer that cannot be read: "),
    "[1]": ("REMOTE", "not valid in the protocol"),
}


@pytest.mark.parametrize("tool", ["odd", pytest.param("odd_text", marks=pytest.mark.sample)])
@pytest.mark.parametrize("written", REFUSED, ids=lambda written: written[:20])
def test_what_is_not_json_is_refused_by_name_and_place(make_sync: Doors, written: str, tool: str) -> None:
    reason, words = REFUSED[written]
    with pytest.raises(ToolFailed) as caught:
        make_sync(odd(f"structured: {written}")).tool(tool)
    assert (caught.value.reason, words in caught.value.message) == (reason, True), caught.value.message[:500]
    assert len(caught.value.message) < 1000


READ = {
    '{"n": 3}': '{"n":3}',
    '{"n": 1, "n": 2}': '{"n":2}',  # of a duplicated key the last counts, as in every usual parser
    '{"n": 7, "more": 1.5e300}': '{"n":7,"more":1.5e+300}',
    f'{{"n": 8, "more": {"9" * 400}}}': f'{{"n":8,"more":{"9" * 400}}}',
    f'{{"n": 9, "more": {DEEP}}}': f'{{"n":9,"more":{DEEP}}}',
    '{"n": 4, "text": "NaN"}': '{"n":4,"text":"NaN"}',
}


@pytest.mark.parametrize("written", READ, ids=lambda written: written[:20])
def test_what_is_json_is_read(make_sync: Doors, written: str) -> None:
    door = make_sync(odd(f"structured: {written}"))
    assert door.invoke("odd", {}).text() == READ[written]
    assert door.invoke("odd_text", {}).text() == READ[written]


def test_many_keys_are_read(make_sync: Doors) -> None:
    door = make_sync(odd("many keys"))
    assert door.invoke("odd", {}).content.model_extra["k99999"] == 99_999
    assert door.invoke("odd_text", {}).content.structured["k99999"] == 99_999
