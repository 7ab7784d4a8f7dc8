"""Settings of a query, as the SDKs' real clients send them; and answers that are values of a pydantic model."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

import anthropic as sdk
import openai
import pytest
from google.genai.types import ThinkingConfig
from pydantic import BaseModel, ConfigDict, Field, RootModel, TypeAdapter, ValidationError

from tests.adapters.clients import PROVIDERS, Provider
from tests.adapters.loopback import Answer, serve
from tests.adapters.settings import PICTURE, PLAIN, SETTINGS, TOOL, bodies
from toolkit import (
    AssistantToolCallMessage,
    ChatMessage,
    ContentBlock,
    JsonObject,
    NativeTool,
    QueryOptions,
    TextMessage,
    ToolCall,
    ToolResult,
    ToolResultMessage,
)
from toolkit.adapters import anthropic, cohere, gemini, openai_chat, openai_responses
from toolkit.adapters.gemini import GeminiDriver
from toolkit.adapters.gemini.driver import build_request
from toolkit.errors import OutputError
from toolkit.wire import NativeChoice, OutputSchema

MARK = {"type": "ephemeral"}
BREAK = {"mode": "explicit"}


def sent(provider: str, options: QueryOptions, prompt: Any = "hi") -> Any:
    [body] = bodies(PROVIDERS[provider], (prompt, options))
    return body


TYPES: dict[str, Any] = {
    "openai_chat": openai.types.chat.completion_create_params.CompletionCreateParamsNonStreaming,
    "openai_responses": openai.types.responses.response_create_params.ResponseCreateParamsNonStreaming,
    "anthropic": sdk.types.message_create_params.MessageCreateParamsNonStreaming,
}


@pytest.mark.parametrize("provider", TYPES)
def test_the_sdks_own_types_take_every_setting(provider: str) -> None:
    """And know every key; Gemini's and Ollama's clients check by themselves."""
    types = TypeAdapter(TYPES[provider])
    for setting in SETTINGS:
        if "detail" in setting.name:
            continue  # the types of Responses want one for every image
        body = sent(provider, setting.options, setting.prompt)
        assert consumed(types.validate_python(body)) == body, setting.name
    with pytest.raises(ValidationError):
        consumed(types.validate_python({**sent(provider, PLAIN), "tools": [{"type": "function", "name": 1}]}))


def consumed(value: Any) -> Any:
    """A validated value; pydantic checks an ``Iterable`` while it is read."""
    if isinstance(value, dict):
        return {key: consumed(item) for key, item in value.items()}
    if isinstance(value, str | int | float | None):
        return value
    return [consumed(item) for item in value]


# -- calls, reasoning ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["openai_chat", "openai_responses"])
def test_openai_refuses_the_flag_without_tools(provider: str) -> None:
    """So it is not sent."""
    assert "parallel_tool_calls" not in sent(provider, QueryOptions(parallel_calls=False))
    assert sent(provider, replace(PLAIN, parallel_calls=True))["parallel_tool_calls"] is True


def test_anthropics_flag_is_part_of_the_choice() -> None:
    choices: Any = [("required", {"type": "any", "disable_parallel_tool_use": True}), ("none", {"type": "none"})]
    for choice, expected in [*choices, (NativeChoice("anthropic", {"type": "any"}), {"type": "any"})]:
        assert sent("anthropic", replace(PLAIN, tool_choice=choice, parallel_calls=False))["tool_choice"] == expected
    assert "tool_choice" not in sent("anthropic", QueryOptions(parallel_calls=False))


@pytest.mark.parametrize(
    ("effort", "said"),
    [
        ("minimal", {"anthropic": "low", "gemini": "MINIMAL", "ollama": "low", "openai_chat": "minimal"}),
        ("medium", {"anthropic": "medium", "gemini": "MEDIUM", "ollama": "medium", "openai_chat": "medium"}),
        ("max", {"anthropic": "max", "gemini": "HIGH", "ollama": "high", "openai_chat": "max"}),
    ],
)
def test_the_nearest_effort(effort: Any, said: dict[str, str]) -> None:
    options = QueryOptions(reasoning=effort)
    assert {
        "anthropic": sent("anthropic", options)["output_config"]["effort"],
        "gemini": sent("gemini", options)["generationConfig"]["thinkingConfig"]["thinking_level"],
        "ollama": sent("ollama", options)["think"],
        "openai_chat": sent("openai_chat", options)["reasoning_effort"],
    } == said


@pytest.mark.parametrize(
    ("effort", "budget"),
    [("none", 0), ("minimal", 1024), ("low", 1024), ("medium", 8192), ("high", 24_576), ("max", 24_576), (500, 500)],
)
def test_gemini_before_3_takes_budgets_only(effort: Any, budget: int) -> None:
    request = build_request("models/gemini-2.5-flash", "hi", QueryOptions(reasoning=effort))
    assert request["config"]["thinking_config"] == {"thinking_budget": budget}
    ThinkingConfig.model_validate(request["config"]["thinking_config"])


def test_a_budget_leaves_room_for_the_answer() -> None:
    assert sent("anthropic", QueryOptions(reasoning=10_000))["max_tokens"] == 4096 + 10_000
    assert sent("anthropic", QueryOptions(reasoning=10_000, max_tokens=12_000))["max_tokens"] == 12_000, (
        "as it is given"
    )


def test_extra_wins() -> None:
    assert sent("anthropic", QueryOptions(reasoning="low", extra={"thinking": {"type": "disabled"}}))["thinking"] == {"type": "disabled"}  # fmt: skip
    assert sent("openai_chat", QueryOptions(reasoning="low", extra={"reasoning_effort": "high"}))["reasoning_effort"] == "high"  # fmt: skip


# -- caches ----------------------------------------------------------------------------------------------------------------

CALLED: list[ChatMessage] = [
    TextMessage("user", "go"),
    AssistantToolCallMessage("", [ToolCall("c1", "f", {})]),
    ToolResultMessage(ToolResult("c1", "f", "text", "done")),
]


def test_breakpoints_go_on_the_last_block_that_takes_one() -> None:
    everything = replace(PLAIN, cache_after=["tools", "system", "messages"])
    body = sent("anthropic", everything, CALLED)
    assert body["tools"][-1]["cache_control"] == body["system"][-1]["cache_control"] == MARK
    assert body["messages"][-1]["content"][-1]["cache_control"] == MARK
    assert body["messages"][-1]["content"][-1]["type"] == "tool_result"
    assert json.dumps(body).count("cache_control") == 3
    chat = sent("openai_chat", everything, CALLED)
    assert chat["messages"][0]["content"][-1]["prompt_cache_breakpoint"] == BREAK
    assert chat["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": [{"prompt_cache_breakpoint": BREAK, "type": "text", "text": "done"}]}  # fmt: skip
    responses = sent("openai_responses", everything, CALLED)
    assert responses["input"][0]["content"][-1]["prompt_cache_breakpoint"] == BREAK
    assert responses["input"][-1]["output"][-1]["prompt_cache_breakpoint"] == BREAK
    assert "instructions" not in responses


def test_thinking_and_an_empty_request_take_no_breakpoint() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    [said] = anthropic.decode_messages([{"role": "assistant", "content": [thought, {"type": "text", "text": "so"}]}])
    body = sent("anthropic", QueryOptions(cache_after=["tools", "system", "messages"]), [TextMessage("user", "hi"), said])  # fmt: skip
    assert body["messages"][-1]["content"] == [thought, {"type": "text", "text": "so", "cache_control": MARK}]
    assert "tools" not in body and "system" not in body
    own = {"type": "text", "text": "so", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    [mine] = anthropic.decode_messages([{"role": "user", "content": [own]}])
    assert sent("anthropic", QueryOptions(cache_after=["messages"]), [mine])["messages"][-1]["content"] == [own]


def test_what_the_model_wrote_takes_no_breakpoint_at_openai() -> None:
    said = [TextMessage("user", "hi"), TextMessage("assistant", "so")]
    options = QueryOptions(cache_after=["messages"])
    assert "prompt_cache_breakpoint" not in json.dumps(sent("openai_responses", options, said))


def test_a_tool_that_is_loaded_later_is_not_cached() -> None:
    later = replace(TOOL, name="g", defer_loading=True)
    tools = sent("anthropic", replace(PLAIN, tools=[TOOL, later], cache_after=["tools"]))["tools"]
    assert [tool.get("cache_control") for tool in tools] == [None, MARK, None]


# -- tools that are loaded later -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "native"),
    [
        ("anthropic", {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}),
        ("openai_responses", {"type": "tool_search", "execution": "client"}),
    ],
)
def test_a_search_of_the_caller_is_enough(provider: str, native: dict[str, Any]) -> None:
    own = NativeTool(provider, JsonObject(native))
    later = replace(TOOL, defer_loading=True)
    tools = sent(provider, QueryOptions(tools=[own, later]))["tools"]
    assert [tools[0], len(tools), tools[1]["defer_loading"]] == [native, 2, True]


@pytest.mark.parametrize("adapter", [anthropic, openai_responses])
def test_definitions_say_it_there_and_back(adapter: Any) -> None:
    [raw] = adapter.encode_tools([replace(TOOL, defer_loading=True)])
    assert raw["defer_loading"] is True
    [back] = adapter.decode_tools([raw])
    assert back.defer_loading is True
    for flag in (False, None):
        [again] = adapter.decode_tools([{**raw, "defer_loading": flag}])
        assert (again.defer_loading, adapter.encode_tools([again])) == (False, [{**raw, "defer_loading": flag}])


# -- images ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", [openai_chat, openai_responses, gemini, cohere])
@pytest.mark.parametrize("detail", ["low", "high"])
def test_the_detail_of_an_image_there_and_back(adapter: Any, detail: Any) -> None:
    image = replace(PICTURE, detail=detail)
    raw = adapter.encode_messages([TextMessage("user", [image])])
    assert detail.lower() in json.dumps(raw).lower()
    [back] = adapter.decode_messages(raw)
    assert list(back.content) == [image]
    assert adapter.encode_messages([back]) == raw


def test_a_detail_that_only_one_provider_knows_is_kept() -> None:
    part = {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "original"}}
    raw = [{"role": "user", "content": [part]}]
    [back] = openai_chat.decode_messages(raw)
    assert isinstance(back, TextMessage)
    assert list(back.content) == [ContentBlock("image", url="https://example.com/a.png")]
    assert openai_chat.encode_messages([back]) == raw


def test_results_of_gemini_have_no_detail() -> None:
    result = ToolResult("c1", "f", "multimodal", (replace(PICTURE, detail="low"),))
    assert "mediaResolution" not in json.dumps(gemini.encode_messages([*CALLED[:2], ToolResultMessage(result)]))


# -- typed answers ---------------------------------------------------------------------------------------------------------


class Stop(BaseModel):
    """A stop on the way."""

    place: str = Field(min_length=1)
    nights: int | None = None
    tags: dict[str, str] = {}


class Trip(BaseModel):
    model_config = ConfigDict(strict=True)

    kind: Literal["train", "car"]
    stops: list[Stop]
    note: str = "none"


class Places(RootModel[list[Stop]]):
    """Only the places."""


class Node(BaseModel):
    children: list[Node] = []


STOPS = [Stop(place="Ulm", nights=2, tags={"a": "b"}), Stop(place="Bonn")]
TRIP = Trip(kind="train", stops=STOPS)
# What a model answers: to OpenAI every property is required, to Anthropic none that has a default; to others anything goes.
PAIRS = [{"key": "a", "value": "b"}]
ANSWERS: dict[str, Any] = {
    "openai": {"kind": "train", "stops": [{"place": "Ulm", "nights": 2, "tags": PAIRS}, {"place": "Bonn", "nights": None, "tags": []}], "note": None},
    "anthropic": {"kind": "train", "stops": [{"place": "Ulm", "nights": 2, "tags": PAIRS}, {"place": "Bonn"}]},
    "other": {"kind": "train", "stops": [{"place": "Ulm", "nights": 2, "tags": {"a": "b"}}, {"place": "Bonn"}]},
}  # fmt: skip
FAMILY = {"openai_chat": "openai", "openai_responses": "openai", "anthropic": "anthropic"}


@pytest.fixture(params=PROVIDERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("is_async", [False, True])
def test_the_answer_is_a_value(name: str, is_async: bool) -> None:
    provider, said = PROVIDERS[name], ANSWERS[FAMILY.get(name, "other")]
    with serve(Answer(provider.text(json.dumps(said)))) as server:
        output = provider.query_output(server.url, Trip, is_async=is_async)

    assert output.value == TRIP
    assert json.loads(output.result.content) == said, "and what the model wrote is there"


def test_a_value_that_is_no_object_is_wrapped(name: str) -> None:
    provider, said = PROVIDERS[name], ANSWERS[FAMILY.get(name, "other")]["stops"]
    with serve(Answer(provider.text(json.dumps({"value": said})))) as server:
        output = provider.query_output(server.url, Places, is_async=False)
    assert output.value == Places(STOPS)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Sorry, no.", "the answer is not JSON"),
        ('{"kind": "plane", "stops": []}', "kind: Input should be 'train' or 'car'"),
        ("[]", "does not fit Trip"),
        ("{", "the answer is not JSON"),
    ],
)
def test_an_answer_that_is_no_value_is_an_error_with_the_answer(name: str, text: str, why: str) -> None:
    provider = PROVIDERS[name]
    with serve(Answer(provider.text(text))) as server, pytest.raises(OutputError, match=why) as caught:
        provider.query_output(server.url, Trip, is_async=False)
    assert caught.value.result.content == text


def test_a_query_that_fails_is_an_error_with_its_cause(name: str) -> None:
    with serve(Answer({"error": {"message": "no"}}, 400)) as server, pytest.raises(OutputError) as caught:
        PROVIDERS[name].query_output(server.url, Trip, is_async=False)
    assert caught.value.__cause__ is caught.value.result.metadata["error"]
    assert str(caught.value).startswith("the query failed: ")


def test_an_answer_that_was_cut_or_calls_tools_says_so() -> None:
    provider = PROVIDERS["anthropic"]
    cut = {**provider.text('{"kind"'), "stop_reason": "max_tokens"}
    calls = {**provider.text(""), "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}], "stop_reason": "tool_use"}  # fmt: skip
    for body, why in ((cut, "raise 'max_tokens'"), (calls, "run the calls")):
        with serve(Answer(body)) as server, pytest.raises(OutputError, match=why) as caught:
            provider.query_output(server.url, Trip, is_async=False, options=PLAIN)
    assert [call.id for call in caught.value.result.tool_calls] == ["c1"]


def test_what_a_provider_cannot_enforce_is_refused_or_sent_without_strict_mode() -> None:
    with (
        serve() as server,
        pytest.raises(OutputError, match=r"Anthropic cannot enforce the schema of 'Node': .*itself"),
    ):
        PROVIDERS["anthropic"].query_output(server.url, Node, is_async=False)
    assert server.requests == []
    anything = OutputSchema("any thing", JsonObject({"type": "object", "properties": {"x": {}}}))
    asked = sent("openai_chat", QueryOptions(output=anything))["response_format"]["json_schema"]
    assert (asked["strict"], asked["schema"]) == (False, anything.schema)
    assert " " not in asked["name"]


def test_geminis_driver_keeps_its_client() -> None:
    """The SDK closes a client that nobody refers to."""
    provider: Provider = PROVIDERS["gemini"]
    with serve(Answer(provider.text("ok"))) as server:
        driver = GeminiDriver(provider.client(server.url), model="m")
        assert driver.query("hi").content == "ok"
