"""Programs as handlers run them: with the deadline, the signal and the listeners of their call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from toolkit.runtime.async_ import AsyncRunner
from toolkit.runtime.call.view import Options
from toolkit.runtime.programs.sessions import run_in_thread, run_program, run_program_async
from toolkit.runtime.sync import Runner
from toolkit.runtime.workers import LoopThread

if TYPE_CHECKING:
    from toolkit.runtime.programs.result import ProgramResult
    from toolkit.runtime.signals import CancelSignal
    from toolkit.runtime.tool_context import ToolContext


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
            return await run_program_async(AsyncRunner.over(core)._with(options), source, inputs, checker)
        runner = Runner.over(core)

        def work(signal: CancelSignal) -> ProgramResult:
            LoopThread.leave()  # its calls may await in the loop, which does not wait for this thread
            return run_program(runner._with(options._replace(signal=signal)), source, inputs, checker)

        return await run_in_thread(core, signal.caller, work)
