"""Where commands run: the roots of one workspace and the helper that serves it, or, asked for by name, no sandbox.

``Sandbox.started`` gives a ``Command`` under way; how it ended is the same data either way.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from toolkit.errors import InvalidArguments, SandboxViolation, SetupError, ToolFailed, ToolkitError, ToolNotAllowed
from toolkit.guard.fs.path import display
from toolkit.guard.fs.resolve import HANDLE
from toolkit.guard.process import host_view as view
from toolkit.guard.process.fork_server_client import Helper, Job
from toolkit.guard.process.kernel.syscall import Unsupported, reason
from toolkit.guard.process.kernel.tier import TierChoice
from toolkit.guard.process.messages import Plan, Roots, Setup, identities
from toolkit.guard.process.output import Running
from toolkit.guard.process.private_home import private_home
from toolkit.guard.process.program import SYSTEM, find, interpreter_roots, is_below, search_path

# Replacing these would take the sandbox apart, or hide what commands need.
_NO_ROOT: Final = ("/", "/tmp", "/dev", "/etc", *SYSTEM)
_NO_ROOT_BELOW: Final = ("/proc", "/sys", view.HOME)
_MAX_COMPARED: Final = 100


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended: one of ``exit_code`` and ``signal``; ``note`` is ours, for its reader."""

    exit_code: int | None
    signal: int | None
    note: str = ""

    @classmethod
    def of(cls, status: int, note: str = "") -> Ending:
        """From what ``wait`` answers."""
        code = os.waitstatus_to_exitcode(status)
        return cls(None, -code, note) if code < 0 else cls(code, None, note)


class Command(Running, Protocol):
    """A command under way, or past."""

    def ending(self) -> Ending:
        """How it ended, once it has; a command that never began raises instead."""

    def close(self) -> None:
        """Give back what it holds."""


class Sandbox:
    """One workspace and its roots; the helper is started by the first command. Used by several threads."""

    def __init__(
        self,
        workspace: str,
        *,
        writable: bool,
        read_roots: Sequence[str],
        write_roots: Sequence[str],
        state_dir: str | None,
        choice: TierChoice,
    ) -> None:
        self.workspace = real_root("workspace", workspace)
        read = [real_root("read_roots", path) for path in read_roots]
        write = [real_root("write_roots", path) for path in write_roots]
        self._state_dir = None if state_dir is None else os.path.realpath(state_dir)
        if self._state_dir is not None and any(is_below(self._state_dir, root) for root in (self.workspace, *write)):
            raise SetupError("state_dir must not lie where commands may write: they could change what is kept there")
        interpreter = interpreter_roots()
        if self.workspace in interpreter:
            raise SetupError("the workspace must not be the directory of the running interpreter")
        # Also inside a writable workspace: whoever replaces the interpreter is outside of any sandbox next time.
        reading = identities([*read, *interpreter])
        roots = Roots(self.workspace, writable, reading, identities(write if writable else []))
        self._setup = Setup(choice.name, choice.bubblewrap, roots)
        self.path = search_path(self.workspace)
        self._fd = os.open(self.workspace, HANDLE | os.O_DIRECTORY)
        self._lock = threading.Lock()
        self._closed = False
        self._helper: Helper | None = None

    @contextlib.contextmanager
    def home_and_tmp(self, *, unguarded: bool) -> Iterator[tuple[str, str]]:
        """HOME and TMPDIR of one command; neither is in the workspace, nor the user's own, and both are gone after it."""
        if self._setup.full and not unguarded:
            yield view.HOME, view.TMP
            return
        with private_home(self._state_dir) as home:
            yield home, home

    @contextlib.contextmanager
    def started(
        self, plan: Plan, stdin: contextlib.AbstractContextManager[int], *, unguarded: bool
    ) -> Iterator[tuple[Command, int, int]]:
        """Start ``plan``: the command and the descriptors its output and errors come out of.

        ``stdin`` gives the descriptor it reads from, and is left once the command has it.
        """
        with contextlib.ExitStack() as ours:
            with contextlib.ExitStack() as theirs:
                source = theirs.enter_context(stdin)
                stdout, stdout_end = _pipe(ours, theirs)
                stderr, stderr_end = _pipe(ours, theirs)
                start = self._start_unguarded if unguarded else self._start_inside
                command = start(plan, (source, stdout_end, stderr_end))
            ours.callback(command.close)
            yield command, stdout, stderr

    def check_not_writable(self, plan: Plan) -> None:
        """Refuse to run ``plan`` without a sandbox where a command could have changed its program, or a file it is given:
        a script, say.

        Limit: says nothing about what the program finds by itself, such as ``python -m name`` or packages beside it.
        """
        try:
            program = os.path.realpath(find(plan.argv[0], plan.env["PATH"], os.path.join(self.workspace, plan.cwd)))
        except OSError as error:
            raise _not_found(plan, error.errno) from None
        roots = self._setup.roots
        writable = [roots.workspace, *roots.write] if roots.workspace_writable else []
        if any(is_below(program, root) for root in writable):
            raise SandboxViolation(
                "a program that lies in the workspace may not run without a sandbox: tools could have changed it; "
                "install it elsewhere, or let it have the sandbox"
            )
        for word in plan.argv[1:]:
            place = os.path.realpath(os.path.join(self.workspace, plan.cwd, word.partition("=")[2] or word))
            if os.path.isfile(place) and any(is_below(place, root) for root in writable):
                raise SandboxViolation(
                    f"{word!r} is a file in the workspace, where tools could have changed it, and may not be given to a "
                    "program without a sandbox; keep it elsewhere, or let the program have the sandbox"
                )

    def close(self) -> None:
        """Kill what runs; a second time does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            os.close(self._fd)
            if self._helper is not None:
                self._helper.close()

    def _start_inside(self, plan: Plan, stdio: Sequence[int]) -> Command:
        with self._lock:
            if self._closed:
                raise ToolFailed("IO", "this ProcessGuard has been closed")
            try:
                if self._helper is not None:
                    with contextlib.suppress(OSError):  # it was killed from outside: a new one serves as well
                        return _Inside(self._helper.start(plan, stdio), plan)
                    self._helper.close()
                self._helper = Helper(self._setup, self._fd)
                return _Inside(self._helper.start(plan, stdio), plan)
            except (OSError, Unsupported) as error:
                raise ToolNotAllowed(f"no command can run: the sandbox did not start ({reason(error)})") from None

    def _start_unguarded(self, plan: Plan, stdio: Sequence[int]) -> Command:
        folder = os.path.join(self.workspace, plan.cwd)
        try:
            program = find(plan.argv[0], plan.env["PATH"], folder)
        except OSError as error:
            raise _not_found(plan, error.errno) from None
        stdin, stdout, stderr = stdio
        try:
            return _Unguarded(
                subprocess.Popen(
                    plan.argv,
                    executable=program,
                    cwd=folder,
                    env=plan.env,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                )
            )
        except OSError as error:
            raise _not_started(plan.argv[0], error.errno) from None


class _Inside:
    """A command in the sandbox: all of it is gone when the helper says so."""

    def __init__(self, job: Job, plan: Plan) -> None:
        self._job = job
        self._plan = plan
        self._killed = False
        self.notice: int | None = job.notice

    def ended(self) -> bool:
        return self._job.ended()

    def kill(self) -> None:
        self._killed = True
        self._job.kill()

    def ending(self) -> Ending:
        match self._job.messages[:1]:
            case [("status", status, note)]:
                return Ending.of(status, note)
            case [("find", number, _)]:
                raise _not_found(self._plan, number)
            case [("exec", number, _)]:
                raise _not_started(self._plan.argv[0], number)
            case [("cwd", _, _)]:
                raise ToolFailed("NOT_DIRECTORY", "the working directory changed while the command was being started")
            case [("setup", _, why)]:
                raise ToolNotAllowed(f"the command was not run: its sandbox could not be built ({why})")
        if self._killed:
            return Ending(None, signal.SIGKILL)
        raise ToolFailed("IO", "the sandbox ended before the command did; it was killed from outside")

    def close(self) -> None:
        self._job.close()


class _Unguarded:
    """A command without a sandbox. Limit: what left its process group is not killed."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.notice: int | None = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None

    def ended(self) -> bool:
        if self._process.poll() is None:
            return False
        self.kill()  # what it left in the background
        return True

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def ending(self) -> Ending:
        code = self._process.returncode
        return Ending(None, -code) if code < 0 else Ending(code, None)

    def close(self) -> None:
        if self.notice is not None:
            os.close(self.notice)


