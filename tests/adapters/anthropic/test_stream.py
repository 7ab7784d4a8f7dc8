"""Streams in any chunking and interleaving."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.adapters.metadata import metadata_of
from toolkit import QueryResult
from toolkit.adapters.anthropic import Accumulator, decode_response, encode_messages

START: dict[str, Any] = {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None, "usage": {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 2}}}  # fmt: skip
STOP = {"type": "message_stop"}


def ended(word: str = "tool_use", **more: Any) -> list[dict[str, Any]]:
    delta = {"type": "message_delta", "delta": {"stop_reason": word, "stop_sequence": None, **more}, "usage": {"output_tokens": 5, "input_tokens": None}}  # fmt: skip
    return [delta, STOP]


def start(index: int | None, **block: Any) -> dict[str, Any]:
    event = {"type": "content_block_start", "content_block": block}
    return event if index is None else {**event, "index": index}


def delta(index: int | None, kind: str, **piece: Any) -> dict[str, Any]:
    event = {"type": "content_block_delta", "delta": {"type": kind, **piece}}
    return event if index is None else {**event, "index": index}


def call(index: int | None, id: str, name: str = "add", **more: Any) -> dict[str, Any]:
    return start(index, type="tool_use", id=id, name=name, input={}, **more)


def piece(index: int | None, text: Any) -> dict[str, Any]:
    return delta(index, "input_json_delta", partial_json=text)


def words(index: int | None, text: str) -> dict[str, Any]:
    return delta(index, "text_delta", text=text)


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def fed(*events: Any) -> QueryResult:
    answer = Accumulator()
    for event in events:
        answer.feed(event)
    return answer.result()


A, B = ("a", "add", {"x": 1}, '{"x":1}'), ("b", "add", {"y": 2}, '{"y":2}')

HOSTILE = {
    "one after the other": ([call(0, "a"), piece(0, ""), piece(0, '{"x"'), piece(0, ":1}"), stop(0), call(1, "b"), piece(1, '{"y":2}'), stop(1)], [A, B]),
    "interleaved": ([call(0, "a"), call(1, "b"), piece(0, '{"x"'), piece(1, '{"y":'), piece(0, ":1}"), piece(1, "2}"), stop(1), stop(0)], [A, B]),
    "a gap in the indexes": ([call(3, "a"), piece(3, '{"x":1}'), call(9, "b"), piece(9, '{"y":2}')], [A, B]),
    "the second first": ([call(5, "b"), piece(5, '{"y":2}'), call(2, "a"), piece(2, '{"x":1}')], [A, B]),
    "no index": ([call(None, "a"), piece(None, '{"x"'), piece(None, ":1}"), call(None, "b"), piece(None, '{"y":2}')], [A, B]),
    "the same index with two ids": ([call(0, "a"), piece(0, '{"x":1}'), call(0, "b"), piece(0, '{"y":2}')], [A, B]),
    "the same index after a stop": ([call(0, "a"), piece(0, '{"x":1}'), stop(0), call(0, "b"), piece(0, '{"y":2}'), stop(0)], [A, B]),
    "announced twice": ([call(0, "a"), piece(0, '{"x"'), call(0, "a"), piece(0, ":1}")], [A]),
    "announced twice, no index": ([call(None, "a"), piece(None, '{"x"'), call(None, "a"), piece(None, ":1}")], [A]),
    "a late id": ([call(0, ""), piece(0, '{"x"'), call(0, "a"), piece(0, ":1}")], [A]),
    "an empty id in what follows": ([call(0, "a"), piece(0, '{"x"'), call(0, "", ""), piece(0, ":1}")], [A]),
    "no id at all": ([call(0, ""), piece(0, '{"x":1}')], [("call_0", *A[1:])]),
    "a text in between, without index": ([call(None, "a"), piece(None, '{"x"'), words(None, "hm"), piece(None, ":1}")], [A]),
    "a text at the index of a call": ([call(0, "a"), words(0, "hm"), piece(0, '{"x":1}')], [A]),
    "never announced": ([piece(0, '{"x":1}')], [("call_0", "", {"x": 1}, '{"x":1}')]),
    "empty arguments": ([call(0, "a"), piece(0, ""), stop(0)], [("a", "add", {}, "")]),
    "no arguments": ([call(0, "a"), stop(0)], [("a", "add", {}, None)]),
    "null arguments": ([call(0, "a"), piece(0, None), stop(0)], [("a", "add", {}, "")]),
    "arguments that are an object": ([call(0, "a"), piece(0, {"x": 1}), stop(0)], [A]),
    "whole at the start": ([start(0, type="tool_use", id="a", name="add", input={"x": 1}), stop(0)], [("a", "add", {"x": 1}, None)]),
    "arguments that are no JSON": ([call(0, "a"), piece(0, '{"x":1}'), call(1, "b"), piece(1, '{"y"'), stop(1)], [A, ("b", "add", {}, '{"y"')]),
    "a server's tool beside it": ([start(0, type="server_tool_use", id="s", name="web_search", input={}), piece(0, '{"q":1}'), call(1, "a"), piece(1, '{"x":1}')], [A]),
    "pings and news": ([{"type": "ping"}, call(0, "a"), {"type": "ping"}, piece(0, '{"x":1}'), {"type": "something_new", "x": 1}, delta(7, "something_new_delta", x=1)], [A]),
    "no calls": ([words(0, "hm")], []),
}  # fmt: skip


@pytest.mark.parametrize("shape", HOSTILE)
def test_hostile_streams(shape: str) -> None:
    events, expected = HOSTILE[shape]
    result = fed(START, *events, *ended())

    assert [(one.id, one.name, one.arguments, one.raw_arguments) for one in result.tool_calls] == expected
    assert result.finish_reason == ("tool_calls" if expected else "stop")
    encode_messages([result.message()])  # whatever it was, the conversation can go on


def test_everything_an_answer_can_hold() -> None:
    result = fed(
        START,
        start(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="h"),
        delta(0, "thinking_delta", thinking="m"),
        delta(0, "signature_delta", signature="c2ln"),
        stop(0),
        start(1, type="redacted_thinking", data="b3BhcXVl"),
        stop(1),
        start(2, type="text", text="", citations=[]),
        words(2, "so"),
        delta(2, "citations_delta", citation={"n": 1}),
        delta(2, "citations_delta", citation={"n": 2}),
        stop(2),
        start(3, type="server_tool_use", id="s", name="web_search", input={}),
        piece(3, '{"q":'),
        piece(3, "1}"),
        stop(3),
        start(4, type="web_search_tool_result", tool_use_id="s", content=[{"url": "u"}]),
        stop(4),
        start(5, type="compaction", content=None),
        delta(5, "compaction_delta", content="all ", encrypted_content="e"),
        delta(5, "compaction_delta", content="that", encrypted_content=None),
        stop(5),
        *ended("end_turn", container={"id": "c"}),
    )
    assert encode_messages([result.message()])[0]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
        {"type": "text", "text": "so", "citations": [{"n": 1}, {"n": 2}]},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"url": "u"}]},
        {"type": "compaction", "content": "all that", "encrypted_content": "e"},
    ]
    assert (result.content, result.finish_reason) == ("so", "stop")
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.cached_input_tokens) == (5, 5, 2)
    told = result.metadata["anthropic"]
    assert isinstance(told, dict)
    assert (told["finish_reason"], told["container"]) == ("end_turn", {"id": "c"})


def test_calls_that_are_in_the_start_of_the_message() -> None:
    """This happens if code that the server runs makes the calls."""
    whole = {"type": "tool_use", "id": "a", "name": "add", "input": {"x": 1}, "caller": {"type": "code_execution_20250825"}}  # fmt: skip
    result = fed({**START, "message": {**START["message"], "content": [whole], "stop_reason": "tool_use"}}, STOP)
    assert [(one.id, one.arguments) for one in result.tool_calls] == [("a", {"x": 1})]
    assert encode_messages([result.message()]) == [{"role": "assistant", "content": [whole]}]


@pytest.mark.parametrize("word", ["max_tokens", "model_context_window_exceeded"])
def test_a_call_the_length_ended(word: str) -> None:
    result = fed(START, call(0, "a"), piece(0, '{"x":1}'), stop(0), call(1, "b"), piece(1, '{"y":'), stop(1), *ended(word))  # fmt: skip
    assert result.finish_reason == "length"
    assert [(one.arguments, one.raw_arguments) for one in result.tool_calls] == [({"x": 1}, '{"x":1}'), ({}, '{"y":')]


def test_a_stream_that_is_cut_keeps_what_came() -> None:
    events = [START, start(0, type="text", text=""), words(0, "so "), words(0, "far"), stop(0), call(1, "a"), piece(1, '{"x":1}'), stop(1), call(2, "b"), piece(2, '{"y"')]  # fmt: skip
    result = fed(*events)
    assert (result.content, result.finish_reason) == ("so far", "error")
    assert [(one.arguments, one.raw_arguments) for one in result.tool_calls] == [({"x": 1}, '{"x":1}'), ({}, '{"y"')]
    assert metadata_of(result, "anthropic")["cut"] is True


@pytest.mark.parametrize("came", [[], [piece(1, "")], [piece(1, " ")]], ids=["nothing", "an empty piece", "a space"])
def test_a_call_cut_before_its_arguments_is_none_without_arguments(came: list[Any]) -> None:
    """Otherwise a tool would be run with arguments that the model did not choose."""
    one = fed(START, call(1, "b"), *came).tool_calls[0]
    assert one.unread_text is not None
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(one.unread_text)


def test_an_error_in_the_stream() -> None:
    error = {"type": "overloaded_error", "message": "Overloaded"}
    result = fed(START, start(0, type="text", text="so"), {"type": "error", "error": error}, *ended("end_turn"))
    assert (result.content, result.finish_reason) == ("so", "error")
    assert metadata_of(result, "anthropic")["error"] == error


@pytest.mark.parametrize("event", ["[DONE]", None, {}, [], {"type": None}, {"data": "[DONE]"}, {"type": "content_block_delta"}, delta(7, "something_new_delta", x=1), {"type": "content_block_start", "index": 0}, {"type": "message_start"}, {"type": "message_delta"}])  # fmt: skip
def test_events_that_say_nothing(event: Any) -> None:
    answer = Accumulator()
    assert [answer.feed(one) for one in (START, event, start(1, type="text", text=""), words(1, "so"), *ended())] == ["", "", "", "so", "", ""]  # fmt: skip
    assert encode_messages([answer.result().message()]) == [
        {"role": "assistant", "content": [{"type": "text", "text": "so"}]}
    ]


def test_events_with_their_names_around_them() -> None:
    events = [START, start(0, type="text", text=""), words(0, "so"), stop(0), *ended("end_turn")]
    assert fed(*({"event": one["type"], "data": one} for one in events)) == fed(*events)


# Any chunking and interleaving

TEXT = st.text(max_size=12)
BLOCKS = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}),
    st.fixed_dictionaries({"type": st.just("thinking"), "thinking": TEXT, "signature": TEXT}),
    st.fixed_dictionaries({"type": st.sampled_from(["tool_use", "server_tool_use"]), "id": st.uuids().map(str), "name": st.just("add"), "input": st.dictionaries(TEXT, TEXT | st.integers(), max_size=3)}),
    st.fixed_dictionaries({"type": st.just("web_search_tool_result"), "tool_use_id": TEXT, "content": st.lists(TEXT, max_size=2)}),
)  # fmt: skip


def streamed(draw: st.DrawFn, index: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of one block, with its texts split anywhere."""

    def cut(text: str) -> list[str]:
        borders = [0, *sorted(draw(st.lists(st.integers(0, len(text)), max_size=4))), len(text)]
        return [text[begin:end] for begin, end in itertools.pairwise(borders)]

    if block["type"] == "text":
        pieces = [words(index, one) for one in cut(block["text"])]
        return [start(index, type="text", text=""), *pieces, stop(index)]
    if block["type"] == "thinking":
        pieces = [delta(index, "thinking_delta", thinking=one) for one in cut(block["thinking"])]
        pieces += [delta(index, "signature_delta", signature=one) for one in cut(block["signature"])]
        return [start(index, type="thinking", thinking="", signature=""), *pieces, stop(index)]
    if "input" in block:
        given = json.dumps(block["input"], ensure_ascii=draw(st.booleans()))
        pieces = [piece(index, one) for one in cut(given if block["input"] or draw(st.booleans()) else "")]
        return [start(index, **{**block, "input": {}}), *pieces, stop(index)]
    return [start(index, **block), stop(index)]


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The blocks of an answer, and its events in any order that each block allows."""
    blocks = draw(st.lists(BLOCKS, max_size=4))
    indexes = sorted(draw(st.sets(st.integers(0, 20), min_size=len(blocks), max_size=len(blocks))))
    queues = [streamed(draw, index, block) for index, block in zip(indexes, blocks, strict=True)]
    events = []
    while queue := draw(st.sampled_from([queue for queue in queues if queue])) if any(queues) else None:
        events.append(queue.pop(0))
    return blocks, events


ANY_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@ANY_MACHINE
@given(streams())
@pytest.mark.slow
def test_any_chunking_and_interleaving_gives_the_same(stream: tuple[list[Any], list[Any]]) -> None:
    blocks, events = stream
    whole = decode_response({**START["message"], "content": blocks, "stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 2}})  # fmt: skip
    result = fed(START, *events, *ended())
    assert _without_texts(result) == _without_texts(whole)
    assert all(json.loads(one.raw_arguments or "{}") == one.arguments for one in result.tool_calls)


@ANY_MACHINE
@given(streams(), st.data())
@pytest.mark.slow
def test_wherever_it_is_cut_what_was_whole_is_kept(stream: tuple[list[Any], list[Any]], data: st.DataObject) -> None:
    blocks, events = stream
    came = events[: data.draw(st.integers(0, len(events)))]
    result = fed(START, *came)
    closed = {event["index"] for event in came if event["type"] == "content_block_stop"}
    begun = {event["index"]: event["content_block"] for event in came if event["type"] == "content_block_start"}

    assert result.finish_reason == "error"
    given = {block["id"]: block["input"] for block in blocks if block["type"] == "tool_use"}
    calls = {one.id: one for one in result.tool_calls}
    assert list(calls) == [block["id"] for _, block in sorted(begun.items()) if block["type"] == "tool_use"]
    for index, block in begun.items():
        if block["type"] != "tool_use":
            continue
        one = calls[block["id"]]
        if index in closed:
            assert one.arguments == given[one.id]
        elif one.arguments != given[one.id] or not one.arguments:
            # Not all of it came: whoever runs it is told that its text is no JSON. Or it is all there.
            assert one.unread_text == "{}" or _is_broken(one.unread_text)


def _is_broken(text: str | None) -> bool:
    try:
        json.loads(text or "{}")
    except ValueError:
        return True
    return False


def _without_texts(result: QueryResult) -> QueryResult:
    """Only streams have argument texts."""
    return replace(result, tool_calls=[replace(one, raw_arguments=None) for one in result.tool_calls])
