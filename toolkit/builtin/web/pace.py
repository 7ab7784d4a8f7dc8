"""Asks whether to go on, now and then, while a page is converted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

EVERY: Final = 1024


class Pace:
    """Calls ``check``, which may raise, on every 1024th step: a step is a few microseconds of work.

    >>> asked = []
    >>> pace = Pace(lambda: asked.append("?"))
    >>> for _ in range(2048):
    ...     pace.step()
    >>> len(asked)
    2
    """

    __slots__ = ("_check", "_steps")

    def __init__(self, check: Callable[[], None] = lambda: None) -> None:
        self._check = check
        self._steps = 0

    def step(self) -> None:
        self._steps += 1
        if not self._steps % EVERY:
            self._check()
