"""Waiting for a driver in an async run: not longer than the run may last."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing, suppress
from typing import TypeVar

from toolkit.errors import ToolTimeout
from toolkit.loop.state import RunState
from toolkit.wire.events import AnswerEvent
from toolkit.wire.streams import AsyncStreamResult

T = TypeVar("T")


async def await_answer(answer: Awaitable[T], state: RunState) -> T:
    """What a driver answers. It is awaited in this task: what a driver enters in one step, it may leave in another."""
    loop, caller = asyncio.get_running_loop(), state.signal.caller

    def end() -> None:
        with suppress(RuntimeError):  # the answer has just come
            scope.reschedule(loop.time())

    def tell_loop() -> None:
        # The caller may cancel from another thread.
        loop.call_soon_threadsafe(end)

    try:
        async with asyncio.timeout(state.signal.remaining) as scope:
            forget = caller.listen(tell_loop) if caller else None
            try:
                return await answer
            finally:
                if forget is not None:
                    forget()
    except TimeoutError:
        if not scope.expired():
            raise  # an error of the driver
        error = state.signal.error() or ToolTimeout("the time of the run is over")
        raise state.ended_by(error) from None


async def await_events(stream: AsyncStreamResult, state: RunState) -> AsyncGenerator[AnswerEvent, None]:
    """The events of a stream, which is closed at the end."""
    async with aclosing(stream.events) as events:
        while (event := await await_answer(anext(events, None), state)) is not None:
            yield event
            state.check()
