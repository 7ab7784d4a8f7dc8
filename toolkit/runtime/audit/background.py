"""One thread of the process that writes what audit logs still have to write, at the time that each of them names.

Nothing here takes a lock, so that a signal handler may call tools at any moment.
"""

from __future__ import annotations

import atexit
import heapq
import logging
import os
import threading
import time
import weakref
from queue import Empty, SimpleQueue
from typing import Final, Protocol

logger: Final = logging.getLogger("toolkit")


class Pending(Protocol):
    """Something that has records to write."""

    def write_pending(self) -> None:
        """Writes them, or says in the log of the program why not."""
        ...


_requests: SimpleQueue[tuple[float, Pending]] = SimpleQueue()
_thread: threading.Thread | None = None
_start: threading.Lock = threading.Lock()
_all: Final[weakref.WeakSet[Pending]] = weakref.WeakSet()


def register(pending: Pending) -> None:
    """From now on, what it has to write is written when the program ends."""
    _all.add(pending)


def write_later(pending: Pending, seconds: float) -> bool:
    """Writes what is pending after so many seconds. Returns False if there can be no thread for it any more."""
    global _thread
    if _thread is None and _start.acquire(blocking=False):
        try:
            if _thread is None:
                thread = threading.Thread(target=_serve, args=(_requests,), name="toolkit-audit", daemon=True)
                thread.start()
                _thread = thread
        except RuntimeError:  # too many threads, or the interpreter is ending
            return False
        finally:
            _start.release()
    _requests.put((time.monotonic() + seconds, pending))
    return True


def _serve(requests: SimpleQueue[tuple[float, Pending]]) -> None:
    due: list[tuple[float, int, Pending]] = []
    number = 0
    while True:
        try:
            at, pending = requests.get(timeout=max(0.0, due[0][0] - time.monotonic()) if due else None)
            heapq.heappush(due, (at, number, pending))
            number += 1
            del pending
        except Empty:
            pass
        while due and due[0][0] <= time.monotonic():
            _write(heapq.heappop(due)[2])


def _write(pending: Pending) -> None:
    try:
        pending.write_pending()
    except Exception:
        logger.exception("audit records could not be written")


def _write_all() -> None:
    for pending in list(_all):
        _write(pending)


def _start_again_in_child() -> None:
    global _requests, _thread, _start
    _requests, _thread, _start = SimpleQueue(), None, threading.Lock()


atexit.register(_write_all)
os.register_at_fork(after_in_child=_start_again_in_child)
