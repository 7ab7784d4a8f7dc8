"""Drivers that answer from a script and record what they were asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
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

Prompt: TypeAlias = str | Sequence[ChatMessage]
Answer: TypeAlias = QueryResult | Callable[[], QueryResult]
AsyncAnswer: TypeAlias = Answer | Callable[[], Awaitable[QueryResult]]


class ScriptedDriver:
    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[list[ChatMessage], QueryOptions]] = []

    def query(self, prompt: Prompt, options: QueryOptions) -> QueryResult:
        assert not isinstance(prompt, str)
        self.requests.append((list(prompt), options))
        answer = self.answers.pop(0)
        return answer if isinstance(answer, QueryResult) else answer()

    def stream_query(self, prompt: Prompt, options: QueryOptions) -> StreamResult:
        raise NotImplementedError


class AsyncScriptedDriver:
    def __init__(self, *answers: AsyncAnswer) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[list[ChatMessage], QueryOptions]] = []

    async def query(self, prompt: Prompt, options: QueryOptions) -> QueryResult:
        assert not isinstance(prompt, str)
        self.requests.append((list(prompt), options))
        answer = self.answers.pop(0)
        if isinstance(answer, QueryResult):
            return answer
        made = answer()
        return made if isinstance(made, QueryResult) else await made

    async def stream_query(self, prompt: Prompt, options: QueryOptions) -> AsyncStreamResult:
        raise NotImplementedError


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
