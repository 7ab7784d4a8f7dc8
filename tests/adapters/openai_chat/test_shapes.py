"""Unusual shapes, and changes of the neutral form, which change what is sent."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.adapters.metadata import metadata_of
from tests.adapters.test_streamed_calls import SHAPES
from toolkit import (
    ContentBlock,
    JsonObject,
    NamedTool,
    TextMessage,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolResultMessage,
)
from toolkit.adapters.openai_chat import (
    Accumulator,
    decode_choice,
    decode_messages,
    decode_response,
    decode_tools,
    encode_choice,
    encode_messages,
    encode_tools,
)
from toolkit.wire import AssistantToolCallMessage, ChatMessage, alias


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}  # fmt: skip


def as_delta(piece: Any) -> dict[str, Any]:
    function = {
        key: value for key, value in (("name", piece.name), ("arguments", piece.arguments)) if value is not None
    }
    raw = {"index": piece.index, "id": piece.id, "type": "function", "function": function}
    return {key: value for key, value in raw.items() if value is not None}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("together", [True, False], ids=["in one chunk", "a chunk each"])
def test_hostile_streams(shape: str, together: bool) -> None:
    pieces, expected = SHAPES[shape]
    deltas = [as_delta(piece) for piece in pieces]
    chunks = [chunk({"tool_calls": deltas})] if together else [chunk({"tool_calls": [delta]}) for delta in deltas]
    answer = Accumulator()
    for one in [*chunks, chunk({}, "tool_calls"), "[DONE]"]:
        answer.feed(one)

    result = answer.result()
    assert [(call.id, call.name, call.arguments, call.raw_arguments) for call in result.tool_calls] == expected
    assert result.finish_reason == ("tool_calls" if expected else "stop")


@pytest.mark.parametrize(
    ("word", "calls", "expected"),
    [
        ("stop", False, "stop"),
        ("stop", True, "tool_calls"),
        ("tool_calls", True, "tool_calls"),
        ("function_call", True, "tool_calls"),
        ("length", True, "length"),
        ("length", False, "length"),
        ("content_filter", False, "filtered"),
        ("error", True, "error"),
        ("anything", False, "stop"),
    ],
)
def test_why_it_stopped(word: str, calls: bool, expected: str) -> None:
    raw = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}] if calls else None
    message = {"role": "assistant", "content": "x", "tool_calls": raw}
    result = decode_response({"choices": [{"message": message, "finish_reason": word}]})

    assert result.finish_reason == expected
    assert metadata_of(result, "openai_chat")["finish_reason"] == word


def test_a_stream_that_is_cut_is_an_error_and_keeps_what_came() -> None:
    answer = Accumulator()
    answer.feed(chunk({"content": "so far"}))
    answer.feed(chunk({"tool_calls": [as_delta(piece) for piece in SHAPES["cut in the middle"][0]]}))
    result = answer.result()

    assert (result.content, result.finish_reason) == ("so far", "error")
    assert [call.arguments for call in result.tool_calls] == [{"x": 1}, {}]
    assert metadata_of(result, "openai_chat")["cut"] is True


@pytest.mark.parametrize(
    "body", [{}, {"error": {"message": "no"}}, {"choices": []}, {"choices": None}, "text", None, []]
)
def test_an_answer_that_is_none_is_an_error(body: Any) -> None:
    assert decode_response(body).finish_reason == "error"


def test_reads_the_objects_of_the_sdk() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    body: dict[str, Any] = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": None, "tool_calls": [call]}}], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}  # fmt: skip
    assert decode_response(ChatCompletion.model_validate(body)) == decode_response(body)
    assert decode_messages([ChatCompletion.model_validate(body).choices[0].message]) == decode_messages(
        [body["choices"][0]["message"]]
    )
    plain, typed = Accumulator(), Accumulator()
    for one in (chunk({"content": "a"}), chunk({"tool_calls": [{"index": 0, **call}]}), chunk({}, "tool_calls")):
        plain.feed(one)
        typed.feed(ChatCompletionChunk.model_validate(one))
    assert plain.result() == typed.result()


@pytest.mark.parametrize(
    ("kind", "value", "content"),
    [
        ("text", "7", "7"),
        ("data", "7", '"7"'),
        ("data", 7, "7"),
        ("data", {"é": [1]}, '{"é":[1]}'),
        ("error", "no", '{"error":"no"}'),
        ("multimodal", (ContentBlock("text", text="see"), ContentBlock("text", text="this")), [{"type": "text", "text": "see"}, {"type": "text", "text": "this"}]),
    ],
)  # fmt: skip
def test_results(kind: Any, value: Any, content: Any) -> None:
    [message] = encode_messages([ToolResultMessage(ToolResult("1", "f", kind, value))])
    assert message == {"role": "tool", "tool_call_id": "1", "content": content}


def test_what_is_changed_is_what_is_sent() -> None:
    raw = [
        {"role": "developer", "content": [{"type": "text", "text": "old", "cache": 1}, {"type": "odd", "x": 1}]},
        {"role": "assistant", "content": "", "refusal": None, "tool_calls": [{"id": "1", "index": 0, "type": "function", "function": {"name": "f", "arguments": "{ }"}}]},
        {"role": "tool", "tool_call_id": "1", "name": "f", "content": "old"},
    ]  # fmt: skip
    system, calls, result = decode_messages(raw)
    assert isinstance(system, TextMessage)
    assert isinstance(calls, AssistantToolCallMessage)
    assert isinstance(result, ToolResultMessage)
    changed: list[ChatMessage] = [
        dataclasses.replace(system, content=[ContentBlock("text", text="new")]),
        dataclasses.replace(calls, tool_calls=[ToolCall("1", "f", {"a": 2}, calls.tool_calls[0].metadata, "{ }")]),
        dataclasses.replace(result, result=dataclasses.replace(result.result, value="new")),
    ]
    assert encode_messages(changed) == [
        {"role": "developer", "content": [{"type": "text", "text": "new", "cache": 1}, {"type": "odd", "x": 1}]},
        {"role": "assistant", "content": "", "refusal": None, "tool_calls": [{"id": "1", "index": 0, "type": "function", "function": {"name": "f", "arguments": '{"a":2}'}}]},
        {"role": "tool", "tool_call_id": "1", "name": "f", "content": "new"},
    ]  # fmt: skip
    assert result.result.name == "f"


TEXT = st.text(max_size=20)
CALLS = st.builds(ToolCall, st.text("abc", min_size=1), st.text("abc_", min_size=1), st.dictionaries(TEXT, st.integers() | TEXT, max_size=3))  # fmt: skip
MESSAGES: st.SearchStrategy[ChatMessage] = st.one_of(
    st.builds(TextMessage, st.sampled_from(["system", "user", "assistant"]), TEXT),
    st.builds(AssistantToolCallMessage, TEXT, st.lists(CALLS, min_size=1, max_size=3)),
    st.builds(ToolResultMessage, st.builds(ToolResult, st.just("id"), st.just(""), st.just("text"), TEXT)),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # how fast a machine is tells nothing
@given(st.lists(MESSAGES, max_size=5))
@pytest.mark.slow
def test_there_and_back(messages: list[ChatMessage]) -> None:
    sent = json.loads(json.dumps(encode_messages(messages)))
    back = decode_messages(sent)
    assert encode_messages(back) == sent
    assert [_bare(message) for message in back] == [_bare(message) for message in messages]


def _bare(message: ChatMessage) -> Any:
    if isinstance(message, AssistantToolCallMessage):
        return message.content, [(call.id, call.name, call.arguments) for call in message.tool_calls]
    return (message.role, message.content) if isinstance(message, TextMessage) else message.result.value


def test_definitions_and_choices() -> None:
    made = ToolDefinition("math.factorial", "F.", JsonObject({"type": "object"}))
    [sent] = encode_tools([made], strict=False)
    assert sent == {"type": "function", "function": {"name": alias("math.factorial"), "description": "F.", "parameters": {"type": "object"}, "strict": False}}  # fmt: skip
    assert decode_tools([sent])[0].name == alias("math.factorial")  # type: ignore[union-attr]
    for choice in ("auto", "none", "required", NamedTool("f")):
        assert decode_choice(encode_choice(choice)) == choice


@pytest.mark.slow
def test_importing_the_adapter_loads_no_sdk() -> None:
    code = "import sys, toolkit.adapters.openai_chat; print([m for m in ('openai', 'httpx', 'asyncio') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
