"""A call that was cut before the first byte of its arguments is not a call without arguments: it must not be run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.adapters.streams import Stream, read_stream
from toolkit import SecurityPolicy, ToolCall, ToolkitContext, create_agent_toolkit
from toolkit.adapters import anthropic, openai_chat

FUNCTION: dict[str, Any] = {"name": "todoread", "arguments": ""}


def chat(finish: str | None, **call: Any) -> Any:
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]} if call else {}, "finish_reason": finish}]}


CHAT: Stream = [chat(None, index=0, id="c1", type="function", function=FUNCTION)]
CUSTOM: Stream = [chat(None, index=0, id="c1", type="custom", custom={"name": "todoread", "input": ""})]
ITEM = {
    "type": "function_call",
    "id": "i1",
    "call_id": "c1",
    "name": "todoread",
    "arguments": "",
    "status": "in_progress",
}
ADDED: Stream = [{"type": "response.output_item.added", "output_index": 0, "item": ITEM}]
INCOMPLETE = {"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}}  # fmt: skip
USE = {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c1", "name": "todoread", "input": {}}}  # fmt: skip
BLOCK_STOP = {"type": "content_block_stop", "index": 0}
AT_LIMIT = {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}
START = {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "c1", "name": "todoread"}}}}
STOP = {"contentBlockStop": {"contentBlockIndex": 0}}
COHERE: Stream = [{"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": {"id": "c1", "type": "function", "function": FUNCTION}}}}]  # fmt: skip

CUT: dict[str, tuple[str, Stream]] = {
    "chat": ("openai_chat", CHAT),
    "chat, a custom tool": ("openai_chat", CUSTOM),
    "chat, no arguments key": ("openai_chat", [chat(None, index=0, id="c1", function={"name": "todoread"})]),
    "chat, at the token limit": ("openai_chat", [*CHAT, chat("length")]),
    "chat, an error": ("openai_chat", [*CHAT, {"error": {"message": "overloaded"}}]),
    "responses": ("openai_responses", ADDED),
    "responses, at the token limit": ("openai_responses", [*ADDED, INCOMPLETE]),
    "responses, at the token limit, with the item": (
        "openai_responses",
        [{**INCOMPLETE, "response": {**INCOMPLETE["response"], "output": [{**ITEM, "status": "incomplete"}]}}],  # type: ignore[dict-item]
    ),
    "anthropic": ("anthropic", [USE]),
    "anthropic, at the token limit": ("anthropic", [USE, BLOCK_STOP, AT_LIMIT]),
    "bedrock": ("bedrock", [START]),
    "bedrock, at the token limit": ("bedrock", [START, STOP, {"messageStop": {"stopReason": "max_tokens"}}]),
    "cohere": ("cohere", COHERE),
    "cohere, at the token limit": (
        "cohere",
        [*COHERE, {"type": "message-end", "delta": {"finish_reason": "MAX_TOKENS"}}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CUT)
def test_a_call_cut_before_its_first_argument_is_refused(name: str, tmp_path: Path) -> None:
    adapter, stream = CUT[name]
    result = read_stream(adapter, stream)
    assert result.finish_reason in ("error", "length")
    [call] = result.tool_calls
    context = ToolkitContext(tmp_path, SecurityPolicy(default="allow"))
    with create_agent_toolkit(context) as toolkit:
        assert toolkit.call(ToolCall("c1", "todoread", {})).kind == "text", "what would have been run"
        refused = toolkit.call(call)
    assert (refused.kind, str(refused.value).partition(":")[0]) == ("error", "INVALID_TOOL_ARGUMENTS")


WHOLE: dict[str, tuple[str, Stream]] = {
    "chat": ("openai_chat", [*CHAT, chat("tool_calls")]),
    "responses": ("openai_responses", [*ADDED, {"type": "response.output_item.done", "output_index": 0, "item": ITEM}]),
    "anthropic": ("anthropic", [USE, BLOCK_STOP]),
    "bedrock": ("bedrock", [START, STOP]),
    "cohere": ("cohere", [*COHERE, {"type": "tool-call-end", "index": 0}]),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_call_that_is_whole_without_arguments_stays_what_it_is(name: str) -> None:
    """Also if the stream is cut after it."""
    adapter, stream = WHOLE[name]
    [call] = read_stream(adapter, stream).tool_calls
    assert (call.arguments, call.unread_text) == ({}, None)


def test_at_the_token_limit_only_the_last_call_is_refused() -> None:
    first, last = FUNCTION | {"name": "f"}, FUNCTION | {"name": "g"}
    calls = [{"id": "a", "type": "function", "function": first}, {"id": "b", "type": "function", "function": last}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    found = openai_chat.decode_response({"choices": [{"message": message, "finish_reason": "length"}]})
    assert [call.unread_text for call in found.tool_calls] == [None, "{"]


def test_at_the_token_limit_a_call_before_a_text_is_whole() -> None:
    use = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
    for blocks, text in (([use, {"type": "text", "text": "so"}], None), ([use], "{")):
        [call] = anthropic.decode_response({"content": blocks, "stop_reason": "max_tokens"}).tool_calls
        assert call.unread_text == text
