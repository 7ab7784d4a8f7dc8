"""How the file tools use a store of write locks: every change of a file holds the lock of its path there.

A lock in a store expires, so that a machine that has gone does not hold it for ever. What takes longer than a third of that
time is extended by a thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from toolkit.guard.forks import start_again_in_child
from toolkit.runtime.stores.locks import WriteLocks, hold_lock

logger: Final = logging.getLogger("toolkit")

LEASE_SECONDS: Final = 30.0


class FileLocks:
    """Holds locks of paths in a store, which is made at the first change of a file."""

    def __init__(self, find: Callable[[], WriteLocks], lease: float = LEASE_SECONDS) -> None:
        self._find: Final = find
        self._lease: Final = lease
        self.start_again_in_child()
        start_again_in_child(self)

    def start_again_in_child(self) -> None:
        """In a forked child: what the parent holds, the parent extends."""
        self._turn = threading.Lock()
        self._held: dict[str, str] = {}
        self._keeper: threading.Thread | None = None

    @contextmanager
    def hold(self, path: str, check: Callable[[], None]) -> Iterator[None]:
        """Holds the lock of a path; ``check`` ends the wait for it by raising."""
        with hold_lock(self._find(), path, seconds=self._lease, check=check) as token:
            self._keep(token, path)
            try:
                yield
            finally:
                with self._turn:
                    self._held.pop(token, None)

    def _keep(self, token: str, path: str) -> None:
        with self._turn:
            self._held[token] = path
            if self._keeper is not None:
                return
            keeper = threading.Thread(target=self._extend_held, name="toolkit-locks", daemon=True)
            with suppress(RuntimeError):  # the system starts no more threads; the lock holds for its time
                keeper.start()
                self._keeper = keeper

    def _extend_held(self) -> None:
        """Runs until nothing is held for a while."""
        known: set[str] = set()
        while True:
            threading.Event().wait(self._lease / 3)
            with self._turn:
                held = dict(self._held)
                if not held:
                    self._keeper = None
                    return
            # What is new has been held for less than a third of its time.
            for token in known & held.keys():
                self._extend(token, held[token])
            known = set(held)

    def _extend(self, token: str, path: str) -> None:
        try:
            is_held = self._find().extend(path, token, seconds=self._lease)
        except Exception as error:
            logger.warning("the lock of %r could not be extended", path, exc_info=error)
            return
        if not is_held and token in self._held:
            logger.error("the lock of %r was lost while the file was being changed", path)
