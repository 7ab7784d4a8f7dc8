"""A program that runs until it is closed: its input and output are pipes in the hands of the caller.

Promise: ``close`` comes back when nothing of the program is alive: its input is closed, it gets a short grace to end by
itself, then all it started is killed. The same happens when its ``ProcessGuard`` is closed, and in a sandbox when this
process dies, however it dies. What it writes to its errors is read all the time, and only the last of it is kept, so
that neither does it block nor does memory grow. Limit: without a sandbox, what left its process group is not killed,
and nothing is when this process is killed: such a program only sees the end of its input.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections.abc import Callable
from typing import Final, Self

from toolkit.errors import ToolkitError
from toolkit.guard.process.output import pump
from toolkit.guard.process.sandbox import Command, Ending

GRACE: Final = 2.0
"""Seconds a program may take to end by itself once its input is closed."""

_CHUNK: Final = 1 << 16
_KEPT: Final = 8 << 10


class LongProcess:
    """What ``ProcessGuard.start`` gives. ``stdin`` and ``stdout`` are descriptors to wait on; nobody else closes them.

    ``read`` and ``write`` never wait. One thread may read and one may write at a time.
    """

    def __init__(
        self, command: Command, stdin: int, stdout: int, stderr: int, held: contextlib.ExitStack, *, sandboxed: bool
    ) -> None:
        self.stdin: Final = stdin
        self.stdout: Final = stdout
        self.sandboxed: Final = sandboxed
        self._stderr = stderr
        self._command = command
        self._held = held
        self._said = bytearray()
        self._ending: Ending | ToolkitError | None = None
        self._lock = threading.Lock()
        self._forget: Callable[[], None] = _nothing
        self._wake, self._waker = os.pipe()
        held.callback(os.close, self._wake)
        held.callback(os.close, self._waker)
        self._listener = threading.Thread(target=self._listen, name="toolkit-errors", daemon=True)
        self._listener.start()

    def read(self) -> bytes | None:
        """What came out, at most 64 KiB; empty at the end of it, None when there is nothing now."""
        try:
            return os.read(self.stdout, _CHUNK)
        except BlockingIOError:
            return None

    def write(self, data: bytes) -> int:
        """Hand over as much as the pipe takes, and say how much that was; ``OSError`` when nobody reads any more."""
        try:
            return os.write(self.stdin, data)
        except BlockingIOError:
            return 0

    def said(self) -> str:
        """The last it wrote to its errors, a few kilobytes at most. Limit: the program's own words, unescaped."""
        return bytes(self._said[-_KEPT:]).decode("utf-8", "replace")

    def ending(self) -> Ending:
        """How it ended, once it is closed; a program that never began raises the reason instead."""
        if isinstance(self._ending, ToolkitError):
            raise self._ending
        if self._ending is None:
            raise RuntimeError("this process has not been closed")
        return self._ending

    def close(self, grace: float = GRACE) -> None:
        """End it, and come back when all of it is gone; a second time does nothing."""
        with self._lock:
            if self._ending is not None:
                return
            os.write(self._waker, b".")
            self._listener.join()
            self._forget()
            with self._held:
                # The one end of the pipe that is ours: the program hears that nothing more will come.
                os.close(self.stdin)
                pump(self._command, {self.stdout: _drop, self._stderr: self._keep}, grace, _nothing)
                try:
                    self._ending = self._command.ending()
                except ToolkitError as error:
                    self._ending = error

    def closed_with(self, programs: set[LongProcess]) -> Self:
        """Stand among ``programs`` until it is closed, for whoever has to close them all."""
        programs.add(self)
        self._forget = lambda: programs.discard(self)
        return self

    def _listen(self) -> None:
        """Keep its errors flowing until somebody closes it; and see its end, because what it leaves in the background
        goes with it, and holds its output open until then."""
        poller = select.poll()
        notice = self._command.notice
        for fd in (self._wake, self._stderr) if notice is None else (self._wake, self._stderr, notice):
            poller.register(fd, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poller.poll()]
            if self._wake in ready:
                return
            if self._stderr in ready and not self._heard():
                poller.unregister(self._stderr)
            if notice in ready and self._command.ended():
                poller.unregister(notice)

    def _heard(self) -> bool:
        """Take what it wrote to its errors; False when nothing more will come."""
        try:
            data = os.read(self._stderr, _CHUNK)
        except BlockingIOError:
            return True
        self._keep(data)
        return bool(data)

    def _keep(self, data: bytes) -> None:
        self._said += data
        if len(self._said) > _KEPT + _CHUNK:  # not at every chunk: moving the rest costs its length
            del self._said[:-_KEPT]


def _drop(data: bytes) -> None:
    """What is done with output nobody waits for."""


def _nothing() -> None:
    """For whoever need not be told."""
