"""Reading a command's output while it runs, until its end, its deadline or the caller's word.

Promise: memory stays bounded whatever is written; on any way out, an exception of the caller's own functions
included, the command and all it started are killed first.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from toolkit.errors import ToolFailed

_TICK_MS: Final = 50
_CHUNK: Final = 1 << 16
# More than a pipe holds: what is left after the end is read, what somebody goes on writing is not.
_LAST_READS: Final = 32
# A killed process that does not die hangs in the kernel (a dead network disk, say).
_PATIENCE: Final = 60.0

Sink = Callable[[bytes], None]


class Running(Protocol):
    """A command under way."""

    @property
    def notice(self) -> int | None:
        """A descriptor that becomes readable when ``ended`` is worth asking, where there is one."""

    def ended(self) -> bool:
        """Whether it and all it started are gone; never waits."""

    def kill(self) -> None:
        """End all of it; returns before it has ``ended``."""


class Capture:
    """The head and the tail of a stream, at most ``limit`` bytes of it together."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._limit - self._limit // 2 - len(self._head)
        self._head += data[: max(room, 0)]
        self._tail += data[max(room, 0) :]
        if len(self._tail) > self._limit + _CHUNK:  # not at every chunk: moving the rest costs its length
            self._trim()

    @property
    def truncated(self) -> bool:
        return self.total > self._limit

    def data(self) -> bytes:
        """What was kept; where something is missing, a line says how much."""
        self._trim()
        missing = self.total - len(self._head) - len(self._tail)
        note = f"\n[... {missing} bytes left out ...]\n".encode() if missing else b""
        return bytes(self._head) + note + bytes(self._tail)

    def _trim(self) -> None:
        surplus = len(self._tail) - self._limit // 2
        if surplus > 0:
            del self._tail[:surplus]


def pump(running: Running, sinks: Mapping[int, Sink], timeout: float | None, check: Callable[[], None]) -> bool:
    """Feed what comes out of each descriptor to its sink until the end; the answer says whether time ran out.

    ``check`` is asked at least every 50 ms or so and raises to end the command.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    open_fds = dict(sinks)
    try:
        while not running.ended():
            check()
            if deadline is not None and time.monotonic() >= deadline:
                end(running, sinks)
                return True
            _wait(running, open_fds)
    except BaseException:
        end(running, {})
        raise
    _read_the_rest(open_fds)
    return False


def end(running: Running, sinks: Mapping[int, Sink]) -> None:
    """Kill, and come back when nothing is left."""
    running.kill()
    deadline = time.monotonic() + _PATIENCE
    open_fds = dict(sinks)
    while not running.ended():
        if time.monotonic() > deadline:
            raise ToolFailed("IO", "the command was killed but has not gone: it hangs in the system")
        _wait(running, open_fds)
    _read_the_rest(open_fds)


def _wait(running: Running, open_fds: dict[int, Sink]) -> None:
    poller = select.poll()
    for fd in open_fds if running.notice is None else (*open_fds, running.notice):
        poller.register(fd, select.POLLIN)
    for fd, _ in poller.poll(_TICK_MS):
        if fd in open_fds:
            _read(fd, open_fds)


def _read_the_rest(open_fds: dict[int, Sink]) -> None:
    for fd in list(open_fds):
        for _ in range(_LAST_READS):
            if fd not in open_fds or not _read(fd, open_fds):
                break


def _read(fd: int, open_fds: dict[int, Sink]) -> bool:
    """Take one chunk; False when there is none now or none ever, which closes the account."""
    try:
        data = os.read(fd, _CHUNK)
    except BlockingIOError:
        return False
    if not data:
        del open_fds[fd]
        return False
    open_fds[fd](data)
    return True
