"""Tokens are counted by the provider, for the request that would be sent."""

from __future__ import annotations

import asyncio

import anthropic
import openai
import pytest
from google import genai

from tests.adapters.loopback import Answer, Request, serve
from toolkit import JsonObject, QueryOptions, ToolDefinition
from toolkit.adapters.anthropic import AnthropicDriver, AsyncAnthropicDriver
from toolkit.adapters.gemini import AsyncGeminiDriver, GeminiDriver
from toolkit.adapters.openai_responses import AsyncOpenAIResponsesDriver, OpenAIResponsesDriver

OPTIONS = QueryOptions(
    tools=[ToolDefinition("add", "Adds.", JsonObject({"type": "object"}))],
    system="be short",
    max_tokens=9,
    temperature=0.5,
)


def count(provider: str, is_async: bool, answer: Answer) -> tuple[int, Request]:
    with serve(answer) as server:
        counted = asyncio.run(count_async(provider, server.url)) if is_async else count_sync(provider, server.url)
    [request] = server.requests
    return counted, request


def count_sync(provider: str, url: str) -> int:
    if provider == "anthropic":
        with anthropic.Anthropic(api_key="k", base_url=url, max_retries=0) as client:
            return AnthropicDriver(client, model="m").count_tokens("hello", OPTIONS)
    if provider == "gemini":
        with genai.Client(api_key="k", http_options={"base_url": url}) as google:
            return GeminiDriver(google, model="m").count_tokens("hello", OPTIONS)
    with openai.OpenAI(api_key="k", base_url=url, max_retries=0) as oai:
        return OpenAIResponsesDriver(oai, model="m").count_tokens("hello", OPTIONS)


async def count_async(provider: str, url: str) -> int:
    if provider == "anthropic":
        async with anthropic.AsyncAnthropic(api_key="k", base_url=url, max_retries=0) as client:
            return await AsyncAnthropicDriver(client, model="m").count_tokens("hello", OPTIONS)
    if provider == "gemini":
        google = genai.Client(api_key="k", http_options={"base_url": url})
        async with google.aio:
            counted = await AsyncGeminiDriver(google, model="m").count_tokens("hello", OPTIONS)
        google.close()
        return counted
    async with openai.AsyncOpenAI(api_key="k", base_url=url, max_retries=0) as oai:
        return await AsyncOpenAIResponsesDriver(oai, model="m").count_tokens("hello", OPTIONS)


@pytest.mark.parametrize("is_async", [False, True])
def test_anthropic_counts_system_tools_and_messages(is_async: bool) -> None:
    counted, request = count("anthropic", is_async, Answer({"input_tokens": 42}))
    assert (counted, request.path) == (42, "/v1/messages/count_tokens")
    assert request.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}],
        "system": "be short",
        "tools": [{"name": "add", "description": "Adds.", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "auto"},
    }


@pytest.mark.parametrize("is_async", [False, True])
def test_responses_counts_instructions_tools_and_input(is_async: bool) -> None:
    counted, request = count("openai_responses", is_async, Answer({"object": "response.input_tokens", "input_tokens": 42}))  # fmt: skip
    assert (counted, request.path) == (42, "/responses/input_tokens")
    assert request.body.keys() == {"model", "input", "instructions", "tools", "tool_choice"}


@pytest.mark.parametrize("is_async", [False, True])
def test_gemini_counts_contents_and_the_system_text(is_async: bool) -> None:
    counted, request = count("gemini", is_async, Answer({"totalTokens": 42}))
    assert counted == 42
    assert request.path.endswith("models/m:countTokens")
    assert [content["parts"] for content in request.body["contents"]] == [[{"text": "be short"}], [{"text": "hello"}]]


def test_an_error_is_raised() -> None:
    with pytest.raises(anthropic.AuthenticationError):
        count("anthropic", False, Answer({"error": {"type": "authentication_error", "message": "who?"}}, 401))
