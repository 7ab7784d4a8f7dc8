"""Streams in any chunking and interleaving."""

from __future__ import annotations

import base64
import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.adapters.metadata import metadata_of
from toolkit import QueryResult
from toolkit.adapters.bedrock import Accumulator, decode_response, encode_messages

BEGIN = {"messageStart": {"role": "assistant"}}
USAGE = {"inputTokens": 3, "outputTokens": 5, "cacheReadInputTokens": 2}


def ended(word: str = "tool_use") -> list[dict[str, Any]]:
    return [{"messageStop": {"stopReason": word}}, {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 1}}}]


def _at(index: int | None, **fields: Any) -> dict[str, Any]:
    return fields if index is None else {"contentBlockIndex": index, **fields}


def call(index: int | None, id: str, **more: Any) -> dict[str, Any]:
    return {"contentBlockStart": _at(index, start={"toolUse": {"toolUseId": id, "name": "add", **more}})}


def delta(index: int | None, **piece: Any) -> dict[str, Any]:
    return {"contentBlockDelta": _at(index, delta=piece)}


def piece(index: int | None, text: Any) -> dict[str, Any]:
    return delta(index, toolUse={"input": text})


def words(index: int | None, text: str) -> dict[str, Any]:
    return delta(index, text=text)


def stop(index: int) -> dict[str, Any]:
    return {"contentBlockStop": {"contentBlockIndex": index}}


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
    "announced twice": ([call(0, "a"), piece(0, '{"x"'), call(0, "a"), piece(0, ":1}")], [A]),
    "a late id": ([call(0, ""), piece(0, '{"x"'), call(0, "a"), piece(0, ":1}")], [("a", *A[1:])]),
    "a text at the index of a call": ([call(0, "a"), words(0, "hm"), piece(0, '{"x":1}')], [A]),
    "never announced": ([piece(0, '{"x":1}')], [("call_0", "", {"x": 1}, '{"x":1}')]),
    "empty arguments": ([call(0, "a"), piece(0, ""), stop(0)], [("a", "add", {}, "")]),
    "no arguments": ([call(0, "a"), stop(0)], [("a", "add", {}, None)]),
    "null arguments": ([call(0, "a"), piece(0, None), stop(0)], [("a", "add", {}, "")]),
    "arguments that are an object": ([call(0, "a"), piece(0, {"x": 1}), stop(0)], [A]),
    "whole at the start": ([call(0, "a", input={"x": 1}), stop(0)], [("a", "add", {"x": 1}, None)]),
    "arguments that are no JSON": ([call(0, "a"), piece(0, '{"x":1}'), call(1, "b"), piece(1, '{"y"'), stop(1)], [A, ("b", "add", {}, '{"y"')]),
    "a server's tool beside it": ([call(0, "s", type="server_tool_use"), piece(0, '{"q":1}'), call(1, "a"), piece(1, '{"x":1}')], [A]),
    "news": ([{"something": {"new": 1}}, call(0, "a"), piece(0, '{"x":1}'), delta(1, something={"new": 1})], [A]),
    "no calls": ([words(0, "hm")], []),
}  # fmt: skip


@pytest.mark.parametrize("shape", HOSTILE)
def test_hostile_streams(shape: str) -> None:
    events, expected = HOSTILE[shape]
    result = fed(BEGIN, *events, *ended())

    assert [(one.id, one.name, one.arguments, one.raw_arguments) for one in result.tool_calls] == expected
    assert result.finish_reason == ("tool_calls" if expected else "stop")
    encode_messages([result.message()])  # whatever it was, the conversation can go on


def test_everything_an_answer_can_hold() -> None:
    result = fed(
        BEGIN,
        delta(0, reasoningContent={"text": "h"}),
        delta(0, reasoningContent={"text": "m"}),
        delta(0, reasoningContent={"signature": "c2ln"}),
        stop(0),
        delta(1, reasoningContent={"redactedContent": base64.b64encode(b"opa")}),
        delta(1, reasoningContent={"redactedContent": b"que"}),
        stop(1),
        words(2, "s"),
        delta(2, citation={"title": "t"}),
        words(2, "o"),
        stop(2),
        call(3, "s", type="server_tool_use"),
        piece(3, '{"q":1}'),
        stop(3),
        {"contentBlockStart": {"contentBlockIndex": 4, "start": {"toolResult": {"toolUseId": "s", "type": "t", "status": "success"}}}},
        delta(4, toolResult=[{"text": "1"}]),
        delta(4, toolResult=[{"json": {"a": 1}}]),
        stop(4),
        {"contentBlockStart": {"contentBlockIndex": 5, "start": {"image": {"format": "png"}}}},
        delta(5, image={"source": {"bytes": "AAEC"}}),
        delta(5, image={"source": {"bytes": "AwQ="}}),
        stop(5),
        *ended("end_turn"),
    )  # fmt: skip
    opaque = base64.b64encode(base64.b64encode(b"opa") + b"que").decode()
    assert encode_messages([result.message()])[0]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": opaque}},
        {"citationsContent": {"content": [{"text": "so"}], "citations": [{"title": "t"}]}},
        {"toolUse": {"toolUseId": "s", "name": "add", "type": "server_tool_use", "input": {"q": 1}}},
        {"toolResult": {"toolUseId": "s", "type": "t", "status": "success", "content": [{"text": "1"}, {"json": {"a": 1}}]}},
        {"image": {"format": "png", "source": {"bytes": "AAECAwQ="}}},
    ]  # fmt: skip
    assert (result.content, result.finish_reason) == ("so", "stop")
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.cached_input_tokens) == (5, 5, 2)


