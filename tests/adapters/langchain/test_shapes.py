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
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage, message_to_dict
from langchain_core.messages.tool import invalid_tool_call, tool_call, tool_call_chunk
from langchain_core.tools import tool

from tests.adapters.metadata import metadata_of
from tests.adapters.test_streamed_calls import SHAPES
from toolkit import ContentBlock, JsonObject, NamedTool, NativeTool, TextMessage, ToolCall, ToolDefinition, ToolResult
from toolkit.adapters.langchain import (
    Accumulator,
    as_langchain_messages,
    decode_choice,
    decode_messages,
    decode_response,
    decode_tools,
    encode_choice,
    encode_messages,
    encode_tools,
)
from toolkit.wire import AssistantToolCallMessage, ChatMessage, ToolResultMessage, alias

PICTURE = ContentBlock("image", "image/png", data="AA==")


def chunk(content: Any = "", **more: Any) -> AIMessageChunk:
    return AIMessageChunk(content=content, **more)


def fed(*chunks: object) -> Accumulator:
    answer = Accumulator()
    for one in chunks:
        answer.feed(one)
    return answer


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("together", [True, False], ids=["in one chunk", "a chunk each"])
def test_hostile_streams(shape: str, together: bool) -> None:
    pieces, expected = SHAPES[shape]
    raws = [tool_call_chunk(name=piece.name, args=piece.arguments, id=piece.id, index=piece.index) for piece in pieces]
    groups = [raws] if together else [[raw] for raw in raws]
    result = fed(*(chunk(tool_call_chunks=group) for group in groups), chunk(chunk_position="last")).result()

    assert [(call.id, call.name, call.arguments, call.raw_arguments) for call in result.tool_calls] == expected
    assert result.finish_reason == ("tool_calls" if expected else "stop")


def test_a_stream_is_what_the_whole_answer_is() -> None:
    usage = {"input_tokens": 3, "output_tokens": 0, "total_tokens": 3, "input_token_details": {"cache_read": 2}}
    more = {"input_tokens": 0, "output_tokens": 5, "total_tokens": 5, "output_token_details": {"reasoning": 1}}
    answer = Accumulator()
    texts = [
        answer.feed(one)
        for one in (
            chunk([{"type": "thinking", "thinking": "h", "index": 0}], id="run-1", usage_metadata=usage),
            chunk([{"type": "thinking", "thinking": "m", "signature": "s", "index": 0}]),
            chunk([{"type": "text", "text": "s", "index": 1}]),
            chunk([{"type": "text", "text": "o", "index": 1}], additional_kwargs={"note": "a"}),
            chunk([{"type": "tool_use", "id": "1", "name": "f", "input": {}, "index": 2}], tool_call_chunks=[tool_call_chunk(name="f", args="", id="1", index=2)]),
            chunk([{"type": "input_json_delta", "partial_json": '{"a":1}', "index": 2}], tool_call_chunks=[tool_call_chunk(args='{"a":1}', index=2)]),
            chunk("", usage_metadata=more, response_metadata={"stop_reason": "tool_use"}),
            chunk("", chunk_position="last"),
        )
    ]  # fmt: skip
    result = answer.result()
    whole = AIMessage(
        [
            {"type": "thinking", "thinking": "hm", "signature": "s", "index": 0},
            {"type": "text", "text": "so", "index": 1},
            {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}, "index": 2},
        ],
        additional_kwargs={"note": "a"},
        response_metadata={"stop_reason": "tool_use"},
        tool_calls=[tool_call(name="f", args={"a": 1}, id="1")],
        usage_metadata={"input_tokens": 3, "output_tokens": 5, "total_tokens": 8, "input_token_details": {"cache_read": 2}, "output_token_details": {"reasoning": 1}},
        id="run-1",
    )  # fmt: skip
    assert texts == ["", "", "s", "o", "", "", "", ""]
    assert (result.content, result.finish_reason) == ("so", "tool_calls")
    assert result.usage == decode_response(whole).usage
    assert (result.usage.cached_input_tokens, result.usage.reasoning_tokens) == (2, 1)
    assert encode_messages([result.message()]) == [message_to_dict(whole)]
    assert encode_messages([decode_response(whole).message()]) == [message_to_dict(whole)]


def test_a_stream_that_is_cut_is_an_error_and_keeps_what_came() -> None:
    raws = [tool_call_chunk(name="f", args='{"x":1}', id="a", index=0), tool_call_chunk(name="g", args='{"y"', id="b", index=1)]  # fmt: skip
    result = fed(chunk("so far"), chunk(tool_call_chunks=raws)).result()

    assert (result.content, result.finish_reason) == ("so far", "error")
    assert [call.arguments for call in result.tool_calls] == [{"x": 1}, {}]
    assert metadata_of(result, "langchain")["cut"] is True


