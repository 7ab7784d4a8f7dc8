"""Exceptions that are meant for the whole program, not for one call.

A signal handler runs in the main thread, inside whatever runs there. What it raises (``sys.exit`` at SIGTERM, say) comes out
of a tool's handler as if the tool had raised it, and must end the program; a tool that calls ``sys.exit`` itself only fails.
"""

from __future__ import annotations

import threading
from inspect import CO_VARARGS
from types import FrameType


def is_interruption(error: BaseException) -> bool:
    """Whether the error is a Ctrl-C, or was raised by a signal handler of the program to end more than a call."""
    if isinstance(error, Exception) or threading.current_thread() is not threading.main_thread():
        return False
    return isinstance(error, KeyboardInterrupt) or _comes_from_signal_handler(error)


def _comes_from_signal_handler(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None:
        if _is_signal_handler(trace.tb_frame):
            return True
        trace = trace.tb_next
    return False


def _is_signal_handler(frame: FrameType) -> bool:
    """Whether Python called this function for a signal: it gets the frame that was interrupted, which is also its caller."""
    caller, code = frame.f_back, frame.f_code
    if caller is None:
        return False
    count = code.co_argcount + bool(code.co_flags & CO_VARARGS) + code.co_kwonlyargcount
    values = [frame.f_locals.get(name) for name in code.co_varnames[:count]]
    return any(value is caller or (isinstance(value, tuple) and caller in value) for value in values)
