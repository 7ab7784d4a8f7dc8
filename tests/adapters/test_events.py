"""The events of streams: over all recorded streams, they add up to the result."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.streams import ADAPTERS, accumulator, adapter_module, recorded_streams
from toolkit.testing.laws import check_events_add_up, check_stream_can_be_cut
from toolkit.wire import AnswerEvent, ArgumentsDelta, CallCompleted, CallStarted, QueryResult


def read_events(adapter: str, stream: list[Any]) -> tuple[list[AnswerEvent], QueryResult]:
    answer = accumulator(adapter)
    events = [event for raw in stream for event in answer.feed_events(raw)]
    return events, answer.result()


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_events_add_up_to_the_result(adapter: str, corpus: Path) -> None:
    results = [check_events_add_up(adapter_module(adapter), one) for one in recorded_streams(corpus, adapter).values()]
    assert any(result.tool_calls for result in results)


@pytest.mark.parametrize("adapter", ["openai_chat", "openai_responses", "anthropic", "bedrock", "cohere", "ollama"])
def test_a_stream_that_is_cut_completes_only_what_came(adapter: str, corpus: Path) -> None:
    for stream in recorded_streams(corpus, adapter).values():
        check_stream_can_be_cut(adapter_module(adapter), stream, step=max(1, len(stream) // 7))


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
        ArgumentsDelta("c1", '{"a"'),
        ArgumentsDelta("c1", ":1}"),
        CallCompleted(result.tool_calls[0]),
    ]


def test_a_call_without_an_id_is_told_with_the_id_it_gets() -> None:
    piece = {"index": 0, "function": {"name": "add", "arguments": "{}"}}
    events, result = read_events(
        "openai_chat", [{"choices": [{"delta": {"tool_calls": [piece]}, "finish_reason": "tool_calls"}]}]
    )
    [call] = result.tool_calls
    assert events == [CallStarted(call.id, "add"), ArgumentsDelta(call.id, "{}"), CallCompleted(call)]


def test_at_the_token_limit_no_call_is_complete() -> None:
    piece = {"index": 0, "id": "c1", "function": {"name": "add", "arguments": '{"a"'}}
    events, _ = read_events(
        "openai_chat", [{"choices": [{"delta": {"tool_calls": [piece]}, "finish_reason": "length"}]}]
    )
    assert events == [CallStarted("c1", "add"), ArgumentsDelta("c1", '{"a"')]


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
