"""One command, in the sandbox or without one, as the agent's process sees it: whether it has ended, how, and why not.

``Sandbox.start`` makes them. How a command ended is the same data either way.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias, cast

from toolkit.errors import InvalidArguments, ToolFailed, ToolkitError, ToolNotAllowed
from toolkit.guard.files.path import display
from toolkit.guard.process.fork_client import CommandHandle
from toolkit.guard.process.limits import CommandLimits, EndedBy
from toolkit.guard.process.messages import CommandRequest
from toolkit.guard.system_faults import SCARCE_AT_START, describe_errno, system_fault

# No room for another user namespace is ENOSPC. Commands have run in this sandbox, so that may pass as well.
_MAY_PASS: Final = SCARCE_AT_START | {errno.ENOSPC}
_MAX_COMPARED_NAME: Final = 100
# A process that writes past the limit gets this signal; a shell makes 128 and its number of it.
_TOO_LARGE_A_FILE: Final = (-signal.SIGXFSZ, 128 + signal.SIGXFSZ)
_MAX_ARGUMENT_BYTES: Final = 128 * 1024 - 1  # the kernel's limit for one
_MAX_ARGV_BYTES: Final = 1 << 20  # the kernel allows about twice that for all of them and the environment


@dataclass(frozen=True, slots=True)
class CommandExit:
    """How a command ended: either ``exit_code`` or ``signal`` is set; ``ended_by`` is the limit that ended it, and ``note``
    says so for the reader. ``refusals`` say what the guarded network did not permit."""

    exit_code: int | None
    signal: int | None
    ended_by: EndedBy | None = None
    note: str = ""
    refusals: tuple[str, ...] = ()

    @classmethod
    def from_wait_status(cls, status: int, ended_by: EndedBy | None, limits: CommandLimits) -> CommandExit:
        """From the status that ``wait`` returns, and the limit that the supervisor saw exceeded."""
        code = os.waitstatus_to_exitcode(status)
        if code in _TOO_LARGE_A_FILE:
            ended_by = "file_size"
        note = limits.explain(ended_by) if ended_by else ""
        return cls(None, -code, ended_by, note) if code < 0 else cls(code, None, ended_by, note)


class Command(Protocol):
    """A command that was started and may have ended."""

    @property
    def poll_fd(self) -> int | None:
        """A descriptor that becomes readable when ``has_ended`` may have changed; None where there is none."""

    def has_ended(self) -> bool:
        """Whether it and everything it started are gone; never waits."""

    def kill(self) -> None:
        """Kill it and everything it started; returns before it ``has_ended``."""

    def outcome(self) -> CommandExit:
        """How it ended, once it has; raises the reason if it never started."""

    def close(self) -> None:
        """Release its descriptors."""


class RunningProxy(Protocol):
    """The proxy of a command with the guarded network; it runs until it is closed."""

    def close(self) -> None: ...

    def refusals(self) -> Sequence[str]:
        """What it did not permit, a line each."""


StartProxy: TypeAlias = Callable[[int], RunningProxy]
"""Starts the proxy of a command on the socket it listens on."""


class SandboxedCommand:
    """A command in the sandbox: all of it is gone when the fork server closes its socket.

    ``start_proxy`` is for the guarded network; the proxy ends with the command.
    """

    def __init__(
        self,
        handle: CommandHandle,
        request: CommandRequest,
        limits: CommandLimits,
        start_proxy: StartProxy | None = None,
    ) -> None:
        self._handle = handle
        self._request = request
        self._limits = limits
        self._start_proxy = start_proxy
        self._proxy: RunningProxy | None = None
        self._killed = False
        self.poll_fd: int | None = handle.poll_fd

    def has_ended(self) -> bool:
        ended = self._handle.has_ended()
        if self._start_proxy is not None and self._handle.listener is not None:
            start, self._start_proxy = self._start_proxy, None
            self._proxy = start(self._handle.listener)
        if ended:
            self._close_proxy()
        return ended

    def kill(self) -> None:
        self._killed = True
        self._handle.kill()

    def outcome(self) -> CommandExit:
        match self._handle.reports[:1]:
            case [("status", status, ended_by)]:
                end = CommandExit.from_wait_status(status, cast("EndedBy", ended_by) or None, self._limits)
                return replace(end, refusals=tuple(self._proxy.refusals())) if self._proxy is not None else end
            case [("find", number, _)]:
                raise program_not_found(self._request, number)
            case [("exec", number, _)]:
                raise program_not_started(self._request.argv[0], number)
            case [("cwd", _, _)]:
                raise ToolFailed("NOT_DIRECTORY", "the working directory changed while the command was being started")
            case [("watch", _, why)]:
                raise ToolFailed("IO", f"the command was killed: what it uses could not be read any more ({why})")
            case [("setup", number, why)] if number in _MAY_PASS:
                raise system_fault("the command was not run: its sandbox could not be built", why)
            case [("setup", _, why)]:
                raise ToolNotAllowed(f"the command was not run: its sandbox could not be built ({why})")
        if self._killed:
            return CommandExit(None, signal.SIGKILL)
        raise ToolFailed("IO", "the sandbox ended before the command did: it was killed from outside")

    def close(self) -> None:
        self._handle.close()
        self._close_proxy()

    def _close_proxy(self) -> None:
        if self._proxy is not None:
            self._proxy.close()


class UnsandboxedCommand:
    """A command without a sandbox. Limit: processes that left its process group are not killed."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._owner = os.getpid()
        self.poll_fd: int | None = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None

    def has_ended(self) -> bool:
        if self._owner != os.getpid():  # in a fork: it goes on, for the parent
            return True
        if self._process.poll() is None:
            return False
        self.kill()  # what it left in the background
        return True

    def kill(self) -> None:
        if self._owner == os.getpid():
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def outcome(self) -> CommandExit:
        if self._owner != os.getpid():
            raise ToolFailed("IO", "the command belongs to the process that this one was forked from")
        code = self._process.returncode
        return CommandExit(None, -code) if code < 0 else CommandExit(code, None)

    def close(self) -> None:
        if self.poll_fd is not None:
            os.close(self.poll_fd)


