"""Turns of a millisecond for threads that make short calls into the system.

CPython runs one thread at a time, and a thread lets another one run at each call into the system. Threads that read small
files make such a call every few microseconds and wake each other each time, so that four of them get less done than one.
With turns, one of them goes on for a millisecond while the others sleep.

A turn is only an offer: whoever waits goes on without one if no work has ended for 5 ms, on a slow disk for example. So
nobody waits for work that is stuck, not even work that takes a turn inside its own.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Final, TypeVar

from toolkit.guard.forks import start_again_in_child

T = TypeVar("T")

_TURN_SECONDS: Final = 0.001
_PATIENCE: Final = 0.005
# After work that took too long, turns are not worth waiting for.
_PAUSE_SECONDS: Final = 1.0
_IS_NEEDED: Final = getattr(sys, "_is_gil_enabled", lambda: True)()


class BriefTurns:
    """Runs work of several threads, usually one at a time."""

    def __init__(self) -> None:
        self.start_again_in_child()
        start_again_in_child(self)

    def start_again_in_child(self) -> None:
        """Begins with a free turn: the threads that had one or waited for one are not in the child."""
        self._turn = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._turn_began = self._last_end = self._paused_until = 0.0

    def run(self, work: Callable[[], T]) -> T:
        """What ``work`` returns or raises."""
        if not _IS_NEEDED or not self._begin():
            return work()
        try:
            return work()
        finally:
            self._end()

    def _begin(self) -> bool:
        """Waits for a turn; returns False if the work should go on without one."""
        if self._turn.acquire(blocking=False):
            return True
        if monotonic() < self._paused_until:
            return False
        ticket = threading.Lock()
        ticket.acquire()
        self._waiting.append(ticket)
        try:
            return self._wait(ticket)
        except BaseException:  # Ctrl-C: nobody would end the turn that this ticket gets
            if not self._take_back(ticket):
                self._end()
            raise

    def _wait(self, ticket: threading.Lock) -> bool:
        while not ticket.acquire(timeout=_PATIENCE):
            if self._turn.acquire(blocking=False):  # who had it did not come back
                self._waiting.remove(ticket)
                self._turn_began = monotonic()
                return True
            now = monotonic()
            if now - self._last_end > _PATIENCE and self._take_back(ticket):
                self._paused_until = now + _PAUSE_SECONDS
                return False
        return True

    def _take_back(self, ticket: threading.Lock) -> bool:
        """Whether the ticket did not get the turn in this very moment."""
        try:
            self._waiting.remove(ticket)
        except ValueError:
            return False
        return True

    def _end(self) -> None:
        """Gives the turn to who waits longest, if it has lasted long enough; else the same thread may take it again."""
        if self._waiting:
            now = self._last_end = monotonic()
            if now - self._turn_began >= _TURN_SECONDS and self._hand_over(now):
                return
        self._turn.release()

    def _hand_over(self, now: float) -> bool:
        try:
            ticket = self._waiting.popleft()
        except IndexError:
            return False
        self._turn_began = now
        ticket.release()
        return True
