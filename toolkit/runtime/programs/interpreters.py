"""The interpreters of a toolkit's programs, each a process in the sandbox. One is prepared while nobody needs it, because
starting Python and loading pydantic takes longer than most programs do."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import threading
import time
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from toolkit.errors import ToolCancelled, ToolFailed
from toolkit.guard.process.program import helper_interpreter
from toolkit.runtime.programs.frames import BrokenFrame
from toolkit.runtime.programs.process import FramedProcess, ProcessEnded

if TYPE_CHECKING:
    from toolkit.guard.process.guard import ProcessGuard
    from toolkit.runtime.programs.time_limit import TimeLimit
    from toolkit.runtime.signals import CancelSignal

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
    """Starts interpreters, and keeps a spare one. May be used by several threads."""

    def __init__(self, guard: ProcessGuard, packages: Iterable[str], folder: str | None = None) -> None:
        """``folder`` is the working directory of programs; None if it does not matter."""
        self._guard: Final = guard
        self._settings: Final = json.dumps(
            {
                "path": library_folders(),
                "packages": {name: package_folder(name) for name in ("toolkit", *packages)},
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
        """Starts the spare one, if there is none."""
        with self._lock:
            if self._spare is None and not self._closed:
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
        script = os.path.join(package_folder("toolkit"), "runtime", "programs", "inside", "start.py")
        command = [helper_interpreter(), "-I", "-S", script, self._settings]
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


def package_folder(name: str) -> str:
    """The directory of a package; the real one, because what is around it cannot be seen in the sandbox."""
    folders: Iterable[str] = importlib.import_module(name).__path__
    return os.path.realpath(next(iter(folders)))


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
