"""The toolkits of a worker: one for each setup, kept for the next call."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from toolkit.errors import SetupError
from toolkit.fleet.messages import read_setup
from toolkit.runtime.sync import Runner

KEPT: Final = 16
"""How many toolkits that nobody uses are kept open."""


def make_checked(make: Callable[[object], Any], setup: bytes) -> Runner:
    """The toolkit that the factory makes from a setup."""
    toolkit = make(read_setup(setup))
    if not isinstance(toolkit, Runner):
        raise SetupError(
            f"the factory returned a {type(toolkit).__name__}; a fleet needs a sync toolkit, as create_agent_toolkit makes it"
        )
    return toolkit


class KeptToolkits:
    """Opens toolkits at their first use, and closes those that were not used for longest."""

    def __init__(self, make: Callable[[object], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()

    @contextmanager
    def use(self, setup: bytes) -> Iterator[Runner]:
        """The toolkit of a setup, which is not closed meanwhile."""
        with self._lock:
            kept = self._kept.setdefault(setup, _Kept())
            self._kept.move_to_end(setup)
            kept.users += 1
        try:
            with kept.lock:  # a factory may take long; other setups do not wait for it
                if kept.toolkit is None:
                    kept.toolkit = make_checked(self._make, setup)
            yield kept.toolkit
        finally:
            with self._lock:
                kept.users -= 1
                surplus = self._take_surplus()
            for toolkit in surplus:
                toolkit.close()

    def close(self) -> None:
        with self._lock:
            kept = [one.toolkit for one in self._kept.values()]
            self._kept.clear()
        for toolkit in kept:
            if toolkit is not None:
                toolkit.close()

    def _take_surplus(self) -> list[Runner]:
        unused = [setup for setup, kept in self._kept.items() if not kept.users]
        # One whose factory failed is not kept: the next call tries again.
        failed = [setup for setup in unused if self._kept[setup].toolkit is None]
        oldest = [setup for setup in unused if setup not in failed][: max(0, len(unused) - len(failed) - KEPT)]
        taken = [self._kept.pop(setup).toolkit for setup in (*failed, *oldest)]
        return [toolkit for toolkit in taken if toolkit is not None]


class _Kept:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.toolkit: Runner | None = None
