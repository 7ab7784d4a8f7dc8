"""Strict mode through both OpenAI adapters: definitions out, calls back in the tool's own form, history as it was said."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import openai
import pytest

from tests.adapters.loopback import Answer, serve
from toolkit import (
    JsonObject,
    QueryOptions,
    SecurityPolicy,
    ToolCall,
    ToolDefinition,
    ToolkitContext,
    create_agent_toolkit,
)
from toolkit.adapters import openai_chat, openai_responses
from toolkit.adapters.strict import check_strict, to_strict
from toolkit.wire.codec import from_json, to_json
from toolkit.wire.definition import NativeTool, alias
from toolkit.wire.message import AssistantToolCallMessage
from toolkit.wire.query import QueryResult

PARAMETERS: dict[str, object] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "lines": {"type": "integer", "default": 10},
        "encoding": {"type": "string", "enum": ["utf-8", "latin-1"]},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["path"],
}
TOOL = ToolDefinition("files.read", "Reads.", JsonObject(PARAMETERS))
OPEN = ToolDefinition("open", "Takes anything.", JsonObject({"type": "object", "properties": {"x": {}}}))
SAID = '{"path": "a", "lines": null, "encoding": null, "headers": [{"key": "k", "value": "v"}]}'
MEANT = {"path": "a", "lines": 10, "headers": {"k": "v"}}

ADAPTERS: dict[str, Any] = {"chat": openai_chat, "responses": openai_responses}


@pytest.fixture(params=ADAPTERS)
def adapter(request: pytest.FixtureRequest) -> Any:
    return ADAPTERS[request.param]


def parts(adapter: ModuleType, sent: dict[str, Any]) -> dict[str, Any]:
    function: dict[str, Any] = sent["function"] if adapter is openai_chat else sent
    return {key: function.get(key) for key in ("name", "parameters", "strict")}


def response(adapter: ModuleType, name: str, text: str) -> dict[str, Any]:
    if adapter is openai_chat:
        call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": text}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}  # fmt: skip
    item = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": name,
        "arguments": text,
        "status": "completed",
    }
    return {"id": "r", "object": "response", "created_at": 0, "model": "m", "status": "completed", "output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}  # fmt: skip


def said_again(adapter: ModuleType, calls: list[ToolCall]) -> Any:
    """The calls as the next request has them."""
    sent = adapter.encode_messages([AssistantToolCallMessage("", calls)])
    return sent[0]["tool_calls"] if adapter is openai_chat else sent


def test_a_schema_goes_out_strict_where_that_loses_nothing(adapter: Any) -> None:
    sent = [parts(adapter, one) for one in adapter.encode_tools([TOOL, OPEN], strict=True)]
    assert sent[0] == {"name": alias("files.read"), "parameters": to_strict(PARAMETERS).schema, "strict": True}
    assert check_strict(sent[0]["parameters"]) == []
    assert sent[1] == {"name": "open", "parameters": OPEN.parameters, "strict": False}


@pytest.mark.parametrize(
    ("said", "asked", "expected"),
    [(None, True, True), (True, None, True), (True, False, True), (False, True, False), (None, False, False)],
)
def test_a_definition_says_for_itself(adapter: Any, said: bool | None, asked: bool | None, expected: bool) -> None:
    [sent] = adapter.encode_tools([dataclasses.replace(TOOL, strict=said)], strict=asked)
    assert parts(adapter, sent)["strict"] is expected
    assert (parts(adapter, sent)["parameters"] == PARAMETERS) is not expected


def test_nothing_changes_where_nobody_asks(adapter: Any) -> None:
    [sent] = adapter.encode_tools([TOOL])
    assert parts(adapter, sent)["parameters"] == PARAMETERS


def test_what_was_sent_before_is_sent_again_as_it_was(adapter: Any) -> None:
    """Also a schema that the checker would refuse: the provider has the last word on it."""
    for parameters in (PARAMETERS, to_strict(PARAMETERS).schema, {"type": "object", "properties": {}}):
        function = {"name": "f", "description": "F.", "parameters": parameters, "strict": True}
        raw = {"type": "function", "function": function} if adapter is openai_chat else {"type": "function", **function}
        decoded = adapter.decode_tools([raw])
        assert adapter.encode_tools(decoded) == [raw]
        assert adapter.encode_tools(decoded, strict=True) == [raw]
        assert adapter.encode_tools(from_json(to_json(decoded)), strict=True) == [raw]
        calls = adapter.decode_response(response(adapter, "f", '{"lines": null}')).tool_calls
        assert adapter.decode_strict_calls(calls, decoded, True) == calls


def test_calls_come_back_in_the_form_of_the_tool(adapter: Any) -> None:
    raw = response(adapter, alias("files.read"), SAID)
    heard = adapter.decode_response(raw).tool_calls
    [call] = adapter.decode_strict_calls(heard, [OPEN, TOOL, NativeTool("openai", JsonObject({}))], True)

    assert (call.arguments, call.unread_text) == (MEANT, None)
    assert said_again(adapter, [call]) == said_again(adapter, heard)
    assert said_again(adapter, from_json(to_json([call]))) == said_again(adapter, heard), (
        "also when it was kept as JSON"
    )
    changed = ToolCall(call.id, call.name, {**call.arguments, "path": "b"}, call.metadata)
    [sent] = said_again(adapter, [changed])
    text = sent["function"]["arguments"] if adapter is openai_chat else sent["arguments"]
    assert json.loads(text) == {**MEANT, "path": "b"}, "what was changed is what is sent"


@pytest.mark.parametrize(
    "text",
    [
        '{"path": "a", "li',
        "[]",
        "",
        '{"path": "a", "path": "b", "lines": null}',
        '{"path": "a", "lines": NaN, "encoding": null}',
        '{"path": "a", "lines": 1, "encoding": "utf-8", "headers": {"k": "v"}}',
    ],
)
def test_calls_there_is_nothing_to_decode_in_stay_as_they_are(adapter: Any, text: str) -> None:
    heard = adapter.decode_response(response(adapter, alias("files.read"), text)).tool_calls
    decoded = adapter.decode_strict_calls(heard, [TOOL], True)
    if text == "":
        assert decoded[0].arguments == {"lines": 10}
    else:
        assert decoded == heard


def test_a_tool_that_was_not_sent_strict_is_left_alone(adapter: Any) -> None:
    heard = adapter.decode_response(response(adapter, "open", '{"x": null}')).tool_calls
    assert adapter.decode_strict_calls(heard, [OPEN], True) == heard
    heard = adapter.decode_response(response(adapter, alias("files.read"), SAID)).tool_calls
    assert adapter.decode_strict_calls(heard, [TOOL]) == heard


def test_a_decoded_call_runs_with_the_decoded_arguments(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    policy = SecurityPolicy(default="deny", tools={"read_file": "allow"})
    with create_agent_toolkit(ToolkitContext(tmp_path, policy)) as toolkit:
        [definition] = toolkit.get_allowed_tools()
        receipt = to_strict(definition.parameters)
        assert receipt.is_strict
        said = dict.fromkeys(receipt.schema["properties"]) | {"path": "a.txt", "start_line": 2}
        heard = openai_chat.decode_response(response(openai_chat, "read_file", json.dumps(said))).tool_calls
        refused = toolkit.call(heard[0])
        done = toolkit.call(openai_chat.decode_strict_calls(heard, [definition], True)[0])
    assert refused.kind == "error"
    assert str(refused.value).startswith("INVALID_TOOL_ARGUMENTS")
    assert done.kind != "error"
    assert "two" in str(done.value)


def chunks() -> list[tuple[None, Any]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> tuple[None, Any]:
        return None, {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}  # fmt: skip

    first = {
        "index": 0,
        "id": "c1",
        "type": "function",
        "function": {"name": alias("files.read"), "arguments": SAID[:20]},
    }
    rest = {"index": 0, "function": {"arguments": SAID[20:]}}
    return [chunk({"tool_calls": [first]}), chunk({"tool_calls": [rest]}), chunk({}, "tool_calls"), (None, "[DONE]")]


def events() -> list[tuple[str, Any]]:
    whole = response(openai_responses, alias("files.read"), SAID)
    last = {"type": "response.completed", "sequence_number": 1, "response": whole}
    return [("response.completed", last)]


@pytest.mark.parametrize("kind", ["query", "stream", "async query", "async stream"])
@pytest.mark.slow
def test_drivers_give_calls_in_the_form_of_the_tool(adapter: Any, kind: str) -> None:
    whole = response(adapter, alias("files.read"), SAID)
    streamed: Any = chunks() if adapter is openai_chat else events()
    with serve(Answer(events=streamed) if "stream" in kind else Answer(whole)) as server:
        result = queried(adapter, server.url, kind)

    assert (result.finish_reason, [call.arguments for call in result.tool_calls]) == ("tool_calls", [MEANT])
    [asked] = server.requests
    assert parts(adapter, asked.body["tools"][0])["strict"] is True
    assert SAID in str(adapter.encode_messages([result.message()]))


def queried(adapter: Any, url: str, kind: str) -> QueryResult:
    options = QueryOptions(tools=[TOOL], strict=True)
    settings: Any = {"api_key": "k", "base_url": f"{url}/v1", "max_retries": 0}
    name = "OpenAIChatDriver" if adapter is openai_chat else "OpenAIResponsesDriver"

    async def later() -> QueryResult:
        async with openai.AsyncOpenAI(**settings) as client:
            driver = getattr(adapter, f"Async{name}")(client, model="m")
            if kind == "async query":
                return await driver.query("hello", options)  # type: ignore[no-any-return]
            return await (await driver.stream_query("hello", options)).result  # type: ignore[no-any-return]

    if kind.startswith("async"):
        return asyncio.run(later())
    with openai.OpenAI(**settings) as client:
        driver = getattr(adapter, name)(client, model="m")
        if kind == "query":
            return driver.query("hello", options)  # type: ignore[no-any-return]
        return driver.stream_query("hello", options).result  # type: ignore[no-any-return]


@pytest.mark.slow
def test_strict_mode_needs_no_sdk() -> None:
    code = "import sys, toolkit.adapters.strict, toolkit.adapters.lint; print([m for m in ('openai', 'anthropic', 'google.genai', 'ollama', 'httpx', 'jsonschema') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
