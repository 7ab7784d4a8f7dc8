"""Injects dependencies into handlers, and releases them in the thread or task that used them when the handler ends,
even if its caller has stopped waiting."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel

from toolkit.inject.plan import DependencyNode, Planner
from toolkit.runtime.workers import Workers, is_async

if TYPE_CHECKING:
    from toolkit.runtime.tool_context import ToolContext

T = TypeVar("T")

GIVEN_PARAMETERS: Final = 2
"""How many parameters of a handler the call path fills in: the arguments and the context."""


def inject(handler: Callable[..., Any], planner: Planner, workers: Workers, *, blocking: bool) -> Callable[..., Any]:
    """The handler without injected parameters: async if the handler or one of its dependencies is."""
    needs = planner.needs_of(handler, skip=GIVEN_PARAMETERS)
    if not needs:
        return handler
    awaits = is_async(handler)

    def run(args: BaseModel, ctx: ToolContext) -> Any:
        return handler(args, ctx, **ctx._open_scope().arguments(needs))

    async def run_async(args: BaseModel, ctx: ToolContext) -> Any:
        given = await ctx._open_scope().arguments_async(needs)
        if awaits:
            return await handler(args, ctx, **given)
        if not blocking:
            return handler(args, ctx, **given)
        import asyncio

        return await asyncio.wrap_future(workers.submit(lambda: handler(args, ctx, **given)))

    return (
        run_async if awaits or any(isinstance(need, DependencyNode) and need.needs_loop for _, need in needs) else run
    )


def run_and_release(handler: Callable[..., Any], args: BaseModel, ctx: ToolContext) -> Any:
    """Calls a sync handler, then releases its dependencies; not if it returned an awaitable, which may still use them."""
    try:
        value = handler(args, ctx)
    except BaseException as error:
        ctx._drop_output()
        if ctx._scope is not None:
            ctx._scope.close(error)
        raise
    if ctx._scope is not None and not inspect.isawaitable(value):
        ctx._scope.close()
    return value


async def await_and_release(handler: Callable[..., Awaitable[T]], args: BaseModel, ctx: ToolContext) -> T:
    """Awaits an async handler, then releases its dependencies.

    It calls the handler itself: a coroutine that is made elsewhere would be left over if this one never starts.
    """
    try:
        value = await handler(args, ctx)
    except BaseException as error:
        ctx._drop_output()
        if ctx._scope is not None:
            await ctx._scope.close_async(error)
        raise
    if ctx._scope is not None:
        await ctx._scope.close_async()
    return value
