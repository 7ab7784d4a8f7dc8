"""One request and its answer over ``ollama.Client``, which the caller makes and keeps."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from contextlib import aclosing, closing
from functools import partial
from typing import TYPE_CHECKING, Any

from toolkit.adapters.base_driver import asked, asked_async, streamed, streamed_async, with_prompt
from toolkit.adapters.ollama.decode import decode_response
from toolkit.adapters.ollama.encode import encode_choice, encode_messages, encode_tools
from toolkit.adapters.ollama.stream import Accumulator
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.message import ChatMessage, TextMessage
from toolkit.wire.query import AsyncStreamResult, QueryOptions, QueryResult, StreamResult

if TYPE_CHECKING:
    from ollama import AsyncClient, Client

_DEFAULTS = QueryOptions()


def request_arguments(model: str, prompt: str | Sequence[ChatMessage], options: QueryOptions) -> JsonDict:
    """What the client's ``chat`` is called with."""
    if options.timeout is not None:
        raise ValueError("the Ollama client takes its timeout when it is made: ollama.Client(timeout=...)")
    messages = with_prompt(prompt, options.messages)
    if options.system is not None:
        messages = [TextMessage("system", options.system), *messages]
    request: JsonDict = {"model": model, "messages": [_with_bytes(message) for message in encode_messages(messages)]}
    encode_choice(options.tool_choice)  # refuses what cannot be said
    if options.tools and options.tool_choice != "none":
        request["tools"] = encode_tools(options.tools)
    settings = {"num_predict": options.max_tokens, "temperature": options.temperature}
    given = {key: value for key, value in settings.items() if value is not None}
    if given:
        request["options"] = given
    return {**request, **options.extra}


def _with_bytes(message: JsonDict) -> JsonDict:
    """Images as bytes: a text the client would take for a path first, and send the file of that name if there is one."""
    if not message.get("images"):
        return message
    return {**message, "images": [base64.b64decode(image, validate=True) for image in message["images"]]}


class OllamaDriver:
    """Queries through ``ollama.Client``. What goes wrong is ``finish_reason="error"``, with the exception in the metadata."""

    def __init__(self, client: Client, *, model: str) -> None:
        self._chat: Any = client.chat
        self._request = partial(request_arguments, model)

    def query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS) -> QueryResult:
        return asked(lambda: decode_response(self._chat(**self._request(prompt, options))))

    def stream_query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS) -> StreamResult:
        answer = Accumulator()
        return streamed(answer, lambda: closing(self._chat(**self._request(prompt, options), stream=True)))


class AsyncOllamaDriver:
    """The same through ``ollama.AsyncClient``."""

    def __init__(self, client: AsyncClient, *, model: str) -> None:
        self._chat: Any = client.chat
        self._request = partial(request_arguments, model)

    async def query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS) -> QueryResult:
        async def ask() -> QueryResult:
            return decode_response(await self._chat(**self._request(prompt, options)))

        return await asked_async(ask)

    async def stream_query(
        self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS
    ) -> AsyncStreamResult:
        answer = Accumulator()

        async def opened() -> Any:
            return aclosing(await self._chat(**self._request(prompt, options), stream=True))

        return streamed_async(answer, opened)
