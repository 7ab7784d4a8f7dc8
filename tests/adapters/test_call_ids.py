"""Ids of other providers that are too long are shortened, those of calls and results alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolkit import ToolCall, ToolResult, ToolResultMessage
from toolkit.adapters import anthropic, bedrock, openai_chat, openai_responses
from toolkit.wire import AssistantToolCallMessage, ChatMessage

LONG = "call_" + "0123456789" * 9
NEARLY = LONG + "x"
SHORT = "call_1"


def conversation(*ids: str) -> list[ChatMessage]:
    calls = [ToolCall(id, "f", {}) for id in ids]
    return [AssistantToolCallMessage("", calls), *(ToolResultMessage(ToolResult(id, "f", "text", id)) for id in ids)]


def chat(sent: Any) -> tuple[list[str], list[str]]:
    return [call["id"] for call in sent[0]["tool_calls"]], [message["tool_call_id"] for message in sent[1:]]


def responses(sent: Any) -> tuple[list[str], list[str]]:
    half = len(sent) // 2
    return [item["call_id"] for item in sent[:half]], [item["call_id"] for item in sent[half:]]


def blocks(sent: Any) -> tuple[list[str], list[str]]:
    return [block["toolUse"]["toolUseId"] for block in sent[0]["content"]], [block["toolResult"]["toolUseId"] for block in sent[1]["content"]]  # fmt: skip


@pytest.mark.parametrize(
    ("adapter", "read", "longest"),
    [(openai_chat, chat, 40), (openai_responses, responses, 64), (bedrock, blocks, 64)],
)
def test_long_ids_are_shortened(adapter: Any, read: Callable[[Any], tuple[list[str], list[str]]], longest: int) -> None:
    calls, results = read(adapter.encode_messages(conversation(LONG, SHORT, NEARLY)))
    assert calls == results
    assert [len(id) <= longest for id in calls] == [True] * 3
    assert calls[1] == SHORT and len({*calls}) == 3
    assert read(adapter.encode_messages(conversation(LONG)))[0] == calls[:1], "the same in every request"


def test_a_server_that_gives_long_ids_gets_them_back() -> None:
    given = {"id": LONG, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    result = openai_chat.decode_response({"choices": [{"message": {"role": "assistant", "tool_calls": [given]}}]})
    answer = ToolResultMessage(ToolResult(LONG, "f", "text", "7"))
    assert chat(openai_chat.encode_messages([result.message(), answer])) == ([LONG], [LONG])
    calls, results = responses(openai_responses.encode_messages([result.message(), answer]))
    assert calls == results and len(calls[0]) == 64


def test_the_neutral_history_keeps_its_ids() -> None:
    messages = conversation(LONG)
    openai_chat.encode_messages(messages)
    assert messages == conversation(LONG)
    [turn, _] = anthropic.encode_messages(messages)
    assert turn["content"][0]["id"] == LONG, "no limit is known here"
