"""A streamed answer: its text, its events and its result, all read from one request."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any, Final

from toolkit.wire.events import AnswerEnded, AnswerEvent, TextCame
from toolkit.wire.query import QueryResult


class StreamResult:
    """A streamed answer: ``stream`` yields its text, ``events`` everything that comes, ``result`` is the whole answer.

    All three read the same request: what one of them has read, the others do not yield again. Reading ``result`` reads the
    rest; closing ``stream`` or ``events`` closes the connection. The last event is ``AnswerEnded``. A driver makes it from
    the texts or the events that it reads.

    >>> answer = StreamResult(iter(["hel", "lo"]), lambda: QueryResult("hello"))
    >>> next(answer.stream), next(answer.events), answer.result.content
    ('hel', TextCame(text='lo'), 'hello')
    """

    __slots__ = ("_finish", "_result", "events", "stream")

    def __init__(self, stream: Iterator[str] | Iterator[AnswerEvent], result: Callable[[], QueryResult]) -> None:
        self._finish = result
        self._result: QueryResult | None = None
        self.events: Final = self._read_events(stream)
        self.stream: Final = Texts(self.events)

    @property
    def result(self) -> QueryResult:
        for _ in self.events:
            pass
        if self._result is None:
            self._result = self._finish()
        return self._result

    def _read_events(self, source: Iterator[str] | Iterator[AnswerEvent]) -> Generator[AnswerEvent, None, None]:
        try:
            for item in source:
                yield TextCame(item) if isinstance(item, str) else item
            self._result = self._finish()
            yield AnswerEnded(self._result)
        finally:
            close: Any = getattr(source, "close", None)
            if close is not None:
                close()


class Texts(Iterator[str]):
    """The texts of events. Closing it closes the connection."""

    def __init__(self, events: Generator[AnswerEvent, None, None]) -> None:
        self._events = events

    def __next__(self) -> str:
        return next(event.text for event in self._events if isinstance(event, TextCame))

    def close(self) -> None:
        self._events.close()


class AsyncStreamResult:
    """The async ``StreamResult``: ``async for text in answer.stream``, then ``await answer.result``."""

    __slots__ = ("_finish", "_result", "events", "stream")

    def __init__(
        self, stream: AsyncIterator[str] | AsyncIterator[AnswerEvent], result: Callable[[], QueryResult]
    ) -> None:
        self._finish = result
        self._result: QueryResult | None = None
        self.events: Final = self._read_events(stream)
        self.stream: Final = AsyncTexts(self.events)

    @property
    def result(self) -> Awaitable[QueryResult]:
        return self._read_rest()

    async def _read_rest(self) -> QueryResult:
        async for _ in self.events:
            pass
        if self._result is None:
            self._result = self._finish()
        return self._result

    async def _read_events(
        self, source: AsyncIterator[str] | AsyncIterator[AnswerEvent]
    ) -> AsyncGenerator[AnswerEvent, None]:
        try:
            async for item in source:
                yield TextCame(item) if isinstance(item, str) else item
            self._result = self._finish()
            yield AnswerEnded(self._result)
        finally:
            close: Any = getattr(source, "aclose", None)
            if close is not None:
                await close()


class AsyncTexts(AsyncIterator[str]):
    """The texts of events. Closing it closes the connection."""

    def __init__(self, events: AsyncGenerator[AnswerEvent, None]) -> None:
        self._events = events

    async def __anext__(self) -> str:
        async for event in self._events:
            if isinstance(event, TextCame):
                return event.text
        raise StopAsyncIteration

    async def aclose(self) -> None:
        await self._events.aclose()
