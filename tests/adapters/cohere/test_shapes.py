"""Unusual shapes, and changes of the neutral form, which change what is sent.

Streams with thinking and text are written from Cohere's documented events; only calls were recorded.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.adapters.metadata import metadata_of
from tests.adapters.test_streamed_calls import SHAPES
from toolkit import ContentBlock, JsonObject, NamedTool, TextMessage, ToolCall, ToolDefinition, ToolResult
from toolkit.adapters.cohere import (
    Accumulator,
    decode_choice,
    decode_messages,
    decode_response,
    encode_choice,
    encode_messages,
    encode_tools,
)
from toolkit.wire import AssistantToolCallMessage, ChatMessage, ToolResultMessage, alias

END = {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": {"tokens": {"input_tokens": 3.0, "output_tokens": 5.0}}}}  # fmt: skip


def fed(*events: Any) -> Accumulator:
    answer = Accumulator()
    for event in events:
        answer.feed(event)
    return answer


def call_event(piece: Any) -> dict[str, Any]:
    function = {key: value for key, value in (("name", piece.name), ("arguments", piece.arguments)) if value is not None}  # fmt: skip
    raw = {"id": piece.id, "function": function}
    return {"type": "tool-call-start" if piece.name else "tool-call-delta", "index": piece.index, "delta": {"message": {"tool_calls": raw}}}  # fmt: skip


def content_event(kind: str, index: int, **content: str) -> dict[str, Any]:
    return {"type": f"content-{kind}", "index": index, "delta": {"message": {"content": content}}}


@pytest.mark.parametrize("shape", SHAPES)
def test_hostile_streams(shape: str) -> None:
    pieces, expected = SHAPES[shape]
    result = fed(*map(call_event, pieces), END).result()
    assert [(call.id, call.name, call.arguments, call.raw_arguments) for call in result.tool_calls] == expected
    assert result.finish_reason == ("tool_calls" if expected else "stop")


def test_a_stream_is_what_the_whole_answer_is() -> None:
    events = [
        {"type": "message-start", "id": "x", "delta": {"message": {"role": "assistant", "content": []}}},
        content_event("start", 0, type="thinking", thinking="h"),
        content_event("delta", 0, thinking="m"),
        {"type": "content-end", "index": 0},
        content_event("start", 1, type="text", text=""),
        content_event("delta", 1, text="s"),
        content_event("delta", 1, text="o"),
        {"type": "citation-start", "index": 0, "delta": {"message": {"citations": {"start": 0, "end": 2, "text": "so"}}}},
        {"type": "citation-end", "index": 0},
        END,
        "[DONE]",
    ]  # fmt: skip
    message = {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "so"}],
        "citations": [{"start": 0, "end": 2, "text": "so"}],
    }
    whole = decode_response({"message": message, "finish_reason": "COMPLETE", "usage": END["delta"]["usage"]})  # type: ignore[index]
    answer = Accumulator()
    assert "".join(answer.feed(event) for event in events) == "so"
    assert answer.result() == whole
    assert (whole.content, whole.finish_reason) == ("so", "stop")
    assert (whole.usage.input_tokens, whole.usage.output_tokens) == (3, 5)
    assert encode_messages([whole.message()]) == [{"role": "assistant", "content": message["content"]}]


@pytest.mark.parametrize("event", [None, {"message": "too many"}, {"type": "message-end", "delta": {"error": "no"}}])
def test_a_stream_that_is_cut_is_an_error_and_keeps_what_came(event: Any) -> None:
    pieces = SHAPES["cut in the middle"][0]
    result = fed(content_event("delta", 0, text="so far"), *map(call_event, pieces), event).result()
    assert (result.content, result.finish_reason) == ("so far", "error")
    assert [call.arguments for call in result.tool_calls] == [{"x": 1}, {}]
    assert ("cut" in metadata_of(result, "cohere")) == (event is None)


@pytest.mark.parametrize(
    ("word", "calls", "expected"),
    [
        ("COMPLETE", False, "stop"),
        ("STOP_SEQUENCE", False, "stop"),
        ("TOOL_CALL", True, "tool_calls"),
        ("MAX_TOKENS", True, "length"),
        ("ERROR", True, "error"),
        ("TIMEOUT", False, "error"),
    ],
)
def test_why_it_stopped(word: str, calls: bool, expected: str) -> None:
    raw = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}] if calls else []
    result = decode_response({"message": {"role": "assistant", "tool_calls": raw}, "finish_reason": word})
    assert result.finish_reason == expected
    assert metadata_of(result, "cohere")["finish_reason"] == word


@pytest.mark.parametrize("body", [{}, {"message": "invalid api token"}, None, "text", []])
def test_an_answer_that_is_none_is_an_error(body: Any) -> None:
    assert decode_response(body).finish_reason == "error"


@pytest.mark.parametrize(
    ("kind", "value", "content"),
    [
        ("text", "7", "7"),
        ("data", "7", '"7"'),
        ("data", {"é": [1]}, '{"é":[1]}'),
        ("error", "no", '{"error":"no"}'),
        ("multimodal", (ContentBlock("audio", "audio/wav", data="AAAA"),), [{"type": "text", "text": "[audio/wav, 3 bytes: omitted, this model does not accept it]"}]),
    ],
)  # fmt: skip
def test_results(kind: Any, value: Any, content: Any) -> None:
    [message] = encode_messages([ToolResultMessage(ToolResult("1", "f", kind, value))])
    assert message == {"role": "tool", "tool_call_id": "1", "content": content}


def test_what_is_changed_is_what_is_sent() -> None:
    raw = [
        {"role": "user", "content": [{"type": "text", "text": "old"}, {"type": "odd", "x": 1}]},
        {"role": "assistant", "tool_plan": "so", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{ }"}}]},
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "document", "document": {"data": "d"}}, {"type": "text", "text": "old"}]},
    ]  # fmt: skip
    question, calls, result = decode_messages(raw)
    assert encode_messages([question, calls, result]) == raw
    assert isinstance(question, TextMessage)
    assert isinstance(calls, AssistantToolCallMessage)
    assert isinstance(result, ToolResultMessage)
    new = [ContentBlock("text", text="new")]
    changed: list[ChatMessage] = [
        dataclasses.replace(question, content=new),
        dataclasses.replace(calls, content="hm", tool_calls=[ToolCall("1", "f", {"a": 2}, raw_arguments="{ }")]),
        dataclasses.replace(result, result=dataclasses.replace(result.result, value=tuple(new))),
    ]
    assert encode_messages(changed) == [
        {"role": "user", "content": [{"type": "text", "text": "new"}, {"type": "odd", "x": 1}]},
        {"role": "assistant", "content": "hm", "tool_plan": "so", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a":2}'}}]},
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "document", "document": {"data": "d"}}, {"type": "text", "text": "new"}]},
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
    assert encode_tools([made])[0]["function"]["name"] == alias("math.factorial")
    for choice in ("auto", "none", "required"):
        assert decode_choice(encode_choice(choice)) == choice
    with pytest.raises(ValueError, match="send 'f' alone, with tool_choice='required'"):
        encode_choice(NamedTool("f"))


@pytest.mark.slow
def test_importing_the_adapter_loads_no_sdk() -> None:
    code = "import sys, toolkit.adapters.cohere; print([m for m in ('cohere', 'httpx', 'asyncio') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
