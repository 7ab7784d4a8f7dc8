"""Runs tool calls synchronously. Generated ``Toolkit`` classes are this class with typed signatures."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from pydantic import BaseModel

from toolkit.errors import ToolCancelled, ToolTimeout
from toolkit.runtime import path
from toolkit.runtime.path import await_and_release, run_and_release
from toolkit.runtime.signals import NEVER, CallSignal, CancelSignal
from toolkit.runtime.surface import OMIT
from toolkit.runtime.tool_context import ToolContext
from toolkit.runtime.toolkit import Options, View
from toolkit.runtime.workers import Closeable, Stop, await_contained, is_interruption, wait_for_handler
from toolkit.wire.call import ToolResult

if TYPE_CHECKING:
    from concurrent.futures import Future

    from toolkit.runtime.approvals import Answer, ApprovalRequest, Reply, SuspendedCall
    from toolkit.runtime.output import ToolMessage
    from toolkit.runtime.programs.result import Checker, ProgramResult
    from toolkit.runtime.programs.sessions import ProgramSession
    from toolkit.runtime.progress import Progress
    from toolkit.runtime.toolkit import PreparedCall
    from toolkit.wire.call import ToolCall

T = TypeVar("T")


class CallTool(Protocol):
    """Runs a tool for a method of a generated ``Tools`` class, which declares the return type."""

    def __call__(self, name: str, arguments: dict[str, Any], /) -> T: ...  # type: ignore[type-var]


class Runner(View, Closeable):
    """Runs tools by name: resolve, admit, validate, run in the sandbox, conclude."""

    # -- the call path -----------------------------------------------------------------------------------------------

    def _run(
        self, name: str, arguments: object, call_id: str | None = None, is_text: bool = False
    ) -> ToolMessage[Any, Any]:
        """The path of one call: every entry point leads here."""
        core, options = self._core, self._options
        limited = self._is_limited
        # Before anything else: the deadline counts from here.
        signal = CallSignal(options.signal, options.deadline) if limited else NEVER
        call = core.prepare(name, arguments, call_id, is_text, options.origin)
        tool, record = call.tool, call.record
        # Inline, unless the call can be ended from outside. Our own handlers end themselves then, and those that do not block
        # end soon: a thread takes longer than most of their calls.
        inline = not tool.is_async and (not limited or tool.looks_at_signal or not tool.info.blocking)
        if tool.is_async and not limited:
            signal = CallSignal(None, None)  # its own: Ctrl-C stops it
        ctx = ToolContext()._open(tool, core, call_id, signal, options.notify)
        try:
            if call.request is not None or record is not None or options.answered is not None:
                response = core.settle(call, self._find_answer(call, signal), ctx)
                if response is not None:
                    message = path.conclude(tool, response.content, ctx, call.repairs, answered_by="the approver")
                    return self._deliver(message, record)
            if tool.turns is None:
                value = self._run_inline(call, ctx, signal) if inline else self._run_elsewhere(call, ctx, signal)
            else:
                with tool.turns.hold(tool.name, signal):
                    value = self._run_inline(call, ctx, signal) if inline else self._run_elsewhere(call, ctx, signal)
            message = path.conclude(tool, value, ctx, call.repairs)
            return message if self._on_result is None and record is None else self._deliver(message, record)
        except BaseException as error:
            if inline:
                ctx._release(error)
            interrupted = is_interruption(error)
            shown = ToolCancelled("interrupted") if interrupted else path.as_toolkit_error(error, tool.name)
            try:
                if record is not None:
                    record.end_failed(shown, call.arguments)
                if interrupted:
                    raise
                raise shown from path.cause_of(error)
            finally:
                del shown  # its traceback has this frame: as a cycle, an unused toolkit would stay open

    def _run_inline(self, call: PreparedCall, ctx: ToolContext, signal: CallSignal) -> object:
        """The value of the handler, which runs in the caller's thread."""
        limited = signal is not NEVER
        if limited:
            signal.check()
        value = call.handler(call.arguments, ctx)
        if limited:
            signal.refuse_late()
        if not isinstance(value, call.tool.output.model) and inspect.isawaitable(value):
            # A plain function around an async handler, such as a decorator.
            value = self._await_in_loop(value)
        if ctx._scope is not None:
            ctx._scope.close()
        return value

    def _run_elsewhere(self, call: PreparedCall, ctx: ToolContext, signal: CallSignal) -> object:
        """The value of the handler, which runs in the loop or in another thread and can be left there."""
        signal.check()
        return wait_for_handler(*self._start_handler(call, ctx), signal, self._core.workers.abandon)

    def _find_answer(self, call: PreparedCall, signal: CallSignal) -> Answer | None:
        """What the approver says, or has said before the call was resumed; None if it need not be asked."""
        answered = self._options.answered
        if answered is not None:
            return self._take_answer(call, answered)
        if call.request is None or call.remembered is not None:
            return call.remembered
        return self._ask(call, call.request, signal)

    def _ask(self, call: PreparedCall, request: ApprovalRequest, signal: CallSignal) -> Answer:
        """Asks the approver; in another thread if the call can end before it answers. Waits for an async one."""
        context, workers = self._core.context, self._core.workers
        ask = partial(path.ask, context.approver, request, signal)
        try:
            if self._is_limited:
                taken = context.turn_to_ask.wait(signal)
                asking = context.turn_to_ask.lend(taken, lambda: workers.submit(ask))
                answer = wait_for_handler(asking, asking.cancel, signal, workers.abandon)
            else:
                with context.turn_to_ask.hold(signal):
                    answer = ask()
            # After its turn: an async approver may be asked about several calls at once.
            if inspect.isawaitable(answer):
                answer = wait_for_handler(*self._submit_to_loop(answer), signal)
            return self._read_reply(cast("Reply", answer), request, call)  # `settle` refuses anything else
        except (ToolTimeout, ToolCancelled) as error:
            path.note_missing_answer(error)
            raise
        except Exception as error:
            raise path.not_approved(request, error) from path.cause_of(error)

    def _await_in_loop(self, work: Awaitable[T]) -> T:
        return self._submit_to_loop(work)[0].result()

    def _submit_to_loop(self, work: Awaitable[T]) -> tuple[Future[T], Stop]:
        """Starts awaiting in the toolkit's loop; in a new loop if the caller itself runs in the toolkit's loop."""
        if not self._core.loop.waits_for_caller:
            return self._core.loop.submit(work)
        import asyncio

        running = self._core.workers.submit(lambda: asyncio.run(await_contained(work)))
        return running, running.cancel

    def _start_handler(self, call: PreparedCall, ctx: ToolContext) -> tuple[Future[Any], Stop]:
        """Starts the handler in the loop or in a thread; returns its future, and what cancels it."""
        handler, args, tool = call.handler, call.arguments, call.tool
        if tool.is_async:
            return self._submit_to_loop(await_and_release(handler, args, ctx))

        def work(args: BaseModel, ctx: ToolContext) -> Any:
            value = handler(args, ctx)
            awaitable = not isinstance(value, tool.output.model) and inspect.isawaitable(value)
            return self._await_in_loop(value) if awaitable else value

        def start() -> Any:
            ctx.signal.check()  # it may have waited for a thread until nobody wanted it any more
            return run_and_release(work, args, ctx)

        running = self._core.workers.submit(start)
        return running, running.cancel

    # -- the entry points --------------------------------------------------------------------------------------------

    def _invoke(self, name: str, args: object) -> ToolMessage[Any, Any]:
        """Runs a tool by name with a dict or its input model, and returns its message; raises ``ToolkitError``."""
        return self._run(name, args)

    def _execute_raw(self, name: str, text: str, call_id: str | None = None) -> ToolMessage[Any, Any]:
        """The same with the JSON text that a model wrote."""
        return self._run(name, text, call_id, True)

    def _call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        """Behind ``tools.<name>(...)``: arguments left at OMIT are not sent."""
        given = {}
        for key, value in arguments.items():  # faster than a comprehension, which is a call of its own
            if value is not OMIT:
                given[key] = value
        return self._run(name, given).content

    def resume(self, suspended: SuspendedCall, answer: Answer) -> ToolMessage[Any, Any]:
        """Runs a call that an approver suspended, with the answer that came later; raises ``ToolkitError``.

        It may have been suspended by another process. An approval holds for what was shown, and once.
        """
        view = self._view_to_resume(suspended, answer)
        return view._run(suspended.tool_name, suspended.arguments, suspended.call_id)

    def call(self, call: ToolCall) -> ToolResult:
        """Runs a model's call and never raises: what fails becomes ``kind="error"`` with the text ``CODE: message``."""
        text = call.unread_text
        arguments = call.arguments if text is None else text
        began, deadline = monotonic(), self._options.deadline
        try:
            message = self._run(call.name, arguments, call.id, is_text=text is not None)
            if deadline is not None:
                message.show_within(began + deadline - monotonic())
            return message.to_result(call.id)
        except Exception as error:  # also of the tool's own text form
            return path.error_result(error, call.id, call.name)

    def call_all(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Runs calls in order; adjacent parallel ones run at the same time. A failure does not affect other results.

        Threads cost more than calls that only compute: those of tools with ``blocking: false`` alone run one by one.
        """
        results: list[ToolResult] = []
        for parallel, group in groupby(calls, key=self._is_parallel):
            some = list(group)
            if parallel and len(some) > 1 and any(map(self._may_block, some)):
                results += self._core.workers.map(self.call, some)
            else:
                results += map(self.call, some)
        return results

    def run_program(
        self, source: str, *, inputs: Mapping[str, object] | None = None, checker: Checker = "auto"
    ) -> ProgramResult:
        """Checks a program that a model wrote against ``tools``, and runs it in the sandbox if nothing is wrong with it.

        :param source: Python that calls ``tools.<name>(...)``, or awaits ``atools.<name>(...)``.
        :param inputs: values that it finds as ``inputs.<name>``.
        :param checker: the type checker that reads it first; ``off`` means none.
        """
        from toolkit.runtime.programs.sessions import run_program

        return run_program(self, source, inputs, checker)

    def program_session(self) -> ProgramSession:
        """Programs that see the variables of the programs before them. Close it, or use ``with``."""
        from toolkit.runtime.programs.sessions import ProgramSession

        return ProgramSession(self)

    def stream(self, call: ToolCall) -> Iterator[Progress | ToolResult]:
        """Runs a model's call; yields its progress, then its result. Closing the iterator cancels the call."""
        from queue import SimpleQueue

        from toolkit.runtime.progress import combine_listeners

        events: SimpleQueue[Progress | ToolResult] = SimpleQueue()
        options = self._options
        signal, forget = CancelSignal.linked_to(options.signal)
        view = self._with(Options(options.deadline, signal, combine_listeners(options.notify, events.put)))

        def tell_result(done: Future[ToolResult]) -> None:
            error = done.exception()  # the toolkit was closed before there was a thread for the call
            events.put(done.result() if error is None else path.error_result(error, call.id, call.name))

        self._core.workers.submit(lambda: view.call(call)).add_done_callback(tell_result)
        try:
            while True:
                event = events.get()
                yield event
                if isinstance(event, ToolResult):
                    return
        finally:
            forget()
            signal.cancel("the caller closed the stream")

    def close(self) -> None:
        """Closes what the toolkit holds open; later calls fail."""
        self._core.resources.close_once()
