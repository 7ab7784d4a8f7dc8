"""A program that runs until it is closed; the caller holds its input and output as pipes.

Promise: ``close`` returns when nothing of the program is alive: its input is closed, it gets a short time to end by
itself, then everything it started is killed. The same happens when its ``ProcessGuard`` is closed, and in a sandbox when
this process dies, however it dies. Its stderr is read all the time, and only the end of it is kept, so that the program
does not block and memory does not grow. Limit: without a sandbox, processes that left its process group are not killed,
and nothing is killed when this process is: such a program only sees the end of its input. A fork of this process has
no program: there it is closed, and goes on here.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections.abc import Callable
from typing import Final, Self

from toolkit.errors import ToolFailed, ToolkitError
from toolkit.guard.forks import close_pipe, open_pipe, start_again_in_child
from toolkit.guard.process.command import Command, CommandExit
from toolkit.guard.process.output import read_until_exit
from toolkit.guard.system_faults import system_fault

GRACE: Final = 2.0
"""Seconds a program may take to end by itself once its input is closed."""

_CHUNK: Final = 1 << 16
_MAX_STDERR: Final = 8 << 10


class LongProcess:
    """What ``ProcessGuard.start`` returns. ``stdin`` and ``stdout`` are descriptors to wait on; only ``close`` closes them.
    ``resources`` are its own once it is made.

    ``read`` and ``write`` never block. One thread may read and one may write at a time.
    """

    def __init__(
        self,
        command: Command,
        stdin: int,
        stdout: int,
        stderr: int,
        resources: contextlib.ExitStack,
        *,
        sandboxed: bool,
    ) -> None:
        self.stdin: Final = stdin
        self.stdout: Final = stdout
        self.sandboxed: Final = sandboxed
        self._stderr = stderr
        self._command = command
        self._stderr_tail = bytearray()
        self._outcome: CommandExit | ToolkitError | None = None
        self._lock = threading.Lock()
        self._unregister: Callable[[], None] = _do_nothing
        self._wake, self._waker = open_pipe()
        resources.callback(close_pipe, self._wake)
        resources.callback(close_pipe, self._waker)
        self._stderr_thread = threading.Thread(target=self._read_stderr, name="toolkit-stderr", daemon=True)
        try:
            self._stderr_thread.start()
        except RuntimeError:
            command.kill()
            read_until_exit(command, {stdout: _discard, stderr: self._keep_stderr}, 0, _do_nothing)
            raise system_fault("the program could not be started", "the system starts no more threads") from None
        self._resources = resources.pop_all()
        start_again_in_child(self)

    def read(self) -> bytes | None:
        """The next output, at most 64 KiB; empty at its end, None when there is nothing now."""
        try:
            return os.read(self.stdout, _CHUNK)
        except BlockingIOError:
            return None

    def write(self, data: bytes) -> int:
        """Write as much as the pipe takes, and return how much that was; ``OSError`` when it is no longer read."""
        try:
            return os.write(self.stdin, data)
        except BlockingIOError:
            return 0

    def last_stderr(self) -> str:
        """The end of its stderr, a few kilobytes at most. Limit: the program's own text, unescaped."""
        return bytes(self._stderr_tail[-_MAX_STDERR:]).decode("utf-8", "replace")

    def outcome(self) -> CommandExit:
        """How it ended, once it is closed; raises the reason if it never started."""
        if isinstance(self._outcome, ToolkitError):
            raise self._outcome
        if self._outcome is None:
            raise RuntimeError("this process has not been closed")
        return self._outcome

    def close(self, grace: float = GRACE) -> None:
        """End it, and return when all of it is gone; a second time does nothing."""
        with self._lock:
            if self._outcome is not None:
                return
            os.write(self._waker, b".")
            self._stderr_thread.join()
            self._unregister()
            with self._resources:
                # Our end of the pipe: the program sees the end of its input.
                close_pipe(self.stdin)
                read_until_exit(
                    self._command, {self.stdout: _discard, self._stderr: self._keep_stderr}, grace, _do_nothing
                )
                try:
                    self._outcome = self._command.outcome()
                except ToolkitError as error:
                    self._outcome = error

    def start_again_in_child(self) -> None:
        """In a fork of the process that started it: it goes on, for that process, and here it is closed."""
        self._lock = threading.Lock()
        if self._outcome is None:
            self._outcome = ToolFailed("IO", "the program belongs to the process that this one was forked from")
            self._unregister()

    def register_in(self, programs: set[LongProcess]) -> Self:
        """Add itself to ``programs`` until it is closed; the owner of the set closes them all."""
        programs.add(self)
        self._unregister = lambda: programs.discard(self)
        return self

    def _read_stderr(self) -> None:
        """Read its stderr in a thread until ``close``. Also notice its end: what it left in the background holds its
        output open until ``has_ended`` has killed it."""
        poller = select.poll()
        poll_fd = self._command.poll_fd
        for fd in (self._wake, self._stderr) if poll_fd is None else (self._wake, self._stderr, poll_fd):
            poller.register(fd, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poller.poll()]
            if self._wake in ready:
                return
            if self._stderr in ready and not self._read_stderr_chunk():
                poller.unregister(self._stderr)
            if poll_fd in ready and self._command.has_ended():
                poller.unregister(poll_fd)

    def _read_stderr_chunk(self) -> bool:
        """Read one chunk of its stderr; False at its end."""
        try:
            data = os.read(self._stderr, _CHUNK)
        except BlockingIOError:
            return True
        self._keep_stderr(data)
        return bool(data)

    def _keep_stderr(self, data: bytes) -> None:
        self._stderr_tail += data
        if len(self._stderr_tail) > _MAX_STDERR + _CHUNK:  # not at every chunk: moving the rest costs its length
            del self._stderr_tail[:-_MAX_STDERR]


def _discard(data: bytes) -> None:
    """The sink for output that is not read."""


def _do_nothing() -> None:
    """Where nothing has to be checked or unregistered."""
