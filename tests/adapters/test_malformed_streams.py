"""Streams, answers and histories in which a value has the wrong JSON type: no exception, and nothing is lost without an
error.
"""

from __future__ import annotations

import copy
import json
import random
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from tests.adapters.streams import ADAPTERS, Stream, accumulator, read_stream, recorded_streams
from tests.adapters.traffic import exchanges
from toolkit.wire import QueryResult, to_json

WRONG: Final[tuple[Any, ...]] = (True, 7, 1.5, "x", [], ["x"], [7], [{}], [[]], {}, {"x": 1}, {"x": {}}, None)
ARGUMENTS: Final = ("arguments", "args", "input", "partial_json")
# Some servers send the arguments of a call as an object, or a text as a list of parts; LangChain also has texts as indexes.
ALSO_RIGHT: Final[dict[Any, type]] = {**dict.fromkeys(ARGUMENTS, dict), "content": list, "index": str}
SAMPLE: Final = 60
ALL: Final = 3000


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values inside a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield (*before, key)
        yield from places(item, (*before, key))


def put(value: Any, place: tuple[Any, ...], wrong: Any) -> Any:
    """A copy of a value with another value at a place."""
    made = copy.deepcopy(value)
    inner = made
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = copy.deepcopy(wrong)
    return made


def get(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value


def mutations(whole: Any, name: str, count: int) -> Iterator[tuple[str, Any, Any, Any]]:
    """Copies with a wrong value each: what was done, the copy, what was there, and what is there now."""
    chance = random.Random(zlib.crc32(name.encode()))
    # What is inside arguments may be anything.
    all_places = [place for place in places(whole) if not set(place[:-1]) & set(ARGUMENTS)]
    for _ in range(count):
        place = chance.choice(all_places)
        was = get(whole, place)
        is_right = ALSO_RIGHT.get(place[-1])
        wrong = chance.choice([one for one in WRONG if type(one) not in (type(was), is_right)])
        yield f"{name}: {wrong!r} at {place}", put(whole, place, wrong), was, wrong


def check_types(result: QueryResult, adapter: str) -> None:
    """The result is what its types say, can be kept as JSON, and its message can be sent."""
    assert isinstance(result.content, str)
    for call in result.tool_calls:
        assert type(call.id) is str and call.id
        assert type(call.name) is str
        assert isinstance(call.arguments, dict)
        assert call.raw_arguments is None or type(call.raw_arguments) is str
    counts = (result.usage.input_tokens, result.usage.output_tokens, result.usage.cached_input_tokens, result.usage.reasoning_tokens, result.usage.cache_write_tokens)  # fmt: skip
    assert all(count is None or type(count) is int for count in counts), counts
    json.dumps(to_json(result))
    json.dumps(import_module(f"toolkit.adapters.{adapter}").encode_messages([result.message()]))


def essence(result: QueryResult) -> Any:
    """What must not change unnoticed."""
    return result.content, [(call.name, call.arguments, call.unread_text) for call in result.tool_calls]


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_wrong_type_in_a_stream_is_one_error_and_nothing_else_is_lost(
    adapter: str, corpus: Path, everything: bool
) -> None:
    streams = recorded_streams(corpus, adapter)
    count = (ALL if everything else SAMPLE * 4) // len(streams) + 1
    for id, events in streams.items():
        untouched = read_stream(adapter, events)
        for done, mutated, was, wrong in mutations(events, f"{adapter} {id}", count):
            answer = accumulator(adapter)
            texts = [answer.feed(event) for event in mutated]
            result = answer.result()
            check_types(result, adapter)
            # The last event of Responses has the whole text, also where a piece of it was malformed.
            if adapter != "openai_responses":
                in_any_order = sorted if result.finish_reason == "error" else str
                assert in_any_order("".join(texts)) == in_any_order(result.content), done
            if essence(result) != essence(untouched) and None not in (was, wrong):
                assert result.finish_reason == "error", done
                assert "error" in result.metadata[adapter] or "cut" in result.metadata[adapter], done


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_event_that_is_no_object_is_an_error_too(adapter: str, corpus: Path) -> None:
    [events, *_] = recorded_streams(corpus, adapter).values()
    wrong_events: list[Any] = [7, [], [{}], True, "half of an event"]
    for wrong in wrong_events:
        mutated: Stream = [wrong, *events]
        result = read_stream(adapter, mutated)
        assert result.finish_reason == "error", wrong
        assert essence(result) == essence(read_stream(adapter, events)), wrong


ANSWERS: Final = {
    "openai_chat": ("openai_chat", "mistral_chat", "openrouter_chat"),
    "openai_responses": ("openai_responses",),
    "anthropic": ("anthropic",),
    "gemini": ("gemini", "vertex"),
    "bedrock": ("bedrock_converse",),
    "cohere": ("cohere",),
}


@pytest.mark.parametrize("adapter", ANSWERS)
def test_a_wrong_type_in_an_answer_never_raises(adapter: str, corpus: Path, everything: bool) -> None:
    decode = import_module(f"toolkit.adapters.{adapter}").decode_response
    answers = [one for one in exchanges(corpus, *ANSWERS[adapter]) if not one.streaming]
    count = (ALL if everything else SAMPLE * 4) // len(answers) + 1
    for one in answers:
        for _, mutated, _, _ in mutations(one.response, f"{adapter} {one.id}", count):
            check_types(decode(mutated), adapter)


HISTORIES: Final[tuple[Any, ...]] = (
    None, 7, "x", [], {}, {"role": 7}, {"role": "user", "content": 7}, {"role": "user", "content": [7, None, "x", {}]},
    {"role": "assistant", "tool_calls": [7, {}, {"function": 7}], "function_call": 7},
    {"role": "assistant", "content": [7, None]}, {"role": "tool", "tool_call_id": 7, "content": [None]}, {"role": "user", "content": [{"type": "text", "text": 7}]},
    {"role": "user", "content": [{"toolResult": {"content": 7}}, {"type": "tool_result", "content": 7}]},
    {"role": "model", "parts": [7, {"functionCall": 7}]}, {"type": "function_call_output", "output": 7},
    {"type": "ai", "data": {"content": 7, "tool_calls": 7}},
)  # fmt: skip


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("message", HISTORIES, ids=repr)
def test_a_wrong_type_in_a_history_never_raises(adapter: str, message: Any) -> None:
    module = import_module(f"toolkit.adapters.{adapter}")
    json.dumps(module.encode_messages(module.decode_messages([message])))
