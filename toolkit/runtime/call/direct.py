"""Calls that are allowed and not limited: what is known before a call is looked up once, at the first use of its tool.

The functions made here get the view of the toolkit as an argument. If they held it, a toolkit that nobody uses any more
would stay open until the garbage collector finds the cycle.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel

from toolkit.runtime import path as steps
from toolkit.runtime.interruption import is_interruption
from toolkit.runtime.output.message import MessageForm, ToolMessage
from toolkit.runtime.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.runtime.async_ import AsyncRunner
    from toolkit.runtime.catalog.tool import Tool
    from toolkit.runtime.resources import Resources
    from toolkit.runtime.sync import Runner

RunT_co = TypeVar("RunT_co", bound="Run | RunAsync", covariant=True)


class Run(Protocol):
    """Runs a call with validated arguments."""

    def __call__(self, view: Runner, args: BaseModel, call_id: str | None = None, /) -> ToolMessage[Any, Any]: ...


class RunAsync(Protocol):
    """The same, awaited."""

    def __call__(
        self, view: AsyncRunner, args: BaseModel, call_id: str | None = None, /
    ) -> Coroutine[Any, Any, ToolMessage[Any, Any]]: ...


class DirectTool(NamedTuple, Generic[RunT_co]):
    """How a tool reads its arguments, and how it runs. The first three return None, or raise, for arguments that are not
    plainly right; the whole call path then decides. Unpacking a tuple is faster than reading attributes."""

    from_dict: Callable[[dict[str, Any]], BaseModel | None]
    from_text: Callable[[str], BaseModel | None]
    from_instance: Callable[[object], BaseModel | None]
    run: RunT_co


def direct_tool(tool: Tool, run: RunT_co) -> DirectTool[RunT_co]:  # type: ignore[misc]  # it is only passed on
    """A tool about whose calls nothing is left to decide."""
    given = tool.input
    return DirectTool(given.from_dict, given.from_text, given.from_instance, run)


def make_run(tool: Tool, resources: Resources) -> Run:
    """Runs calls of a tool with a sync handler."""
    name, form, handler, model, holds_plain = _parts(tool)
    new = object.__new__

    def run(view: Runner, args: BaseModel, call_id: str | None = None, /) -> ToolMessage[Any, Any]:
        if resources.is_closed:
            raise steps.closed(tool.name)
        ctx = ToolContext()
        ctx._tool = tool
        ctx._core = view._core
        if call_id is not None:
            ctx.call_id = call_id
        try:
            value = handler(args, ctx)
            if type(value) is model and not ctx._is_used:  # `steps.conclude` for most calls
                if not holds_plain(value):
                    steps.check_output(tool, value)
                message: ToolMessage[Any, Any] = new(ToolMessage)
                message.name = name
                message.content = value
                message._form = form
                message._reported = message._shown = None
                return message
            if inspect.isawaitable(value):
                # A plain function around an async handler, such as a decorator.
                value = view._await_in_loop(value)
            if ctx._scope is not None:
                ctx._scope.close()
            return steps.conclude(tool, value, ctx)
        except BaseException as error:
            ctx._release(error)
            if is_interruption(error):
                raise
            raise steps.as_toolkit_error(error, tool.name) from steps.cause_of(error)

    return run


def make_run_async(tool: Tool, resources: Resources) -> RunAsync:
    """Runs calls of a tool whose handler is async, or does not block."""
    name, form, handler, model, holds_plain = _parts(tool)
    new = object.__new__
    is_async = tool.is_async

    async def run(view: AsyncRunner, args: BaseModel, call_id: str | None = None, /) -> ToolMessage[Any, Any]:
        if resources.is_closed:
            raise steps.closed(tool.name)
        ctx = ToolContext()
        ctx._tool = tool
        ctx._core = view._core
        if call_id is not None:
            ctx.call_id = call_id
        try:
            value = handler(args, ctx)
            if is_async:
                value = await value
            if type(value) is model and not ctx._is_used:  # `steps.conclude` for most calls
                if not holds_plain(value):
                    steps.check_output(tool, value)
                message: ToolMessage[Any, Any] = new(ToolMessage)
                message.name = name
                message.content = value
                message._form = form
                message._reported = message._shown = None
                return message
            if inspect.isawaitable(value):
                # A plain function around an async handler, such as a decorator.
                value = await value
            if ctx._scope is not None:
                await ctx._scope.close_async()
            if ctx._writer is not None:
                await ctx._writer.finish_async()
            return steps.conclude(tool, value, ctx)
        except BaseException as error:
            ctx._drop_output()
            if ctx._scope is not None:
                await ctx._scope.close_async(error)
            if is_interruption(error) or view._is_cancelled(error):
                raise
            raise steps.as_toolkit_error(error, tool.name) from steps.cause_of(error)

    return run


def _parts(
    tool: Tool,
) -> tuple[str, MessageForm, Callable[..., Any], type[BaseModel] | None, Callable[[BaseModel], bool]]:
    """What both kinds of calls use. The model is that of the output, if outputs must be of it."""
    assert tool.handler is not None
    model = tool.output.model if tool.output_check == "enforce" else None
    return tool.name, tool.form, tool.handler, model, tool.output.holds_plain
