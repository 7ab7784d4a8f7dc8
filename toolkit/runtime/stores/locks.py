"""The interface of locks between machines, the store in files, and how to wait for one."""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol, runtime_checkable

from toolkit.errors import ToolFailed
from toolkit.forks import start_again_in_child
from toolkit.runtime.stores.approvals import same_digest
from toolkit.runtime.stores.private_files import PrivateFiles, digest_of, reason_of
from toolkit.runtime.stores.waiting import wait_for

logger: Final = logging.getLogger("toolkit")

_FIRST_PAUSE: Final = 0.001
_LONGEST_PAUSE: Final = 0.05


@runtime_checkable
class WriteLocks(Protocol):
    """Locks by key, each held by whoever has its token until it is released or expires.

    Nobody waits in here; ``hold_lock`` does. Failures are raised as ``ToolFailed``; ``toolkit.testing.WriteLockLaws`` tests
    locks of your own.
    """

    def acquire(self, key: str, *, seconds: float) -> str | None:
        """Takes the lock for so many seconds; returns a token, or None if somebody else holds it."""

    def extend(self, key: str, token: str, *, seconds: float) -> bool:
        """Holds it for so many seconds from now; False if it is not held with this token any more."""

    def release(self, key: str, token: str) -> bool:
        """Gives it back; False if it is not held with this token any more."""


class AsyncWriteLocks(Protocol):
    """``WriteLocks`` whose methods are awaited."""

    async def acquire(self, key: str, *, seconds: float) -> str | None: ...

    async def extend(self, key: str, token: str, *, seconds: float) -> bool: ...

    async def release(self, key: str, token: str) -> bool: ...


@contextmanager
def hold_lock(
    locks: WriteLocks | AsyncWriteLocks,
    key: str,
    *,
    seconds: float = 30.0,
    wait: float = 30.0,
    check: Callable[[], None] | None = None,
) -> Iterator[str]:
    """Holds the lock of a key, and waits for it if necessary; the value is its token.

    Fails with CONFLICT if somebody else holds it for longer than ``wait`` seconds. ``check`` ends the wait by raising.
    After ``seconds`` the lock is free for others, whether or not the block has ended: it must be shorter, or ``extend``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     locks = FileWriteLocks(folder)
    ...     with hold_lock(locks, "notes.txt"):
    ...         locks.acquire("notes.txt", seconds=1) is None
    True
    """
    token = _wait_for_lock(locks, key, seconds, time.monotonic() + wait, check)
    try:
        yield token
    finally:
        try:
            wait_for(locks.release(key, token))
        except ToolFailed as error:  # what was done under the lock is done; the lock expires by itself
            logger.warning("a lock could not be released, and expires within %g s: %s", seconds, error.message)


def _wait_for_lock(
    locks: WriteLocks | AsyncWriteLocks,
    key: str,
    seconds: float,
    give_up: float,
    check: Callable[[], None] | None,
) -> str:
    pause = _FIRST_PAUSE
    while True:
        token = wait_for(locks.acquire(key, seconds=seconds))
        if token is not None:
            return token
        if check is not None:
            check()
        if time.monotonic() > give_up:
            raise ToolFailed("CONFLICT", "somebody else is changing the same thing; try again")
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


class FileWriteLocks:
    """One file per lock in a private directory, which any number of processes on this machine may share."""

    def __init__(self, directory: str) -> None:
        self._files: Final = PrivateFiles(directory, is_synced=False)

    def acquire(self, key: str, *, seconds: float) -> str | None:
        check_seconds(seconds)
        name, token = digest_of(key), new_token()
        with self._using():
            if self._files.read(name) is not None:
                return None
            self._write(name, token, seconds)
            return token

    def extend(self, key: str, token: str, *, seconds: float) -> bool:
        check_seconds(seconds)
        name = digest_of(key)
        with self._using():
            if not self._is_held(name, token):
                return False
            self._write(name, token, seconds)
            return True

    def release(self, key: str, token: str) -> bool:
        name = digest_of(key)
        with self._using():
            if not self._is_held(name, token):
                return False
            self._files.remove(name)
            return True

    def _write(self, name: str, token: str, seconds: float) -> None:
        self._files.write(name, json.dumps({"token": token}).encode(), expires=time.time() + seconds)

    def _is_held(self, name: str, token: str) -> bool:
        data = self._files.read(name)
        kept: dict[str, Any] = {} if data is None else json.loads(data)
        return data is not None and same_digest(kept["token"], token)

    @contextmanager
    def _using(self) -> Iterator[None]:
        try:
            with self._files.locked():
                yield
        except OSError as error:
            raise ToolFailed("IO", f"the write locks failed: {reason_of(error)}") from error


def check_seconds(seconds: float) -> None:
    """Raises for a lock that would never expire."""
    if not 0 < seconds < float("inf"):
        raise ValueError(f"a lock must expire: seconds must be a number above 0, not {seconds!r}")


def new_token() -> str:
    """What only the holder of a lock knows."""
    return secrets.token_hex(16)


# ----------------------------------------------------------------------------------------------------------------------
# How the file tools use a store of write locks: every change of a file holds the lock of its path there.
#
# A lock in a store expires, so that a machine that has gone does not hold it for ever. What takes longer than a third of that
# time is extended by a thread.

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
