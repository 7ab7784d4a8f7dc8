"""The drivers over the SDK's clients and a loopback server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from tests.adapters.loopback import Answer, serve
from tests.adapters.metadata import metadata_of
from tests.adapters.traffic import exchanges
from toolkit import JsonObject, NamedTool, QueryOptions, QueryResult, TextMessage, ToolDefinition
from toolkit.adapters.openai_responses import (
    AsyncOpenAIResponsesDriver,
    OpenAIResponsesDriver,
    decode_response,
    encode_messages,
)

REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "so", "annotations": []}]}  # fmt: skip
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add", "arguments": '{"a": 1}', "status": "completed"}  # fmt: skip
BODY = {
    "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "parallel_tool_calls": True,
    "tool_choice": "auto", "tools": [], "output": [REASONING, MESSAGE, CALL],
    "usage": {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8, "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 1}},
}  # fmt: skip


def sent(*events: dict[str, Any]) -> list[tuple[str | None, Any]]:
    return [(event["type"], {"sequence_number": at, **event}) for at, event in enumerate(events)]


EVENTS = sent(
    {"type": "response.created", "response": {**BODY, "status": "in_progress", "output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": REASONING},
    {"type": "response.output_item.done", "output_index": 0, "item": REASONING},
    {"type": "response.output_item.added", "output_index": 1, "item": {**MESSAGE, "status": "in_progress", "content": []}},
    {"type": "response.content_part.added", "output_index": 1, "item_id": "msg_1", "content_index": 0, "part": {"type": "output_text", "text": "", "annotations": []}},
    {"type": "response.output_text.delta", "output_index": 1, "item_id": "msg_1", "content_index": 0, "delta": "s", "logprobs": []},
    {"type": "response.output_text.delta", "output_index": 1, "item_id": "msg_1", "content_index": 0, "delta": "o", "logprobs": []},
    {"type": "response.output_text.done", "output_index": 1, "item_id": "msg_1", "content_index": 0, "text": "so", "logprobs": []},
    {"type": "response.output_item.done", "output_index": 1, "item": MESSAGE},
    {"type": "response.output_item.added", "output_index": 2, "item": {**CALL, "arguments": "", "status": "in_progress"}},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "item_id": "fc_1", "delta": '{"a"'},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "item_id": "fc_1", "delta": ": 1}"},
    {"type": "response.function_call_arguments.done", "output_index": 2, "item_id": "fc_1", "name": "add", "arguments": '{"a": 1}'},
    {"type": "response.output_item.done", "output_index": 2, "item": CALL},
    {"type": "response.completed", "response": BODY},
)  # fmt: skip
FIRST_ARGUMENTS = 11
"""The number of events up to the start of the call's arguments."""
OPTIONS = QueryOptions(
    tools=[ToolDefinition("add", "Adds.", JsonObject({"type": "object"}))],
    tool_choice=NamedTool("add"),
    messages=[TextMessage("user", "and now?")],
    system="be short",
    max_tokens=9,
    temperature=0.5,
    extra={"store": False},
)


def queried(url: str, kind: str, options: QueryOptions = OPTIONS, **client: Any) -> tuple[QueryResult, list[str]]:
    """One query, sync or async, streamed or not: its result, and the texts that were streamed."""
    client = {"api_key": "k", "base_url": f"{url}/v1", "max_retries": 0, **client}

    async def later() -> tuple[QueryResult, list[str]]:
        async with openai.AsyncOpenAI(**client) as made:
            driver = AsyncOpenAIResponsesDriver(made, model="m")
            if kind == "async query":
                return await driver.query("hello", options), []
            answer = await driver.stream_query("hello", options)
            texts = [text async for text in answer.stream]
            return await answer.result, texts

    if kind.startswith("async"):
        return asyncio.run(later())
    with openai.OpenAI(**client) as made:
        driver = OpenAIResponsesDriver(made, model="m")
        if kind == "query":
            return driver.query("hello", options), []
        answer = driver.stream_query("hello", options)
        texts = list(answer.stream)
        return answer.result, texts


