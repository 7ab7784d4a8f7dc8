"""One request and its answer over the SDK's own client, which the caller makes and keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from toolkit.adapters.base_driver import asked, asked_async, streamed, streamed_async, with_prompt
from toolkit.adapters.openai_chat.decode import decode_response, decode_strict_calls
from toolkit.adapters.openai_chat.encode import encode_choice, encode_messages, encode_tools
from toolkit.adapters.openai_chat.stream import Accumulator
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.message import ChatMessage, TextMessage
from toolkit.wire.query import AsyncStreamResult, QueryOptions, QueryResult, StreamResult

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

_DEFAULTS = QueryOptions()


def request_json(model: str, prompt: str | Sequence[ChatMessage], options: QueryOptions) -> JsonDict:
    """What goes to the server."""
    messages = with_prompt(prompt, options.messages)
    if options.system is not None:
        messages = [TextMessage("system", options.system), *messages]
    request: JsonDict = {"model": model, "messages": encode_messages(messages)}
    if options.tools:
        request["tools"] = encode_tools(options.tools, options.strict)
        request["tool_choice"] = encode_choice(options.tool_choice)
    if options.max_tokens is not None:
        request["max_completion_tokens"] = options.max_tokens
    if options.temperature is not None:
        request["temperature"] = options.temperature
    if options.timeout is not None:
        request["timeout"] = options.timeout
    return {**request, **options.extra}


class OpenAIChatDriver:
    """Queries through ``OpenAI``. What goes wrong is ``finish_reason="error"``, with the exception in the metadata."""

    def __init__(self, client: OpenAI, *, model: str) -> None:
        self._create: Any = client.chat.completions.create
        self._request = partial(request_json, model)

    def query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS) -> QueryResult:
        return asked(lambda: _answered(decode_response(self._create(**self._request(prompt, options))), options))

    def stream_query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS) -> StreamResult:
        answer = Accumulator()
        return streamed(
            answer,
            lambda: self._create(**_streamed(self._request(prompt, options))),
            lambda: _answered(answer.result(), options),
        )


class AsyncOpenAIChatDriver:
    """The same through ``AsyncOpenAI``."""

    def __init__(self, client: AsyncOpenAI, *, model: str) -> None:
        self._create: Any = client.chat.completions.create
        self._request = partial(request_json, model)

    async def query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS) -> QueryResult:
        async def ask() -> QueryResult:
            return _answered(decode_response(await self._create(**self._request(prompt, options))), options)

        return await asked_async(ask)

    async def stream_query(
        self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS
    ) -> AsyncStreamResult:
        answer = Accumulator()

        async def opened() -> Any:
            return await self._create(**_streamed(self._request(prompt, options)))

        return streamed_async(answer, opened, lambda: _answered(answer.result(), options))


def _streamed(request: JsonDict) -> JsonDict:
    return {"stream_options": {"include_usage": True}, **request, "stream": True}


def _answered(result: QueryResult, options: QueryOptions) -> QueryResult:
    """The result with calls in the form the tools themselves want."""
    if not result.tool_calls:
        return result
    return replace(result, tool_calls=decode_strict_calls(result.tool_calls, options.tools, options.strict))
