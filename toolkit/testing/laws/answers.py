"""Laws of what an adapter reads: whole answers and streams are results of the right types, and say the same."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from toolkit.testing.laws.adapter import Adapter, read_stream
from toolkit.wire import (
    AnswerEvent,
    ArgumentsCame,
    CallCompleted,
    CallStarted,
    QueryResult,
    ReasoningCame,
    TextCame,
    TextMessage,
    ToolCall,
    UsageCame,
    from_json,
    to_json,
)


def check_result(adapter: Adapter, result: QueryResult) -> None:
    """A result is what its types say, can be stored as JSON, and can be sent back to the provider."""
    assert isinstance(result, QueryResult), f"{type(result).__name__} is not a QueryResult"
    assert isinstance(result.content, str), "the content is not a text"
    for call in result.tool_calls:
        assert type(call.id) is str and call.id, "a call has no id"
        assert type(call.name) is str, "the name of a call is not a text"
        assert isinstance(call.arguments, dict), "the arguments of a call are not an object"
        assert call.raw_arguments is None or type(call.raw_arguments) is str, "the argument text is not a text"
    counts = dataclasses.astuple(result.usage)
    assert all(count is None or type(count) is int for count in counts), f"token counts are integers, not {counts}"
    json.dumps(to_json(result))
    json.dumps(adapter.encode_messages([TextMessage("user", "please"), result.message()]))


def check_answer(adapter: Adapter, answer: object) -> None:
    """A whole answer is read as a result that can be stored and restored."""
    result = adapter.decode_response(answer)
    check_result(adapter, result)
    assert from_json(json.loads(json.dumps(to_json(result)))) == result, "a result stored as JSON comes back changed"


def check_stream_equals_answer(adapter: Adapter, events: Sequence[object], answer: object) -> None:
    """A stream gives the text, the calls and the finish reason that the whole answer gives."""
    streamed, whole = read_stream(adapter, events), adapter.decode_response(answer)
    assert streamed.content == whole.content, "the text of the stream is not that of the whole answer"
    calls = [[(call.name, call.arguments) for call in result.tool_calls] for result in (streamed, whole)]
    assert calls[0] == calls[1], "the calls of the stream are not those of the whole answer"
    assert streamed.finish_reason == whole.finish_reason


def check_events_add_up(adapter: Adapter, stream: Sequence[object]) -> QueryResult:
    """The events of a stream are its result, piece by piece: text, reasoning, usage and calls. Returns the result."""
    answer = adapter.Accumulator()
    events = [event for raw in stream for event in answer.feed_events(raw)]
    result = answer.result()
    check_result(adapter, result)
    assert "".join(event.text for event in events if isinstance(event, TextCame)) == result.content
    thought = "".join(event.text for event in events if isinstance(event, ReasoningCame))
    assert thought == "".join(one.text for one in result.reasoning)
    usages = [event.usage for event in events if isinstance(event, UsageCame)]
    assert not usages or usages[-1] == result.usage
    if result.finish_reason != "error":
        completed = [event for event in events if isinstance(event, CallCompleted)]
        assert len(completed) == len(result.tool_calls), "not every call was reported as complete once"
        for call in result.tool_calls:
            _check_call(_events_of_call(events, call.id), call)
    return result


def check_stream_can_be_cut(adapter: Adapter, stream: Sequence[object], step: int = 1) -> None:
    """Wherever a stream is cut, it gives a result; a call is complete only if it has started, and starts once."""
    for at in range(0, len(stream), step):
        answer = adapter.Accumulator()
        events = [event for raw in stream[:at] for event in answer.feed_events(raw)]
        result = answer.result()
        check_result(adapter, result)
        completed = [event.call.id for event in events if isinstance(event, CallCompleted)]
        started = [event.id for event in events if isinstance(event, CallStarted)]
        assert len(set(started)) == len(started), f"cut after {at} events, a call starts twice"
        assert set(completed) <= set(started) <= {call.id for call in result.tool_calls}, f"cut after {at} events"


def check_empty_stream_is_an_error(adapter: Adapter) -> None:
    """A stream that broke before its first event does not look like an empty answer."""
    assert adapter.Accumulator().result().finish_reason == "error", "an empty stream looks like an empty answer"


def _events_of_call(events: Sequence[AnswerEvent], id: str) -> list[AnswerEvent]:
    return [
        event
        for event in events
        if (isinstance(event, CallStarted | ArgumentsCame) and event.id == id)
        or (isinstance(event, CallCompleted) and event.call.id == id)
    ]


def _check_call(events: list[AnswerEvent], call: ToolCall) -> None:
    """A call starts once, its pieces are its arguments, and it completes once."""
    first, *pieces, last = events
    assert first == CallStarted(call.id, call.name), f"the call {call.id!r} does not start with CallStarted"
    assert isinstance(last, CallCompleted), f"the call {call.id!r} does not end with CallCompleted"
    assert (last.call.id, last.call.name) == (call.id, call.name)
    assert (last.call.arguments, last.call.raw_arguments) == (call.arguments, call.raw_arguments)
    texts = [event.text for event in pieces if isinstance(event, ArgumentsCame)]
    assert len(texts) == len(pieces), f"the call {call.id!r} starts or completes twice"
    text, given = "".join(texts), call.arguments
    if call.raw_arguments is not None:
        assert text == call.raw_arguments
    elif set(given) == {"input"} and not text.startswith("{"):
        assert text == given["input"], "the pieces of a free text are not the text"
    else:
        read: Any = json.loads(text)
        assert read == given, "the pieces are not the arguments"
