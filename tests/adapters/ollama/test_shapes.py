"""Ollama's own messages: decoded, encoded again, matched without ids. Shapes are written from the client's types, and from what
langchain-ollama makes of recorded traffic; there is no published recording of ``/api/chat``."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ollama
import pytest

from tests.adapters.metadata import metadata_of
from toolkit import (
    ContentBlock,
    JsonObject,
    NamedTool,
    NativeChoice,
    TextMessage,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolResultMessage,
)
from toolkit.adapters import langchain
from toolkit.adapters.ollama import (
    Accumulator,
    decode_choice,
    decode_messages,
    decode_response,
    decode_tools,
    encode_choice,
    encode_messages,
    encode_tools,
)
from toolkit.wire import AssistantToolCallMessage, ChatMessage, alias, from_json, to_json


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}}


CONVERSATION: list[dict[str, Any]] = [
    {"role": "user", "content": "look", "images": ["AA=="]},
    {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [call("f", a=1), call("g"), call("f", a=2)]},
    {"role": "tool", "content": "one", "tool_name": "f"},
    {"role": "tool", "content": "two", "tool_name": "g"},
    {"role": "tool", "content": "three", "tool_name": "f"},
    {"role": "assistant", "content": "done"},
]


def test_messages_come_back_as_they_were(corpus: Path) -> None:
    rows = [json.loads(line) for line in (corpus / "langchain" / "openai_to_langchain.jsonl").read_text().splitlines()]
    conversations = [row["ollama_messages"] for row in rows if row.get("ollama_messages")]
    assert len(conversations) == 158
    for messages in [*conversations, CONVERSATION]:
        assert encode_messages(decode_messages(messages)) == messages
        assert encode_messages(from_json(to_json(decode_messages(messages)))) == messages


def test_results_find_the_calls_that_langchain_knows_by_their_ids(corpus: Path) -> None:
    rows = [json.loads(line) for line in (corpus / "langchain" / "openai_to_langchain.jsonl").read_text().splitlines()]
    for row in rows:
        if row.get("ollama_messages"):
            ours, theirs = decode_messages(row["ollama_messages"]), langchain.decode_messages(row["langchain_messages"])
            assert pairs(ours) == pairs(theirs), row["id"]


def pairs(messages: list[ChatMessage]) -> list[tuple[str, int]]:
    """Each result with the number of its call in the conversation."""
    ids = [
        call.id for message in messages if isinstance(message, AssistantToolCallMessage) for call in message.tool_calls
    ]
    return [
        (one.result.name, ids.index(one.result.tool_call_id)) for one in messages if isinstance(one, ToolResultMessage)
    ]


def test_results_belong_to_calls_by_tool_and_order() -> None:
    messages = decode_messages(CONVERSATION)
    turn = messages[1]
    assert isinstance(turn, AssistantToolCallMessage)
    assert len({call.id for call in turn.tool_calls}) == 3
    assert pairs(messages) == [("f", 0), ("g", 1), ("f", 2)]


def test_results_go_out_in_the_order_of_the_calls() -> None:
    first, turn, one, two, three, last = decode_messages(CONVERSATION)
    assert encode_messages([first, turn, three, two, one, last]) == CONVERSATION


def test_what_would_be_ambiguous_is_refused() -> None:
    first, turn, one, two, _, last = decode_messages(CONVERSATION)
    with pytest.raises(ValueError, match="no ids to tell which result belongs to which call"):
        encode_messages([first, turn, one, two, last])


def test_made_ids_are_never_sent() -> None:
    result = decode_response({"message": {"role": "assistant", "tool_calls": [call("f", a=1)]}, "done": True})
    answer = ToolResultMessage(ToolResult(result.tool_calls[0].id, "f", "text", "x"))
    assert encode_messages([result.message(), answer]) == [
        {"role": "assistant", "content": "", "tool_calls": [call("f", a=1)]},
        {"role": "tool", "content": "x", "tool_name": "f"},
    ]


@pytest.mark.parametrize(
    ("kind", "value", "content", "images"),
    [
        ("text", "7", "7", None),
        ("data", "7", '"7"', None),
        ("data", {"é": [1]}, '{"é":[1]}', None),
        ("error", "no", '{"error":"no"}', None),
        ("multimodal", (ContentBlock("text", text="see"), ContentBlock("image", "image/png", data="AA==")), "see", ["AA=="]),
        ("multimodal", (ContentBlock("text", text="see"), ContentBlock("image", url="https://x/y.png")), "see\n[image at https://x/y.png: omitted, this model does not accept it]", None),
        ("multimodal", (ContentBlock("audio", "audio/wav", data="AAAA"),), "[audio/wav, 3 bytes: omitted, this model does not accept it]", None),
    ],
)  # fmt: skip
def test_results(kind: Any, value: Any, content: Any, images: Any) -> None:
    [message] = encode_messages([ToolResultMessage(ToolResult("1", "f", kind, value))])
    more = {"images": images} if images else {}
    assert message == {"role": "tool", "content": content, "tool_name": "f", **more}
    assert ollama.Message.model_validate({**message, "images": None}).tool_name == "f"


def test_what_is_changed_is_what_is_sent() -> None:
    first, turn, *_ = decode_messages(CONVERSATION)
    assert isinstance(first, TextMessage)
    assert isinstance(turn, AssistantToolCallMessage)
    changed = dataclasses.replace(turn, content="new", tool_calls=[ToolCall("1", "f", {"a": 9})])
    text = dataclasses.replace(first, content="see")
    assert encode_messages([text, changed]) == [
        {"role": "user", "content": "see"},
        {"role": "assistant", "content": "new", "thinking": "hm", "tool_calls": [call("f", a=9)]},
    ]


@pytest.mark.parametrize(
    ("word", "calls", "expected"),
    [("stop", False, "stop"), ("stop", True, "tool_calls"), ("length", True, "length"), ("load", False, "stop")],
)
def test_why_it_stopped(word: str, calls: bool, expected: str) -> None:
    message = {"role": "assistant", "content": "x", "tool_calls": [call("f")] if calls else []}
    result = decode_response({"message": message, "done": True, "done_reason": word})
    assert result.finish_reason == expected


@pytest.mark.parametrize("body", [{}, {"error": "no"}, None, "text", []])
def test_an_answer_that_is_none_is_an_error(body: Any) -> None:
    assert decode_response(body).finish_reason == "error"


def test_reads_the_objects_of_the_client_whole_and_streamed() -> None:
    head = {"model": "m", "created_at": "2025-01-01T00:00:00Z"}
    tail = {"done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 5}
    chunks = [
        {**head, "message": {"role": "assistant", "content": "s", "thinking": "h"}, "done": False},
        {**head, "message": {"role": "assistant", "content": "o", "thinking": "m"}, "done": False},
        {**head, "message": {"role": "assistant", "content": "", "tool_calls": [call("f", a=1), call("f", a=2)]}, "done": False},
        {**head, "message": {"role": "assistant", "content": "", "tool_calls": [call("g")]}, "done": False},
        {**head, **tail, "message": {"role": "assistant", "content": ""}},
    ]  # fmt: skip
    calls = [call("f", a=1), call("f", a=2), call("g")]
    whole = {**head, **tail, "message": {"role": "assistant", "content": "so", "thinking": "hm", "tool_calls": calls}}
    plain, typed = Accumulator(), Accumulator()
    for chunk in chunks:
        plain.feed(chunk)
        typed.feed(ollama.ChatResponse.model_validate(chunk))
    assert plain.result() == typed.result() == decode_response(whole)
    assert decode_response(ollama.ChatResponse.model_validate(whole)) == decode_response(whole)
    assert len({one.id for one in plain.result().tool_calls}) == 3


def test_a_stream_that_is_cut_is_an_error_and_keeps_what_came() -> None:
    answer = Accumulator()
    answer.feed({"message": {"content": "so far", "tool_calls": [call("f", a=1)]}, "done": False})
    result = answer.result()
    assert (result.content, result.finish_reason) == ("so far", "error")
    assert [one.arguments for one in result.tool_calls] == [{"a": 1}]
    assert metadata_of(result, "ollama")["cut"] is True


def test_definitions_and_choices() -> None:
    spaced = ToolDefinition("read a file", "R.", JsonObject({"type": "object"}))
    [sent] = encode_tools([spaced], strict=True)
    assert sent == {"type": "function", "function": {"name": alias("read a file"), "description": "R.", "parameters": {"type": "object"}}}  # fmt: skip
    assert encode_tools(decode_tools([sent])) == [sent]
    assert encode_choice("auto") is encode_choice("none") is None
    assert decode_choice(None) == "auto"
    assert encode_choice(NativeChoice("ollama", {"x": 1})) == {"x": 1}
    for choice in ("required", NamedTool("f")):
        with pytest.raises(ValueError, match="send only the tool to be called"):
            encode_choice(choice)


def test_importing_the_adapter_loads_no_client() -> None:
    code = "import sys, toolkit.adapters.ollama; print([m for m in ('ollama', 'httpx', 'asyncio') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
