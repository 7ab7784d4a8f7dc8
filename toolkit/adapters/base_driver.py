"""What all drivers share: sending one request, reading its answer or stream, and returning errors as results.

A provider's driver says what differs in an ``Exchange``: how a request is built, which method of the SDK's client sends it,
and how the answer is decoded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeAlias

from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.settings.structured_output import ModelT, output_schema, read_output
from toolkit.adapters.strict import StrictRules
from toolkit.wire.message import ChatMessage, TextMessage
from toolkit.wire.output import Output
from toolkit.wire.query import AsyncStreamResult, QueryOptions, QueryResult, StreamResult

Prompt: TypeAlias = str | Sequence[ChatMessage]
"""What a query starts with: a user's text, or messages."""

_DEFAULTS: Final = QueryOptions()


class GrowingAnswer(Protocol):
    """An answer that is put together from events: every adapter's ``Accumulator``."""

    def feed(self, event: object, /) -> str: ...
    def result(self) -> QueryResult: ...


def _keep_result(result: QueryResult, options: QueryOptions) -> QueryResult:
    return result


def _keep_stream(stream: Any) -> Any:
    return stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """How to query one provider over its SDK's client.

    ``build_request`` returns keyword arguments for ``send`` and ``send_streaming``, the client's methods; those of an async
    client are awaited. ``manage`` wraps a stream that does not close itself in a context manager that does. ``finish`` may
    change a result before it is returned. ``output_rules`` are those by which ``build_request`` rewrites the schema of a
    structured output, if it does.
    """

    build_request: Callable[[Prompt, QueryOptions], JsonDict]
    send: Callable[..., Any]
    send_streaming: Callable[..., Any]
    decode: Callable[[object], QueryResult]
    accumulator: Callable[[], GrowingAnswer]
    manage: Callable[[Any], AbstractContextManager[Any] | AbstractAsyncContextManager[Any]] = _keep_stream
    finish: Callable[[QueryResult, QueryOptions], QueryResult] = _keep_result
    output_rules: StrictRules | None = None


class BaseDriver:
    """A driver over a sync client. An error becomes ``finish_reason="error"``, with the exception in the metadata."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange: Final = exchange

    def query(self, prompt: Prompt, options: QueryOptions = _DEFAULTS) -> QueryResult:
        """Sends one request and returns its answer."""
        exchange = self._exchange
        try:
            answer = exchange.send(**exchange.build_request(prompt, options))
            return exchange.finish(exchange.decode(answer), options)
        except Exception as error:
            return add_error(QueryResult(""), error)

    def query_output(self, prompt: Prompt, model: type[ModelT], options: QueryOptions = _DEFAULTS) -> Output[ModelT]:
        """Sends one request whose answer is a value of ``model``; raises ``OutputError``, with the answer, if it is none."""
        result = self.query(prompt, replace(options, output=output_schema(model)))
        return read_output(result, model, self._exchange.output_rules)

    def stream_query(self, prompt: Prompt, options: QueryOptions = _DEFAULTS) -> StreamResult:
        """Sends one request and returns its answer as it comes.

        The request is sent when the first text is read; closing ``stream`` closes the connection.
        """
        exchange = self._exchange
        answer = exchange.accumulator()
        errors: list[Exception] = []

        def read_texts() -> Iterator[str]:
            try:
                managed: Any = exchange.manage(exchange.send_streaming(**exchange.build_request(prompt, options)))
                with managed as events:
                    for event in events:
                        if text := answer.feed(event):
                            yield text
            except Exception as error:
                errors.append(error)

        return StreamResult(read_texts(), lambda: _finish_stream(exchange, answer, options, errors))


class AsyncBaseDriver:
    """A driver over an async client. An error becomes ``finish_reason="error"``, with the exception in the metadata."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange: Final = exchange

    async def query(self, prompt: Prompt, options: QueryOptions = _DEFAULTS) -> QueryResult:
        """Sends one request and returns its answer."""
        exchange = self._exchange
        try:
            answer = await exchange.send(**exchange.build_request(prompt, options))
            return exchange.finish(exchange.decode(answer), options)
        except Exception as error:
            return add_error(QueryResult(""), error)

    async def query_output(
        self, prompt: Prompt, model: type[ModelT], options: QueryOptions = _DEFAULTS
    ) -> Output[ModelT]:
        """Sends one request whose answer is a value of ``model``; raises ``OutputError``, with the answer, if it is none."""
        result = await self.query(prompt, replace(options, output=output_schema(model)))
        return read_output(result, model, self._exchange.output_rules)

    async def stream_query(self, prompt: Prompt, options: QueryOptions = _DEFAULTS) -> AsyncStreamResult:
        """Sends one request and returns its answer as it comes.

        The request is sent when the first text is read; closing ``stream`` closes the connection.
        """
        exchange = self._exchange
        answer = exchange.accumulator()
        errors: list[Exception] = []

        async def read_texts() -> AsyncIterator[str]:
            try:
                managed: Any = exchange.manage(await exchange.send_streaming(**exchange.build_request(prompt, options)))
                async with managed as events:
                    async for event in events:
                        if text := answer.feed(event):
                            yield text
            except Exception as error:
                errors.append(error)

        return AsyncStreamResult(read_texts(), lambda: _finish_stream(exchange, answer, options, errors))


def _finish_stream(
    exchange: Exchange, answer: GrowingAnswer, options: QueryOptions, errors: list[Exception]
) -> QueryResult:
    result = exchange.finish(answer.result(), options)
    return add_error(result, errors[0]) if errors else result


def add_error(result: QueryResult, error: Exception) -> QueryResult:
    """The result of a query that failed: what came until then, and the exception under ``error``."""
    return replace(result, finish_reason="error", metadata={**result.metadata, "error": error})


# -- building requests ---------------------------------------------------------------------------------------------------


def join_messages(prompt: Prompt, options: QueryOptions) -> list[ChatMessage]:
    """The conversation: the prompt and the messages after it."""
    first: Sequence[ChatMessage] = [TextMessage("user", prompt)] if isinstance(prompt, str) else prompt
    return [*first, *options.messages]


def join_messages_with_system(prompt: Prompt, options: QueryOptions) -> list[ChatMessage]:
    """The conversation with the system text of the options in front."""
    system = [TextMessage("system", options.system)] if options.system is not None else []
    return [*system, *join_messages(prompt, options)]


def without_none(**fields: Any) -> JsonDict:
    """The fields that have a value."""
    return {key: value for key, value in fields.items() if value is not None}
