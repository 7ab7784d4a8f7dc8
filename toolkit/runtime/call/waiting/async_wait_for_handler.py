"""Awaits, in the caller's loop, a handler that runs in a task or a thread, until the deadline or a cancellation."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

from toolkit.errors import ToolTimeout
from toolkit.runtime.call.waiting.wait_for_handler import GRACE_SECONDS
from toolkit.runtime.signals import CallSignal
from toolkit.runtime.workers import Job, Stop


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