KINDS = ["query", "stream", "async query", "async stream"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_asks_and_is_answered(kind: str) -> None:
    with serve(Answer(events=EVENTS) if "stream" in kind else Answer(BODY)) as server:
        result, texts = queried(server.url, kind)

    assert (result.content, result.finish_reason) == ("so", "tool_calls")
    assert [(call.id, call.name, call.arguments) for call in result.tool_calls] == [("call_1", "add", {"a": 1})]
    used = result.usage
    assert (used.input_tokens, used.output_tokens, used.cached_input_tokens, used.reasoning_tokens) == (3, 5, 2, 1)
    assert texts == (["s", "o"] if "stream" in kind else [])
    assert encode_messages([result.message()]) == BODY["output"]
    [asked] = server.requests
    assert asked.path == "/v1/responses"
    assert asked.body | {"stream": None} == {
        "model": "m",
        "instructions": "be short",
        "input": [{"role": "user", "content": "hello"}, {"role": "user", "content": "and now?"}],
        "tools": [{"type": "function", "name": "add", "description": "Adds.", "parameters": {"type": "object"}, "strict": False}],
        "tool_choice": {"type": "function", "name": "add"},
        "max_output_tokens": 9,
        "temperature": 0.5,
        "store": False,
        "stream": None,
    }  # fmt: skip


@pytest.mark.slow
def test_gives_what_was_recorded(corpus: Path) -> None:
    """Answers of the corpus again, as the SDK parses them."""
    found = exchanges(corpus, "openai_responses", "lmstudio_responses", "deepseek_responses")
    recorded = [one for one in found if one.status == 200 and "output" in one.response][:60] + [
        one for one in found if one.status == 200 and one.streaming
    ][:10]
    answers = [
        Answer(events=[(event["data"]["type"], event["data"]) for event in one.response if isinstance(event["data"], dict)])
        if one.streaming
        else Answer(one.response)
        for one in recorded
    ]  # fmt: skip
    with serve(*answers) as server, openai.OpenAI(api_key="k", base_url=server.url, max_retries=0) as client:
        driver = OpenAIResponsesDriver(client, model="m")
        for one in recorded:
            result = driver.stream_query("hello").result if one.streaming else driver.query("hello")
            assert "error" not in result.metadata, one.id
            assert [call.id for call in result.tool_calls] == [call["id"] for call in one.tool_calls], one.id
            if not one.streaming:
                expected = encode_messages([decode_response(one.response).message()])
                assert encode_messages([result.message()]) == expected, one.id


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
    ],
)
@pytest.mark.slow
def test_errors_of_the_sdk_are_results(kind: str, status: int, error: type[Exception]) -> None:
    with serve(Answer({"error": {"message": "no"}}, status)) as server:
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
@pytest.mark.slow
def test_a_stream_that_breaks_keeps_what_came(kind: str) -> None:
    with serve(Answer(events=EVENTS[:FIRST_ARGUMENTS], cut=True)) as server:
        result, texts = queried(server.url, kind)

    assert (result.finish_reason, result.content, texts) == ("error", "so", ["s", "o"])
    assert [(call.id, call.raw_arguments) for call in result.tool_calls] == [("call_1", '{"a"')]
    assert "error" in result.metadata


@pytest.mark.parametrize("kind", ["stream", "async stream"])
@pytest.mark.parametrize("last", [0, FIRST_ARGUMENTS, len(EVENTS) - 1])
@pytest.mark.slow
def test_a_stream_that_ends_too_early_is_an_error(kind: str, last: int) -> None:
    with serve(Answer(events=EVENTS[:last])) as server:
        result, _ = queried(server.url, kind)

    assert result.finish_reason == "error"
    assert metadata_of(result, "openai_responses")["cut"] is True


@pytest.mark.parametrize("kind", ["stream", "async stream"])
def test_an_error_in_the_middle_of_a_stream(kind: str) -> None:
    trouble = sent({"type": "error", "code": "server_error", "message": "Overloaded", "param": None})
    with serve(Answer(events=[*EVENTS[:9], *trouble])) as server:
        result, texts = queried(server.url, kind)

    assert (result.finish_reason, result.content, texts) == ("error", "so", ["s", "o"])
    assert "Overloaded" in str(result.metadata)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_the_clients_own_retries_are_the_clients(kind: str) -> None:
    good = Answer(events=EVENTS) if "stream" in kind else Answer(BODY)
    with serve(Answer({}, 429, headers={"retry-after-ms": "1"}), good) as server:
        result, _ = queried(server.url, kind, max_retries=1)

    assert result.finish_reason == "tool_calls"
    assert len(server.requests) == 2


def test_the_result_can_be_asked_for_without_reading_the_stream() -> None:
    with serve(Answer(events=EVENTS)) as server, openai.OpenAI(api_key="k", base_url=server.url) as client:
        assert OpenAIResponsesDriver(client, model="m").stream_query("hello").result.content == "so"


def test_a_stream_that_is_left_gives_its_connection_back() -> None:
    one = openai.DefaultHttpxClient(limits=httpx2.Limits(max_connections=1))
    with (
        serve(Answer(events=EVENTS), Answer(BODY)) as server,
        openai.OpenAI(api_key="k", base_url=server.url, http_client=one) as client,
    ):
        driver = OpenAIResponsesDriver(client, model="m")
        left = driver.stream_query("hello")
        assert next(left.stream) == "s"
        left.stream.close()
        # With one connection in all, this would wait for ever.
        assert driver.query("hello", QueryOptions(timeout=5)).content == "so"
        assert (left.result.finish_reason, left.result.content) == ("error", "s")


def test_an_async_stream_that_is_left_gives_its_connection_back() -> None:
    async def leave(url: str) -> tuple[str, QueryResult]:
        one = openai.DefaultAsyncHttpxClient(limits=httpx2.Limits(max_connections=1))
        async with openai.AsyncOpenAI(api_key="k", base_url=url, http_client=one) as client:
            driver = AsyncOpenAIResponsesDriver(client, model="m")
            left = await driver.stream_query("hello")
            assert await anext(left.stream) == "s"
            await left.stream.aclose()
            after = await driver.query("hello", QueryOptions(timeout=5))
            return after.content, await left.result

    with serve(Answer(events=EVENTS), Answer(BODY)) as server:
        content, left = asyncio.run(leave(server.url))
    assert (content, left.finish_reason, left.content) == ("so", "error", "s")
