"""One request to a model, for any provider: its options, its answer, whole or streamed, and the conversation around it.

Match the events of a streamed answer by class:

>>> def show(event: AnswerEvent) -> str:
...     match event:
...         case TextDelta(text):
...             return text
...         case CallStarted(_, name):
...             return f"[{name}]"
...         case _:
...             return ""
>>> show(CallStarted("call_1", "read_file"))
'[read_file]'
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from toolkit.wire.call import ToolCall
from toolkit.wire.definition import AnyDefinition, OutputSchema, ToolChoice
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage, ToolResultMessage

ReasoningEffort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model may think before it answers. A provider with fewer steps takes the nearest."""

CachePoint: TypeAlias = Literal["tools", "system", "messages"]
"""The end of a part of a request that later requests repeat."""

FinishReason: TypeAlias = Literal[
    "stop", "length", "error", "tool_calls", "refused", "filtered", "paused", "needs_action"
]  # fmt: skip
"""Why the model stopped.

================  =======================================================================================================
``stop``          the answer is complete
``tool_calls``    the model waits for the results of its calls
``length``        the answer was cut at the token limit; its last call may be incomplete
``error``         the provider reported an error, or the stream was cut
``refused``       the model declined to answer
``filtered``      the provider's safety filter blocked the request, or stopped the answer
``paused``        the provider paused a long turn: send the conversation again as it is, and it continues
``needs_action``  the provider waits for something that is no tool call: an approval, or an action of one of its own tools
                  that the client must take. ``metadata[provider]["needs_action"]`` has the items, also next to calls
================  =======================================================================================================

The first that holds is reported: ``error``, ``length``, ``filtered``, ``refused``, ``tool_calls``, ``needs_action``,
``paused``, ``stop``. The provider's own word is in the metadata.
"""


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """What is sent with the prompt. ``messages`` follow it; ``extra`` is added to the request unchanged.

    Providers ignore what they do not support of these (docs/adapters.md has the table):

    ``strict``          tool calls follow their schemas
    ``parallel_calls``  whether the model may make several calls at once
    ``reasoning``       how much the model thinks: an effort, or a number of tokens
    ``cache_after``     what is written to the prompt cache: the prompt up to the end of the tools, the system text, or the
                        last message

    ``tool_choice`` and ``output`` change the meaning of an answer, so a driver refuses them if its provider lacks them.

    >>> QueryOptions(tool_choice="none", reasoning="low").tools
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
    parallel_calls: bool | None = None
    reasoning: ReasoningEffort | int | None = None
    cache_after: Sequence[CachePoint] = ()
    output: OutputSchema | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts, with one meaning for all providers; None if a provider does not report one.

    ``input_tokens`` includes what was read from a cache (``cached_input_tokens``) and written to one
    (``cache_write_tokens``). ``output_tokens`` includes the reasoning. Other counts are in the result's metadata.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_write_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What a model thought before it answered, as far as the provider shows it: all of it, a summary, or nothing.

    What the provider needs back in the next request (signatures, encrypted content) is in the answer's metadata and is sent
    back automatically.
    """

    text: str = ""
    is_hidden: bool = False


@dataclass(frozen=True, slots=True)
class QueryResult:
    """A model's answer. ``metadata`` has what only the provider knows: its own finish reason, signatures, an error.

    If a driver made the request, ``raw`` is the response of the provider's SDK, or the list of its events for a stream. It
    is not stored as JSON.

    >>> QueryResult("hello").finish_reason
    'stop'
    """

    content: str
    tool_calls: Sequence[ToolCall] = ()
    finish_reason: FinishReason = "stop"
    usage: Usage = field(default_factory=Usage)
    metadata: Mapping[str, object] = field(default_factory=dict)
    reasoning: Sequence[Reasoning] = ()
    raw: object = field(default=None, repr=False, compare=False, metadata={"is_stored": False})

    def message(self) -> ChatMessage:
        """The answer as a message for the next request, with everything the provider needs back."""
        if self.tool_calls:
            return AssistantToolCallMessage(self.content, self.tool_calls, self.metadata)
        return TextMessage("assistant", self.content, self.metadata)


# -- events of a streamed answer, in the order they come -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of what the provider shows of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The model began a call. ``id`` is the id that the finished call has."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """A piece of the argument text of a call; providers that send arguments whole send one piece."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class CallCompleted:
    """The arguments of a call are complete. Run calls from ``AnswerEnded.result``, which says how the answer ended."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class UsageUpdate:
    """The token counts so far."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class AnswerEnded:
    """The last event: the whole answer."""

    result: QueryResult


