"""Locks of names, between the threads of this process and between the processes of this user on this machine.

A writer holds the lock of a file's real path from the moment it reads what it is going to change until the new file has
that name. So two processes that edit one file lose neither edit.

The locks are byte ranges of one empty file outside the workspace, in the user's state directory: a path's digest is its
offset. Nothing is written there, a process that is killed loses its locks, and no file of the user is ever locked, so that
other programs are not kept waiting and cannot keep us waiting.

Between machines that share a file system, the application can add locks of its own (``HoldElsewhere``).

Limits: other users, other machines without such locks, and programs that are not this toolkit take no part; for them there
is the comparison with the expected content. Two names of one file (a hard link, a second mount) are two locks.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from toolkit.errors import ToolFailed
from toolkit.user_state import user_state_directory
from toolkit.visible import display

if TYPE_CHECKING:
    from toolkit.guard.files.place import Names

HoldElsewhere: TypeAlias = "Callable[[Names, Callable[[], None]], AbstractContextManager[None]]"
"""Holds the lock of a real path where other machines see it, too; its second argument ends the wait by raising."""

_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME: Final = "write-locks"
_MAX_SECONDS: Final = 30.0
"""How long one call waits for another process: a lock is held for milliseconds, unless its holder was stopped."""
_SECONDS_BETWEEN_CHECKS: Final = 0.05
"""How often a thread that waits calls ``check``."""
_FIRST_PAUSE: Final = 0.0005


class _NameLock:
    """A lock that its owner may take again, and the number of threads that hold it or wait for it."""

    __slots__ = ("depth", "lock", "users")

    def __init__(self) -> None:
        self.lock: Final = threading.RLock()
        self.users = 0
        self.depth = 0


_locks: dict[Names, _NameLock] = {}
_table = threading.Lock()


@contextmanager
def hold_locks(
    places: Iterable[Names], check: Callable[[], None], elsewhere: HoldElsewhere | None = None
) -> Iterator[None]:
    """Hold the locks of all these real paths. They are taken in a fixed order, so that two callers cannot deadlock.

    ``check`` ends the wait by raising. Fails with ``CONFLICT`` if another process holds one of them for too long.
    """
    with ExitStack() as stack:
        for place in sorted(set(places)):
            stack.enter_context(_hold_lock(place, check, elsewhere))
        yield


@contextmanager
def _hold_lock(place: Names, check: Callable[[], None], elsewhere: HoldElsewhere | None) -> Iterator[None]:
    with _table:
        mine = _locks.setdefault(place, _NameLock())
        mine.users += 1
    try:
        while not mine.lock.acquire(timeout=_SECONDS_BETWEEN_CHECKS):
            check()
        try:
            mine.depth += 1
            if mine.depth > 1:
                yield
            else:
                with (
                    _hold_between_processes(place, check),
                    nullcontext() if elsewhere is None else elsewhere(place, check),
                ):
                    yield
        finally:
            mine.depth -= 1
            mine.lock.release()
    finally:
        with _table:
            mine.users -= 1
            if not mine.users:
                _locks.pop(place, None)  # a forked child began with an empty table


# -- between processes -------------------------------------------------------------------------------------------------


class _LockFile:
    """The open file whose bytes are locked. Closed when nobody uses it any more, which also gives up every lock on it."""

    def __init__(self, path: str) -> None:
        self.path: Final = path
        self.number: Final = os.open(path, _OPEN, 0o600)
        info = os.fstat(self.number)
        self._identity: Final = (info.st_dev, info.st_ino)
        if info.st_uid != os.geteuid() or not stat.S_ISREG(info.st_mode):
            os.close(self.number)
            raise PermissionError(f"{path} is not a file of this user")

    def is_current(self) -> bool:
        """Whether its path still leads to it. Who removes the file would let two processes lock two files."""
        try:
            info = os.stat(self.path, follow_symlinks=False)
        except OSError:
            return False
        return (info.st_dev, info.st_ino) == self._identity

    def try_lock(self, offset: int) -> bool:
        """Lock one byte, unless another process has it."""
        try:
            fcntl.fcntl(self.number, fcntl.F_OFD_SETLK, _range(fcntl.F_WRLCK, offset))
        except (BlockingIOError, PermissionError):
            return False
        except OSError as error:  # a file system without locks, or the system has no room for more
            why = (error.strerror or str(error)).lower()
            problem = f"nothing was changed: the file cannot be locked against other processes ({why}); try again"
            raise ToolFailed("IO", problem) from error
        return True

    def unlock(self, offset: int) -> None:
        """Does not fail, because the change is made by now. What cannot be unlocked is, when the file is closed."""
        global _file
        try:
            fcntl.fcntl(self.number, fcntl.F_OFD_SETLK, _range(fcntl.F_UNLCK, offset))
        except OSError:
            _file = None

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):
            os.close(self.number)


_file: _LockFile | None = None
_file_for: str = ""
"""The state directory for which that file was opened: the environment may change."""


def _offset(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()[:7])


def _range(kind: int, offset: int) -> bytes:
    """The system's ``struct flock`` for one byte; process id 0, as locks of open files demand."""
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, offset, 1, 0)


