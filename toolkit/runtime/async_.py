"""Runs tool calls in the caller's event loop: the stages of ``path``, as ``sync.Runner`` drives them, awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self, TypeVar, cast

from toolkit.errors import ToolCancelled, ToolTimeout
from toolkit.runtime import path
from toolkit.runtime.approvals import Approve, Suspend
from toolkit.runtime.output import ToolMessage
from toolkit.runtime.path import await_and_release, run_and_release
from toolkit.runtime.progress import Progress, combine_listeners
from toolkit.runtime.signals import NEVER, CallSignal, CancelSignal
from toolkit.runtime.surface import OMIT
from toolkit.runtime.tool_context import ToolContext
from toolkit.runtime.toolkit import Options, PreparedCall, View
from toolkit.runtime.workers import (
    GRACE_SECONDS,
    MAX_AT_ONCE,
    Job,
    Stop,
    await_contained,
    is_interruption,
    start_contained,
)
from toolkit.wire.call import ToolCall, ToolResult

if TYPE_CHECKING:
    from toolkit.runtime.approvals import Answer, ApprovalRequest, Reply, SuspendedCall
    from toolkit.runtime.programs.result import Checker, ProgramResult
    from toolkit.runtime.programs.sessions import AsyncProgramSession


# ----------------------------------------------------------------------------------------------------------------------
# Awaits, in the caller's loop, a handler that runs in a task or a thread, until the deadline or a cancellation.


async def await_handler(
    running: asyncio.Future[Any], signal: CallSignal, stop: Stop, abandon: Job | None = None
) -> Any:
    """The handler's value; raises if the call ended first, even if the handler is still running.

    ``stop`` asks it to stop, and ``abandon`` is called if it did not stop in time.
    """
    caller = signal.caller
    loop, cancelled = asyncio.get_running_loop(), asyncio.Event()

    def tell_loop() -> None:
        # The caller may cancel from another thread.
        loop.call_soon_threadsafe(cancelled.set)

    forget = caller.listen(tell_loop) if caller else None
    stopping = asyncio.ensure_future(cancelled.wait()) if caller else None
    try:
        waiting = {running, stopping} if stopping else {running}
        await asyncio.wait(waiting, timeout=signal.remaining, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            await _abandon(running, signal, stop, abandon)
        signal.refuse_late()
        return running.result()
    except asyncio.CancelledError:
        signal.stop()
        stop()
        if abandon is not None:
            abandon()
        running.add_done_callback(_collect_error)
        raise
    finally:
        if stopping is not None:
            stopping.cancel()
        if forget is not None:
            forget()


async def _abandon(running: asyncio.Future[Any], signal: CallSignal, stop: Stop, abandon: Job | None) -> NoReturn:
    """Tells the handler to stop, waits a moment, then raises what ended the call."""
    error = signal.error() or ToolTimeout("the call took longer than its deadline")
    stop()
    await asyncio.wait({running}, timeout=GRACE_SECONDS)
    error.details["abandoned"] = not running.done()
    if abandon is not None and not running.done():
        abandon()
    running.add_done_callback(_collect_error)
    raise error


def _collect_error(running: asyncio.Future[Any]) -> None:
    """Reads the error of an abandoned handler, so that asyncio does not report it as never retrieved."""
    if not running.cancelled():
        running.exception()


T = TypeVar("T")


class CallToolAsync(Protocol):
    """The same as ``CallTool``, awaited."""

    async def __call__(self, name: str, arguments: dict[str, Any], /) -> T: ...


class AsyncRunner(View):
    """Runs tools by name; a sync handler runs in a worker thread unless its spec says ``blocking: false``."""

    # Async handlers run in the caller's loop, so their dependencies must be made there, too.
    _own_loop = False

    # -- the call path -----------------------------------------------------------------------------------------------

    async def _run(
        self, name: str, arguments: object, call_id: str | None = None, is_text: bool = False
    ) -> ToolMessage[Any, Any]:
        """The path of one call: every entry point leads here."""
        core, options = self._core, self._options
        limited = self._is_limited
        # Before anything else: the deadline counts from here.
        signal = CallSignal(options.signal, options.deadline) if limited else NEVER
        call = core.prepare(name, arguments, call_id, is_text, options.origin)
        tool, record = call.tool, call.record
        threaded = not tool.is_async and (tool.info.blocking or limited)
        if threaded and not limited:
            signal = CallSignal(None, None)  # only a signal can inform a thread that the task was cancelled
        inline = not limited and not threaded
        ctx = ToolContext()._open(tool, core, call_id, signal, options.notify)
        try:
            if call.request is not None or record is not None or options.answered is not None:
                response = core.settle(call, await self._find_answer(call, signal), ctx)
                if record is not None:
                    await record.finish_start(core.workers, signal)
                if response is not None:
                    message = path.conclude(tool, response.content, ctx, call.repairs, answered_by="the approver")
                    return self._deliver(message, record)
            run = self._run_inline if inline else self._run_elsewhere
            if tool.turns is None:
                value = await run(call, ctx, signal)
            else:
                async with tool.turns.hold_async(tool.name, signal):
                    value = await run(call, ctx, signal)
            if ctx._writer is not None:
                await ctx._writer.finish_async()
            message = path.conclude(tool, value, ctx, call.repairs)
            return message if self._on_result is None and record is None else self._deliver(message, record)
        except BaseException as error:
            if inline:
                ctx._drop_output()
                if ctx._scope is not None:
                    await ctx._scope.close_async(error)
            interrupted = is_interruption(error)
            if interrupted or self._is_cancelled(error):
                if record is not None:
                    why = "interrupted" if interrupted else "the task was cancelled"
                    record.end_failed(ToolCancelled(why), call.arguments)
                raise
            shown = path.as_toolkit_error(error, tool.name)
            try:
                if record is not None:
                    record.end_failed(shown, call.arguments)
                raise shown from path.cause_of(error)
            finally:
                del shown  # its traceback has this frame: as a cycle, an unused toolkit would stay open

    async def _run_inline(self, call: PreparedCall, ctx: ToolContext, signal: CallSignal) -> object:
        """The value of the handler, which runs in the caller's task."""
        value = call.handler(call.arguments, ctx)
        if call.tool.is_async:
            value = await await_contained(value)
        return await self._release(call, ctx, value)

    async def _run_elsewhere(self, call: PreparedCall, ctx: ToolContext, signal: CallSignal) -> object:
        """The value of the handler, which runs in a thread or in a task of its own and can be left there."""
        signal.check()
        value = await await_handler(*self._start_handler(call, ctx, signal))
        return await self._release(call, ctx, value)

    async def _release(self, call: PreparedCall, ctx: ToolContext, value: Any) -> object:
        """The value, once nothing of the handler runs any more and its dependencies are released."""
        if not isinstance(value, call.tool.output.model) and inspect.isawaitable(value):
            # A plain function around an async handler, such as a decorator.
            value = await await_and_release(lambda args, ctx: await_contained(value), call.arguments, ctx)
        elif ctx._scope is not None:
            await ctx._scope.close_async()
        return value

    async def _find_answer(self, call: PreparedCall, signal: CallSignal) -> Answer | None:
        """What the approver says, or has said before the call was resumed; None if it need not be asked."""
        answered = self._options.answered
        if answered is not None:
            return await self._off_loop(partial(self._take_answer, call, answered))
        if call.request is None or call.remembered is not None:
            return call.remembered
        return await self._ask(call, call.request, signal)

    async def _ask(self, call: PreparedCall, request: ApprovalRequest, signal: CallSignal) -> Answer:
        """Asks the approver; in a thread, because a sync one may wait for a person."""
        context, workers = self._core.context, self._core.workers
        ask = partial(path.ask, context.approver, request, signal)
        try:
            taken = await context.turn_to_ask.wait_async(signal)
            asking = context.turn_to_ask.lend(taken, lambda: workers.submit(ask))
            waiting = asyncio.wrap_future(asking)
            answer = await await_handler(waiting, signal, asking.cancel, partial(workers.abandon, asking))
            # After its turn: an async approver may be asked about several calls at once.
            if inspect.isawaitable(answer):
                task = start_contained(answer, asyncio.get_running_loop())
                answer = await await_handler(task, signal, task.cancel)
            reply = cast("Reply", answer)  # `settle` refuses anything else
            if isinstance(reply, Suspend) or (isinstance(reply, Approve) and reply.remember is not None):
                return await self._off_loop(lambda: self._read_reply(reply, request, call))
            return reply
        except (ToolTimeout, ToolCancelled) as error:
            path.note_missing_answer(error)
            raise
        except Exception as error:
            raise path.not_approved(request, error) from path.cause_of(error)

    async def _off_loop(self, work: Callable[[], T]) -> T:
        """The value of work that may block."""
        return await asyncio.wrap_future(self._core.workers.submit(work))

    def _start_handler(
        self, call: PreparedCall, ctx: ToolContext, signal: CallSignal
    ) -> tuple[asyncio.Future[Any], CallSignal, Stop, Job]:
        """Starts the handler in a thread or in a task of the running loop; returns what ``await_handler`` takes."""
        handler, args, workers = call.handler, call.arguments, self._core.workers
        if call.tool.is_async:
            task = start_contained(await_and_release(handler, args, ctx), asyncio.get_running_loop())
            return task, signal, task.cancel, partial(workers.count_abandoned, task)

        def start() -> Any:
            signal.check()  # it may have waited for a thread until nobody wanted it any more
            return run_and_release(handler, args, ctx)

        running = workers.submit(start)
        return asyncio.wrap_future(running), signal, running.cancel, partial(workers.abandon, running)

    @staticmethod
    def _is_cancelled(error: BaseException) -> bool:
        """Whether the task that awaits the call was cancelled, as opposed to a handler that raised CancelledError."""
        task = asyncio.current_task() if isinstance(error, asyncio.CancelledError) else None
        return task is not None and task.cancelling() > 0

    # -- the entry points --------------------------------------------------------------------------------------------

    async def _invoke(self, name: str, args: object) -> ToolMessage[Any, Any]:
        """Runs a tool by name with a dict or its input model, and returns its message; raises ``ToolkitError``."""
        return await self._run(name, args)

    async def _execute_raw(self, name: str, text: str, call_id: str | None = None) -> ToolMessage[Any, Any]:
        """The same with the JSON text that a model wrote."""
        return await self._run(name, text, call_id, True)

    async def _call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        """Behind ``tools.<name>(...)``: arguments left at OMIT are not sent."""
        given = {key: value for key, value in arguments.items() if value is not OMIT}
        return (await self._run(name, given)).content

    async def resume(self, suspended: SuspendedCall, answer: Answer) -> ToolMessage[Any, Any]:
        """The same as ``Toolkit.resume``, awaited."""
        view = self._view_to_resume(suspended, answer)
        return await view._run(suspended.tool_name, suspended.arguments, suspended.call_id)

    async def call(self, call: ToolCall) -> ToolResult:
        """Runs a model's call; what fails becomes ``kind="error"``. Only the task's own cancellation is raised."""
        text = call.unread_text
        arguments = call.arguments if text is None else text
        began, deadline = monotonic(), self._options.deadline
        try:
            message = await self._run(call.name, arguments, call.id, is_text=text is not None)
            if deadline is not None:
                await message.show_within_async(began + deadline - monotonic())
            return await message.to_result_async(call.id)
        except Exception as error:  # also of the tool's own text form
            return path.error_result(error, call.id, call.name)

    async def call_all(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Runs calls in order; adjacent parallel ones run at the same time. A failure does not affect other results."""
        results: list[ToolResult] = []
        turns = asyncio.Semaphore(MAX_AT_ONCE)
        for parallel, group in groupby(calls, key=self._is_parallel):
            some = list(group)
            if parallel and len(some) > 1:
                results += await asyncio.gather(*(self._in_turn(turns, call) for call in some))
            else:
                results += [await self.call(call) for call in some]
        return results

    async def _in_turn(self, turns: asyncio.Semaphore, call: ToolCall) -> ToolResult:
        async with turns:
            return await self.call(call)

    async def run_program(
        self, source: str, *, inputs: Mapping[str, object] | None = None, checker: Checker = "auto"
    ) -> ProgramResult:
        """Checks a program that a model wrote against ``tools``, and runs it in the sandbox if nothing is wrong with it.

        The same as ``Toolkit.run_program``; its calls run in the running event loop.
        """
        from toolkit.runtime.programs.sessions import run_program_async

        return await run_program_async(self, source, inputs, checker)

    def program_session(self) -> AsyncProgramSession:
        """Programs that see the variables of the programs before them. Close it, or use ``async with``."""
        from toolkit.runtime.programs.sessions import AsyncProgramSession

        return AsyncProgramSession(self)

    async def stream(self, call: ToolCall) -> AsyncIterator[Progress | ToolResult]:
        """Runs a model's call; yields its progress, then its result. Closing the iterator cancels the call."""
        events: asyncio.Queue[Progress | ToolResult] = asyncio.Queue()
        loop, options = asyncio.get_running_loop(), self._options
        signal, forget = CancelSignal.linked_to(options.signal)

        def tell(event: Progress) -> None:
            # Handlers may run in threads; through the loop, no event can arrive after the result.
            loop.call_soon_threadsafe(events.put_nowait, event)

        view = self._with(Options(options.deadline, signal, combine_listeners(options.notify, tell)))
        running = asyncio.ensure_future(view.call(call))
        running.add_done_callback(lambda task: None if task.cancelled() else events.put_nowait(task.result()))
        try:
            while True:
                event = await events.get()
                yield event
                if isinstance(event, ToolResult):
                    return
        finally:
            forget()
            signal.cancel("the caller closed the stream")
            await asyncio.wait({running})

    async def close(self) -> None:
        """Closes what the toolkit holds open; later calls fail."""
        if self._core.resources.close_once.alive:
            try:
                await self._core.scope.close_async()
            finally:
                self._core.resources.close_once()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
