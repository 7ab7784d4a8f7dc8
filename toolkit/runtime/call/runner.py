"""Runs tool calls synchronously. Generated ``Toolkit`` classes are this class with typed signatures."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pydantic import BaseModel

from toolkit.errors import ToolCancelled
from toolkit.runtime.call import steps
from toolkit.runtime.call.argument_text import MANY_ARGUMENTS
from toolkit.runtime.call.handler_scope import await_and_release, run_and_release
from toolkit.runtime.call.view import NOT_DIRECT, Options, View
from toolkit.runtime.call.wait_for_handler import wait_for_handler
from toolkit.runtime.catalog.omit import OMIT
from toolkit.runtime.closeable import Closeable
from toolkit.runtime.context.signals import NEVER, CallSignal, CancelSignal
from toolkit.runtime.context.tool_context import ToolContext
from toolkit.runtime.workers import Job, await_contained
from toolkit.wire.result import ToolResult

if TYPE_CHECKING:
    from concurrent.futures import Future

    from toolkit.runtime.call.approval import Answer, ApprovalRequest
    from toolkit.runtime.call.core import PreparedCall
    from toolkit.runtime.catalog.tool import Tool
    from toolkit.runtime.context.progress import Progress
    from toolkit.runtime.output.message import ToolMessage
    from toolkit.wire.call import ToolCall

T = TypeVar("T")


class CallTool(Protocol):
    """Runs a tool for a method of a generated ``Tools`` class, which declares the return type."""

    def __call__(self, name: str, arguments: dict[str, Any], /) -> T: ...  # type: ignore[type-var]


class Runner(View, Closeable):
    """Runs tools by name: resolve, admit, validate, run in the sandbox, conclude."""

    # -- the call path -----------------------------------------------------------------------------------------------

    def _run_direct(self, tool: Tool, args: BaseModel, call_id: str | None = None) -> ToolMessage[Any, Any]:
        """Runs a call about which nothing is left to decide, with validated arguments."""
        core = self._core
        if core.resources.is_closed:
            raise steps.closed(tool.name)
        ctx = ToolContext.__new__(ToolContext)
        ctx._tool = tool
        ctx._core = core
        if call_id is not None:
            ctx.call_id = call_id
        try:
            value = tool.handler(args, ctx)  # type: ignore[misc]  # direct tools have one
            if type(value) is tool.checked_model and not ctx._is_used:
                return steps.answer(tool, value)
            if inspect.isawaitable(value):
                # A plain function around an async handler, such as a decorator.
                value = self._await_in_loop(value)
            if ctx._scope is not None:
                ctx._scope.close()
            return steps.conclude(tool, value, ctx)
        except BaseException as error:
            ctx._release(error)
            if isinstance(error, KeyboardInterrupt):
                raise
            raise steps.as_toolkit_error(error, tool.name) from steps.cause_of(error)

    def _run(
        self, name: str, arguments: object, call_id: str | None = None, *, is_text: bool = False
    ) -> ToolMessage[Any, Any]:
        core, options = self._core, self._options
        call = core.prepare(name, arguments, call_id, is_text=is_text)
        tool, record = call.tool, call.record
        if not call.repairs and tool.name in self._direct:
            return self._run_direct(tool, call.arguments, call_id)
        # Inline and with the shared signal, unless the call can be ended from outside.
        inline = options.deadline is None and options.signal is None and not tool.is_async
        signal = NEVER if inline else CallSignal(options.signal, options.deadline)
        ctx = ToolContext(tool, core, call_id, signal, options.notify)
        try:
            if call.request is not None or record is not None:
                answer = None if call.request is None else self._ask(call.request)
                response = core.settle(call, answer, ctx)
                if response is not None:
                    message = steps.conclude(tool, response.content, ctx, call.repairs, answered_by="the approver")
                    return self._deliver(message, record)
            if not inline:
                signal.check()
                value = wait_for_handler(*self._start_handler(call, ctx), signal)
            else:
                value = call.handler(call.arguments, ctx)
                if not isinstance(value, tool.output.model) and inspect.isawaitable(value):
                    # A plain function around an async handler, such as a decorator.
                    value = self._await_in_loop(value)
                if ctx._scope is not None:
                    ctx._scope.close()
            message = steps.conclude(tool, value, ctx, call.repairs)
            return message if self._on_result is None and record is None else self._deliver(message, record)
        except BaseException as error:
            if inline:
                ctx._release(error)
            interrupted = isinstance(error, KeyboardInterrupt)
            shown = ToolCancelled("interrupted") if interrupted else steps.as_toolkit_error(error, tool.name)
            if record is not None:
                record.end_failed(shown, call.arguments)
            if interrupted:
                raise
            raise shown from steps.cause_of(error)

    def _ask(self, request: ApprovalRequest) -> Answer:
        """Asks the approver; waits for an async one."""
        approver = self._core.context.approver
        assert approver is not None
        try:
            answer = approver(request)
            return self._await_in_loop(answer) if inspect.isawaitable(answer) else answer
        except Exception as error:
            raise steps.not_approved(request, error) from error

    def _await_in_loop(self, work: Awaitable[T]) -> T:
        return self._submit_to_loop(work)[0].result()

    def _submit_to_loop(self, work: Awaitable[T]) -> tuple[Future[T], Job]:
        """Starts awaiting in the toolkit's loop; in a new loop if the caller itself runs in the toolkit's loop."""
        if not self._core.loop.waits_for_caller:
            return self._core.loop.submit(work)
        import asyncio

        return self._core.workers.submit(lambda: asyncio.run(await_contained(work))), _nothing

    def _start_handler(self, call: PreparedCall, ctx: ToolContext) -> tuple[Future[Any], Job]:
        """Starts the handler in the loop or in a thread; returns its future, and what cancels it."""
        handler, args, tool = call.handler, call.arguments, call.tool
        if tool.is_async:
            return self._submit_to_loop(await_and_release(handler(args, ctx), ctx))

        def work(args: BaseModel, ctx: ToolContext) -> Any:
            value = handler(args, ctx)
            awaitable = not isinstance(value, tool.output.model) and inspect.isawaitable(value)
            return self._await_in_loop(value) if awaitable else value

        return self._core.workers.submit(lambda: run_and_release(work, args, ctx)), _nothing

    # -- the entry points --------------------------------------------------------------------------------------------

    def _invoke(self, name: str, args: object) -> ToolMessage[Any, Any]:
        """Runs a tool by name with a dict or its input model, and returns its message; raises ``ToolkitError``."""
        try:
            tool = self._direct[name]
            is_dict = type(args) is dict and len(args) < MANY_ARGUMENTS
            given = tool.from_wire(args) if is_dict else tool.input.from_instance(args)
        except NOT_DIRECT:
            given = None
        return self._run(name, args) if given is None else self._run_direct(tool, given)

    def _execute_raw(self, name: str, text: str) -> ToolMessage[Any, Any]:
        """The same with the JSON text that a model wrote."""
        try:
            tool = self._direct[name]
            given = tool.input.from_text(text)
        except NOT_DIRECT:
            given = None
        return self._run(name, text, is_text=True) if given is None else self._run_direct(tool, given)

    def _call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        """Behind ``tools.<name>(...)``: arguments left at OMIT are not sent."""
        return self._invoke(name, {key: value for key, value in arguments.items() if value is not OMIT}).content

    def call(self, call: ToolCall) -> ToolResult:
        """Runs a model's call and never raises: what fails becomes ``kind="error"`` with the text ``CODE: message``."""
        text = call.unread_text
        try:
            try:
                tool = self._direct[call.name]
                if text is not None:
                    given = tool.input.from_text(text)
                else:
                    given = tool.from_wire(call.arguments) if len(call.arguments) < MANY_ARGUMENTS else None
            except NOT_DIRECT:
                given = None
            if given is None:
                arguments = call.arguments if text is None else text
                message = self._run(call.name, arguments, call.id, is_text=text is not None)
            else:
                message = self._run_direct(tool, given, call.id)
            return message.to_result(call.id)
        except Exception as error:  # also of the tool's own text form
            return steps.error_result(error, call.id, call.name)

    def call_all(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Runs calls in order; adjacent parallel ones run at the same time. A failure does not affect other results."""
        results: list[ToolResult] = []
        for parallel, group in groupby(calls, key=self._is_parallel):
            some = list(group)
            if parallel and len(some) > 1:
                results += self._core.workers.map(self.call, some)
            else:
                results += map(self.call, some)
        return results

    def stream(self, call: ToolCall) -> Iterator[Progress | ToolResult]:
        """Runs a model's call; yields its progress, then its result. Closing the iterator cancels the call."""
        from queue import SimpleQueue

        from toolkit.runtime.context.progress import combine_listeners

        events: SimpleQueue[Progress | ToolResult] = SimpleQueue()
        options = self._options
        signal, forget = CancelSignal.linked_to(options.signal)
        view = self._with(Options(options.deadline, signal, combine_listeners(options.notify, events.put)))
        self._core.workers.submit(lambda: events.put(view.call(call)))
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
        self._core.close()


def _nothing() -> None:
    return None
