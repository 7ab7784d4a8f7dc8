"""A process in the sandbox that talks in frames: the interpreter of a program, or the type checker."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import select
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from toolkit.errors import ToolCancelled, ToolFailed, ToolkitError
from toolkit.guard.process.program import helper_interpreter
from toolkit.runtime.programs.frames import MAX_BODY, BrokenFrame, Frame, FrameBuffer, pack

if TYPE_CHECKING:
    from toolkit.guard.files.protect import Root
    from toolkit.guard.permission import EndedBy
    from toolkit.guard.process.guard import LongProcess, ProcessGuard
    from toolkit.runtime.programs.result import TimeLimit
    from toolkit.runtime.signals import CancelSignal


_LAST_WORDS: Final = 1.0
"""Seconds in which a process whose output has ended may end itself, so that its end is known."""
_CHUNK: Final = 1 << 16


class ProcessEnded(Exception):
    """The process is gone. The message says why; ``ended_by`` is the limit that ended it."""

    def __init__(self, why: str, ended_by: EndedBy | None = None) -> None:
        super().__init__(why)
        self.ended_by: Final = ended_by


class FramedProcess:
    """Sends and receives frames. One thread at a time uses it; only ``wake`` may be called by any.

    It has descriptors of its own for the pipes: whoever else ends the process, such as a toolkit that is closed, closes no
    number that is still used here, and that may be another file by then. In a fork of the process that started it, it
    cannot be used, and closing it there does not end it.
    """

    def __init__(self, process: LongProcess, max_body: int = MAX_BODY) -> None:
        self._process: Final = process
        self._buffer: Final = FrameBuffer(max_body)
        self._unsent = bytearray()
        self._owner: Final = os.getpid()
        self._closing: Final = threading.Lock()
        self._closed = False
        with contextlib.ExitStack() as stack:
            stack.callback(process.close, grace=0)
            self._source, self._sink = os.dup(process.stdout), os.dup(process.stdin)
            self._wake, self._waker = os.pipe()
            stack.pop_all()
        os.set_blocking(self._waker, False)
        self._poller: Final = select.poll()
        for fd in (self._source, self._wake):
            self._poller.register(fd, select.POLLIN)

    @property
    def unsent(self) -> int:
        """How many bytes the process has not taken yet."""
        return len(self._unsent)

    @property
    def is_alive(self) -> bool:
        """Whether it can be used: it has not closed its output, and was started here."""
        if self._closed or self._owner != os.getpid():
            return False
        poller = select.poll()
        poller.register(self._source, 0)  # hanging up is always reported
        return not poller.poll(0)

    def take_arrived(self) -> list[Frame]:
        """The frames that have arrived by now, without waiting; ``ProcessEnded`` and ``BrokenFrame`` as in ``receive``."""
        frames: list[Frame] = []
        while (data := self._read()) is not None:
            if data == b"":
                raise self._ended()
            frames += self._buffer.add(data)
        return frames

    def receive(self, until: float, check: Callable[[], None]) -> list[Frame]:
        """The frames that have arrived; none if ``wake`` was called, or when the process has taken everything that waited.

        Raises ``TimeoutError`` at ``until`` (of the monotonic clock), ``ProcessEnded``, ``BrokenFrame``, and what ``check``
        raises.
        """
        while True:
            check()
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            ready = dict(self._poller.poll(min(left, 3600) * 1000))
            if self._sink in ready:
                self._write()
                if not self._unsent:
                    self._poller.unregister(self._sink)
                    return []
            if self._source in ready:
                data = self._read()
                if data == b"":
                    raise self._ended()
                frames = self._buffer.add(data or b"")
                if frames:
                    return frames
            if self._wake in ready:
                os.read(self._wake, 4096)
                check()
                return []

    def send(self, head: dict[str, Any], body: bytes = b"") -> None:
        """Sends a frame as far as the process takes it now; ``receive`` sends the rest. ``ProcessEnded`` if nobody is there.

        It never waits: a process that is writing itself reads nothing, and both would wait for each other.
        """
        if self._owner != os.getpid():
            raise self._ended()
        waits = bool(self._unsent)
        self._unsent += pack(head, body)
        if not waits:
            self._write()
            if self._unsent:
                self._poller.register(self._sink, select.POLLOUT)

    def wake(self) -> None:
        """Lets ``receive`` return."""
        with self._closing:
            if not self._closed:
                with contextlib.suppress(BlockingIOError):  # full: it will return anyway
                    os.write(self._waker, b".")

    def close(self) -> None:
        """Kills it, and returns when all of it is gone; a second time does nothing."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        for fd in (self._wake, self._waker, self._source, self._sink):
            os.close(fd)
        if self._owner == os.getpid():
            self._process.close(grace=0)

    def _read(self) -> bytes | None:
        """What has arrived; empty at the end, None if there is nothing now."""
        try:
            return os.read(self._source, _CHUNK)
        except BlockingIOError:
            return None

    def _write(self) -> None:
        try:
            while self._unsent:
                with memoryview(self._unsent) as view:
                    written = os.write(self._sink, view[:_CHUNK])
                del self._unsent[:written]
        except BlockingIOError:
            return
        except OSError:
            raise self._ended() from None

    def _ended(self) -> ProcessEnded:
        """Why it ended, once all of it is gone."""
        if self._owner != os.getpid():
            return ProcessEnded("it belongs to the process that this one was forked from")
        self._process.close(grace=_LAST_WORDS)
        try:
            end = self._process.outcome()
        except ToolkitError as error:
            return ProcessEnded(error.message)
        return ProcessEnded(end.note or "it ended by itself", end.ended_by)


