"""The drivers over Ollama's clients and a loopback server. Its answers are written from the client's types, because there is no
published recording of ``/api/chat``."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import httpx
import ollama
import pytest

from tests.adapters.loopback import Answer, serve
from toolkit import ContentBlock, JsonObject, NamedTool, QueryOptions, QueryResult, TextMessage, ToolDefinition
from toolkit.adapters.ollama import AsyncOllamaDriver, OllamaDriver

CALL = {"function": {"name": "add", "arguments": {"a": 1}}}
HEAD = {"model": "m", "created_at": "2025-01-01T00:00:00Z"}
TAIL = {"done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 5}
BODY = {**HEAD, **TAIL, "message": {"role": "assistant", "content": "so", "thinking": "hm", "tool_calls": [CALL]}}
LINES = [
    {**HEAD, "done": False, "message": {"role": "assistant", "content": "", "thinking": "hm"}},
    {**HEAD, "done": False, "message": {"role": "assistant", "content": "s"}},
    {**HEAD, "done": False, "message": {"role": "assistant", "content": "o"}},
    {**HEAD, "done": False, "message": {"role": "assistant", "content": "", "tool_calls": [CALL]}},
    {**HEAD, **TAIL, "message": {"role": "assistant", "content": ""}},
]
OPTIONS = QueryOptions(
    tools=[ToolDefinition("add", "Adds.", JsonObject({"type": "object"}))],
    messages=[TextMessage("user", "and now?")],
    system="be short",
    max_tokens=9,
    temperature=0.5,
    extra={"keep_alive": 7},
)
KINDS = ["query", "stream", "async query", "async stream"]


def queried(url: str, kind: str, options: QueryOptions = OPTIONS, **client: Any) -> tuple[QueryResult, list[str]]:
    """One query, sync or async, streamed or not: its result, and the texts that were streamed."""

    async def later() -> tuple[QueryResult, list[str]]:
        async with ollama.AsyncClient(host=url, **client) as made:
            driver = AsyncOllamaDriver(made, model="m")
            if kind == "async query":
                return await driver.query("hello", options), []
            answer = await driver.stream_query("hello", options)
            texts = [text async for text in answer.stream]
            return await answer.result, texts

    if kind.startswith("async"):
        return asyncio.run(later())
    with ollama.Client(host=url, **client) as made:
        driver = OllamaDriver(made, model="m")
        if kind == "query":
            return driver.query("hello", options), []
        answer = driver.stream_query("hello", options)
        texts = list(answer.stream)
        return answer.result, texts


@pytest.mark.parametrize("kind", KINDS)
def test_asks_and_is_answered(kind: str) -> None:
    with serve(Answer(lines=LINES) if "stream" in kind else Answer(BODY)) as server:
        result, texts = queried(server.url, kind)

    assert (result.content, result.finish_reason) == ("so", "tool_calls")
    assert [(call.name, call.arguments) for call in result.tool_calls] == [("add", {"a": 1})]
    assert (result.usage.input_tokens, result.usage.output_tokens) == (3, 5)
    assert result.metadata["ollama"] == {"finish_reason": "stop", "thinking": "hm"}
    assert texts == (["s", "o"] if "stream" in kind else [])
    [asked] = server.requests
    assert asked.path == "/api/chat"
    assert asked.body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be short"},
            {"role": "user", "content": "hello"},
            {"role": "user", "content": "and now?"},
        ],
        "tools": [{"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}}],
        "options": {"num_predict": 9, "temperature": 0.5},
        "keep_alive": 7,
        "stream": "stream" in kind,
    }  # fmt: skip


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", [500, 429, 404])
@pytest.mark.slow
def test_errors_of_the_client_are_results(kind: str, status: int) -> None:
    with serve(Answer({"error": "no"}, status)) as server:
        result, texts = queried(server.url, kind)

    assert (result.finish_reason, result.content, texts) == ("error", "", [])
    error = result.metadata["error"]
    assert isinstance(error, ollama.ResponseError)
    assert error.status_code == status
    assert len(server.requests) == 1, "nothing is tried again"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_a_server_that_never_answers(kind: str) -> None:
    with serve(Answer(silent=True)) as server:
        result, _ = queried(server.url, kind, timeout=0.2)

    assert result.finish_reason == "error"
    assert isinstance(result.metadata["error"], httpx.TimeoutException)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (QueryOptions(timeout=1), "takes its timeout when it is created"),
        (QueryOptions(tool_choice="required"), "cannot require a tool call"),
        (QueryOptions(tool_choice=NamedTool("add")), "cannot require a tool call"),
    ],
)
@pytest.mark.slow
def test_what_cannot_be_said_is_not_sent(kind: str, options: QueryOptions, told: str) -> None:
    with serve() as server:
        result, _ = queried(server.url, kind, options)

    assert (result.finish_reason, server.requests) == ("error", [])
    assert told in str(result.metadata["error"])


def test_no_calls_means_no_tools() -> None:
    with serve(Answer(BODY)) as server:
        queried(server.url, "query", QueryOptions(tools=OPTIONS.tools, tool_choice="none"))
    assert not server.requests[0].body.get("tools")


@pytest.mark.parametrize("kind", ["stream", "async stream"])
@pytest.mark.parametrize(
    "answer", [Answer(lines=LINES[:4], cut=True), Answer(lines=[*LINES[:4], {"error": "out of memory"}])]
)
def test_a_stream_that_breaks_keeps_what_came(kind: str, answer: Answer) -> None:
    with serve(answer) as server:
        result, texts = queried(server.url, kind)

    assert (result.finish_reason, result.content, texts) == ("error", "so", ["s", "o"])
    assert [call.arguments for call in result.tool_calls] == [{"a": 1}]
    assert "error" in result.metadata


def test_the_result_can_be_asked_for_without_reading_the_stream() -> None:
    with serve(Answer(lines=LINES)) as server, ollama.Client(host=server.url) as client:
        assert OllamaDriver(client, model="m").stream_query("hello").result.content == "so"


def images_sent(data: str) -> tuple[QueryResult, list[Any]]:
    message = TextMessage("user", [ContentBlock("image", "image/png", data=data)])
    with serve(Answer(BODY)) as server, ollama.Client(host=server.url) as client:
        result = OllamaDriver(client, model="m").query([message])
    return result, [image for request in server.requests for image in request.body["messages"][0]["images"]]


def test_image_data_is_never_taken_for_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client reads a file if the text it is given as an image is the name of one; a tool's output must not do that."""
    (tmp_path / "AAAA").write_text("secret")
    monkeypatch.chdir(tmp_path)
    result, sent = images_sent("AAAA")
    assert (result.finish_reason, sent) == ("tool_calls", ["AAAA"])

    (tmp_path / "key.pem").write_text("secret")
    result, sent = images_sent("key.pem")
    assert (result.finish_reason, sent) == ("error", [])
    assert base64.b64encode(b"secret").decode() not in str(result)
