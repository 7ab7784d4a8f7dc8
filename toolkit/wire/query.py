"""One request to a model and its answer, for any provider."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from toolkit.wire.call import ToolCall
from toolkit.wire.choice import ToolChoice
from toolkit.wire.definition import AnyDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage

FinishReason: TypeAlias = Literal["stop", "length", "error", "tool_calls"]
"""Why the model stopped. ``length`` and ``error`` win over ``tool_calls``; a provider's other reasons are ``stop``."""


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """What is sent with the prompt. ``messages`` come after it; ``extra`` goes into the request as it is.

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
    """Token counts of the provider; None where it reports none."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class QueryResult:
    """A model's answer. ``metadata`` has what only the provider knows: its finish reason, its thinking, an error.

    >>> QueryResult("hello").finish_reason
    'stop'
    """

    content: str
    tool_calls: Sequence[ToolCall] = ()
    finish_reason: FinishReason = "stop"
    usage: Usage = field(default_factory=Usage)
    metadata: Mapping[str, object] = field(default_factory=dict)

    def message(self) -> ChatMessage:
        """The answer as a message for the next request, with everything the provider needs back."""
        if self.tool_calls:
            return AssistantToolCallMessage(self.content, self.tool_calls, self.metadata)
        return TextMessage("assistant", self.content, self.metadata)


class StreamResult:
    """A streamed answer: ``stream`` yields its text, ``result`` is the whole answer once the stream has ended.

    Reading ``result`` before that reads the rest of the stream.
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
    """The async ``StreamResult``: ``async for text in answer.stream``, then ``await answer.result``."""

    __slots__ = ("_finish", "stream")

    def __init__(self, stream: AsyncIterator[str], result: Callable[[], QueryResult]) -> None:
        self.stream = stream
        self._finish = result

    @property
    def result(self) -> Awaitable[QueryResult]:
        return self._read_rest()

    async def _read_rest(self) -> QueryResult:
        async for _ in self.stream:
            pass
        return self._finish()