AnswerEvent: TypeAlias = (
    TextDelta | ReasoningDelta | CallStarted | ArgumentsDelta | CallCompleted | UsageUpdate | AnswerEnded
)
"""What ``StreamResult.events`` yields; its ``stream`` yields the text alone."""


# -- a streamed answer ---------------------------------------------------------------------------------------------------


class StreamResult:
    """A streamed answer: ``stream`` yields its text, ``events`` everything that comes, ``result`` is the whole answer.

    All three read the same request: what one of them has read, the others do not yield again. Reading ``result`` reads the
    rest; closing ``stream`` or ``events`` closes the connection. The last event is ``AnswerEnded``. A driver makes it from
    the texts or the events that it reads.

    >>> answer = StreamResult(iter(["hel", "lo"]), lambda: QueryResult("hello"))
    >>> next(answer.stream), next(answer.events), answer.result.content
    ('hel', TextDelta(text='lo'), 'hello')
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
                yield TextDelta(item) if isinstance(item, str) else item
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
        return next(event.text for event in self._events if isinstance(event, TextDelta))

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
                yield TextDelta(item) if isinstance(item, str) else item
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
            if isinstance(event, TextDelta):
                return event.text
        raise StopAsyncIteration

    async def aclose(self) -> None:
        await self._events.aclose()


# -- conversations -------------------------------------------------------------------------------------------------------

ConversationEnd: TypeAlias = Literal["stop", "done"]

DONE: Final = "done"
"""The tool with which a model reports that it is finished."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages, how the model ended them, and what they cost so far.

    ``ended_by`` is ``stop`` after an answer without calls, ``done`` after the tool of that name was called, and None while
    the model is not finished. ``usage`` is the sum over all answers, ``turns`` their number.

    >>> conversation = Conversation([TextMessage("user", "hi"), TextMessage("assistant", "hello")], "stop")
    >>> conversation.answer
    'hello'
    >>> conversation.add("And now?").messages[-1]
    TextMessage(role='user', content='And now?', metadata={})
    >>> Conversation.from_json(conversation.to_json()) == conversation
    True
    """

    messages: Sequence[ChatMessage] = ()
    ended_by: ConversationEnd | None = None
    usage: Usage = field(default_factory=Usage)
    turns: int = 0

    def __repr__(self) -> str:
        ended = "" if self.ended_by is None else f", ended by {self.ended_by!r}"
        return f"<Conversation: {_count(self.messages, 'message')}, {_count(self.turns, 'turn')}{ended}>"

    @property
    def answer(self) -> str:
        """The model's last text, or what it passed to ``done``; empty while the model is not finished."""
        if self.ended_by == "done":
            return next((_text(message) for message in reversed(self.messages) if _is_result_of_done(message)), "")
        last = self.messages[-1] if self.messages else None
        is_answer = self.ended_by == "stop" and isinstance(last, TextMessage) and last.role == "assistant"
        return _text(last) if is_answer and last is not None else ""

    def add(self, *messages: ChatMessage | str) -> Conversation:
        """The conversation with further messages; a text is the user's. Run it to continue."""
        made = [TextMessage("user", one) if isinstance(one, str) else one for one in messages]
        return replace(self, messages=[*self.messages, *made], ended_by=None)

    def to_json(self) -> Any:
        """JSON to store; the same as ``toolkit.wire.to_json``."""
        from toolkit.wire.codec import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, data: Any) -> Conversation:
        """The conversation that ``to_json`` was called on."""
        from toolkit.wire.codec import from_json

        made = from_json(data)
        if not isinstance(made, cls):
            raise ValueError(f"this is the JSON of a {type(made).__name__}, not of a conversation")
        return made


def _count(found: Sequence[object] | int, what: str) -> str:
    number = found if isinstance(found, int) else len(found)
    return f"{number} {what}{'' if number == 1 else 's'}"


def _is_result_of_done(message: ChatMessage) -> bool:
    return isinstance(message, ToolResultMessage) and message.result.name == DONE and message.result.kind != "error"


def _text(message: ChatMessage) -> str:
    value = message.result.value if isinstance(message, ToolResultMessage) else message.content
    if isinstance(value, str):
        return value
    blocks = value if isinstance(value, Sequence) else ()
    return "".join(getattr(block, "text", None) or "" for block in blocks)
