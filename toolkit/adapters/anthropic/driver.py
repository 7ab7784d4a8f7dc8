"""One request and its answer over the SDK's own client, which the caller makes and keeps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from toolkit.adapters.anthropic.decode import decode_response
from toolkit.adapters.anthropic.encode import encode_choice, encode_messages, encode_tools, split_system
from toolkit.adapters.anthropic.stream import Accumulator
from toolkit.adapters.base_driver import asked, asked_async, streamed, streamed_async, with_prompt
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.message import ChatMessage, TextMessage
from toolkit.wire.query import AsyncStreamResult, QueryOptions, QueryResult, StreamResult

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic

_DEFAULTS: Final = QueryOptions()
# The API wants a number; this one every model takes.
_MAX_TOKENS: Final = 4096
# What the SDK must be told by name. All else is the request's: the API knows more fields than any version of the SDK.
_BY_NAME: Final = frozenset(
    {"model", "max_tokens", "messages", "timeout", "extra_headers", "extra_query", "user_profile_id", "workspace_id"}
)


def create_arguments(
    model: str, max_tokens: int, prompt: str | Sequence[ChatMessage], options: QueryOptions
) -> JsonDict:
    """What ``messages.create`` is called with. System texts at the front go into their own field."""
    messages = with_prompt(prompt, options.messages)
    if options.system is not None:
        messages = [TextMessage("system", options.system), *messages]
    system, rest = split_system(messages)
    request: JsonDict = {
        "model": model,
        "max_tokens": max_tokens if options.max_tokens is None else options.max_tokens,
        "messages": encode_messages(rest),
    }
    if system is not None:
        request["system"] = system
    if options.tools:
        request["tools"] = encode_tools(options.tools, options.strict)
        request["tool_choice"] = encode_choice(options.tool_choice)
    if options.temperature is not None:
        request["temperature"] = options.temperature
    if options.timeout is not None:
        request["timeout"] = options.timeout
    request |= options.extra
    named = {key: value for key, value in request.items() if key in _BY_NAME}
    body = {key: value for key, value in request.items() if key not in _BY_NAME and key != "extra_body"}
    return {**named, "extra_body": {**body, **request.get("extra_body", {})}}


class AnthropicDriver:
    """Queries through ``Anthropic``. What goes wrong is ``finish_reason="error"``, with the exception in the metadata.

    ``max_tokens`` holds for queries whose options do not say.
    """

    def __init__(self, client: Anthropic, *, model: str, max_tokens: int = _MAX_TOKENS) -> None:
        self._create: Any = client.messages.create
        self._request = partial(create_arguments, model, max_tokens)

    def query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS) -> QueryResult:
        return asked(lambda: decode_response(self._create(**self._request(prompt, options))))

    def stream_query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS) -> StreamResult:
        answer = Accumulator()
        return streamed(answer, lambda: self._create(**self._request(prompt, options), stream=True))


class AsyncAnthropicDriver:
    """The same through ``AsyncAnthropic``."""

    def __init__(self, client: AsyncAnthropic, *, model: str, max_tokens: int = _MAX_TOKENS) -> None:
        self._create: Any = client.messages.create
        self._request = partial(create_arguments, model, max_tokens)

    async def query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS) -> QueryResult:
        async def ask() -> QueryResult:
            return decode_response(await self._create(**self._request(prompt, options)))

        return await asked_async(ask)

    async def stream_query(
        self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS
    ) -> AsyncStreamResult:
        answer = Accumulator()

        async def opened() -> Any:
            return await self._create(**self._request(prompt, options), stream=True)

        return streamed_async(answer, opened)
