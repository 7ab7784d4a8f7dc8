"""The drivers over the SDK's clients and a loopback server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from tests.adapters.anthropic.test_stream import START, call, ended, piece, start, stop, words
from tests.adapters.loopback import Answer, serve
from tests.adapters.traffic import exchanges, noted
from toolkit import JsonObject, NamedTool, QueryOptions, QueryResult, TextMessage, ToolDefinition
from toolkit.adapters.anthropic import AnthropicDriver, AsyncAnthropicDriver, encode_messages

BODY = {
    **START["message"],
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "so"},
        {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}},
        {"type": "a_block_newer_than_the_sdk", "x": [1]},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 2},
}


def sent(*events: dict[str, Any]) -> list[tuple[str | None, Any]]:
    return [(event["type"], event) for event in events]


EVENTS = sent(
    START,
    {"type": "ping"},
    start(0, type="thinking", thinking="", signature=""),
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
    stop(0),
    start(1, type="text", text=""),
    words(1, "s"),
    words(1, "o"),
    stop(1),
    call(2, "toolu_1"),
    piece(2, ""),
    piece(2, '{"a"'),
    piece(2, ": 1}"),
    stop(2),
    start(3, type="a_block_newer_than_the_sdk", x=[1]),
    stop(3),
    *ended(),
)
OPTIONS = QueryOptions(
    tools=[ToolDefinition("add", "Adds.", JsonObject({"type": "object"}))],
    tool_choice=NamedTool("add"),
    messages=[TextMessage("user", "and now?")],
    system="be short",
    max_tokens=9,
    temperature=0.5,
    extra={"newer_than_the_sdk": 7, "extra_headers": {"anthropic-beta": "b"}, "extra_body": {"speed": "fast"}},
)
PROMPT = [TextMessage("system", "be kind"), TextMessage("user", "hello")]


def queried(url: str, kind: str, options: QueryOptions = OPTIONS, **client: Any) -> tuple[QueryResult, list[str]]:
    """One query, sync or async, streamed or not: its result, and the texts that were streamed."""
    client = {"api_key": "k", "base_url": url, "max_retries": 0, **client}

    async def later() -> tuple[QueryResult, list[str]]:
        async with anthropic.AsyncAnthropic(**client) as made:
            driver = AsyncAnthropicDriver(made, model="m")
            if kind == "async query":
                return await driver.query(PROMPT, options), []
            answer = await driver.stream_query(PROMPT, options)
            texts = [text async for text in answer.stream]
            return await answer.result, texts

    if kind.startswith("async"):
        return asyncio.run(later())
    with anthropic.Anthropic(**client) as made:
        driver = AnthropicDriver(made, model="m")
        if kind == "query":
            return driver.query(PROMPT, options), []
        answer = driver.stream_query(PROMPT, options)
        texts = list(answer.stream)
        return answer.result, texts


KINDS = ["query", "stream", "async query", "async stream"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_asks_and_is_answered(kind: str) -> None:
    with serve(Answer(events=EVENTS) if "stream" in kind else Answer(BODY)) as server:
        result, texts = queried(server.url, kind)

    assert (result.content, result.finish_reason) == ("so", "tool_calls")
    assert [(one.id, one.name, one.arguments) for one in result.tool_calls] == [("toolu_1", "add", {"a": 1})]
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.cached_input_tokens) == (5, 5, 2)
    assert texts == (["s", "o"] if "stream" in kind else [])
    assert encode_messages([result.message()]) == [{"role": "assistant", "content": BODY["content"]}]
    [asked] = server.requests
    assert asked.path == "/v1/messages"
    assert asked.headers["anthropic-beta"] == "b"
    assert asked.body | {"stream": None} == {
        "model": "m",
        "max_tokens": 9,
        "system": [{"type": "text", "text": "be short"}, {"type": "text", "text": "be kind"}],
        "messages": [{"role": "user", "content": "hello"}, {"role": "user", "content": "and now?"}],
        "tools": [{"name": "add", "description": "Adds.", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "tool", "name": "add"},
        "temperature": 0.5,
        "newer_than_the_sdk": 7,
        "speed": "fast",
        "stream": None,
    }


@pytest.mark.slow
def test_gives_what_was_recorded(corpus: Path) -> None:
    """Every answer of the corpus again, as the SDK parses it."""
    recorded = [one for one in exchanges(corpus, "anthropic") if one.status == 200]
    answers = [Answer(events=sent(*one.events)) if one.streaming else Answer(one.response) for one in recorded]
    with serve(*answers) as server, anthropic.Anthropic(api_key="k", base_url=server.url, max_retries=0) as client:
        driver = AnthropicDriver(client, model="m")
        for one in recorded:
            result = driver.stream_query("hello").result if one.streaming else driver.query("hello")
            assert noted(result.tool_calls) == one.tool_calls, one.id
            assert "error" not in result.metadata, one.id
            if not one.streaming:
                assert encode_messages([result.message()])[0]["content"] == one.response["content"], one.id


def test_asks_for_what_every_model_gives_when_nobody_says() -> None:
    with serve(Answer(BODY)) as server, anthropic.Anthropic(api_key="k", base_url=server.url) as client:
        AnthropicDriver(client, model="m").query("hello")

    assert server.requests[0].body == {"model": "m", "max_tokens": 4096, "messages": [{"role": "user", "content": "hello"}]}  # fmt: skip


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, anthropic.BadRequestError),
        (401, anthropic.AuthenticationError),
        (429, anthropic.RateLimitError),
        (500, anthropic.InternalServerError),
    ],
)
@pytest.mark.slow
def test_errors_of_the_sdk_are_results(kind: str, status: int, error: type[Exception]) -> None:
    with serve(Answer({"type": "error", "error": {"type": "some_error", "message": "no"}}, status)) as server:
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
    assert isinstance(result.metadata["error"], anthropic.APITimeoutError)


@pytest.mark.parametrize("kind", ["stream", "async stream"])
def test_a_stream_that_breaks_keeps_what_came(kind: str) -> None:
    with serve(Answer(events=EVENTS[:13], cut=True)) as server:
        result, texts = queried(server.url, kind)

    assert (result.finish_reason, result.content, texts) == ("error", "so", ["s", "o"])
    assert [one.raw_arguments for one in result.tool_calls] == ['{"a"']
    assert "error" in result.metadata


@pytest.mark.parametrize("kind", ["stream", "async stream"])
def test_an_error_in_the_middle_of_a_stream(kind: str) -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with serve(Answer(events=[*EVENTS[:10], *sent(overloaded)])) as server:
        result, texts = queried(server.url, kind)

    assert (result.finish_reason, result.content, texts) == ("error", "so", ["s", "o"])
    assert "Overloaded" in str(result.metadata["error"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_clients_own_retries_are_the_clients(kind: str) -> None:
    good = Answer(events=EVENTS) if "stream" in kind else Answer(BODY)
    with serve(Answer({}, 429, headers={"retry-after-ms": "1"}), good) as server:
        result, _ = queried(server.url, kind, max_retries=1)

    assert result.finish_reason == "tool_calls"
    assert len(server.requests) == 2


def test_the_result_can_be_asked_for_without_reading_the_stream() -> None:
    with serve(Answer(events=EVENTS)) as server, anthropic.Anthropic(api_key="k", base_url=server.url) as client:
        assert AnthropicDriver(client, model="m").stream_query("hello").result.content == "so"


def test_a_stream_that_is_left_gives_its_connection_back() -> None:
    one = anthropic.DefaultHttpxClient(limits=httpx2.Limits(max_connections=1))
    with (
        serve(Answer(events=EVENTS), Answer(BODY)) as server,
        anthropic.Anthropic(api_key="k", base_url=server.url, http_client=one) as client,
    ):
        driver = AnthropicDriver(client, model="m")
        left = driver.stream_query("hello")
        assert next(left.stream) == "s"
        left.stream.close()
        # With one connection in all, this would wait for ever.
        assert driver.query("hello", QueryOptions(timeout=5)).content == "so"
        assert (left.result.finish_reason, left.result.content) == ("error", "s")


def test_an_async_stream_that_is_left_gives_its_connection_back() -> None:
    async def leave(url: str) -> tuple[str, QueryResult]:
        one = anthropic.DefaultAsyncHttpxClient(limits=httpx2.Limits(max_connections=1))
        async with anthropic.AsyncAnthropic(api_key="k", base_url=url, http_client=one) as client:
            driver = AsyncAnthropicDriver(client, model="m")
            left = await driver.stream_query("hello")
            assert await anext(left.stream) == "s"
            await left.stream.aclose()
            after = await driver.query("hello", QueryOptions(timeout=5))
            return after.content, await left.result

    with serve(Answer(events=EVENTS), Answer(BODY)) as server:
        content, left = asyncio.run(leave(server.url))
    assert (content, left.finish_reason, left.content) == ("so", "error", "s")


def test_what_the_sdk_refuses_to_ask_is_a_result_too() -> None:
    with anthropic.Anthropic(api_key="k", base_url="http://127.0.0.1:1") as client:
        result = AnthropicDriver(client, model="m", max_tokens=1_000_000).query("hello")
    assert result.finish_reason == "error"
    assert "Streaming is required" in str(result.metadata["error"])