# ----------------------------------------------------------------------------------------------------------------------
# The interpreters of a toolkit's programs, each a process in the sandbox. One is prepared while nobody needs it, because
# starting Python and loading pydantic takes longer than most programs do. Programs are not forked from one warm process:
# they would share its sandbox (/tmp, limits, process ids), and one could reach the next.

_START_SECONDS: Final = 30.0
_LIBRARIES: Final = (
    "pydantic",
    "pydantic_core",
    "typing_extensions",
    "annotated_types",
    "typing_inspection",
    "jsonschema_rs",
)


_all: Final[weakref.WeakSet[Interpreters]] = weakref.WeakSet()
_held: Final[list[Interpreters]] = []
"""While this process is being forked."""


class NotStarted(Exception):
    """A program was ended before it began; the message says why."""


class Interpreters:
    """Starts interpreters, and may keep a spare one. May be used by several threads."""

    def __init__(
        self, guard: ProcessGuard, packages: Mapping[str, Root], folder: str | None = None, *, ahead: bool = True
    ) -> None:
        """``packages`` are those that programs import, ``folder`` is their working directory; None if it does not matter.
        ``ahead``: whether there is a spare one. What rules hide from it is what existed when it was started."""
        self._guard: Final = guard
        self._ahead: Final = ahead
        self._script: Final = os.path.join(packages["toolkit"].real, "runtime", "programs", "inside_start.py")
        self._settings: Final = json.dumps(
            {
                "path": library_folders(),
                "packages": {name: root.real for name, root in packages.items()},
                "folder": folder,
            }
        )
        self._lock: Final = threading.Lock()
        self._spare: FramedProcess | None = None
        self._closed = False
        _all.add(self)

    def take(self, time_limit: TimeLimit, signal: CancelSignal) -> FramedProcess:
        """An interpreter that waits for a program. Raises ``NotStarted`` when the time is over or ``signal`` is cancelled."""
        with self._lock:
            spare, self._spare = self._spare, None
        if spare is not None:
            with contextlib.suppress(ToolFailed):  # it was killed from outside, perhaps
                return _wait_until_ready(spare, time_limit, signal)
        return _wait_until_ready(self._start(), time_limit, signal)

    def prepare(self) -> None:
        """Starts the spare one, if there is to be one and is none."""
        with self._lock:
            if self._ahead and self._spare is None and not self._closed:
                self._spare = self._start()

    def hold(self) -> None:
        """Called before this process is forked: the spare one may be starting in another thread."""
        self._lock.acquire()

    def release(self) -> None:
        """Called after it, in both."""
        self._lock.release()

    def close(self) -> None:
        """Ends the spare one, and starts no other."""
        with self._lock:
            self._closed = True
            spare, self._spare = self._spare, None
        if spare is not None:
            spare.close()

    def _start(self) -> FramedProcess:
        command = [helper_interpreter(), "-I", "-S", self._script, self._settings]
        return FramedProcess(self._guard.start(command, limit_writes=True))


def _wait_until_ready(process: FramedProcess, time_limit: TimeLimit, signal: CancelSignal) -> FramedProcess:
    """Returns an interpreter when it has said that it waits for a program; another one is ended."""
    with contextlib.ExitStack() as stack:
        stack.callback(process.close)
        if not process.is_alive:  # what it has said before it ended can still be read
            raise ToolFailed("IO", "the interpreter of programs ended before it was used")
        forget = signal.listen(process.wake)
        try:
            frames = process.receive(min(time_limit.until, time.monotonic() + _START_SECONDS), signal.check)
        except TimeoutError:
            if time.monotonic() >= time_limit.until:
                raise NotStarted(time_limit.message) from None
            raise ToolFailed("IO", f"the interpreter of programs did not start within {_START_SECONDS:g} s") from None
        except ToolCancelled as error:
            raise NotStarted(error.message) from None
        except (ProcessEnded, BrokenFrame) as error:
            raise ToolFailed("IO", f"the interpreter of programs did not start: {error}") from None
        finally:
            forget()
        if [frame.head for frame in frames] != [{"ready": True}]:
            raise ToolFailed("IO", "the interpreter of programs did not start as expected")
        stack.pop_all()
    return process


def _hold_all() -> None:
    for interpreters in list(_all):
        interpreters.hold()
        _held.append(interpreters)


def _release_all() -> None:
    while _held:
        _held.pop().release()


# A lock that another thread holds at that moment would never be released in the copy, and a program is often followed by a
# fork while the next interpreter is being prepared.
os.register_at_fork(before=_hold_all, after_in_parent=_release_all, after_in_child=_release_all)


def library_folders() -> list[str]:
    """Where what generated models need is installed."""
    found: dict[str, None] = {}
    for name in _LIBRARIES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            folder = os.path.dirname(spec.origin)
            found[os.path.realpath(folder if spec.submodule_search_locations is None else os.path.dirname(folder))] = (
                None
            )
    return list(found)
