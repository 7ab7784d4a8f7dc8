"""Handlers with injected parameters, made into handlers without; and the end of a handler, where what it was given is
given back: in the thread or task that used it, also when the caller has long gone on."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from toolkit.inject.plan import Node, Planner
from toolkit.runtime.context.tool_context import ToolContext
from toolkit.runtime.workers import Workers, is_async

T = TypeVar("T")

GIVEN_BY_THE_ROAD: Final = 2
"""A handler's first two parameters are its arguments and its context."""


def injected(handler: Callable[..., Any], planner: Planner, workers: Workers, *, blocking: bool) -> Callable[..., Any]:
    """The handler itself if it needs nothing; else one that is async where the handler or what it needs is."""
    needs = planner.needs_of(handler, skip=GIVEN_BY_THE_ROAD)
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

    return run_async if awaits or any(isinstance(need, Node) and need.needs_loop for _, need in needs) else run


def handled(handler: Callable[..., Any], args: BaseModel, ctx: ToolContext) -> Any:
    """Calls a sync handler, then gives back what it took; unless it gave something to await, which may still use that."""
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


async def closing(work: Awaitable[T], ctx: ToolContext) -> T:
    """Awaits an async handler, then gives back what it took with ``ctx.resolve_async``."""
    try:
        value = await work
    except BaseException as error:
        ctx._drop_output()
        if ctx._scope is not None:
            await ctx._scope.close_async(error)
        raise
    if ctx._scope is not None:
        await ctx._scope.close_async()
    return value
