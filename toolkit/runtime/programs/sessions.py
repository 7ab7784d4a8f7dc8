"""How callers run programs: one by one, or in a session whose programs share their variables."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from toolkit.runtime.async_ import AsyncRunner
from toolkit.runtime.path import closed
from toolkit.runtime.programs.host import AsyncCaller, Caller, SyncCaller
from toolkit.runtime.programs.programs import RUN_PROGRAM, SessionState
from toolkit.runtime.signals import CancelSignal
from toolkit.runtime.sync import Runner
from toolkit.runtime.toolkit import Options
from toolkit.runtime.workers import LoopThread

if TYPE_CHECKING:
    from toolkit.runtime.programs.result import Checker, ProgramResult
    from toolkit.runtime.tool_context import ToolContext
    from toolkit.runtime.toolkit import Core


def run_program(
    view: Runner,
    source: str,
    inputs: Mapping[str, object] | None,
    checker: Checker,
    session: SessionState | None = None,
) -> ProgramResult:
    """Runs a program with a sync toolkit, in the caller's thread."""
    signal, forget = CancelSignal.linked_to(view._options.signal)
    try:
        return _run(view._core, SyncCaller(view), source, inputs, checker, signal, view._options.deadline, session)
    finally:
        forget()


async def run_program_async(
    view: AsyncRunner,
    source: str,
    inputs: Mapping[str, object] | None,
    checker: Checker,
    session: SessionState | None = None,
) -> ProgramResult:
    """Runs a program with an async toolkit: in a thread of its own, its calls in the running event loop."""
    core, options = view._core, view._options
    caller = AsyncCaller(view, asyncio.get_running_loop())
    return await run_in_thread(
        core,
        options.signal,
        lambda signal: _run(core, caller, source, inputs, checker, signal, options.deadline, session),
    )


async def run_in_thread(
    core: Core, outer: CancelSignal | None, work: Callable[[CancelSignal], ProgramResult]
) -> ProgramResult:
    """Awaits work in a thread of the toolkit; if the task is cancelled, so is the signal that the work gets."""
    signal, forget = CancelSignal.linked_to(outer)
    running = asyncio.wrap_future(core.workers.submit(lambda: work(signal)))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        signal.cancel("the task was cancelled")
        await asyncio.wait({running})
        raise
    finally:
        forget()


def _run(
    core: Core,
    caller: Caller,
    source: str,
    inputs: Mapping[str, object] | None,
    checker: Checker,
    signal: CancelSignal,
    seconds: float | None,
    session: SessionState | None,
) -> ProgramResult:
    if core.resources.is_closed:
        raise closed(RUN_PROGRAM)
    programs = core.guards.programs
    if session is None:
        return programs.run(core, caller, source, inputs, checker, signal, seconds)
    with session.lock:
        return programs.run(core, caller, source, inputs, checker, signal, seconds, session)


class ProgramSession:
    """Programs of a sync toolkit that share their variables: one interpreter is kept for them.

    A program that is ended by a limit takes the variables with it.
    """

    def __init__(self, view: Runner) -> None:
        self._view: Final = view
        self._state: Final = SessionState()
        weakref.finalize(self, self._state.reset)  # a session that nobody holds any more keeps no interpreter

    def run(
        self, source: str, *, inputs: Mapping[str, object] | None = None, checker: Checker = "auto"
    ) -> ProgramResult:
        """Checks and runs the next program, as ``tk.run_program`` does."""
        return run_program(self._view, source, inputs, checker, self._state)

    def reset(self) -> None:
        """Forgets all variables."""
        with self._state.lock:
            self._state.reset()

    def close(self) -> None:
        """Ends the interpreter; a later program starts another one."""
        self.reset()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class AsyncProgramSession:
    """The same for an async toolkit."""

    def __init__(self, view: AsyncRunner) -> None:
        self._view: Final = view
        self._state: Final = SessionState()
        weakref.finalize(self, self._state.reset)  # a session that nobody holds any more keeps no interpreter

    async def run(
        self, source: str, *, inputs: Mapping[str, object] | None = None, checker: Checker = "auto"
    ) -> ProgramResult:
        """Checks and runs the next program, as ``tk.run_program`` does."""
        return await run_program_async(self._view, source, inputs, checker, self._state)

    async def reset(self) -> None:
        """Forgets all variables."""
        await asyncio.to_thread(self._reset)

    async def close(self) -> None:
        """Ends the interpreter; a later program starts another one."""
        await self.reset()

    def _reset(self) -> None:
        with self._state.lock:
            self._state.reset()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


# ----------------------------------------------------------------------------------------------------------------------
# Programs as handlers run them: with the deadline, the signal and the listeners of their call.


class CallPrograms:
    """What ``ctx.programs`` is."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx: Final = ctx

    def tools_of(self, source: str) -> tuple[str, ...]:
        """The tools that a program names, each with its lines, for an approver; nothing is run."""
        core = self._ctx._core
        return core.guards.programs.tools_of(core, source)

    async def run(self, source: str, inputs: Mapping[str, object] | None = None) -> ProgramResult:
        """Checks and runs a program; its calls are calls of the same toolkit."""
        ctx = self._ctx
        core, signal = ctx._core, ctx.signal
        options = Options(signal.remaining, signal.caller, ctx._notify)
        checker = core.guards.programs.settings.checker
        if core.is_async:
            return await run_program_async(AsyncRunner._over(core)._with(options), source, inputs, checker)
        runner = Runner._over(core)

        def work(signal: CancelSignal) -> ProgramResult:
            LoopThread.leave()  # its calls may await in the loop, which does not wait for this thread
            return run_program(runner._with(options._replace(signal=signal)), source, inputs, checker)

        return await run_in_thread(core, signal.caller, work)