def test_a_stream_that_is_cut_keeps_what_came() -> None:
    result = fed(BEGIN, words(0, "so "), words(0, "far"), stop(0), call(1, "a"), piece(1, '{"x":1}'), stop(1), call(2, "b"), piece(2, '{"y"'))  # fmt: skip
    assert (result.content, result.finish_reason) == ("so far", "error")
    assert [(one.arguments, one.raw_arguments) for one in result.tool_calls] == [({"x": 1}, '{"x":1}'), ({}, '{"y"')]
    assert metadata_of(result, "bedrock")["cut"] is True
    [unsaid] = fed(BEGIN, call(0, "a")).tool_calls
    assert unsaid.unread_text == "{", "no call without arguments"


@pytest.mark.parametrize("name", ["throttlingException", "modelStreamErrorException", "internalServerException"])
def test_an_error_in_the_stream(name: str) -> None:
    result = fed(BEGIN, words(0, "so"), {name: {"message": "no"}})
    assert (result.content, result.finish_reason) == ("so", "error")
    assert metadata_of(result, "bedrock")["error"] == {name: {"message": "no"}}


EVENTS = [BEGIN, words(0, "so"), stop(0), call(1, "a"), piece(1, '{"x":1}'), stop(1), *ended()]


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda name, data: {"event": name, "data": {**data, "p": "abc"}}, id="name and data"),
        pytest.param(lambda name, data: {"data": {name: data}}, id="data alone"),
        pytest.param(lambda _, data: {**data, "p": "abc"}, id="without its name"),
    ],
)
def test_events_however_they_are_packed(form: Any) -> None:
    packed = [form(name, data) for event in EVENTS for name, data in event.items()]
    assert _without_padding(fed(*packed)) == _without_padding(fed(*EVENTS))


@pytest.mark.parametrize("event", [None, "[DONE]", {}, [], {"contentBlockDelta": {}}, {"contentBlockDelta": {"delta": {}}}, {"contentBlockStop": None}, {"contentBlockStart": {"start": {}}}])  # fmt: skip
def test_events_that_say_nothing(event: Any) -> None:
    answer = Accumulator()
    assert [answer.feed(one) for one in (BEGIN, event, words(1, "so"), *ended("end_turn"))] == ["", "", "so", "", ""]
    assert encode_messages([answer.result().message()]) == [{"role": "assistant", "content": [{"text": "so"}]}]


# Any chunking and interleaving

TEXT = st.text(max_size=12)
ARGUMENTS = st.dictionaries(TEXT, TEXT | st.integers(), max_size=3)
BLOCKS = st.one_of(
    st.fixed_dictionaries({"text": TEXT}),
    st.fixed_dictionaries({"reasoningContent": st.fixed_dictionaries({"reasoningText": st.fixed_dictionaries({"text": TEXT, "signature": TEXT})})}),
    st.fixed_dictionaries({"toolUse": st.fixed_dictionaries({"toolUseId": st.uuids().map(str), "name": st.just("add"), "input": ARGUMENTS})}),
)  # fmt: skip


def streamed(data: st.DataObject, index: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of one block, with its texts split anywhere."""

    def cut(text: str) -> list[str]:
        borders = [0, *sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4))), len(text)]
        return [text[begin:end] for begin, end in itertools.pairwise(borders)]

    if "text" in block:
        return [*(words(index, one) for one in cut(block["text"])), stop(index)]
    if "toolUse" in block:
        use = block["toolUse"]
        given = json.dumps(use["input"], ensure_ascii=data.draw(st.booleans()))
        return [call(index, use["toolUseId"]), *(piece(index, one) for one in cut(given)), stop(index)]
    said = block["reasoningContent"]["reasoningText"]
    pieces = [delta(index, reasoningContent={key: one}) for key in ("text", "signature") for one in cut(said[key])]
    return [*pieces, stop(index)]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
@pytest.mark.slow
def test_any_chunking_and_interleaving_gives_the_same(data: st.DataObject) -> None:
    blocks = data.draw(st.lists(BLOCKS, max_size=4))
    indexes = sorted(data.draw(st.sets(st.integers(0, 20), min_size=len(blocks), max_size=len(blocks))))
    queues = [streamed(data, index, block) for index, block in zip(indexes, blocks, strict=True)]
    events = []
    while any(queues):
        events.append(data.draw(st.sampled_from([queue for queue in queues if queue])).pop(0))
    whole = decode_response({"output": {"message": {"role": "assistant", "content": blocks}}, "stopReason": "tool_use", "usage": USAGE, "metrics": {"latencyMs": 1}})  # fmt: skip
    result = fed(BEGIN, *events, *ended())
    assert replace(result, tool_calls=[replace(one, raw_arguments=None) for one in result.tool_calls]) == whole
    cut = fed(BEGIN, *events[: data.draw(st.integers(0, len(events)))])
    assert cut.finish_reason == "error"


def _without_padding(result: QueryResult) -> QueryResult:
    told = result.metadata["bedrock"]
    assert isinstance(told, dict)
    return replace(result, metadata={key: value for key, value in told.items() if key != "p"})
