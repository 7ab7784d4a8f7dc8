"""One request and its answer over ``genai.Client``, which the caller makes and keeps; Vertex is the same client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from inspect import isasyncgen
from typing import TYPE_CHECKING, Any

from toolkit.adapters.base_driver import asked, asked_async, streamed, streamed_async, with_prompt
from toolkit.adapters.gemini.decode import decode_response
from toolkit.adapters.gemini.encode import encode_choice, encode_messages, encode_tools
from toolkit.adapters.gemini.stream import Accumulator
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.message import ChatMessage, TextMessage
from toolkit.wire.query import AsyncStreamResult, QueryOptions, QueryResult, StreamResult

if TYPE_CHECKING:
    from google import genai

_DEFAULTS = QueryOptions()


def request_arguments(model: str, prompt: str | Sequence[ChatMessage], options: QueryOptions) -> JsonDict:
    """What the client's methods are called with."""
    messages = with_prompt(prompt, options.messages)
    system = [options.system] if options.system is not None else []
    system += [_text(one) for one in messages if isinstance(one, TextMessage) and one.role == "system"]
    config: JsonDict = {"automatic_function_calling": {"disable": True}}
    if system:
        config["system_instruction"] = "\n\n".join(system)
    if options.tools:
        config["tools"] = encode_tools(options.tools)
        config["tool_config"] = encode_choice(options.tool_choice)
    if options.max_tokens is not None:
        config["max_output_tokens"] = options.max_tokens
    if options.temperature is not None:
        config["temperature"] = options.temperature
    if options.timeout is not None:
        config["http_options"] = {"timeout": int(options.timeout * 1000)}
    return {"model": model, "contents": encode_messages(messages, model), "config": {**config, **options.extra}}


def _text(message: TextMessage) -> str:
    content = message.content
    return content if isinstance(content, str) else "".join(block.text or "" for block in content)


class GeminiDriver:
    """Queries through ``genai.Client``. What goes wrong is ``finish_reason="error"``, with the exception in the metadata."""

    def __init__(self, client: genai.Client, *, model: str) -> None:
        self._models: Any = client.models
        self._request = partial(request_arguments, model)

    def query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS) -> QueryResult:
        return asked(lambda: decode_response(self._models.generate_content(**self._request(prompt, options))))

    def stream_query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS) -> StreamResult:
        answer = Accumulator()
        return streamed(
            answer,
            lambda: closing(self._models.generate_content_stream(**self._request(prompt, options))),
        )


class AsyncGeminiDriver:
    """The same through the client's ``aio``."""

    def __init__(self, client: genai.Client, *, model: str) -> None:
        self._models: Any = client.aio.models
        self._request = partial(request_arguments, model)

    async def query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS) -> QueryResult:
        async def ask() -> QueryResult:
            return decode_response(await self._models.generate_content(**self._request(prompt, options)))

        return await asked_async(ask)

    async def stream_query(
        self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS
    ) -> AsyncStreamResult:
        answer = Accumulator()

        async def opened() -> Any:
            return _closing(await self._models.generate_content_stream(**self._request(prompt, options)))

        return streamed_async(answer, opened)


@asynccontextmanager
async def _closing(chunks: Any) -> AsyncIterator[Any]:
    """The SDK closes a response that was not read to its end only when garbage is collected: its generators and the
    response refer to each other. So the response is looked for in what they hold, and closed here.
    """
    try:
        yield chunks
    finally:
        for response in _open_responses(chunks):
            await response.aclose()
        await chunks.aclose()


def _open_responses(held: Any) -> Iterator[Any]:
    """The HTTP responses that generators read from, one inside the other."""
    if isasyncgen(held) and held.ag_frame is not None:
        for value in list(held.ag_frame.f_locals.values()):
            yield from _open_responses(value)
    response = getattr(held, "response_stream", None)
    if hasattr(response, "aclose"):
        yield response
