"""The calls that a program makes, on the side of the toolkit: each takes the ordinary call path."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from toolkit.runtime.path import as_toolkit_error

if TYPE_CHECKING:
    from toolkit.errors import ToolkitError
    from toolkit.runtime.async_ import AsyncRunner
    from toolkit.runtime.output.message import ToolMessage
    from toolkit.runtime.signals import CancelSignal
    from toolkit.runtime.sync import Runner


class ProgramOrigin(NamedTuple):
    """Which program makes a call, and in which line."""

    program: str
    line: int


class CallRequest(NamedTuple):
    """A call as it arrived."""

    number: int
    tool: str
    arguments: str
    origin: ProgramOrigin
    waits: bool
    """Whether the program does nothing else until it has the result."""

    @property
    def call_id(self) -> str:
        return f"{self.origin.program}.{self.number}"


class CallOutcome(NamedTuple):
    """The message of a call, or the error that it raised."""

    request: CallRequest
    message: ToolMessage[Any, Any] | None
    error: ToolkitError | None


Done = Callable[[CallOutcome], None]


class Caller(Protocol):
    """Runs calls for a program; ``done`` may be called in another thread."""

    def start(self, request: CallRequest, seconds: float, signal: CancelSignal, done: Done) -> None: ...

    def refuse(self, request: CallRequest, refusal: ToolkitError) -> None:
        """Records a call that is not made."""


class SyncCaller:
    """Runs calls with a sync toolkit: in the caller's thread, unless the program goes on meanwhile."""

    def __init__(self, view: Runner) -> None:
        self._view: Final = view

    def start(self, request: CallRequest, seconds: float, signal: CancelSignal, done: Done) -> None:
        view = self._view
        if request.waits or not view._core.catalog.tools[request.tool].parallel:
            done(self._run(request, seconds, signal))
        else:
            view._core.workers.submit(lambda: done(self._run(request, seconds, signal)))

    def refuse(self, request: CallRequest, refusal: ToolkitError) -> None:
        _record_refusal(self._view, request, refusal)

    def _run(self, request: CallRequest, seconds: float, signal: CancelSignal) -> CallOutcome:
        view = self._view._for_program(request.origin, _limit(self._view, request, seconds), signal)
        try:
            return CallOutcome(request, view._execute_raw(request.tool, request.arguments, request.call_id), None)
        except Exception as error:
            return CallOutcome(request, None, as_toolkit_error(error, request.tool))


class AsyncCaller:
    """Runs calls with an async toolkit, in the event loop of whoever awaits the program."""

    def __init__(self, view: AsyncRunner, loop: asyncio.AbstractEventLoop) -> None:
        self._view: Final = view
        self._loop: Final = loop
        self._one_by_one: Final = asyncio.Lock()

    def start(self, request: CallRequest, seconds: float, signal: CancelSignal, done: Done) -> None:
        future: Future[CallOutcome] = asyncio.run_coroutine_threadsafe(
            self._run_in_turn(request, seconds, signal), self._loop
        )
        future.add_done_callback(lambda ended: done(_outcome(request, ended)))

    def refuse(self, request: CallRequest, refusal: ToolkitError) -> None:
        _record_refusal(self._view, request, refusal)

    async def _run_in_turn(self, request: CallRequest, seconds: float, signal: CancelSignal) -> CallOutcome:
        if self._view._core.catalog.tools[request.tool].parallel:
            return await self._run(request, seconds, signal)
        async with self._one_by_one:
            return await self._run(request, seconds, signal)

    async def _run(self, request: CallRequest, seconds: float, signal: CancelSignal) -> CallOutcome:
        view = self._view._for_program(request.origin, _limit(self._view, request, seconds), signal)
        try:
            message = await view._execute_raw(request.tool, request.arguments, request.call_id)
            return CallOutcome(request, message, None)
        except Exception as error:
            return CallOutcome(request, None, as_toolkit_error(error, request.tool))


def _record_refusal(view: Runner | AsyncRunner, request: CallRequest, refusal: ToolkitError) -> None:
    """The audit log has every refusal, also of calls that do not get to the call path."""
    audit = view._core.audit
    if audit is not None:
        audit.begin(request.tool, request.call_id, request.origin).end_failed(refusal, request.arguments)


def _limit(view: Runner | AsyncRunner, request: CallRequest, seconds: float) -> float | None:
    """The deadline of a call: none if its tool never waits, because watching the time costs more than such a call."""
    return seconds if view._core.catalog.tools[request.tool].blocking else None


def _outcome(request: CallRequest, ended: Future[CallOutcome]) -> CallOutcome:
    """What the future of a call holds, also if its loop was closed."""
    try:
        return ended.result()
    except BaseException as error:
        return CallOutcome(request, None, as_toolkit_error(error, request.tool))
