"""Half characters in an answer: they are joined if both halves come, and never make a later request fail."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.adapters.loopback import Answer, serve
from tests.adapters.streams import ADAPTERS, Stream, accumulator, recorded_streams
from toolkit import QueryOptions, QueryResult, TextMessage
from toolkit.adapters.openai_chat import OpenAIChatDriver
from toolkit.wire import CallCompleted, CallStarted

FIRST, SECOND, LONE = "\ud83d", "\ude00", "\ude00"
SMILE = "\U0001f600"
Texts = list[str]


def chat(text: str, finish: str | None = None) -> Any:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


def anthropic(text: str) -> Any:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}


def responses(text: str) -> Any:
    return {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text}


def gemini(text: str) -> Any:
    return {"candidates": [{"content": {"parts": [{"text": text}]}}]}


def ollama(text: str) -> Any:
    return {"message": {"content": text}, "created_at": "t"}


def bedrock(text: str) -> Any:
    return {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": text}}}


def cohere(text: str) -> Any:
    return {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": text}}}}


def langchain(text: str) -> Any:
    return {"type": "AIMessageChunk", "data": {"content": text}}


PIECES: dict[str, Any] = {"openai_chat": chat, "openai_responses": responses, "anthropic": anthropic, "gemini": gemini, "ollama": ollama, "bedrock": bedrock, "cohere": cohere, "langchain": langchain}  # fmt: skip


def read_texts(adapter: str, events: Stream) -> tuple[str, QueryResult]:
    answer = accumulator(adapter)
    texts = [answer.feed(event) for event in events]
    return "".join(texts), answer.result()


def check_it_can_be_sent(adapter: str, result: QueryResult) -> None:
    sent = import_module(f"toolkit.adapters.{adapter}").encode_messages([TextMessage("user", "hi"), result.message()])
    json.dumps(sent, ensure_ascii=False).encode()
    result.content.encode()


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([f"a{FIRST}", f"{SECOND}b"], f"a{SMILE}b"),
        ([f"a{FIRST}", "b"], "a\ufffdb"),
        (["a", f"{LONE}b"], "a\ufffdb"),
        ([f"a{FIRST}"], "a"),
        ([FIRST, SECOND, FIRST, SECOND], SMILE * 2),
    ],
)
def test_halves_of_a_character_in_a_stream(adapter: str, texts: Texts, expected: str) -> None:
    streamed, result = read_texts(adapter, [PIECES[adapter](text) for text in texts])
    assert (streamed, result.content) == (expected, expected)
    check_it_can_be_sent(adapter, result)


@pytest.mark.sample
@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("text", [FIRST, LONE, f"f{LONE}"])
@pytest.mark.parametrize("key", ["id", "name"])
def test_halves_of_a_character_in_the_id_or_name_of_a_streamed_call(
    adapter: str, text: str, key: str, corpus: Path
) -> None:
    for stream in recorded_streams(corpus, adapter).values():
        _, untouched = read_texts(adapter, stream)
        if untouched.finish_reason != "tool_calls":
            continue
        was = json.dumps(getattr(untouched.tool_calls[0], key))
        answer = accumulator(adapter)
        events = [
            event
            for raw in stream
            for event in answer.feed_events(json.loads(json.dumps(raw).replace(was, json.dumps(text))))
        ]
        result = answer.result()
        check_it_can_be_sent(adapter, result)
        assert len(result.tool_calls) == len(untouched.tool_calls)
        calls = {(call.id, call.name) for call in result.tool_calls}
        assert {(event.call.id, event.call.name) for event in events if isinstance(event, CallCompleted)} == calls
        assert {event.id for event in events if isinstance(event, CallStarted)} == {id for id, _ in calls}


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": "\\ud83d"}'}}
RAW = {**CALL, "function": {"name": "f", "arguments": f'{{"a": "{LONE}"}}'}}
ANSWERS: dict[str, tuple[str, Any]] = {
    "chat": ("openai_chat", {"choices": [{"message": {"role": "assistant", "content": f"x{LONE}", "tool_calls": [CALL]}, "finish_reason": "tool_calls"}]}),
    "chat, not escaped": ("openai_chat", {"choices": [{"message": {"role": "assistant", "content": f"x{LONE}", "tool_calls": [RAW]}, "finish_reason": "tool_calls"}]}),
    "chat, reasoning": ("openai_chat", {"choices": [{"message": {"role": "assistant", "content": f"x{LONE}", "reasoning_content": LONE, "tool_calls": [CALL]}, "finish_reason": "tool_calls"}]}),
    "responses": ("openai_responses", {"status": "completed", "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": f"x{LONE}"}]}, {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": "\\ud83d"}'}]}),
    "anthropic": ("anthropic", {"stop_reason": "tool_use", "content": [{"type": "text", "text": f"x{LONE}"}, {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": LONE, LONE: 1}}]}),
    "gemini": ("gemini", {"candidates": [{"finishReason": "STOP", "content": {"parts": [{"text": f"x{LONE}"}, {"functionCall": {"name": "f", "args": {"a": [LONE]}}}]}}]}),
    "ollama": ("ollama", {"message": {"content": f"x{LONE}", "tool_calls": [{"function": {"name": "f", "arguments": {"a": LONE}}}]}, "done_reason": "stop"}),
    "bedrock": ("bedrock", {"stopReason": "tool_use", "output": {"message": {"content": [{"text": f"x{LONE}"}, {"toolUse": {"toolUseId": "c1", "name": "f", "input": {"a": LONE}}}]}}}),
    "cohere": ("cohere", {"finish_reason": "TOOL_CALL", "message": {"content": [{"type": "text", "text": f"x{LONE}"}], "tool_plan": LONE, "tool_calls": [CALL]}}),
    "langchain": ("langchain", {"type": "ai", "data": {"type": "ai", "content": f"x{LONE}", "tool_calls": [{"id": "c1", "name": "f", "args": {"a": LONE}}]}}),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("target", ADAPTERS)
def test_an_answer_with_a_half_character_can_be_sent_to_every_provider(name: str, target: str) -> None:
    adapter, answer = ANSWERS[name]
    result = import_module(f"toolkit.adapters.{adapter}").decode_response(answer)
    assert (result.content, len(result.tool_calls)) == ("x\ufffd", 1)
    json.dumps(result.tool_calls[0].arguments, ensure_ascii=False).encode()
    check_it_can_be_sent(target, result)


def test_arguments_that_are_streamed_are_mended_too() -> None:
    def piece(text: str, finish: str | None = None) -> Any:
        call = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": text}}
        return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": finish}]}

    _, result = read_texts(
        "openai_chat", [piece('{"a": "\\ud8'), piece(f"3d {FIRST}"), piece(f'{SECOND}"}}', "tool_calls")]
    )
    assert result.tool_calls[0].arguments == {"a": f"\ufffd {SMILE}"}
    check_it_can_be_sent("anthropic", result)


def test_a_driver_sends_whatever_has_half_characters() -> None:
    body = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "so"}}]}  # fmt: skip
    with (
        serve(Answer(body)) as server,
        openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0) as client,
    ):
        result = OpenAIChatDriver(client, model="m").query(f"a{LONE}", QueryOptions(system=f"b{LONE}"))
    assert result.content == "so"
    [asked] = server.requests
    assert [message["content"] for message in asked.body["messages"]] == ["b\ufffd", "a\ufffd"]
