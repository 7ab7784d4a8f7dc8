"""How a call is stopped: cancelled by its caller, or past its deadline.

Both are cooperative for Python code: ``ctx.signal.check()`` and every operation of ``ctx.fs`` raise.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from toolkit.errors import ToolCancelled, ToolkitError, ToolTimeout


class CancelSignal:
    """Held by the caller; ``cancel()`` ends every call it was passed to, from any thread.

    >>> signal = CancelSignal()
    >>> signal.cancel("the user pressed stop")
    >>> signal.cancelled
    True
    """

    __slots__ = ("_listeners", "_reasons")

    # Without a lock, which a signal handler or a fork could meet locked: each step is atomic, and whoever takes a listener
    # out of the dict calls it.
    def __init__(self) -> None:
        self._reasons: list[str] = []
        self._listeners: dict[object, Callable[[], None]] = {}

    @classmethod
    def linked_to(cls, outer: CancelSignal | None) -> tuple[CancelSignal, Callable[[], None]]:
        """A signal that is also cancelled when ``outer`` is, and a function that unlinks it."""
        signal = cls()
        if outer is None:
            return signal, lambda: None
        return signal, outer.listen(lambda: signal.cancel(outer.reason))

    def __repr__(self) -> str:
        return f"<CancelSignal: {f'cancelled: {self.reason}' if self._reasons else 'not cancelled'}>"

    @property
    def cancelled(self) -> bool:
        return bool(self._reasons)

    @property
    def reason(self) -> str:
        return self._reasons[0] if self._reasons else ""

    def check(self) -> None:
        """Raises ``ToolCancelled`` if it was cancelled."""
        if self._reasons:
            raise ToolCancelled(self.reason)

    def cancel(self, reason: str = "cancelled by the caller") -> None:
        """Ends the calls; the first reason stays."""
        if self._reasons:
            return
        self._reasons.append(reason)
        for key in list(self._listeners):
            self._call(key)

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls ``listener`` once on cancellation, now if that has happened; returns a function that stops listening."""
        key = object()
        self._listeners[key] = listener
        if self._reasons:
            self._call(key)
        return lambda: self._forget(key)

    def _call(self, key: object) -> None:
        listener = self._listeners.pop(key, None)
        if listener is not None:
            listener()

    def _forget(self, key: object) -> None:
        self._listeners.pop(key, None)


class CallSignal:
    """The signal of one call, which its handler sees as ``ctx.signal``."""

    __slots__ = ("_expires", "_outer", "_seconds", "_stopped")

    def __init__(self, outer: CancelSignal | None, seconds: float | None) -> None:
        self._outer = outer
        self._seconds = seconds
        self._expires = None if seconds is None else time.monotonic() + seconds
        self._stopped = False

    def __repr__(self) -> str:
        left, error = self.remaining, self.error()
        state = f"over: {error.message}" if error else "running" if left is None else f"{left:.3g} s left"
        return f"<CallSignal: {state}>"

    @property
    def caller(self) -> CancelSignal | None:
        """The caller's signal, which can cancel the call."""
        return self._outer

    @property
    def remaining(self) -> float | None:
        """Seconds until the deadline, None without one."""
        return None if self._expires is None else max(0.0, self._expires - time.monotonic())

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop."""
        return self.error() is not None

    def check(self) -> None:
        """Raises if the call is over; cheap enough for inner loops."""
        error = self.error()
        if error is not None:
            raise error

    def refuse_late(self) -> None:
        """Raises if the handler ended after its deadline: a late result is a timeout, whatever it is."""
        error = self.error()
        if isinstance(error, ToolTimeout):
            error.details["abandoned"] = False
            raise error

    def stop(self) -> None:
        """Called by the call path when the awaiting task was cancelled."""
        self._stopped = True

    def error(self) -> ToolkitError | None:
        if self._stopped:
            return ToolCancelled("the call was cancelled")
        if self._outer is not None and self._outer.cancelled:
            return ToolCancelled(self._outer.reason)
        if self._expires is not None and time.monotonic() >= self._expires:
            return ToolTimeout(f"the call took longer than its deadline of {self._seconds:g} s")
        return None


class _NeverSignal(CallSignal):
    __slots__ = ()

    def stop(self) -> None:
        """Does nothing: it is shared by calls that have nothing to do with each other."""


NEVER: CallSignal = _NeverSignal(None, None)
"""The signal of calls that cannot be cancelled; shared, so that it costs nothing."""