def real_root(what: str, path: str) -> str:
    """The real path of a directory that may be handed to commands; ``what`` names the setting that gave it."""
    real = os.path.realpath(path)
    if not os.path.isdir(real):
        raise SetupError(f"{what}: {path!r} is not a directory")
    if real in _NO_ROOT or any(is_below(real, place) for place in _NO_ROOT_BELOW):
        raise SetupError(f"{what}: {path!r} cannot be handed to commands; give a directory below it")
    return real


@contextlib.contextmanager
def reading_end(pipe: tuple[int, int]) -> Iterator[int]:
    """The end of a pipe a command reads from; the other one, ours, does not wait for it."""
    source, sink = pipe
    os.set_blocking(sink, False)
    try:
        yield source
    finally:
        os.close(source)


def _pipe(reading: contextlib.ExitStack, writing: contextlib.ExitStack) -> tuple[int, int]:
    source, sink = os.pipe()
    reading.callback(os.close, source)
    writing.callback(os.close, sink)
    os.set_blocking(source, False)
    return source, sink


def _not_found(plan: Plan, number: int | None) -> ToolkitError:
    name = plan.argv[0]
    if number != errno.ENOENT:
        return _not_started(name, errno.EACCES)
    # An absolute path would tell about the host.
    shown = "the program" if name.startswith("/") else f"'{display(name)}'"
    words = f"{shown} does not exist, or cannot be seen from inside the sandbox"
    return ToolFailed("COMMAND_NOT_FOUND", words, near=_near_names(name, plan.env["PATH"]))


def _near_names(name: str, path: str) -> list[str]:
    """Names on ``path`` that resemble one that is not there; none for a name with a slash."""
    if "/" in name or len(name) > _MAX_COMPARED:
        return []
    names: set[str] = set()
    for place in path.split(":"):
        with contextlib.suppress(OSError):
            names.update(os.listdir(place))
    return difflib.get_close_matches(name, sorted(names), cutoff=0.75)


def _not_started(name: str, number: int | None) -> ToolkitError:
    shown = "the program" if name.startswith("/") else f"'{display(name)}'"
    if number == errno.E2BIG:
        return InvalidArguments("the arguments and the environment are too long for one command")
    if number == errno.ENOENT:
        return ToolFailed("NOT_EXECUTABLE", f"{shown} needs an interpreter that does not exist here")
    return ToolFailed("NOT_EXECUTABLE", f"{shown} cannot be run: {os.strerror(number or errno.EACCES).lower()}")
