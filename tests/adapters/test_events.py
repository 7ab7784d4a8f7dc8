"""The events of streams: over all recorded streams, they add up to the result."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.streams import ADAPTERS, accumulator, recorded_streams
from toolkit.wire import (
    AnswerEvent,
    ArgumentsCame,
    CallCompleted,
    CallStarted,
    QueryResult,
    ReasoningCame,
    TextCame,
    ToolCall,
    UsageCame,
)


def read_events(adapter: str, stream: list[Any]) -> tuple[list[AnswerEvent], QueryResult]:
    answer = accumulator(adapter)
    events = [event for raw in stream for event in answer.feed_events(raw)]
    return events, answer.result()


def of_call(events: list[AnswerEvent], id: str) -> list[AnswerEvent]:
    return [
        event
        for event in events
        if (isinstance(event, CallStarted | ArgumentsCame) and event.id == id)
        or (isinstance(event, CallCompleted) and event.call.id == id)
    ]


def check_call(events: list[AnswerEvent], call: ToolCall) -> None:
    """A call starts once, its pieces are its arguments, and it completes once."""
    assert [type(event).__name__ for event in (events[0], events[-1])] == ["CallStarted", "CallCompleted"]
    assert events[0] == CallStarted(call.id, call.name)
    assert isinstance(events[-1], CallCompleted)
    done = events[-1].call
    assert (done.id, done.name, done.arguments, done.raw_arguments) == (call.id, call.name, call.arguments, call.raw_arguments)  # fmt: skip
    pieces = [event.text for event in events[1:-1] if isinstance(event, ArgumentsCame)]
    assert len(pieces) == len(events) - 2
    text = "".join(pieces)
    if call.raw_arguments is not None:
        assert text == call.raw_arguments
    else:
        given: Any = call.arguments
        assert (
            text == given["input"]
            if set(given) == {"input"} and not text.startswith("{")
            else json.loads(text) == given
        )


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_events_add_up_to_the_result(adapter: str, corpus: Path) -> None:
    seen_calls = 0
    for id, stream in recorded_streams(corpus, adapter).items():
        events, result = read_events(adapter, stream)
        assert "".join(event.text for event in events if isinstance(event, TextCame)) == result.content, id
        thought = "".join(event.text for event in events if isinstance(event, ReasoningCame))
        assert thought == "".join(one.text for one in result.reasoning), id
        usages = [event.usage for event in events if isinstance(event, UsageCame)]
        assert not usages or usages[-1] == result.usage, id
        if result.finish_reason == "error":
            continue
        assert len([event for event in events if isinstance(event, CallCompleted)]) == len(result.tool_calls), id
        for call in result.tool_calls:
            check_call(of_call(events, call.id), call)
            seen_calls += 1
    assert seen_calls


@pytest.mark.parametrize("adapter", ["openai_chat", "openai_responses", "anthropic", "bedrock", "cohere", "ollama"])
def test_a_stream_that_is_cut_completes_only_what_came(adapter: str, corpus: Path) -> None:
    for id, stream in recorded_streams(corpus, adapter).items():
        for at in range(0, len(stream), max(1, len(stream) // 7)):
            events, result = read_events(adapter, stream[:at])
            completed = [event.call.id for event in events if isinstance(event, CallCompleted)]
            started = [event.id for event in events if isinstance(event, CallStarted)]
            assert len(set(started)) == len(started), id
            assert set(completed) <= set(started) <= {call.id for call in result.tool_calls}, id


def test_calls_of_chat_are_told_in_pieces() -> None:
    def chunk(finish: str | None = None, **call: Any) -> Any:
        return {"choices": [{"delta": {"tool_calls": [{"index": 0, **call}]} if call else {}, "finish_reason": finish}]}

    events, result = read_events(
        "openai_chat",
        [
            chunk(id="c1", type="function", function={"name": "add", "arguments": ""}),
            chunk(function={"arguments": '{"a"'}),
            chunk(function={"arguments": ":1}"}),
            chunk("tool_calls"),
        ],
    )
    assert events == [
        CallStarted("c1", "add"),
        ArgumentsCame("c1", '{"a"'),
        ArgumentsCame("c1", ":1}"),
        CallCompleted(result.tool_calls[0]),
    ]


def test_a_call_without_an_id_is_told_with_the_id_it_gets() -> None:
    piece = {"index": 0, "function": {"name": "add", "arguments": "{}"}}
    events, result = read_events(
        "openai_chat", [{"choices": [{"delta": {"tool_calls": [piece]}, "finish_reason": "tool_calls"}]}]
    )
    [call] = result.tool_calls
    assert events == [CallStarted(call.id, "add"), ArgumentsCame(call.id, "{}"), CallCompleted(call)]


def test_at_the_token_limit_no_call_is_complete() -> None:
    piece = {"index": 0, "id": "c1", "function": {"name": "add", "arguments": '{"a"'}}
    events, _ = read_events(
        "openai_chat", [{"choices": [{"delta": {"tool_calls": [piece]}, "finish_reason": "length"}]}]
    )
    assert events == [CallStarted("c1", "add"), ArgumentsCame("c1", '{"a"')]


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_event_that_comes_twice_completes_no_call_twice(adapter: str, corpus: Path) -> None:
    streams = [one for one in recorded_streams(corpus, adapter).values() if read_events(adapter, one)[1].tool_calls]
    stream = min(streams, key=len)
    for at, again in enumerate(stream):
        for place in range(at + 1, len(stream) + 1):
            events, result = read_events(adapter, [*stream[:place], again, *stream[place:]])
            completed = Counter(event.call.id for event in events if isinstance(event, CallCompleted))
            if result.finish_reason == "tool_calls":
                assert completed == Counter(call.id for call in result.tool_calls), (at, place)
