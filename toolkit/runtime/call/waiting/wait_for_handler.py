"""Waits, in the caller's thread, for a handler that runs elsewhere, until the deadline or a cancellation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from toolkit.errors import ToolTimeout

if TYPE_CHECKING:
    from concurrent.futures import Future

    from toolkit.runtime.signals import CallSignal
    from toolkit.runtime.workers import Stop

GRACE_SECONDS: Final = 0.2
"""How long a handler may take to stop before its caller continues without it."""


def wait_for_handler(
    running: Future[Any], stop: Stop, signal: CallSignal, abandon: Callable[[Future[Any]], None] | None = None
) -> Any:
    """The handler's value; raises if the call ended first, even if the handler is still running.

    ``abandon`` is told about one that did not stop in time.
    """
    changed = threading.Event()
    running.add_done_callback(lambda _: changed.set())
    caller = signal.caller
    forget = None if caller is None else caller.listen(changed.set)
    try:
        remaining = signal.remaining
        changed.wait(None if remaining is None else min(remaining, threading.TIMEOUT_MAX))
    except BaseException:  # Ctrl-C, or what a signal handler of the program raised
        signal.stop()
        _stop_and_wait(running, stop)
        raise
    finally:
        if forget is not None:
            forget()
    if not running.done():
        error = signal.error() or ToolTimeout("the call took longer than its deadline")
        _stop_and_wait(running, stop)
        error.details["abandoned"] = not running.done()
        if abandon is not None and not running.done():
            abandon(running)
        raise error
    signal.refuse_late()
    return running.result()


def _stop_and_wait(running: Future[Any], stop: Stop) -> None:
    """Tells the handler to stop, and gives it a moment."""
    stop()
    ended = threading.Event()
    running.add_done_callback(lambda _: ended.set())
    ended.wait(GRACE_SECONDS)
