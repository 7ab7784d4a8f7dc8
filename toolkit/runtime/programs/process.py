"""A process in the sandbox that talks in frames: the interpreter of a program, or the type checker."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from toolkit.errors import ToolkitError
from toolkit.runtime.programs.frames import MAX_BODY, Frame, FrameBuffer, pack

if TYPE_CHECKING:
    from toolkit.guard.process.limits import EndedBy
    from toolkit.guard.process.long_process import LongProcess


_LAST_WORDS: Final = 1.0
"""Seconds in which a process whose output has ended may end itself, so that its end is known."""


class ProcessEnded(Exception):
    """The process is gone. The message says why; ``ended_by`` is the limit that ended it."""

    def __init__(self, why: str, ended_by: EndedBy | None = None) -> None:
        super().__init__(why)
        self.ended_by: Final = ended_by


class FramedProcess:
    """Sends and receives frames. One thread at a time uses it; ``wake`` and ``close`` may be called by any."""

    def __init__(self, process: LongProcess, max_body: int = MAX_BODY) -> None:
        self._process: Final = process
        self._buffer: Final = FrameBuffer(max_body)
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._closing: Final = threading.Lock()
        self._closed = False
        self._poller: Final = select.poll()
        for fd in (process.stdout, self._wake):
            self._poller.register(fd, select.POLLIN)

    def receive(self, until: float, check: Callable[[], None]) -> list[Frame]:
        """The frames that have arrived, at least one, unless ``wake`` was called. Raises ``TimeoutError`` at ``until``
        (of the monotonic clock), ``ProcessEnded``, ``BrokenFrame``, and what ``check`` raises."""
        while True:
            check()
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            ready = [fd for fd, _ in self._poller.poll(min(left, 3600) * 1000)]
            if self._process.stdout in ready:
                data = self._process.read()
                if data == b"":
                    raise self._ended()
                frames = self._buffer.add(data or b"")
                if frames:
                    return frames
            if self._wake in ready:
                os.read(self._wake, 4096)
                check()
                return []

    def send(self, until: float, head: dict[str, Any], body: bytes = b"") -> None:
        """Sends a frame; raises ``TimeoutError`` if it is not taken in time, ``ProcessEnded`` if nobody is there."""
        data = memoryview(pack(head, body))
        while data:
            try:
                written = self._process.write(data)  # type: ignore[arg-type]  # a view is as good as bytes
            except OSError:
                raise self._ended() from None
            data = data[written:]
            if data and not written:
                left = until - time.monotonic()
                if left <= 0 or not select.select([], [self._process.stdin], [], left)[1]:
                    raise TimeoutError

    def wake(self) -> None:
        """Lets ``receive`` return."""
        with contextlib.suppress(OSError):  # full: it will return anyway; closed: nobody waits
            os.write(self._waker, b".")

    def close(self) -> None:
        """Kills it, and returns when all of it is gone; a second time does nothing."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._process.close(grace=0)
            for fd in (self._wake, self._waker):
                os.close(fd)

    def _ended(self) -> ProcessEnded:
        """Why it ended, once all of it is gone."""
        self._process.close(grace=_LAST_WORDS)
        try:
            end = self._process.outcome()
        except ToolkitError as error:
            return ProcessEnded(error.message)
        return ProcessEnded(end.note or "it ended by itself", end.ended_by)
