"""Scripted models: drivers for ``toolkit.run`` and its like that answer from a script, without a provider."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator, Sequence
from types import TracebackType
from typing import Final, Generic, Protocol, Self

from toolkit.testing.script import AsyncTurn, ModelRequest, Script, Turn, TurnT, events_of
from toolkit.wire.events import AnswerEvent
from toolkit.wire.message import ChatMessage
from toolkit.wire.query import QueryOptions, QueryResult
from toolkit.wire.streams import AsyncStreamResult, StreamResult

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
    ...     create_agent_toolkit(ToolkitContext(".", SecurityPolicy(tools={"done": "allow"}))) as toolkit,
    ...     ScriptedModel(turn(call("done", message="bye"), sees="say goodbye")) as model,
    ... ):
    ...     run(model, toolkit, "Please say goodbye.").answer
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
