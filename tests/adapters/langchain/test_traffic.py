"""What LangChain makes of recorded traffic: decoded, encoded again, and compared with the traffic itself."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import messages_from_dict, messages_to_dict

from tests.adapters.traffic import exchanges, noted
from toolkit.adapters import openai_chat
from toolkit.adapters.langchain import (
    Accumulator,
    as_langchain_messages,
    decode_messages,
    decode_response,
    decode_tools,
    encode_messages,
    encode_tools,
)
from toolkit.wire import AssistantToolCallMessage, ChatMessage, TextMessage, from_json, to_json


@cache
def _read(file: Path) -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(line) for line in file.read_text().splitlines())


@pytest.fixture
def rows(corpus: Path) -> tuple[dict[str, Any], ...]:
    return _read(corpus / "langchain" / "openai_to_langchain.jsonl")


def test_messages_come_back_as_they_were(rows: tuple[dict[str, Any], ...]) -> None:
    for row in rows:
        messages = row.get("langchain_messages") or []
        assert encode_messages(decode_messages(messages)) == messages, row["id"]
        kept = from_json(to_json(decode_messages(messages)))
        assert encode_messages(kept) == messages, "also when the conversation was kept as JSON"


def test_objects_are_read_and_made_as_their_json_is(rows: tuple[dict[str, Any], ...]) -> None:
    for row in rows:
        messages = row.get("langchain_messages") or []
        objects = messages_from_dict(messages)
        assert decode_messages(objects) == decode_messages(messages), row["id"]
        assert messages_to_dict(as_langchain_messages(decode_messages(messages))) == messages_to_dict(objects), row[
            "id"
        ]


def test_tools_come_back_as_they_were(rows: tuple[dict[str, Any], ...]) -> None:
    for row in rows:
        tools = row.get("openai_tools") or []
        assert encode_tools(decode_tools(tools)) == tools, row["id"]


def test_the_conversation_is_the_same_as_before_langchain(rows: tuple[dict[str, Any], ...]) -> None:
    for row in rows:
        before = openai_chat.decode_messages(row.get("openai_messages"))
        after = decode_messages(row.get("langchain_messages"))
        assert [_neutral(message) for message in after] == [_neutral(message) for message in before], row["id"]


def test_answers_give_the_calls_that_were_made(rows: tuple[dict[str, Any], ...]) -> None:
    seen = 0
    for row in rows:
        if (answer := row.get("langchain_response")) is None:
            continue
        result = decode_response(answer)
        [before] = openai_chat.decode_messages([row["openai_response_message"]])
        assert _neutral(result.message()) == _neutral(before), row["id"]
        assert encode_messages([result.message()]) == [answer], row["id"]
        assert result.finish_reason == ("tool_calls" if result.tool_calls else "stop"), row["id"]
        seen += 1
    assert seen > 100


def test_streams_give_the_calls_that_were_made(rows: tuple[dict[str, Any], ...], corpus: Path) -> None:
    names = {row["provider"] for row in rows}
    calls = {one.id: one.tool_calls for one in exchanges(corpus, *names)}
    seen = 0
    for row in rows:
        if not row.get("stream_agrees"):
            continue
        answer = Accumulator()
        answer.feed(row["langchain_stream_sum"])
        answer.feed({"type": "AIMessageChunk", "data": {"content": "", "chunk_position": "last"}})
        assert noted(answer.result().tool_calls) == calls[row["id"]], row["id"]
        seen += 1
    assert seen == 33


def _neutral(message: ChatMessage) -> Any:
    """What both must agree on. LangChain keeps no argument text, so broken arguments and spelling are not compared."""
    if isinstance(message, AssistantToolCallMessage):
        return message.content, [(call.id, call.name, call.arguments) for call in message.tool_calls]
    if isinstance(message, TextMessage):
        return message.role, message.content if isinstance(message.content, str) else list(message.content)
    result = message.result
    return result.tool_call_id, result.name, result.kind, result.value
