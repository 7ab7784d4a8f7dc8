"""Waits, in the caller's thread, for a handler that runs elsewhere, until the deadline or a cancellation."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, NoReturn

from toolkit.errors import ToolTimeout

if TYPE_CHECKING:
    from concurrent.futures import Future

    from toolkit.runtime.context.signals import CallSignal
    from toolkit.runtime.workers import Job

GRACE_SECONDS: Final = 0.2
"""How long a handler may take to stop before its caller continues without it."""


def wait_for_handler(running: Future[Any], stop: Job, signal: CallSignal) -> object:
    """The handler's value; raises if the call ended first, even if the handler is still running."""
    changed = threading.Event()
    running.add_done_callback(lambda _: changed.set())
    caller = signal.caller
    forget = None if caller is None else caller.listen(changed.set)
    try:
        remaining = signal.remaining
        changed.wait(None if remaining is None else min(remaining, threading.TIMEOUT_MAX))
        if not running.done():
            _abandon(running, stop, signal)
        signal.refuse_late()
        return running.result()
    except KeyboardInterrupt:
        signal.stop()
        stop()
        raise
    finally:
        if forget is not None:
            forget()


def _abandon(running: Future[Any], stop: Job, signal: CallSignal) -> NoReturn:
    """Tells the handler to stop, waits a moment, then raises what ended the call."""
    error = signal.error() or ToolTimeout("the call took longer than its deadline")
    stop()
    ended = threading.Event()
    running.add_done_callback(lambda _: ended.set())
    ended.wait(GRACE_SECONDS)
    error.details["abandoned"] = not running.done()
    raise error
