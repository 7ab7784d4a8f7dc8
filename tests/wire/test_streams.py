"""Streamed answers: text, events and result are read from one request. And conversations, which do not change."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from toolkit.wire.query import (
    AnswerEnded,
    AnswerEvent,
    AsyncStreamResult,
    Conversation,
    QueryResult,
    ReasoningDelta,
    StreamResult,
    TextDelta,
)

EVENTS: tuple[AnswerEvent, ...] = (ReasoningDelta("hm"), TextDelta("hel"), ReasoningDelta("so"), TextDelta("lo"))
WHOLE = QueryResult("hello")


class Connection:
    """Says whether it was closed."""

    def __init__(self) -> None:
        self.closed = False

    def read(self) -> Iterator[AnswerEvent]:
        try:
            yield from EVENTS
        finally:
            self.closed = True

    async def read_async(self) -> AsyncIterator[AnswerEvent]:
        try:
            for event in EVENTS:
                yield event
        finally:
            self.closed = True


def test_a_stream_has_the_texts_and_then_the_result() -> None:
    connection = Connection()
    answer = StreamResult(connection.read(), lambda: WHOLE)
    assert list(answer.stream) == ["hel", "lo"]
    assert answer.result is WHOLE and connection.closed


def test_an_async_stream_has_the_texts_and_then_the_result() -> None:
    async def main() -> None:
        connection = Connection()
        answer = AsyncStreamResult(connection.read_async(), lambda: WHOLE)
        assert [text async for text in answer.stream] == ["hel", "lo"]
        assert await answer.result is WHOLE and connection.closed

    asyncio.run(main())


def test_events_go_on_where_the_text_was_left() -> None:
    async def main() -> None:
        answer = AsyncStreamResult(Connection().read_async(), lambda: WHOLE)
        assert await anext(answer.stream) == "hel"
        assert [event async for event in answer.events] == [*EVENTS[2:], AnswerEnded(WHOLE)]

    asyncio.run(main())
    answer = StreamResult(Connection().read(), lambda: WHOLE)
    assert next(answer.stream) == "hel"
    assert list(answer.events) == [*EVENTS[2:], AnswerEnded(WHOLE)]


def test_closing_the_text_closes_the_connection() -> None:
    async def main() -> None:
        connection = Connection()
        answer = AsyncStreamResult(connection.read_async(), lambda: WHOLE)
        assert await anext(answer.stream) == "hel"
        await answer.stream.aclose()
        assert connection.closed

    asyncio.run(main())
    connection = Connection()
    answer = StreamResult(connection.read(), lambda: WHOLE)
    assert next(answer.stream) == "hel"
    answer.stream.close()
    assert connection.closed


def test_a_conversation_does_not_change() -> None:
    conversation: Any = Conversation(turns=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        conversation.turns = 2
    with pytest.raises((AttributeError, TypeError)):
        conversation.note = "no room for more"
    assert conversation.add("hello").turns == 1