def test_a_whole_message_is_a_stream_of_one() -> None:
    whole = AIMessage("so", tool_calls=[tool_call(name="f", args={"a": 1}, id="1")])
    result = fed(whole).result()
    assert (result.content, result.finish_reason) == ("so", "tool_calls")
    assert [(call.id, call.arguments) for call in result.tool_calls] == [("1", {"a": 1})]


@pytest.mark.parametrize(
    ("told", "calls", "expected"),
    [
        ({"finish_reason": "stop"}, False, "stop"),
        ({"finish_reason": "tool_calls"}, True, "tool_calls"),
        ({"stop_reason": "end_turn"}, False, "stop"),
        ({"stop_reason": "max_tokens"}, True, "length"),
        ({"done_reason": "length"}, False, "length"),
        ({"finish_reason": "MAX_TOKENS"}, False, "length"),
        ({"finish_reason": "MALFORMED_FUNCTION_CALL"}, False, "error"),
        ({}, True, "tool_calls"),
        ({}, False, "stop"),
    ],
)
def test_why_it_stopped(told: dict[str, Any], calls: bool, expected: str) -> None:
    found = [tool_call(name="f", args={}, id="1")] if calls else []
    assert decode_response(AIMessage("", response_metadata=told, tool_calls=found)).finish_reason == expected


@pytest.mark.parametrize("answer", [{}, None, "text", [], HumanMessage("no answer"), {"type": "ai"}])
def test_an_answer_that_is_none_is_an_error(answer: Any) -> None:
    assert decode_response(answer).finish_reason == "error"


def test_arguments_that_never_became_json() -> None:
    broken = AIMessage("", invalid_tool_calls=[invalid_tool_call(name="f", args='{"a": ', id="1", error="no JSON")])
    [message] = decode_messages([broken])
    assert isinstance(message, AssistantToolCallMessage)
    [call] = message.tool_calls
    assert (call.arguments, call.raw_arguments) == ({}, '{"a": ')
    assert encode_messages([message]) == [message_to_dict(broken)]
    mended = dataclasses.replace(message, tool_calls=[ToolCall("1", "f", {"a": 1}, call.metadata, call.raw_arguments)])
    data = encode_messages([mended])[0]["data"]
    assert data["invalid_tool_calls"] == []
    assert [(one["id"], one["args"]) for one in data["tool_calls"]] == [("1", {"a": 1})]


@pytest.mark.parametrize(
    ("kind", "value", "content", "status"),
    [
        ("text", "7", "7", "success"),
        ("data", "7", '"7"', "success"),
        ("data", {"é": [1]}, '{"é":[1]}', "success"),
        ("error", "no", "no", "error"),
        ("multimodal", (ContentBlock("text", text="see"), PICTURE), [{"type": "text", "text": "see"}, {"type": "image", "base64": "AA==", "mime_type": "image/png"}], "success"),
    ],
)  # fmt: skip
def test_results(kind: Any, value: Any, content: Any, status: str) -> None:
    [message] = as_langchain_messages([ToolResultMessage(ToolResult("1", "f", kind, value))])
    assert message == ToolMessage(content, tool_call_id="1", name="f", status=status)
    [back] = decode_messages([message])
    assert isinstance(back, ToolResultMessage)
    assert back.result == ToolResult("1", "f", "text" if kind == "data" else kind, content if kind == "data" else value)


MEDIA: list[tuple[Any, ContentBlock]] = [
    ({"type": "image", "base64": "AA==", "mime_type": "image/png"}, PICTURE),
    ({"type": "image", "url": "https://x/y.png"}, ContentBlock("image", url="https://x/y.png")),
    ({"type": "audio", "base64": "AA==", "mime_type": "audio/wav"}, ContentBlock("audio", "audio/wav", data="AA==")),
    ({"type": "file", "file_id": "f1", "id": "lc_1"}, ContentBlock("document", file_id="f1")),
    ({"type": "file", "base64": "AA==", "mime_type": "application/pdf"}, ContentBlock("document", "application/pdf", data="AA==")),
    ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}}, dataclasses.replace(PICTURE, detail="low")),
    ("bare text", ContentBlock("text", text="bare text")),
]  # fmt: skip


