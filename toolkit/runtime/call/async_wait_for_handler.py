"""Awaits, in the caller's loop, a handler that runs in a task or a thread, until the deadline or a cancellation."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

from toolkit.errors import ToolTimeout
from toolkit.runtime.call.wait_for_handler import GRACE_SECONDS
from toolkit.runtime.context.signals import CallSignal


async def await_handler(running: asyncio.Future[Any], signal: CallSignal) -> object:
    """The handler's value; raises if the call ended first, even if the handler is still running."""
    caller = signal.caller
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def tell_loop() -> None:
        # The caller may cancel from another thread.
        loop.call_soon_threadsafe(stop.set)

    forget = caller.listen(tell_loop) if caller else None
    stopping = asyncio.ensure_future(stop.wait()) if caller else None
    try:
        waiting = {running, stopping} if stopping else {running}
        await asyncio.wait(waiting, timeout=signal.remaining, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            await _abandon(running, signal)
        signal.refuse_late()
        return running.result()
    except asyncio.CancelledError:
        signal.stop()
        running.cancel()
        raise
    finally:
        if stopping is not None:
            stopping.cancel()
        if forget is not None:
            forget()


async def _abandon(running: asyncio.Future[Any], signal: CallSignal) -> NoReturn:
    """Tells the handler to stop, waits a moment, then raises what ended the call."""
    error = signal.error() or ToolTimeout("the call took longer than its deadline")
    if isinstance(running, asyncio.Task):
        running.cancel()
    await asyncio.wait({running}, timeout=GRACE_SECONDS)
    error.details["abandoned"] = not running.done()
    running.add_done_callback(_collect_error)
    raise error


def _collect_error(running: asyncio.Future[Any]) -> None:
    """Reads the error of an abandoned handler, so that asyncio does not report it as never retrieved."""
    if not running.cancelled():
        running.exception()
