"""Scripted models: drivers for ``toolkit.run`` and its like that answer from a script, without a provider."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Generic, NoReturn, Protocol, Self, TypeAlias

from typing_extensions import TypeVar

from toolkit.testing.transcript import render_messages
from toolkit.wire.call import ToolCall
from toolkit.wire.message import ChatMessage, TextMessage, ToolResultMessage, is_tool_result
from toolkit.wire.query import (
    AnswerEvent,
    ArgumentsDelta,
    AsyncStreamResult,
    CallCompleted,
    CallStarted,
    FinishReason,
    QueryOptions,
    QueryResult,
    ReasoningDelta,
    StreamResult,
    TextDelta,
    Usage,
    UsageUpdate,
)

# ----------------------------------------------------------------------------------------------------------------------
# The turns of a scripted model: what it answers, and what it must have been sent before.


@dataclass(frozen=True, slots=True)
class ScriptedTurn:
    """One answer of the model, and texts that it must have been sent since its last one."""

    answer: QueryResult
    sees: tuple[str, ...] = ()


def call(name: str, /, **arguments: object) -> ToolCall:
    """A call of a tool. The script gives it an id: ``call_1``, ``call_2`` and so on.

    >>> call("read_file", path="a.txt").arguments
    {'path': 'a.txt'}

    For arguments that are not Python names, or an id of your own, write ``ToolCall(id, name, {...})``.
    """
    return ToolCall("", name, arguments)


def turn(
    *parts: str | ToolCall,
    sees: str | Sequence[str] = (),
    finish_reason: FinishReason | None = None,
    usage: Usage | None = None,
) -> ScriptedTurn:
    """A turn of texts and calls. ``sees`` names texts that the model must have been sent since its last turn.

    >>> turn("I look.", call("list"), sees="which files").answer.finish_reason
    'tool_calls'
    """
    calls = [part for part in parts if isinstance(part, ToolCall)]
    text = "".join(part for part in parts if isinstance(part, str))
    reason = finish_reason or ("tool_calls" if calls else "stop")
    expected = (sees,) if isinstance(sees, str) else tuple(sees)
    return ScriptedTurn(QueryResult(text, calls, reason, usage or Usage()), expected)


def refusal(text: str = "I cannot help with that.") -> ScriptedTurn:
    """A turn in which the model declines; ``run`` raises ``AnswerRefused``.

    >>> refusal().answer.finish_reason
    'refused'
    """
    return turn(text, finish_reason="refused")


def cut_off(*parts: str | ToolCall) -> ScriptedTurn:
    """A turn that ends at the token limit; ``run`` raises ``AnswerCutOff``. In a stream its last call is incomplete.

    >>> cut_off("The answer is").answer.finish_reason
    'length'
    """
    return turn(*parts, finish_reason="length")


def failure(error: Exception | str = "the provider is overloaded", *parts: str | ToolCall) -> ScriptedTurn:
    """A turn in which the provider fails, after ``parts`` if there are any; ``run`` raises ``AnswerFailed``.

    >>> failure(TimeoutError("no answer"), "The ans").answer.content
    'The ans'
    """
    made = turn(*parts, finish_reason="error").answer
    metadata = {"error": RuntimeError(error) if isinstance(error, str) else error}
    return ScriptedTurn(QueryResult(made.content, made.tool_calls, "error", made.usage, metadata))


# ----------------------------------------------------------------------------------------------------------------------
# The script of a model: its turns in order, the requests it got, and what does not fit.


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request that a scripted model got: the whole conversation, and the options it was sent with."""

    messages: Sequence[ChatMessage]
    options: QueryOptions

    @property
    def new_messages(self) -> list[ChatMessage]:
        """What came after the model's last message."""
        new: list[ChatMessage] = []
        for message in reversed(self.messages):
            if not (is_tool_result(message) or isinstance(message, TextMessage) and message.role != "assistant"):
                break
            new.insert(0, message)
        return new

    @property
    def results(self) -> list[object]:
        """The values of the tool results among the new messages."""
        return [one.result.value for one in self.new_messages if isinstance(one, ToolResultMessage)]

    @property
    def text(self) -> str:
        """The new messages as readable text."""
        return render_messages(self.new_messages)