class ProcessLock:
    """The lock of one name, for a thread that takes it again and again.

    It has an open file of its own. So it also keeps out other objects of this class in this process, and whoever uses one
    in several threads needs a lock around it. A forked child calls ``forget``.
    """

    def __init__(self, name: str) -> None:
        self._offset: Final = _offset(name)
        self._file: _LockFile | None = None

    def acquire(self, check: Callable[[], None]) -> None:
        """Wait for the lock; ``check`` ends the wait by raising."""
        pause = _FIRST_PAUSE
        while True:
            if self._file is None:
                self._file = _open_first(_folders(user_state_directory()))
            if self._file.try_lock(self._offset):
                if self._file.is_current():
                    return
                self._file = None
                continue
            check()
            time.sleep(pause)
            pause = min(2 * pause, _SECONDS_BETWEEN_CHECKS / 10)

    def release(self) -> None:
        if self._file is not None:
            self._file.unlock(self._offset)

    def forget(self) -> None:
        """Give up the open file, and open another one when it is needed: in a forked child, it is the parent's."""
        self._file = None


@contextmanager
def _hold_between_processes(place: Names, check: Callable[[], None]) -> Iterator[None]:
    offset = _offset("/".join(place))
    file = _wait_for(offset, place, check)
    process = os.getpid()
    try:
        yield
    finally:
        # A child that was forked meanwhile shares the open file: the lock is its parent's.
        if os.getpid() == process:
            file.unlock(offset)


def _wait_for(offset: int, place: Names, check: Callable[[], None]) -> _LockFile:
    give_up, pause = time.monotonic() + _MAX_SECONDS, _FIRST_PAUSE
    while True:
        file = _open_file()
        if file.try_lock(offset):
            if file.is_current():
                return file
            file.unlock(offset)
            continue
        check()
        if time.monotonic() > give_up:
            shown = display(place[-1]) if place else "."
            problem = f"'{shown}' is being changed by another process for more than {_MAX_SECONDS:g} s; try again"
            raise ToolFailed("CONFLICT", problem)
        time.sleep(pause)
        pause = min(2 * pause, _SECONDS_BETWEEN_CHECKS)


def _open_file() -> _LockFile:
    """The file that all processes of this user use now."""
    global _file, _file_for
    state = user_state_directory()
    with _table:
        if _file is None or _file_for != state or not _file.is_current():
            _file = _open_first(_folders(state))
            _file_for = state
        return _file


def _folders(state: str) -> Iterator[str]:
    """Where the file may be. Every process tries in this order. Not everybody has a home that can be written."""
    yield state
    # Only if it is needed: it takes a lock of its own, which a child has for ever if its parent was forked meanwhile.
    yield os.path.join(tempfile.gettempdir(), f"typed-toolkit-{os.geteuid()}")


def _open_first(folders: Iterable[str]) -> _LockFile:
    problem: OSError | None = None
    for folder in folders:
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
            info = os.stat(folder, follow_symlinks=False)
            if info.st_uid != os.geteuid() or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise PermissionError(f"{folder} is not a private directory of this user")
            return _LockFile(os.path.join(folder, _NAME))
        except OSError as error:
            problem = problem or error
    assert problem is not None
    why = (problem.strerror or str(problem)).lower()
    message = f"nothing can be written: the locks between processes need a state directory ({why}); set XDG_STATE_HOME"
    raise ToolFailed("IO", message) from problem


def _start_again_in_child() -> None:
    """A forked child shares the open file with its parent, and with it the locks: it must open its own. Threads that held
    locks are not in the child."""
    global _file, _locks, _table
    _file, _locks, _table = None, {}, threading.Lock()


os.register_at_fork(after_in_child=_start_again_in_child)
