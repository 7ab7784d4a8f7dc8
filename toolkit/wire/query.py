"""One request to a model and its answer, whatever provider it goes to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from toolkit.wire.call import ToolCall
from toolkit.wire.choice import ToolChoice
from toolkit.wire.definition import AnyDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage

FinishReason: TypeAlias = Literal["stop", "length", "error", "tool_calls"]
"""Why the model stopped. ``length`` and ``error`` win over ``tool_calls``; other words of a provider are ``stop``."""


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """What goes to the model beside the prompt. ``messages`` come after it; ``extra`` goes into the request as it is.

    >>> QueryOptions(tool_choice="none").tools
    ()
    """

    tools: Sequence[AnyDefinition] = ()
    tool_choice: ToolChoice = "auto"
    messages: Sequence[ChatMessage] = ()
    system: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    strict: bool | None = None
    timeout: float | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the provider counts them; None where it does not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What the model answered. ``metadata`` has the provider's own words: its finish reason, what it thought, an error.

    >>> QueryResult("hello").finish_reason
    'stop'
    """

    content: str
    tool_calls: Sequence[ToolCall] = ()
    finish_reason: FinishReason = "stop"
    usage: Usage = field(default_factory=Usage)
    metadata: Mapping[str, object] = field(default_factory=dict)

    def message(self) -> ChatMessage:
        """The answer as a message, to go on with the conversation; nothing the provider needs back is lost."""
        if self.tool_calls:
            return AssistantToolCallMessage(self.content, self.tool_calls, self.metadata)
        return TextMessage("assistant", self.content, self.metadata)


class StreamResult:
    """An answer as it comes: ``stream`` gives its text, ``result`` the whole, once the stream has ended.

    Asking for ``result`` before that reads the rest of the stream.
    """

    __slots__ = ("_finish", "stream")

    def __init__(self, stream: Iterator[str], result: Callable[[], QueryResult]) -> None:
        self.stream = stream
        self._finish = result

    @property
    def result(self) -> QueryResult:
        for _ in self.stream:
            pass
        return self._finish()


class AsyncStreamResult:
    """As ``StreamResult``: ``async for text in answer.stream``, then ``await answer.result``."""

    __slots__ = ("_finish", "stream")

    def __init__(self, stream: AsyncIterator[str], result: Callable[[], QueryResult]) -> None:
        self.stream = stream
        self._finish = result

    @property
    def result(self) -> Awaitable[QueryResult]:
        return self._drained()

    async def _drained(self) -> QueryResult:
        async for _ in self.stream:
            pass
        return self._finish()
