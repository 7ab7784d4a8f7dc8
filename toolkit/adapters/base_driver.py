"""What every driver does the same way: where the prompt goes, how a stream is read, what becomes of an SDK's error."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol

from toolkit.wire.message import ChatMessage, TextMessage
from toolkit.wire.query import AsyncStreamResult, QueryResult, StreamResult


class Growing(Protocol):
    """An answer that is put together from events: every adapter's ``Accumulator``."""

    def feed(self, event: object, /) -> str: ...
    def result(self) -> QueryResult: ...


def with_prompt(prompt: str | Sequence[ChatMessage], messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The conversation: the prompt, as a user's text or as messages, and what came after it."""
    first: Sequence[ChatMessage] = [TextMessage("user", prompt)] if isinstance(prompt, str) else prompt
    return [*first, *messages]


def failed(error: Exception, so_far: QueryResult | None = None) -> QueryResult:
    """The result of a query that went wrong: what came until then, and the exception under ``error``."""
    if so_far is None:
        return QueryResult("", finish_reason="error", metadata={"error": error})
    return QueryResult(so_far.content, so_far.tool_calls, "error", so_far.usage, {**so_far.metadata, "error": error})


def asked(ask: Callable[[], QueryResult]) -> QueryResult:
    """What a query gives, its failure included."""
    try:
        return ask()
    except Exception as error:
        return failed(error)


async def asked_async(ask: Callable[[], Awaitable[QueryResult]]) -> QueryResult:
    """What a query gives, its failure included."""
    try:
        return await ask()
    except Exception as error:
        return failed(error)


def streamed(
    answer: Growing, opened: Callable[[], AbstractContextManager[Any]], finish: Callable[[], QueryResult] | None = None
) -> StreamResult:
    """A stream that is opened when its first text is asked for, and closed when nobody listens any more.

    :param finish: gives the result, where that is not the answer's own.
    """
    errors: list[Exception] = []

    def texts() -> Iterator[str]:
        try:
            with opened() as events:
                for event in events:
                    if text := answer.feed(event):
                        yield text
        except Exception as error:
            errors.append(error)

    return StreamResult(texts(), lambda: _concluded(finish or answer.result, errors))


def streamed_async(
    answer: Growing,
    opened: Callable[[], Awaitable[AbstractAsyncContextManager[Any]]],
    finish: Callable[[], QueryResult] | None = None,
) -> AsyncStreamResult:
    """As ``streamed``, awaited."""
    errors: list[Exception] = []

    async def texts() -> AsyncIterator[str]:
        try:
            async with await opened() as events:
                async for event in events:
                    if text := answer.feed(event):
                        yield text
        except Exception as error:
            errors.append(error)

    return AsyncStreamResult(texts(), lambda: _concluded(finish or answer.result, errors))


def _concluded(finish: Callable[[], QueryResult], errors: list[Exception]) -> QueryResult:
    result = finish()
    return failed(errors[0], result) if errors else result