PlainTurn: TypeAlias = str | ToolCall | Sequence[ToolCall] | ScriptedTurn | QueryResult | Exception
Turn: TypeAlias = PlainTurn | Callable[[ModelRequest], PlainTurn]
"""A text, calls, a provider's error, anything made by ``turn`` and its like, or a function of the request that returns it."""
AsyncTurn: TypeAlias = Turn | Callable[[ModelRequest], Awaitable[PlainTurn]]
"""A ``Turn``, or an async function of the request."""

TurnT = TypeVar("TurnT", bound=AsyncTurn)


class Script(Generic[TurnT]):
    """The turns of a model. What does not fit is an ``AssertionError``, which is raised again when the script is checked."""

    def __init__(self, turns: Sequence[TurnT]) -> None:
        self._turns: Final = turns
        self._calls_made = 0
        self._mismatch: AssertionError | None = None
        self.requests: Final[list[ModelRequest]] = []

    def begin(self, prompt: str | Sequence[ChatMessage], options: QueryOptions) -> tuple[ModelRequest, TurnT]:
        """Records a request and returns it with the turn that answers it."""
        first: Sequence[ChatMessage] = [TextMessage("user", prompt)] if isinstance(prompt, str) else prompt
        request = ModelRequest([*first, *options.messages], options)
        self.requests.append(request)
        number = len(self.requests)
        if number > len(self._turns):
            self._fail(
                f"the script ends after turn {len(self._turns)}, but the model was asked for turn {number}; "
                f"add a turn, or end the conversation before. It was sent:\n{request.text}"
            )
        return request, self._turns[number - 1]

    def finish(self, request: ModelRequest, found: PlainTurn) -> QueryResult:
        """The answer of a turn, after a check of what it must have been sent."""
        scripted = _as_scripted(found)
        unseen = [text for text in scripted.sees if text not in request.text]
        if unseen:
            self._fail(
                f"turn {len(self.requests)} of the script must be sent {unseen[0]!r}, which is not in the new messages:\n"
                f"{request.text}"
            )
        answer = scripted.answer
        if all(one.id for one in answer.tool_calls):
            return answer
        return replace(answer, tool_calls=[self._with_id(one) for one in answer.tool_calls])

    def _with_id(self, made: ToolCall) -> ToolCall:
        if made.id:
            return made
        self._calls_made += 1
        return ToolCall(f"call_{self._calls_made}", made.name, made.arguments, made.metadata, made.raw_arguments)

    @property
    def turns_left(self) -> int:
        return max(0, len(self._turns) - len(self.requests))

    def check(self) -> None:
        """Raises an ``AssertionError`` if a request did not fit, or if turns are left over."""
        if self._mismatch is not None:
            raise self._mismatch
        if self.turns_left:
            number = len(self.requests) + 1
            raise AssertionError(
                f"{self.turns_left} of {len(self._turns)} turns of the script were not played; "
                f"the next is turn {number}: {_describe(self._turns[number - 1])}"
            )

    def _fail(self, text: str) -> NoReturn:
        # A loop around the model may swallow the error: the check after the test does not.
        self._mismatch = self._mismatch or AssertionError(text)
        raise self._mismatch


def _as_scripted(found: PlainTurn) -> ScriptedTurn:
    match found:
        case ScriptedTurn():
            return found
        case QueryResult():
            return ScriptedTurn(found)
        case Exception():
            return failure(found)
        case str() | ToolCall():
            return turn(found)
        case _:
            return turn(*found)


def _describe(found: AsyncTurn) -> str:
    if callable(found):
        return f"the function {getattr(found, '__name__', repr(found))}"
    answer = _as_scripted(found).answer
    calls = ", ".join(f"a call of {one.name!r}" for one in answer.tool_calls)
    return calls or f"{answer.finish_reason}: {answer.content!r}"


def events_of(answer: QueryResult) -> Iterator[AnswerEvent]:
    """The events of an answer but the last. Text comes word by word, arguments in two pieces, as from a provider."""
    for thought in answer.reasoning:
        yield from map(ReasoningDelta, _split_words(thought.text))
    yield from map(TextDelta, _split_words(answer.content))
    is_cut = answer.finish_reason in ("error", "length")
    for made in answer.tool_calls:
        text = made.raw_arguments if made.raw_arguments is not None else json.dumps(made.arguments, ensure_ascii=False)
        middle = (len(text) + 1) // 2
        yield CallStarted(made.id, made.name)
        yield ArgumentsDelta(made.id, text[:middle])
        if is_cut and made is answer.tool_calls[-1]:
            return
        yield ArgumentsDelta(made.id, text[middle:])
        yield CallCompleted(made)
    if answer.usage != Usage():
        yield UsageUpdate(answer.usage)


