"""Unusual shapes, and changes of the neutral form, which change what is sent."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.adapters.metadata import metadata_of
from tests.adapters.openai_responses.test_driver import BODY, CALL, EVENTS, MESSAGE, REASONING
from tests.examples import tries
from toolkit import (
    ContentBlock,
    JsonObject,
    NamedTool,
    NativeTool,
    QueryResult,
    TextMessage,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolResultMessage,
)
from toolkit.adapters.openai_responses import (
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

Event = dict[str, Any]


def added(at: int | None, **item: Any) -> Event:
    return _event("response.output_item.added", at, item=item)


def done(at: int | None, **item: Any) -> Event:
    return _event("response.output_item.done", at, item=item)


def grows(at: int | None, delta: str, *, kind: str = "function_call_arguments", **more: Any) -> Event:
    return _event(f"response.{kind}.delta", at, delta=delta, **more)


def is_whole(at: int | None, *, kind: str = "function_call_arguments", **more: Any) -> Event:
    return _event(f"response.{kind}.done", at, **more)


def _event(type: str, at: int | None, **more: Any) -> Event:
    return {"type": type, **({} if at is None else {"output_index": at}), **more}


def call(id: str, arguments: str = "", **more: Any) -> Event:
    return {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": "f", "arguments": arguments, **more}


def last(*output: Event, kind: str = "completed", **more: Any) -> Event:
    return {"type": f"response.{kind}", "response": {"status": kind, "output": list(output), **more}}


def streamed(*events: object) -> QueryResult:
    answer = Accumulator()
    texts = [answer.feed(event) for event in events]
    assert "".join(texts) == answer.result().content
    return answer.result()


CUSTOM = {"type": "custom_tool_call", "id": "ctc_a", "call_id": "a", "name": "shell", "input": ""}
SHAPES: dict[str, tuple[list[Event], list[tuple[str, str, str | None]]]] = {
    "interleaved": (
        [added(0, **call("a")), added(1, **call("b")), grows(1, '{"x"'), grows(0, '{"y"'), grows(1, ":1}"), grows(0, ":2}")],
        [("a", "f", '{"y":2}'), ("b", "f", '{"x":1}')],
    ),
    "the second first": (
        [added(1, **call("b")), grows(1, "{}"), added(0, **call("a")), grows(0, "{ }")],
        [("a", "f", "{ }"), ("b", "f", "{}")],
    ),
    "a gap in indexes": ([added(7, **call("b", "{}")), added(2, **call("a", "{}"))], [("a", "f", "{}"), ("b", "f", "{}")]),
    "done without delta": ([added(0, **call("a")), is_whole(0, arguments='{"x":1}')], [("a", "f", '{"x":1}')]),
    "whole at once": ([done(0, **call("a", "{}"))], [("a", "f", "{}")]),
    "done says it again": (
        [added(0, **call("a")), grows(0, "{}"), is_whole(0, arguments="{}"), done(0, **call("a", "{}"))],
        [("a", "f", "{}")],
    ),
    "never done": ([added(0, **call("a")), grows(0, '{"x":')], [("a", "f", '{"x":')]),
    "no index, told apart by the item's id": (
        [added(None, **call("a")), added(None, **call("b")), grows(None, "{}", item_id="fc_b"), grows(None, "{ }", item_id="fc_a")],
        [("a", "f", "{ }"), ("b", "f", "{}")],
    ),
    "arguments before the item": (
        [grows(0, "{", item_id="fc_a"), is_whole(0, item_id="fc_a", name="f", arguments="{}")],
        [("fc_a", "f", "{}")],
    ),
    "null arguments": ([added(0, **{**call("a"), "arguments": None}), done(0, **{**call("a"), "arguments": None})], [("a", "f", None)]),
    "a null delta": ([added(0, **call("a", "{}")), {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": None}], [("a", "f", "{}")]),
    "two with one id": ([done(0, **call("a", "{}")), done(1, **call("a", '{"x":1}'))], [("a", "f", "{}"), ("a", "f", '{"x":1}')]),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_hostile_streams(shape: str) -> None:
    events, expected = SHAPES[shape]
    cut = streamed({"type": "response.created", "response": {}}, *events)
    assert [(one.id, one.name, one.raw_arguments) for one in cut.tool_calls] == expected
    assert (cut.finish_reason, metadata_of(cut, "openai_responses")["cut"]) == ("error", True)

    whole = streamed(*events, last(), "[DONE]")
    assert whole.tool_calls == cut.tool_calls, "also where the last event forgets what came"
    assert whole.finish_reason == "tool_calls"
    assert len(encode_messages([whole.message()])) == len(expected), "none is lost on its way back"


def test_a_custom_tools_input_comes_in_pieces_too() -> None:
    pieces = [grows(0, piece, kind="custom_tool_call_input") for piece in ("ls", " -l")]
    for events in (
        [added(0, **CUSTOM), *pieces],
        [added(0, **CUSTOM), is_whole(0, kind="custom_tool_call_input", input="ls -l")],
    ):
        result = streamed(*events, last())
        assert [(one.name, one.arguments, one.raw_arguments) for one in result.tool_calls] == [
            ("shell", {"input": "ls -l"}, None)
        ]
        answer = ToolResultMessage(ToolResult("a", "shell", "text", "a.py"))
        assert encode_messages([result.message(), answer]) == [
            {**CUSTOM, "input": "ls -l"},
            {"type": "custom_tool_call_output", "call_id": "a", "output": "a.py"},
        ]
    changed = ToolCall("a", "shell", {"input": "pwd"}, result.tool_calls[0].metadata)
    assert encode_messages([AssistantToolCallMessage("", [changed])]) == [{**CUSTOM, "input": "pwd"}]


def text_delta(at: int, delta: str) -> Event:
    return grows(at, delta, kind="output_text", content_index=0)


def test_what_was_said_keeps_its_place_when_the_stream_is_cut() -> None:
    events = [
        added(0, **REASONING),
        added(1, type="message", role="assistant", content=[]),
        text_delta(1, "s"),
        text_delta(1, "o"),
    ]
    result = streamed(*events, added(2, **call("a", '{"x')))
    assert result.content == "so"
    assert encode_messages([result.message()]) == [REASONING, {"role": "assistant", "content": "so"}, call("a", '{"x')]


@pytest.mark.parametrize(
    "events",
    [
        [text_delta(0, "s"), text_delta(0, "o"), is_whole(0, kind="output_text", content_index=0, text="so")],
        [is_whole(0, kind="output_text", content_index=0, text="so")],
        [text_delta(0, "s"), is_whole(0, kind="output_text", content_index=0, text="so")],
        [],
    ],
)
def test_text_is_told_once_however_it_comes(events: list[Event]) -> None:
    assert streamed(*events, last(MESSAGE)).content == "so"


@pytest.mark.parametrize(
    ("event", "reason", "word"),
    [
        (last(kind="failed", error={"code": "server_error", "message": "no"}), "error", "failed"),
        (last(call("a", '{"x'), kind="incomplete", incomplete_details={"reason": "max_output_tokens"}), "length", "max_output_tokens"),
        (last(MESSAGE, kind="incomplete", incomplete_details={"reason": "content_filter"}), "filtered", "content_filter"),
        (last(MESSAGE), "stop", "completed"),
        (last(MESSAGE, CALL), "tool_calls", "completed"),
    ],
)  # fmt: skip
def test_why_it_stopped(event: Event, reason: str, word: str) -> None:
    for result in (streamed(event), decode_response(event["response"])):
        assert result.finish_reason == reason
        assert metadata_of(result, "openai_responses")["finish_reason"] == word


def test_an_error_in_the_stream_keeps_what_came() -> None:
    trouble = {"type": "error", "code": "server_error", "message": "no"}
    result = streamed(text_delta(0, "so"), done(1, **call("a", "{}")), trouble)
    assert (result.content, result.finish_reason, len(result.tool_calls)) == ("so", "error", 1)
    assert metadata_of(result, "openai_responses")["error"] == {"code": "server_error", "message": "no"}


@pytest.mark.parametrize("body", [{}, {"error": {"message": "no"}}, {"output": None}, "text", None, []])
def test_an_answer_that_is_none_is_an_error(body: Any) -> None:
    assert decode_response(body).finish_reason == "error"


@pytest.mark.parametrize(
    "item",
    [
        {"type": "function_call"},
        {"type": "custom_tool_call"},
        {"type": "function_call_output"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": {"x": 1}},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "[1]"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": None},
        {"role": "user"},
        {"role": "user", "content": [{"type": "input_image"}, {"type": "input_file"}, {"type": "input_text", "text": 1}]},
        {"role": "user", "content": [{"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}]},
        {"role": "user", "content": [{"type": "input_image", "file_id": "f", "detail": "low"}]},
        {"role": "assistant", "content": None},
        {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        {"type": "item_reference", "id": "rs_1"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
        {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True},
        {"type": "never heard of", "x": [1]},
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "x"}, {"type": "odd"}]},
    ],
)  # fmt: skip
def test_odd_items_come_back_as_they_were(item: Event) -> None:
    assert encode_messages(decode_messages([item])) == [item]
    assert decode_response({"output": [item], "status": "completed"}).finish_reason in ("stop", "tool_calls", "refused")


def test_reads_the_objects_of_the_sdk() -> None:
    typed = Response.model_validate(BODY)
    assert decode_response(typed) == decode_response(BODY)
    assert decode_messages(typed.output) == decode_messages(BODY["output"])
    events: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    of_json, of_objects = Accumulator(), Accumulator()
    for _, event in EVENTS:
        assert of_json.feed(event) == of_objects.feed(events.validate_python(event))
        assert of_json.result() == of_objects.result()
    assert of_json.result() == decode_response(BODY)


@tries(50)
@given(st.lists(st.integers(1, 7), max_size=8), st.data())
def test_any_chunking_gives_the_same(sizes: list[int], data: st.DataObject) -> None:
    texts = {"a": '{"x": "é\\n", "y": [1, {}]}', "b": "{}"}
    waiting = {0: list(_chunks(texts["a"], sizes)), 1: list(_chunks(texts["b"], sizes))}
    events = [added(0, **call("a")), added(1, **call("b"))]
    while any(waiting.values()):
        at = data.draw(st.sampled_from([at for at, left in waiting.items() if left]))
        events.append(grows(at, waiting[at].pop(0)))
    result = streamed(*events, last())
    assert {one.id: one.raw_arguments for one in result.tool_calls} == texts


def _chunks(text: str, sizes: list[int]) -> list[str]:
    found, at = [], 0
    for size in sizes:
        found.append(text[at : at + size])
        at += size
    return [*found, text[at:]]


@pytest.mark.parametrize(
    ("kind", "value", "output"),
    [
        ("text", "7", "7"),
        ("data", "7", '"7"'),
        ("data", 7, "7"),
        ("data", {"é": [1]}, '{"é":[1]}'),
        ("error", "no", '{"error":"no"}'),
        ("multimodal", (ContentBlock("text", text="see"), ContentBlock("image", "image/png", data="AA==")), [{"type": "input_text", "text": "see"}, {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AA=="}]),
    ],
)  # fmt: skip
def test_results(kind: Any, value: Any, output: Any) -> None:
    [item] = encode_messages([ToolResultMessage(ToolResult("1", "f", kind, value))])
    assert item == {"type": "function_call_output", "call_id": "1", "output": output}


def test_what_is_changed_is_what_is_sent() -> None:
    refusal, search = {"type": "refusal", "refusal": "no"}, {"type": "web_search_call", "id": "ws_1"}
    said = {
        **MESSAGE,
        "content": [{"type": "output_text", "text": "old", "annotations": [{"start_index": 2}]}, refusal],
    }
    raw = [
        {"role": "developer", "content": [{"type": "input_text", "text": "old", "cache": 1}, {"type": "odd", "x": 1}]},
        REASONING, said, search, call("a", "{ }", status="completed"),
        {"type": "function_call_output", "call_id": "a", "output": "old", "status": "completed"},
    ]  # fmt: skip
    system, turn, result = decode_messages(raw)
    assert isinstance(system, TextMessage)
    assert isinstance(turn, AssistantToolCallMessage)
    assert isinstance(result, ToolResultMessage)
    assert result.result.name == "f"
    changed: list[ChatMessage] = [
        dataclasses.replace(system, content=[ContentBlock("text", text="new")]),
        dataclasses.replace(turn, content="new", tool_calls=[ToolCall("a", "f", {"x": 2}, turn.tool_calls[0].metadata, "{ }")]),
        dataclasses.replace(result, result=dataclasses.replace(result.result, value="new")),
    ]  # fmt: skip
    assert encode_messages(changed) == [
        {"role": "developer", "content": [{"type": "input_text", "text": "new", "cache": 1}, {"type": "odd", "x": 1}]},
        REASONING,
        {**MESSAGE, "content": [{"type": "output_text", "text": "new", "annotations": []}, refusal]},
        search,
        call("a", '{"x":2}', status="completed"),
        {"type": "function_call_output", "call_id": "a", "output": "new", "status": "completed"},
    ]
    without = dataclasses.replace(turn, content="", tool_calls=[])
    assert encode_messages([without]) == [REASONING, {**MESSAGE, "content": [refusal]}, search]
    more = dataclasses.replace(turn, tool_calls=[*turn.tool_calls, ToolCall("b", "g", {})])
    assert [item.get("call_id") for item in encode_messages([more])] == [None, None, None, "a", "b"]


def test_what_another_provider_keeps_is_its_own() -> None:
    other = {"anthropic": {"layout": [{"native": {"type": "thinking"}}]}, "gemini": {"signature": "s"}}
    made = AssistantToolCallMessage("so", [ToolCall("a", "f", {}, other)], other)
    assert encode_messages([made]) == [
        {"role": "assistant", "content": "so"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
    ]


TEXT = st.text(max_size=20)
CALLS = st.builds(ToolCall, st.text("abc", min_size=1), st.text("abc_", min_size=1), st.dictionaries(TEXT, st.integers() | TEXT, max_size=3))  # fmt: skip
SAID: st.SearchStrategy[ChatMessage] = st.one_of(
    st.builds(TextMessage, st.sampled_from(["system", "user"]), TEXT),
    st.builds(ToolResultMessage, st.builds(ToolResult, st.just("id"), st.just(""), st.just("text"), TEXT)),
)
TURNS: st.SearchStrategy[ChatMessage] = st.one_of(
    st.builds(TextMessage, st.just("assistant"), TEXT),
    st.builds(AssistantToolCallMessage, TEXT, st.lists(CALLS, min_size=1, max_size=3)),
)


@tries(50)
@given(st.lists(st.tuples(TURNS, SAID), max_size=3))
@pytest.mark.slow
def test_there_and_back(pairs: list[tuple[ChatMessage, ChatMessage]]) -> None:
    """Assistant turns in a row are one turn here, so there is a message between them."""
    messages = [message for pair in pairs for message in pair]
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
    search = NativeTool("openai_responses", JsonObject({"type": "web_search"}))
    [sent, native] = encode_tools([made, search], strict=True)
    assert sent == {"type": "function", "name": alias("math.factorial"), "description": "F.", "parameters": {"type": "object", "properties": {}, "required": [], "additionalProperties": False}, "strict": True}  # fmt: skip
    assert encode_tools([made])[0]["strict"] is False, "left out, it would mean true"
    assert (decode_tools([sent])[0].name, decode_tools([native])) == (alias("math.factorial"), [search])  # type: ignore[union-attr]
    for choice in ("auto", "none", "required", NamedTool("f")):
        assert decode_choice(encode_choice(choice)) == choice
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}
    assert encode_choice(decode_choice(allowed)) == allowed
    assert encode_messages([AssistantToolCallMessage("", [ToolCall("a", "math.factorial", {})])])[0]["name"] == alias("math.factorial")  # fmt: skip


@pytest.mark.slow
def test_importing_the_adapter_loads_no_sdk() -> None:
    code = "import sys, toolkit.adapters.openai_responses; print([m for m in ('openai', 'httpx', 'asyncio') if m in sys.modules])"  # fmt: skip
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