@pytest.mark.parametrize(("part", "block"), MEDIA)
def test_media_in_each_form_keep_their_form_and_can_be_changed(part: Any, block: ContentBlock) -> None:
    raw = [message_to_dict(HumanMessage([{"type": "odd", "x": 1}, part]))]
    [message] = decode_messages(raw)
    assert isinstance(message, TextMessage)
    assert list(message.content) == [block]
    assert encode_messages([message]) == raw
    other = dataclasses.replace(block, **{"text" if block.text else "url" if block.url else "file_id" if block.file_id else "data": "BB=="})  # type: ignore[arg-type]  # fmt: skip
    [changed] = encode_messages([dataclasses.replace(message, content=[other])])
    kept, new = changed["data"]["content"]
    assert kept == {"type": "odd", "x": 1}
    assert "BB==" in json.dumps(new) and "AA==" not in json.dumps(new)


def test_what_is_changed_is_what_is_sent() -> None:
    turn = AIMessage(
        [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "old", "citations": []},
            {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}},
            {"type": "tool_use", "id": "2", "name": "f", "input": {}},
        ],
        tool_calls=[tool_call(name="f", args={"a": 1}, id="1"), tool_call(name="f", args={}, id="2")],
        response_metadata={"model": "m"},
    )
    result = ToolMessage("old", tool_call_id="1", artifact={"rows": 3}, id="m1")
    calls, answer = decode_messages([turn, result])
    assert isinstance(calls, AssistantToolCallMessage)
    assert isinstance(answer, ToolResultMessage)
    assert encode_messages([calls, answer]) == [message_to_dict(turn), message_to_dict(result)]

    changed = dataclasses.replace(calls, content="new!", tool_calls=[ToolCall("1", "f", {"a": 2})])
    told = dataclasses.replace(answer, result=dataclasses.replace(answer.result, value="new"))
    first, second = encode_messages([changed, told])
    assert first["data"]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "new!", "citations": []},
        {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 2}},
    ]
    assert [call["args"] for call in first["data"]["tool_calls"]] == [{"a": 2}]
    assert first["data"]["response_metadata"] == {"model": "m"}
    assert (second["data"]["content"], second["data"]["artifact"], second["data"]["id"]) == ("new", {"rows": 3}, "m1")


TEXT = st.text(max_size=20)
CALLS = st.builds(ToolCall, st.text("abc", min_size=1), st.text("abc_", min_size=1), st.dictionaries(TEXT, st.integers() | TEXT, max_size=3))  # fmt: skip
MESSAGES: st.SearchStrategy[ChatMessage] = st.one_of(
    st.builds(TextMessage, st.sampled_from(["system", "user", "assistant"]), TEXT),
    st.builds(AssistantToolCallMessage, TEXT, st.lists(CALLS, min_size=1, max_size=3)),
    st.builds(ToolResultMessage, st.builds(ToolResult, st.just("id"), st.just("f"), st.sampled_from(["text", "error"]), TEXT)),
)  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # how fast a machine is tells nothing
@given(st.lists(MESSAGES, max_size=5))
@pytest.mark.slow
def test_there_and_back(messages: list[ChatMessage]) -> None:
    assert decode_messages(json.loads(json.dumps(encode_messages(messages)))) == messages
    assert decode_messages(as_langchain_messages(messages)) == messages


def test_definitions_and_choices() -> None:
    made = ToolDefinition("math.factorial", "F.", JsonObject({"type": "object"}))
    [sent] = encode_tools([made], strict=False)
    assert sent == {"type": "function", "function": {"name": alias("math.factorial"), "description": "F.", "parameters": {"type": "object"}, "strict": False}}  # fmt: skip
    search: dict[str, Any] = {"type": "web_search_20250305", "name": "web_search"}
    assert decode_tools([search]) == [NativeTool("langchain", JsonObject(search))]
    assert encode_tools(decode_tools([search])) == [search]
    for choice in ("auto", "none", "required", NamedTool("f"), NamedTool("any")):
        assert decode_choice(encode_choice(choice)) == choice
    assert encode_choice("required") == "any"
    assert encode_choice(NamedTool("f")) == "f"
    assert decode_choice({"type": "function", "function": {"name": "f"}}) == NamedTool("f")
    assert encode_choice(decode_choice({"type": "tool", "name": "f"})) == {"type": "tool", "name": "f"}


def test_reads_langchains_own_tools() -> None:
    @tool
    def add(a: int, b: int = 2) -> int:
        """Add numbers."""
        return a + b

    [made] = decode_tools([add])
    assert isinstance(made, ToolDefinition)
    assert (made.name, made.description) == ("add", "Add numbers.")
    assert made.parameters["required"] == ["a"]


@pytest.mark.slow
def test_importing_the_adapter_loads_no_langchain() -> None:
    code = "import sys, toolkit.adapters.langchain; print([m for m in ('langchain_core', 'toolkit.runtime', 'httpx', 'asyncio') if m in sys.modules])"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
