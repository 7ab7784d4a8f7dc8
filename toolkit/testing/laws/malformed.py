"""Laws for what no provider should send: values of a wrong type are results with an error, never exceptions."""

from __future__ import annotations

import copy
import json
import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolkit.testing.laws.adapter import Adapter, essence, read_stream
from toolkit.testing.laws.answers import check_result
from toolkit.wire import QueryResult

_WRONG: Final[tuple[Any, ...]] = (True, 7, 1.5, "x", [], ["x"], [7], [{}], [[]], {}, {"x": 1}, {"x": {}}, None)
_ARGUMENTS: Final = ("arguments", "args", "input", "partial_json")
# Some servers send the arguments of a call as an object, or a text as a list of parts; LangChain also has texts as indexes.
_ALSO_RIGHT: Final[dict[Any, type]] = {**dict.fromkeys(_ARGUMENTS, dict), "content": list, "index": str}
NOT_EVENTS: Final[tuple[Any, ...]] = (7, [], [{}], True, "half of an event")
ODD_HISTORIES: Final[tuple[Any, ...]] = (
    None, 7, "x", [], {}, {"role": 7}, {"role": "user", "content": 7}, {"role": "user", "content": [7, None, "x", {}]},
    {"role": "assistant", "tool_calls": [7, {}, {"function": 7}], "function_call": 7},
    {"role": "assistant", "content": [7, None]}, {"role": "tool", "tool_call_id": 7, "content": [None]},
    {"role": "user", "content": [{"type": "text", "text": 7}]},
    {"role": "user", "content": [{"toolResult": {"content": 7}}, {"type": "tool_result", "content": 7}]},
    {"role": "model", "parts": [7, {"functionCall": 7}]}, {"type": "function_call_output", "output": 7},
    {"type": "ai", "data": {"content": 7, "tool_calls": 7}},
)  # fmt: skip
"""Messages of no provider, or of another one."""


@dataclass(frozen=True, slots=True)
class MalformedCopy:
    """A copy of an answer, or of the events of a stream, with a value of a wrong type at one place."""

    value: Any
    place: tuple[Any, ...]
    was: object
    wrong: object

    def __str__(self) -> str:
        return f"{self.wrong!r} instead of {self.was!r} at {self.place}"


def check_malformed_streams(adapter: Adapter, stream: Sequence[object], *, count: int = 60, name: str = "") -> None:
    """A value of a wrong type in a stream never raises, and loses nothing without ``finish_reason="error"``.

    ``count`` copies of the stream are read, each with one wrong value. ``name`` chooses other places and values.
    """
    untouched = read_stream(adapter, stream)
    for one in malformed_copies(list(stream), name, count):
        check_malformed_stream(adapter, one, read_stream(adapter, one.value), untouched)


def check_malformed_stream(adapter: Adapter, one: MalformedCopy, result: QueryResult, untouched: QueryResult) -> None:
    """The result of a malformed stream has the right types, and differs from the untouched one only with an error."""
    check_result(adapter, result)
    if essence(result) != essence(untouched) and None not in (one.was, one.wrong):
        assert result.finish_reason == "error", f"{one}: the answer changed without an error"


def check_events_that_are_not_objects(adapter: Adapter, stream: Sequence[object]) -> None:
    """An event that is not an object is an error, and the events after it are still read."""
    untouched = read_stream(adapter, stream)
    for wrong in NOT_EVENTS:
        result = read_stream(adapter, [wrong, *stream])
        assert result.finish_reason == "error", f"the event {wrong!r} is not an error"
        assert essence(result) == essence(untouched), f"the event {wrong!r} changes what comes after it"


def check_malformed_answers(adapter: Adapter, answer: object, *, count: int = 60, name: str = "") -> None:
    """A value of a wrong type in a whole answer never raises."""
    for one in malformed_copies(answer, name, count):
        check_result(adapter, adapter.decode_response(one.value))


def check_malformed_history(adapter: Adapter, message: object) -> None:
    """A message of a wrong shape is read and written without an exception."""
    json.dumps(adapter.encode_messages(adapter.decode_messages([message])))


def malformed_copies(whole: Any, name: str, count: int) -> Iterator[MalformedCopy]:
    """Copies of JSON with a wrong value each; the same ones for the same name."""
    chance = random.Random(zlib.crc32(name.encode()))
    # What is inside arguments may be anything.
    places = [place for place in _places(whole) if not set(place[:-1]) & set(_ARGUMENTS)]
    for _ in range(count if places else 0):
        place = chance.choice(places)
        was = _value_at(whole, place)
        is_right = _ALSO_RIGHT.get(place[-1])
        wrong = chance.choice([one for one in _WRONG if type(one) not in (type(was), is_right)])
        yield MalformedCopy(_put(whole, place, wrong), place, was, wrong)


def _places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values inside a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield (*before, key)
        yield from _places(item, (*before, key))


def _value_at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value


def _put(value: Any, place: tuple[Any, ...], wrong: Any) -> Any:
    """A copy of a value with another value at a place."""
    made = copy.deepcopy(value)
    _value_at(made, place[:-1])[place[-1]] = copy.deepcopy(wrong)
    return made
