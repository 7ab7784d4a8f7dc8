"""Reading a command's output in the agent's process, until the command ends, its time is up or the caller stops it.

Promise: memory stays bounded however much is written; on every way out, exceptions of the caller's functions included,
the command and everything it started are killed first.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from toolkit.errors import ToolFailed

if TYPE_CHECKING:
    from toolkit.guard.process.command import Command

_POLL_MS: Final = 50
_CHUNK: Final = 1 << 16
# More than a pipe holds: what is left after the end is read, what somebody goes on writing is not.
_LAST_READS: Final = 32
# A killed process that does not die hangs in the kernel, for example on a dead network disk.
_KILL_SECONDS: Final = 60.0

Sink = Callable[[bytes], None]


class HeadTail:
    """The head and the tail of a stream of bytes: at most ``limit`` bytes together, however long the stream is.

    >>> stream = HeadTail(4)
    >>> stream.add(b"abcdef")
    >>> stream.parts(), stream.total, stream.is_truncated
    ((b'ab', b'd', b'ef'), 6, True)
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    @property
    def is_truncated(self) -> bool:
        return self.total > self._limit

    def fits(self, more: int) -> bool:
        """Whether ``more`` bytes can be added without leaving anything out."""
        return self.total + more <= self._limit

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._limit - self._limit // 2 - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > self._limit + _CHUNK:  # not at every chunk: moving the rest costs its length
            self._trim()

    def whole(self) -> bytes:
        """The whole stream, as long as nothing was left out."""
        return b"".join((self._head, self._tail))

    def parts(self) -> tuple[bytes, bytes, bytes]:
        """Of a truncated stream: its head, the one byte before its tail, and its tail."""
        self._trim()
        return bytes(self._head), bytes(self._tail[:1]), bytes(self._tail[1:])

    def data(self) -> bytes:
        """What was kept; where something is left out, a line says how much."""
        if not self.is_truncated:
            return self.whole()
        head, _, tail = self.parts()
        return head + f"\n[... {self.total - self._limit} bytes left out ...]\n".encode() + tail

    def _trim(self) -> None:
        """Keep one byte more than the tail has: it shows whether the tail starts a line."""
        surplus = len(self._tail) - self._limit // 2 - 1
        if surplus > 0:
            del self._tail[:surplus]


def read_until_exit(
    command: Command, sinks: Mapping[int, Sink], timeout: float | None, check: Callable[[], None]
) -> bool:
    """Pass what comes out of each descriptor to its sink until the command ends; returns whether time ran out.

    ``check`` is called about every 50 ms and raises to end the command.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    open_fds = dict(sinks)
    try:
        while not command.has_ended():
            check()
            if deadline is not None and time.monotonic() >= deadline:
                _kill_and_wait(command, sinks)
                return True
            _wait(command, open_fds)
    except BaseException:
        _kill_and_wait(command, {})
        raise
    _drain(open_fds)
    return False


def _kill_and_wait(command: Command, sinks: Mapping[int, Sink]) -> None:
    """Kill the command, and return when nothing of it is left."""
    command.kill()
    deadline = time.monotonic() + _KILL_SECONDS
    open_fds = dict(sinks)
    while not command.has_ended():
        if time.monotonic() > deadline:
            raise ToolFailed("IO", "the command was killed but has not ended: it hangs in the kernel")
        _wait(command, open_fds)
    _drain(open_fds)


def _wait(command: Command, open_fds: dict[int, Sink]) -> None:
    poller = select.poll()
    for fd in open_fds if command.poll_fd is None else (*open_fds, command.poll_fd):
        poller.register(fd, select.POLLIN)
    for fd, _ in poller.poll(_POLL_MS):
        if fd in open_fds:
            _read(fd, open_fds)


def _drain(open_fds: dict[int, Sink]) -> None:
    """Read what is left in the pipes."""
    for fd in list(open_fds):
        for _ in range(_LAST_READS):
            if fd not in open_fds or not _read(fd, open_fds):
                break


def _read(fd: int, open_fds: dict[int, Sink]) -> bool:
    """Read one chunk; False when there is none now, or at the end, which takes ``fd`` out of ``open_fds``."""
    try:
        data = os.read(fd, _CHUNK)
    except BlockingIOError:
        return False
    if not data:
        del open_fds[fd]
        return False
    open_fds[fd](data)
    return True
