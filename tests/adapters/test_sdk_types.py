"""Everything that we write is taken by the types of the providers' own SDKs."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel

from tests.adapters.matrix import ADAPTERS, Adapter
from tests.adapters.sdk_types import refusals
from tests.adapters.traffic import Exchange, exchanges
from toolkit import ChatMessage, QueryOptions, ToolDefinition, ToolResult, ToolResultMessage
from toolkit.adapters.anthropic import driver as anthropic
from toolkit.adapters.driver import output_schema
from toolkit.adapters.gemini import driver as gemini
from toolkit.adapters.ollama import driver as ollama
from toolkit.adapters.openai_chat import driver as openai_chat
from toolkit.adapters.openai_responses import driver as openai_responses
from toolkit.testing.laws import CHOICES, CONVERSATIONS, QUESTION, TOOLS


@pytest.fixture(params=ADAPTERS, ids=lambda adapter: adapter.module)
def adapter(request: pytest.FixtureRequest) -> Adapter:
    found: Adapter = request.param
    return found


# In chat completions and LangChain, reasoning is an agreement between servers and clients: no type has it.
WITH_REASONING: Final = [one for one in ADAPTERS if one.module not in ("openai_chat", "langchain")]


def messages_to_send(adapter: Adapter, messages: list[ChatMessage]) -> Any:
    """What goes into the list of messages; some providers have a field of its own for system texts."""
    split = getattr(adapter, "split_system", None) if "split_system" in adapter.__all__ else None
    return adapter.encode_messages(messages if split is None else split(messages)[1])


@pytest.mark.sample
@pytest.mark.parametrize("messages", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_messages_written_from_scratch_are_taken(adapter: Adapter, messages: list[ChatMessage]) -> None:
    assert refusals(adapter.module, "messages", messages_to_send(adapter, messages)) == []


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_tools_written_from_scratch_are_taken(adapter: Adapter, tool: ToolDefinition) -> None:
    assert refusals(adapter.module, "tools", adapter.encode_tools([tool])) == []


@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("adapter", WITH_REASONING, ids=lambda adapter: adapter.module)
def test_an_answer_with_reasoning_and_a_call_goes_back_as_types_take_it(adapter: Adapter, number: int) -> None:
    answer = adapter.decode_response(adapter.thinking)
    [call] = answer.tool_calls
    results: list[ChatMessage] = [ToolResultMessage(ToolResult(call.id, call.name, "text", "7"))]
    written = messages_to_send(adapter, [QUESTION, answer.message(), *results[:number]])
    assert refusals(adapter.module, "messages", written) == []


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_choices_written_from_scratch_are_taken(adapter: Adapter, choice: Any) -> None:
    try:
        written = adapter.encode_choice(choice)
    except ValueError:
        return  # the provider has no such choice, and the error says what to do
    if written is not None:  # then the field is left out
        assert refusals(adapter.module, "choice", written) == []


def _anthropic_request(options: QueryOptions) -> Any:
    """Without ``temperature``: the SDK has it no longer, while older models still take it, from ``extra_body``."""
    request = anthropic.build_request("claude", 4096, "hi", options)
    whole = {**request, **request["extra_body"]}
    return {key: value for key, value in whole.items() if key not in ("extra_body", "temperature")}


REQUESTS: Final[dict[str, Callable[[QueryOptions], Any]]] = {
    "openai_chat": lambda options: openai_chat.build_request("gpt-5", "hi", options),
    "openai_responses": lambda options: openai_responses.build_request("gpt-5", "hi", options),
    "anthropic": _anthropic_request,
    "gemini": lambda options: gemini.build_request("gemini-3-pro", "hi", options)["config"],
    "ollama": lambda options: ollama.build_request("qwen", "hi", options),
}


class City(BaseModel):
    name: str
    population: int | None = None


OPTIONS: Final = {
    "nothing": QueryOptions(),
    "tools": QueryOptions(list(TOOLS.values())),
    "settings": QueryOptions([TOOLS["tool"]], system="be brief", max_tokens=10, temperature=0.5, messages=[QUESTION]),
    "one call at a time": QueryOptions([TOOLS["tool"]], parallel_calls=False),
    "an effort": QueryOptions(reasoning="low"),
    "a budget": QueryOptions(max_tokens=8000, reasoning=2048),
    "caching": QueryOptions([TOOLS["tool"]], system="be brief", cache_after=["tools", "system", "messages"]),
    "strict": QueryOptions([TOOLS["tool"]], strict=True),
    "a structured output": QueryOptions(output=output_schema(City)),
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("provider", REQUESTS)
def test_whole_requests_of_drivers_are_taken(provider: str, options: QueryOptions) -> None:
    assert refusals(provider, "request", REQUESTS[provider](options)) == []


@pytest.mark.parametrize("part", ["messages", "tools", "choice"])
def test_the_judges_do_refuse(adapter: Adapter, part: str) -> None:
    nonsense: Any = {"nonsense": 1, "type": "nonsense", "data": {}}
    if (adapter.module, part) in {("langchain", "tools"), ("langchain", "choice"), ("ollama", "tools")}:
        nonsense = 7  # any dict is taken there
    assert refusals(adapter.module, part, nonsense if part == "choice" else [nonsense]) != []


# -- recorded conversations, from each provider to each other --------------------------------------------------------------

RECORDED: Final[dict[str, tuple[str, ...]]] = {
    "openai_chat": (
        "openai_chat", "cloudflare_chat", "crusoe_chat", "deepseek_chat", "gemini_openai_compat_chat", "groq_chat",
        "huggingface_chat", "mistral_chat", "ollama_chat", "openrouter_chat", "snowflake_chat", "together_chat", "xai_chat",
    ),
    "openai_responses": (
        "openai_responses", "azure_openai_responses", "bedrock_mantle_openai_responses", "deepseek_responses",
        "lmstudio_responses",
    ),
    "anthropic": ("anthropic",),
    "gemini": ("gemini", "vertex"),
    "bedrock": ("bedrock_converse",),
    "cohere": ("cohere",),
}  # fmt: skip
MESSAGES_KEY: Final = {"openai_responses": "input", "gemini": "contents"}
SAMPLE_EVERY: Final = 5


@pytest.fixture(params=RECORDED)
def source(request: pytest.FixtureRequest) -> Adapter:
    return _adapter(request.param)


def _adapter(module: str) -> Adapter:
    return next(one for one in ADAPTERS if one.module == module)


def sample(corpus: Path, files: tuple[str, ...], everything: bool) -> list[Exchange]:
    """Every fifth exchange, always the same ones; all of them under ``--everything``."""
    found = exchanges(corpus, *files)
    return [one for one in found if everything or zlib.crc32(one.id.encode()) % SAMPLE_EVERY == 0]


def conversation(source: Adapter, exchange: Exchange) -> list[ChatMessage]:
    """The messages of a request, and its answer."""
    request = exchange.request or {}
    messages: list[ChatMessage] = source.decode_messages(request.get(MESSAGES_KEY.get(source.module, "messages"), []))
    if exchange.streaming:
        growing = source.Accumulator()
        for event in exchange.events:
            growing.feed(event)
        answer = growing.result()
    else:
        answer = source.decode_response(exchange.response)
    return messages if answer.finish_reason == "error" else [*messages, answer.message()]


def test_recorded_conversations_are_taken_by_every_other_provider(
    source: Adapter, corpus: Path, everything: bool
) -> None:
    for exchange in sample(corpus, RECORDED[source.module], everything):
        messages = conversation(source, exchange)
        for target in ADAPTERS:
            if target.module != source.module:
                written = messages_to_send(target, messages)
                assert refusals(target.module, "messages", written) == [], (exchange.id, target.module)


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-3-pro"])
def test_recorded_conversations_are_taken_by_each_family_of_gemini(
    source: Adapter, corpus: Path, everything: bool, model: str
) -> None:
    gemini = _adapter("gemini")
    for exchange in sample(corpus, RECORDED[source.module], everything):
        written = gemini.encode_messages(conversation(source, exchange), model)
        assert refusals("gemini", "messages", written) == [], exchange.id


def test_recorded_tools_are_taken_by_every_provider(source: Adapter, corpus: Path, everything: bool) -> None:
    for exchange in sample(corpus, RECORDED[source.module], everything):
        request = exchange.request or {}
        tools = request.get("toolConfig", {}).get("tools") if source.module == "bedrock" else request.get("tools")
        definitions = [one for one in source.decode_tools(tools or []) if isinstance(one, ToolDefinition)]
        for target in ADAPTERS:
            if definitions and target.module != source.module:
                written = target.encode_tools(definitions)
                assert refusals(target.module, "tools", written) == [], (exchange.id, target.module)


# What a provider wrote itself and its SDK's types do not have, or not yet. It is sent back as it came.
AHEAD_OF_THE_TYPES: Final = {
    "openai_responses": (
        "ResponseFunctionWebSearchParam.action.ActionSearch.sources",  # a source of type "api"
        "ResponseFileSearchToolCallParam.results.0.vector_store_id",
        "ImageGenerationCall",  # recorded without its result
        "ResponseFunctionToolCallParam.status",  # null, as a client sent it
        "ResponseCustomToolCallParam.status",
    ),
    "anthropic": ("BetaAssistantMessageParam",),  # code execution of another provider, as a client sent it
}


def test_what_a_provider_gets_back_is_taken_or_its_own(source: Adapter, corpus: Path, everything: bool) -> None:
    """Other servers with OpenAI's APIs are left out: they have keys and values of their own."""
    ours = ("openai_chat", "openai_responses", "anthropic", "gemini", "vertex", "bedrock_converse", "cohere")
    files = tuple(file for file in RECORDED[source.module] if file in ours)
    known = AHEAD_OF_THE_TYPES.get(source.module, ())
    for exchange in sample(corpus, files, everything):
        written = messages_to_send(source, conversation(source, exchange))
        found = refusals(source.module, "messages", written)
        assert [one for one in found if not any(part in one for part in known)] == [], exchange.id
