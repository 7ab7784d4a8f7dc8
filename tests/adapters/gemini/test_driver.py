"""The drivers over the SDK's client and a loopback server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from google import genai
from google.genai import errors, types

from tests.adapters.loopback import Answer, serve
from tests.adapters.traffic import exchanges
from toolkit import (
    ContentBlock,
    JsonObject,
    NamedTool,
    QueryOptions,
    QueryResult,
    TextMessage,
    ToolDefinition,
    ToolResult,
    ToolResultMessage,
)
from toolkit.adapters.gemini import AsyncGeminiDriver, GeminiDriver, decode_response, encode_messages
from toolkit.adapters.gemini.codec import to_camel_case

# Base64 has two alphabets; these bytes are written differently in each.
SIGNATURE = "+/+/"
CALL = {"functionCall": {"name": "add", "args": {"a": 1}}, "thoughtSignature": SIGNATURE}
MODEL = "gemini-3-flash"


def body(*parts: dict[str, Any], word: str | None = "STOP", **more: Any) -> dict[str, Any]:
    finish = {"finishReason": word} if word else {}
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0, **finish}], "modelVersion": MODEL, "responseId": "r", **more}  # fmt: skip


USED = {"promptTokenCount": 3, "candidatesTokenCount": 5, "cachedContentTokenCount": 2, "thoughtsTokenCount": 1}
BODY = body({"text": "hm", "thought": True}, {"text": "so"}, CALL, usageMetadata=USED)
EVENTS = [
    (None, body({"text": "hm", "thought": True}, word=None)),
    (None, body({"text": "s"}, word=None)),
    (None, body({"text": "o"}, word=None)),
    (None, body(CALL, word=None)),
    (None, body({"text": ""}, usageMetadata=USED)),
]
OPTIONS = QueryOptions(
    tools=[ToolDefinition("add", "Adds.", JsonObject({"type": "object"}))],
    tool_choice=NamedTool("add"),
    messages=[TextMessage("user", "and now?")],
    system="be short",
    max_tokens=9,
    temperature=0.5,
    extra={"seed": 7},
)
PROMPT = [TextMessage("system", "be kind"), TextMessage("user", "hello")]


def queried(url: str, kind: str, options: QueryOptions = OPTIONS, **http: Any) -> tuple[QueryResult, list[str]]:
    """One query, sync or async, streamed or not: its result, and the texts that were streamed."""
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url, **http))

    async def later() -> tuple[QueryResult, list[str]]:
        async with client.aio:
            driver = AsyncGeminiDriver(client, model=MODEL)
            if kind == "async query":
                return await driver.query(PROMPT, options), []
            answer = await driver.stream_query(PROMPT, options)
            texts = [text async for text in answer.stream]
            return await answer.result, texts

    with client:
        if kind.startswith("async"):
            return asyncio.run(later())
        driver = GeminiDriver(client, model=MODEL)
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
    assert [(call.name, call.arguments) for call in result.tool_calls] == [("add", {"a": 1})]
    used = result.usage
    assert (used.input_tokens, used.output_tokens, used.cached_input_tokens, used.reasoning_tokens) == (3, 6, 2, 1)
    assert texts == (["s", "o"] if "stream" in kind else [])
    [asked] = server.requests
    method = "streamGenerateContent?alt=sse" if "stream" in kind else "generateContent"
    assert asked.path.endswith(f"/models/{MODEL}:{method}")
    # The SDK writes some keys in its own way; the service takes both.
    assert to_camel_case(asked.body) == {
        "systemInstruction": {"role": "user", "parts": [{"text": "be short\n\nbe kind"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "hello"}]},
            {"role": "user", "parts": [{"text": "and now?"}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "add", "description": "Adds.", "parametersJsonSchema": {"type": "object"}}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["add"]}},
        "generationConfig": {"maxOutputTokens": 9, "temperature": 0.5, "seed": 7},
    }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_what_was_answered_goes_back_to_the_same_bytes(kind: str) -> None:
    good = Answer(events=EVENTS) if "stream" in kind else Answer(BODY)
    with serve(good, Answer(body({"text": "done"}))) as server:
        result, _ = queried(server.url, kind)
        image = ContentBlock("image", "image/png", data="+/+/")
        answers = [
            result.message(),
            ToolResultMessage(ToolResult(result.tool_calls[0].id, "add", "multimodal", (image,))),
            TextMessage("user", [ContentBlock("text", text="see"), image]),
        ]
        queried(server.url, "query", QueryOptions(messages=answers))

    _, model, results, said = to_camel_case(server.requests[1].body)["contents"]
    call = model["parts"][-1]
    assert model["parts"][0]["thought"] is True
    assert call["functionCall"] == CALL["functionCall"]
    assert _standard(call["thoughtSignature"]) == SIGNATURE
    [response] = results["parts"]
    assert _standard(response["functionResponse"]["parts"][0]["inlineData"]["data"]) == "+/+/"
    assert "id" not in response["functionResponse"]
    assert said["parts"][0] == {"text": "see"}
    assert _standard(said["parts"][1]["inlineData"]["data"]) == "+/+/"


def _standard(base64: str) -> str:
    return base64.replace("-", "+").replace("_", "/")


@pytest.mark.slow
def test_gives_what_was_recorded(corpus: Path) -> None:
    """Answers of the corpus again, as the SDK parses them."""
    found = [one for one in exchanges(corpus, "gemini") if one.status == 200]
    recorded = [one for one in found if not one.streaming][:60] + [one for one in found if one.streaming][:15]
    answers = [
        Answer(events=[(None, event) for event in one.events]) if one.streaming else Answer(one.response)
        for one in recorded
    ]
    with serve(*answers) as server, genai.Client(api_key="k", http_options={"base_url": server.url}) as client:
        driver = GeminiDriver(client, model=MODEL)
        for one in recorded:
            result = driver.stream_query("hello").result if one.streaming else driver.query("hello")
            assert "error" not in result.metadata, one.id
            assert [call.name for call in result.tool_calls] == [call["name"] for call in one.tool_calls], one.id
            if not one.streaming:
                plain = decode_response(one.response)
                assert (result.content, result.finish_reason) == (plain.content, plain.finish_reason), one.id
                ours, theirs = encode_messages([result.message()]), encode_messages([plain.message()])
                # Signatures and media in the alphabet the SDK prefers; the same replaced in both.
                assert _standard(json.dumps(ours, sort_keys=True)) == _standard(json.dumps(theirs, sort_keys=True)), (
                    one.id
                )


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("status", "error"),
    [(400, errors.ClientError), (401, errors.ClientError), (429, errors.ClientError), (500, errors.ServerError)],
)
@pytest.mark.slow
def test_errors_of_the_sdk_are_results(kind: str, status: int, error: type[Exception]) -> None:
    with serve(Answer({"error": {"code": status, "message": "no", "status": "X"}}, status)) as server:
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
    assert "Timeout" in type(result.metadata["error"]).__name__
    assert len(server.requests) <= 1, "nothing is tried again"


@pytest.mark.parametrize("kind", ["stream", "async stream"])
def test_a_stream_that_breaks_keeps_what_came(kind: str) -> None:
    with serve(Answer(events=EVENTS[:4], cut=True)) as server:
        result, texts = queried(server.url, kind)

    assert (result.finish_reason, result.content, texts) == ("error", "so", ["s", "o"])
    assert [call.arguments for call in result.tool_calls] == [{"a": 1}]
    assert "error" in result.metadata


@pytest.mark.parametrize("kind", ["stream", "async stream"])
@pytest.mark.parametrize("last", [0, 3, 4])
@pytest.mark.slow
def test_a_stream_that_ends_too_early_is_an_error(kind: str, last: int) -> None:
    with serve(Answer(events=EVENTS[:last])) as server:
        result, _ = queried(server.url, kind)

    assert result.finish_reason == "error"


@pytest.mark.parametrize("kind", ["stream", "async stream"])
def test_an_error_in_the_middle_of_a_stream(kind: str) -> None:
    trouble = (None, {"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}})
    with serve(Answer(events=[*EVENTS[:3], trouble])) as server:
        result, texts = queried(server.url, kind)

    assert (result.finish_reason, result.content, texts) == ("error", "so", ["s", "o"])
    assert "Overloaded" in str(result.metadata["error"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_the_clients_own_retries_are_the_clients(kind: str) -> None:
    good = Answer(events=EVENTS) if "stream" in kind else Answer(BODY)
    retries = {"attempts": 2, "initial_delay": 0.001, "jitter": 0.001, "max_delay": 0.01}
    with serve(Answer({}, 429), good) as server:
        result, _ = queried(server.url, kind, retry_options=retries)

    assert result.finish_reason == "tool_calls"
    assert len(server.requests) == 2


def test_the_result_can_be_asked_for_without_reading_the_stream() -> None:
    with (
        serve(Answer(events=EVENTS)) as server,
        genai.Client(api_key="k", http_options={"base_url": server.url}) as client,
    ):
        assert GeminiDriver(client, model=MODEL).stream_query("hello").result.content == "so"


def one_connection(url: str) -> genai.Client:
    limits = {"limits": httpx.Limits(max_connections=1)}
    return genai.Client(
        api_key="k", http_options={"base_url": url, "client_args": limits, "async_client_args": dict(limits)}
    )


def test_a_stream_that_is_left_gives_its_connection_back() -> None:
    with serve(Answer(events=EVENTS), Answer(BODY)) as server, one_connection(server.url) as client:
        driver = GeminiDriver(client, model=MODEL)
        left = driver.stream_query("hello")
        assert next(left.stream) == "s"
        left.stream.close()
        # With one connection in all, this would wait for ever.
        assert driver.query("hello", QueryOptions(timeout=5)).content == "so"
        assert (left.result.finish_reason, left.result.content) == ("error", "s")


def test_an_async_stream_that_is_left_gives_its_connection_back() -> None:
    async def leave(client: genai.Client) -> tuple[str, QueryResult]:
        async with client.aio:
            driver = AsyncGeminiDriver(client, model=MODEL)
            left = await driver.stream_query("hello")
            assert await anext(left.stream) == "s"
            await left.stream.aclose()
            after = await driver.query("hello", QueryOptions(timeout=5))
            return after.content, await left.result

    with serve(Answer(events=EVENTS), Answer(BODY)) as server, one_connection(server.url) as client:
        content, left = asyncio.run(leave(client))
    assert (content, left.finish_reason, left.content) == ("so", "error", "s")
