"""How long a program may take, from its start to its end."""

from __future__ import annotations

import time
from typing import NamedTuple, Self


class TimeLimit(NamedTuple):
    """A number of seconds, and when they are over.

    >>> TimeLimit.beginning_now(2).message
    'the program took longer than 2 s'
    """

    seconds: float
    until: float
    """By the monotonic clock."""

    @classmethod
    def beginning_now(cls, seconds: float) -> Self:
        return cls(seconds, time.monotonic() + seconds)

    @property
    def message(self) -> str:
        """What to tell when they are over."""
        return f"the program took longer than {self.seconds:g} s"
