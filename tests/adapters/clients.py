"""The drivers over the SDKs' real clients, against a loopback server; and a plain answer as each provider writes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import anthropic
import ollama
import openai
from google import genai

from toolkit import QueryOptions
from toolkit.adapters.anthropic import AnthropicDriver, AsyncAnthropicDriver
from toolkit.adapters.gemini import AsyncGeminiDriver, GeminiDriver
from toolkit.adapters.ollama import AsyncOllamaDriver, OllamaDriver
from toolkit.adapters.openai_chat import AsyncOpenAIChatDriver, OpenAIChatDriver
from toolkit.adapters.openai_responses import AsyncOpenAIResponsesDriver, OpenAIResponsesDriver


@dataclass(frozen=True)
class Provider:
    """One provider with a driver: its clients, its drivers, and how it writes an answer that is a text."""

    title: str
    client: Callable[[str], Any]
    driver: Callable[[Any], Any]
    async_client: Callable[[str], Any]
    async_driver: Callable[[Any], Any]
    text: Callable[[str], dict[str, Any]]

    @contextmanager
    def open(self, url: str) -> Iterator[Any]:
        """The driver over a real client."""
        with self.client(url) as client:
            yield self.driver(client)

    def query_output(self, url: str, model: Any, *, is_async: bool, options: QueryOptions | None = None) -> Any:
        """One query for a typed answer, through the sync or the async driver."""
        given = options or QueryOptions()

        async def run() -> Any:
            made = self.async_client(url)
            async with getattr(made, "aio", made):
                return await self.async_driver(made).query_output("hi", model, given)

        if is_async:
            return asyncio.run(run())
        with self.open(url) as driver:
            return driver.query_output("hi", model, given)


def _openai(kind: Any) -> Callable[[str], Any]:
    return lambda url: kind(api_key="k", base_url=f"{url}/v1", max_retries=0)


def _anthropic(kind: Any) -> Callable[[str], Any]:
    return lambda url: kind(api_key="k", base_url=url, max_retries=0)


def _gemini(url: str) -> Any:
    return genai.Client(api_key="k", http_options={"base_url": url})


def _ollama(kind: Any) -> Callable[[str], Any]:
    return lambda url: kind(host=url)


def _driver(kind: Any, model: str = "m") -> Callable[[Any], Any]:
    return lambda client: kind(client, model=model)


def _said_by_responses(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content}
    return {"id": "r", "object": "response", "created_at": 0, "model": "m", "status": "completed", "output": [message], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}  # fmt: skip


PROVIDERS: dict[str, Provider] = {
    "openai_chat": Provider(
        "OpenAI chat",
        _openai(openai.OpenAI),
        _driver(OpenAIChatDriver),
        _openai(openai.AsyncOpenAI),
        _driver(AsyncOpenAIChatDriver),
        lambda text: {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}]},
    ),
    "openai_responses": Provider(
        "OpenAI Responses",
        _openai(openai.OpenAI),
        _driver(OpenAIResponsesDriver),
        _openai(openai.AsyncOpenAI),
        _driver(AsyncOpenAIResponsesDriver),
        _said_by_responses,
    ),
    "anthropic": Provider(
        "Anthropic",
        _anthropic(anthropic.Anthropic),
        _driver(AnthropicDriver),
        _anthropic(anthropic.AsyncAnthropic),
        _driver(AsyncAnthropicDriver),
        lambda text: {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}},
    ),
    "gemini": Provider(
        "Gemini, Vertex",
        _gemini,
        _driver(GeminiDriver, "gemini-3-pro"),
        _gemini,
        _driver(AsyncGeminiDriver, "gemini-3-pro"),
        lambda text: {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}]},
    ),
    "ollama": Provider(
        "Ollama",
        _ollama(ollama.Client),
        _driver(OllamaDriver),
        _ollama(ollama.AsyncClient),
        _driver(AsyncOllamaDriver),
        lambda text: {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop", "message": {"role": "assistant", "content": text}},
    ),
}  # fmt: skip
