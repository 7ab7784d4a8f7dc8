"""Calls in the form of 2023, ``function_call``, which is deprecated: some servers and old recordings still have it."""

from __future__ import annotations

from typing import Any

from toolkit import validate_history
from toolkit.adapters import anthropic, openai_chat
from toolkit.wire import CallCompleted

OLD_CALL = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a": 1}'}}


def test_a_function_call_is_a_call() -> None:
    result = openai_chat.decode_response({"choices": [{"message": OLD_CALL, "finish_reason": "function_call"}]})
    [call] = result.tool_calls
    assert (call.id, call.name, call.arguments, result.finish_reason) == ("call_0", "f", {"a": 1}, "tool_calls")
    [sent] = openai_chat.encode_messages([result.message()])
    function = {"name": "f", "arguments": '{"a": 1}'}
    assert sent["tool_calls"] == [{"id": "call_0", "type": "function", "function": function}]


def test_a_function_call_that_is_streamed() -> None:
    answer = openai_chat.Accumulator()
    deltas: list[Any] = [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}},
        {"function_call": {"arguments": '{"a":'}},
        {"function_call": {"arguments": " 1}"}},
    ]
    for delta in deltas:
        answer.feed({"choices": [{"index": 0, "delta": delta}]})
    assert answer.result().tool_calls[0].raw_arguments == '{"a": 1}'
    assert answer.result().finish_reason == "error"
    events = answer.feed_events({"choices": [{"index": 0, "delta": {}, "finish_reason": "function_call"}]})
    [call] = answer.result().tool_calls
    assert (call.id, call.name, call.arguments) == ("call_0", "f", {"a": 1})
    assert events[-1] == CallCompleted(call)
    assert answer.result().finish_reason == "tool_calls"


def test_a_copy_of_a_call_in_the_old_form_is_no_second_call() -> None:
    function = {"name": "f", "arguments": '{"a": 1}'}
    both = {**OLD_CALL, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    whole = openai_chat.decode_response({"choices": [{"message": both, "finish_reason": "tool_calls"}]})
    answer = openai_chat.Accumulator()
    delta = {**both, "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]}
    answer.feed({"choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]})
    assert [call.id for call in whole.tool_calls] == ["c1"]
    assert [call.id for call in answer.result().tool_calls] == ["c1"]


def test_an_empty_function_call_is_none() -> None:
    empty = {"role": "assistant", "content": "hi", "function_call": {"name": "", "arguments": ""}}
    result = openai_chat.decode_response({"choices": [{"message": empty, "finish_reason": "stop"}]})
    answer = openai_chat.Accumulator()
    answer.feed({"choices": [{"index": 0, "delta": empty, "finish_reason": "stop"}]})
    assert (result.tool_calls, answer.result().tool_calls) == ([], [])
    assert (result.finish_reason, answer.result().finish_reason) == ("stop", "stop")


def test_a_history_in_the_old_form_is_kept_and_understood() -> None:
    turn = [OLD_CALL, {"role": "function", "name": "f", "content": "7"}]
    history: list[Any] = [{"role": "user", "content": "hi"}, *turn, *turn]
    messages = openai_chat.decode_messages(history)
    assert openai_chat.encode_messages(messages) == history
    assert validate_history(messages) == []
    results = [
        block["content"]
        for turn in anthropic.encode_messages(messages)
        for block in turn["content"]
        if "tool_use_id" in block
    ]
    assert results == ["7", "7"]
