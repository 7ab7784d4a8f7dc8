"""The drivers over the SDK's clients and a loopback server."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest

from tests.adapters.loopback import Answer, serve
from toolkit import JsonObject, NamedTool, QueryOptions, QueryResult, TextMessage, ToolDefinition
from toolkit.adapters.openai_chat import AsyncOpenAIChatDriver, OpenAIChatDriver

CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
BODY = {
    "id": "x", "object": "chat.completion", "created": 0, "model": "m",
    "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": "so", "tool_calls": [CALL]}}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8, "prompt_tokens_details": {"cached_tokens": 2}},
}  # fmt: skip


def event(delta: dict[str, Any], finish: str | None = None) -> tuple[None, Any]:
    return None, {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}  # fmt: skip


EVENTS = [
    event({"role": "assistant", "content": "s"}),
    event({"content": "o"}),
    event({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a"'}}]}),
    event({"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]}),
    event({}, "tool_calls"),
    (None, {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [], "usage": BODY["usage"]}),
    (None, "[DONE]"),
]  # fmt: skip
OPTIONS = QueryOptions(
    tools=[ToolDefinition("add", "Adds.", JsonObject({"type": "object"}))],
    tool_choice=NamedTool("add"),
    messages=[TextMessage("user", "and now?")],
    system="be short",
    max_tokens=9,
    temperature=0.5,
    extra={"seed": 7},
)


def queried(url: str, kind: str, options: QueryOptions = OPTIONS, **client: Any) -> tuple[QueryResult, list[str]]:
    """One query, sync or async, streamed or not: its result, and the texts that were streamed."""
    client = {"api_key": "k", "base_url": f"{url}/v1", "max_retries": 0, **client}

    async def later() -> tuple[QueryResult, list[str]]:
        async with openai.AsyncOpenAI(**client) as made:
            driver = AsyncOpenAIChatDriver(made, model="m")
            if kind == "async query":
                return await driver.query("hello", options), []
            answer = await driver.stream_query("hello", options)
            texts = [text async for text in answer.stream]
            return await answer.result, texts

    if kind.startswith("async"):
        return asyncio.run(later())
    with openai.OpenAI(**client) as made:
        driver = OpenAIChatDriver(made, model="m")
        if kind == "query":
            return driver.query("hello", options), []
        answer = driver.stream_query("hello", options)
        texts = list(answer.stream)
        return answer.result, texts


KINDS = ["query", "stream", "async query", "async stream"]


@pytest.mark.parametrize("kind", KINDS)
def test_asks_and_is_answered(kind: str) -> None:
    with serve(Answer(events=EVENTS) if "stream" in kind else Answer(BODY)) as server:
        result, texts = queried(server.url, kind)

    assert (result.content, result.finish_reason) == ("so", "tool_calls")
    assert [(call.id, call.name, call.arguments) for call in result.tool_calls] == [("call_1", "add", {"a": 1})]
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.cached_input_tokens) == (3, 5, 2)
    assert texts == (["s", "o"] if "stream" in kind else [])
    [asked] = server.requests
    assert asked.path == "/v1/chat/completions"
    assert asked.body | {"stream": None, "stream_options": None} == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be short"},
            {"role": "user", "content": "hello"},
            {"role": "user", "content": "and now?"},
        ],
        "tools": [{"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}}],
        "tool_choice": {"type": "function", "function": {"name": "add"}},
        "max_completion_tokens": 9,
        "temperature": 0.5,
        "seed": 7,
        "stream": None,
        "stream_options": None,
    }  # fmt: skip


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer({"error": {"message": "no"}}, 500), openai.InternalServerError),
        (Answer({"error": {"message": "slow down"}}, 429), openai.RateLimitError),
        (Answer({"error": {"message": "who?"}}, 401), openai.AuthenticationError),
    ],
)
@pytest.mark.slow
def test_errors_of_the_sdk_are_results(kind: str, answer: Answer, error: type[Exception]) -> None:
    with serve(answer) as server:
        result, texts = queried(server.url, kind)

    assert (result.finish_reason, result.content, texts) == ("error", "", [])
    assert isinstance(result.metadata["error"], error)
    assert len(server.requests) == 1, "nothing is tried again"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_a_server_that_never_answers(kind: str) -> None:
    with serve(Answer(silent=True)) as server:
        result, _ = queried(server.url, kind, QueryOptions(timeout=0.2))

    assert result.finish_reason == "error"
    assert isinstance(result.metadata["error"], openai.APITimeoutError)


@pytest.mark.parametrize("kind", ["stream", "async stream"])
def test_a_stream_that_breaks_keeps_what_came(kind: str) -> None:
    with serve(Answer(events=EVENTS[:3], cut=True)) as server:
        result, texts = queried(server.url, kind)

    assert (result.finish_reason, result.content, texts) == ("error", "so", ["s", "o"])
    assert [call.raw_arguments for call in result.tool_calls] == ['{"a"']
    assert "error" in result.metadata


@pytest.mark.parametrize("kind", KINDS)
def test_the_clients_own_retries_are_the_clients(kind: str) -> None:
    good = Answer(events=EVENTS) if "stream" in kind else Answer(BODY)
    with serve(Answer({}, 500, headers={"retry-after-ms": "1"}), good) as server:
        result, _ = queried(server.url, kind, max_retries=1)

    assert result.finish_reason == "tool_calls"
    assert len(server.requests) == 2


def test_the_result_can_be_asked_for_without_reading_the_stream() -> None:
    with serve(Answer(events=EVENTS)) as server, openai.OpenAI(api_key="k", base_url=f"{server.url}/v1") as client:
        assert OpenAIChatDriver(client, model="m").stream_query("hello").result.content == "so"