def _split_words(text: str) -> list[str]:
    """The words of a text, each with the blanks after it."""
    pieces: list[str] = []
    for piece in text.split(" "):
        pieces.append(f"{piece} ")
    pieces[-1] = pieces[-1][:-1]
    return [piece for piece in pieces if piece]


_DEFAULTS: Final = QueryOptions()
_UNREAD: Final = QueryResult("", finish_reason="error")
"""The result of a stream that nobody read: the request was not sent."""


class _Scripted(Generic[TurnT]):
    """What the sync and the async model share."""

    def __init__(self, *turns: TurnT) -> None:
        self._script: Final = Script(turns)
        self.streams_closed = 0

    @property
    def requests(self) -> list[ModelRequest]:
        """The requests that the model got so far."""
        return self._script.requests

    @property
    def turns_left(self) -> int:
        """How many turns were not played yet."""
        return self._script.turns_left

    def check_finished(self) -> None:
        """Raises an ``AssertionError`` if turns are left over, or if a request did not fit its turn."""
        self._script.check()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.check_finished()


class ScriptedModel(_Scripted[Turn]):
    """A driver that plays the given turns, one for each request, whole or as a stream.

    A turn is a text, a call, a list of calls, an exception (the provider fails), what ``turn``, ``refusal``, ``cut_off`` and
    ``failure`` make, a ``QueryResult``, or a function that gets the ``ModelRequest`` and returns one of these. A request
    after the last turn, or one without the texts that its turn must see, raises an ``AssertionError`` that names the turn.
    As a context manager, the model also checks that no turn is left over; so does the fixture ``scripted_model``.

    >>> from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit, run
    >>> from toolkit.testing import call, turn
    >>> with (
    ...     create_agent_toolkit(ToolkitContext(".", SecurityPolicy(tools={"done": "allow"}))) as tk,
    ...     ScriptedModel(turn(call("done", message="bye"), sees="say goodbye")) as model,
    ... ):
    ...     run(model, tk, "Please say goodbye.").answer
    'bye'
    """

    def query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS) -> QueryResult:
        """Plays the next turn."""
        request, found = self._script.begin(prompt, options)
        return self._script.finish(request, found(request) if callable(found) else found)

    def stream_query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS) -> StreamResult:
        """Plays the next turn as a stream; the request is sent when the first event is read."""
        answer = _UNREAD

        def read() -> Iterator[AnswerEvent]:
            nonlocal answer
            answer = self.query(prompt, options)
            try:
                yield from events_of(answer)
            finally:
                self.streams_closed += 1

        return StreamResult(read(), lambda: answer)


class MakeScriptedModel(Protocol):
    """The type of the fixture ``scripted_model``."""

    def __call__(self, *turns: Turn) -> ScriptedModel: ...


class AsyncScriptedModel(_Scripted[AsyncTurn]):
    """The async ``ScriptedModel``, for ``run_async`` and ``stream_run_async``. Functions among its turns may be async.

    >>> import asyncio
    >>> asyncio.run(AsyncScriptedModel("hello").query("hi")).content
    'hello'
    """

    async def query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS) -> QueryResult:
        """Plays the next turn."""
        request, found = self._script.begin(prompt, options)
        made = found(request) if callable(found) else found
        return self._script.finish(request, await made if inspect.isawaitable(made) else made)

    async def stream_query(
        self, prompt: str | Sequence[ChatMessage], options: QueryOptions = _DEFAULTS
    ) -> AsyncStreamResult:
        """Plays the next turn as a stream; the request is sent when the first event is read."""
        answer = _UNREAD

        async def read() -> AsyncIterator[AnswerEvent]:
            nonlocal answer
            answer = await self.query(prompt, options)
            try:
                for event in events_of(answer):
                    yield event
            finally:
                self.streams_closed += 1

        return AsyncStreamResult(read(), lambda: answer)


class MakeAsyncScriptedModel(Protocol):
    """The type of the fixture ``async_scripted_model``."""

    def __call__(self, *turns: AsyncTurn) -> AsyncScriptedModel: ...
