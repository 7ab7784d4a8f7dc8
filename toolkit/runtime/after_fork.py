"""What a forked child must start again: it has none of its parent's threads, and locks may be held by them for ever."""

from __future__ import annotations

import os
import weakref
from typing import Final, Protocol


class StartsAgain(Protocol):
    """Something with threads or locks of its own."""

    def start_again_in_child(self) -> None:
        """Forgets the parent's threads; called in the child, before anything else runs there."""


_all: Final[weakref.WeakSet[StartsAgain]] = weakref.WeakSet()


def start_again_after_fork(one: StartsAgain) -> None:
    """From now on, as long as it lives, a forked child calls its ``start_again_in_child``."""
    _all.add(one)


def _start_all_again() -> None:
    for one in list(_all):
        one.start_again_in_child()


os.register_at_fork(after_in_child=_start_all_again)