def program_not_found(request: CommandRequest, number: int | None) -> ToolkitError:
    """The error for a program that ``program.find`` did not find; ``number`` is its errno."""
    name = request.argv[0]
    if number != errno.ENOENT:
        return program_not_started(name, number if number in _MAY_PASS else errno.EACCES)
    message = f"{_shown_name(name)} does not exist, or cannot be seen from inside the sandbox"
    return ToolFailed("COMMAND_NOT_FOUND", message, near=_near_names(name, request.env["PATH"]))


def program_not_started(name: str, number: int | None) -> ToolkitError:
    """The error for a program that exists and could not be started; ``number`` is the errno."""
    if number == errno.E2BIG:
        return InvalidArguments("the arguments and the environment are too long for one command")
    shown = _shown_name(name)
    if number in _MAY_PASS:
        return system_fault(f"{shown} could not be started", describe_errno(number))
    if number == errno.ENOENT:
        return ToolFailed("NOT_EXECUTABLE", f"{shown} needs an interpreter that does not exist here")
    return ToolFailed("NOT_EXECUTABLE", f"{shown} cannot be run: {os.strerror(number or errno.EACCES).lower()}")


def _shown_name(name: str) -> str:
    """An absolute path is not shown: it would reveal paths of the host."""
    return "the program" if name.startswith("/") else f"'{display(name)}'"


def _near_names(name: str, path: str) -> list[str]:
    """Names on ``path`` that resemble a missing one; none for a name with a slash."""
    if "/" in name or len(name) > _MAX_COMPARED_NAME:
        return []
    names: set[str] = set()
    for place in path.split(":"):
        with contextlib.suppress(OSError):
            names.update(os.listdir(place))
    return difflib.get_close_matches(name, sorted(names), cutoff=0.75)


def check_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """The words of a command, checked for what the kernel would refuse."""
    if isinstance(argv, str) or not all(isinstance(word, str) for word in argv):
        raise InvalidArguments("a command must be a list of strings, with the program first")
    if not argv or not argv[0]:
        raise InvalidArguments("a command must start with the name of a program")
    total = 0
    for word in argv:
        try:
            size = len(word.encode())
        except UnicodeEncodeError:
            raise InvalidArguments("a command must not contain lone surrogates") from None
        if "\0" in word:
            raise InvalidArguments("a command must not contain a NUL character")
        total += size + 1
        if size > _MAX_ARGUMENT_BYTES or total > _MAX_ARGV_BYTES:
            raise InvalidArguments(
                f"a command must not be longer than {_MAX_ARGV_BYTES} bytes, and one argument not longer than "
                f"{_MAX_ARGUMENT_BYTES}; write long data to a file or give it as input"
            )
    return tuple(argv)
