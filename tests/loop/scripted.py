"""Drivers that answer from a script and record what they were asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TypeAlias

from toolkit import (
    AsyncStreamResult,
    ChatMessage,
    Conversation,
    QueryOptions,
    QueryResult,
    StreamResult,
    ToolCall,
    ToolResultMessage,
)
from toolkit.wire import AnswerEvent, CallCompleted, CallStarted, TextCame

Prompt: TypeAlias = str | Sequence[ChatMessage]
Answer: TypeAlias = QueryResult | Callable[[], QueryResult]
AsyncAnswer: TypeAlias = Answer | Callable[[], Awaitable[QueryResult]]


class ScriptedDriver:
    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[list[ChatMessage], QueryOptions]] = []
        self.closed = 0

    def query(self, prompt: Prompt, options: QueryOptions) -> QueryResult:
        assert not isinstance(prompt, str)
        self.requests.append((list(prompt), options))
        answer = self.answers.pop(0)
        return answer if isinstance(answer, QueryResult) else answer()

    def stream_query(self, prompt: Prompt, options: QueryOptions) -> StreamResult:
        answer = self.query(prompt, options)

        def read() -> Iterator[AnswerEvent]:
            try:
                yield from events_of(answer)
            finally:
                self.closed += 1

        return StreamResult(read(), lambda: answer)


class AsyncScriptedDriver:
    def __init__(self, *answers: AsyncAnswer) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[list[ChatMessage], QueryOptions]] = []
        self.closed = 0

    async def query(self, prompt: Prompt, options: QueryOptions) -> QueryResult:
        assert not isinstance(prompt, str)
        self.requests.append((list(prompt), options))
        answer = self.answers.pop(0)
        if isinstance(answer, QueryResult):
            return answer
        made = answer()
        return made if isinstance(made, QueryResult) else await made

    async def stream_query(self, prompt: Prompt, options: QueryOptions) -> AsyncStreamResult:
        answer = await self.query(prompt, options)

        async def read() -> AsyncIterator[AnswerEvent]:
            try:
                for event in events_of(answer):
                    yield event
            finally:
                self.closed += 1

        return AsyncStreamResult(read(), lambda: answer)


def events_of(answer: QueryResult) -> Iterator[AnswerEvent]:
    """The events of an answer but the last, its text letter by letter."""
    yield from map(TextCame, answer.content)
    for call in answer.tool_calls:
        yield CallStarted(call.id, call.name)
        yield CallCompleted(call)


def says(text: str) -> QueryResult:
    return QueryResult(text)


def calls(*made: ToolCall, text: str = "") -> QueryResult:
    return QueryResult(text, made, "tool_calls")


def add(id: str, a: int, b: int) -> ToolCall:
    return ToolCall(id, "add", {"a": a, "b": b})


def done(message: str, id: str = "end") -> ToolCall:
    return ToolCall(id, "done", {"message": message})


def values(conversation: Conversation) -> list[object]:
    """The values of the results in a conversation."""
    return [one.result.value for one in conversation.messages if isinstance(one, ToolResultMessage)]
