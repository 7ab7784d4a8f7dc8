"""The only way to start a program: ``ProcessGuard`` runs an argument list inside the sandbox tier of this machine.

Promise, full tier: a command reads system programs, the workspace and the given roots, writes only the workspace
(not settings and hooks of its repository), the given write roots and a private ``/tmp``, reaches no process of the host and
no network but a loopback of its own (with ``network="guarded"`` also what ``internet`` permits), gets no secret of this
process, and leaves nothing running, however it, its caller or the fork server ends. It is ended when it uses more than
``CommandLimits`` allow.
Reduced tier: the same without any socket or guarded network, except that it can ``stat`` everything, change the metadata
of files its user owns, write an interpreter inside the workspace, and survive when its supervisor and the fork server are
both killed from outside.
Both: what a command changed so that git would run it is put back after it (``guard/review``). No tier: nothing runs.

Not stopped: what else a command does to the workspace; hard links into the workspace; with ``network="host"`` any
address, the host's own included. A command keeps the caller's uid, uid 0 too, without any capability, so it cannot write
what another user owns. ``socket(AF_UNIX)`` is refused, so programs that use a socket file among themselves fail.

How it is built: ``tier.py`` finds out which sandbox works here. ``sandbox.py`` starts commands in it through
``fork_client.py``, and ``command.py`` is one command as this process sees it. The rest runs in processes of its own:
``fork_server.py``, and for each command ``supervisor.py``, inside what ``namespaces.py`` or ``bubblewrap.py`` has built and
restricted by ``kernel.py``.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import logging
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self, TypeAlias, TypedDict, Unpack

from toolkit.errors import InvalidArguments, SandboxViolation, SetupError, ToolFailed, ToolkitError, ToolNotAllowed
from toolkit.forks import close_pipe, open_pipe, start_again_in_child
from toolkit.guard.files.consent import PathLimit
from toolkit.guard.files.guard import FileGuard
from toolkit.guard.files.handles import Check
from toolkit.guard.files.path import Accept
from toolkit.guard.files.protect import Root
from toolkit.guard.network.hosts import Network
from toolkit.guard.permission import (
    Carrier,
    CarrierChoice,
    CommandLimits,
    CommandNetwork,
    EndedBy,
    GitMode,
    Mode,
    SandboxChoice,
    UnenforcedRules,
)
from toolkit.guard.process.command import Command, CommandExit, build_environment, check_argv
from toolkit.guard.process.fork_client import memory_file
from toolkit.guard.process.messages import CommandRequest
from toolkit.guard.process.path_limits import NO_APPROVALS, Approvals, HiddenPaths
from toolkit.guard.process.program import expand_home, find_environment, is_below
from toolkit.guard.process.sandbox import GuardedNetwork, Sandbox, StartErrors, open_root, stdin_from_pipe
from toolkit.guard.process.tier import Tier, TierChoice, pick_tier
from toolkit.guard.trusted_code import places_to_hold
from toolkit.system_faults import system_fault
from toolkit.visible import display

if TYPE_CHECKING:
    from toolkit.guard.network.proxy import UrlJudge

Sink: TypeAlias = Callable[[bytes], None]
OnOutput: TypeAlias = Callable[[str, bytes], None]

MAX_OUTPUT: Final = 1 << 20
GRACE: Final = 2.0
"""Seconds a program may take to end by itself once its input is closed."""

_MODES: Final = ("workspace-write", "read-only")
_MAX_STDERR: Final = 8 << 10
_POLL_MS: Final = 50
_CHUNK: Final = 1 << 16
# More than a pipe holds: what is left after the end is read, what somebody goes on writing is not.
_LAST_READS: Final = 32
# A killed process that does not die hangs in the kernel, for example on a dead network disk.
_KILL_SECONDS: Final = 60.0

_log: Final = logging.getLogger("toolkit")


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a command ended. Exactly one of ``exit_code`` and ``signal`` is set; after a timeout it is the signal.

    ``stdout`` and ``stderr`` keep their head and tail, with a note between them, when they are longer than
    ``max_output``; the ``_bytes`` fields count everything. ``network``: what it could reach. ``ended_by``: the field of
    ``CommandLimits`` that ended it. ``notes``: what the guarded network refused, and what was put back after it, because a
    command may not change it; they are part of ``stderr`` as well.
    """

    command: tuple[str, ...]
    cwd: str
    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    stdout_truncated: bool
    stderr_truncated: bool
    stdout_bytes: int
    stderr_bytes: int
    timed_out: bool
    duration_ms: int
    tier: Tier
    carrier: Carrier
    network: CommandNetwork
    ended_by: EndedBy | None = None
    notes: tuple[str, ...] = ()
    hidden: tuple[HiddenPaths, ...] = ()
    """How many paths path rules hid from it, and which."""

    @property
    def signal_name(self) -> str | None:
        """The name of the signal, such as ``SIGKILL``; None if no signal ended it."""
        if self.signal is None:
            return None
        try:
            return signal.Signals(self.signal).name
        except ValueError:  # real-time signals have no names
            return f"SIG{self.signal}"


class RunOptions(TypedDict, total=False):
    """The options of ``ProcessGuard.run``, for ``ProcessGuard.shell``."""

    cwd: str
    stdin: bytes | None
    env: Mapping[str, str]
    timeout: float | None
    max_output: int
    network: CommandNetwork
    on_output: OnOutput | None
    check: Check | None


class ProcessGuard:
    """Runs programs for one workspace, which is opened here once and stays the same directory from then on.

    ``workspace`` and the other roots are paths, or open already, such as those of the file tools beside it.
    ``carrier`` is who builds the full tier: our own code (``own``), ``bubblewrap``, or the first of them that works.
    ``read_roots`` and ``write_roots`` are directories outside the workspace that commands may use as well.
    ``state_dir`` is where the reduced tier keeps the commands' HOME; the system's directory for temporary files if not
    given. ``git`` is what commands may change in repositories, ``limits`` what one may use, ``internet`` what one with
    the guarded network reaches. ``keep`` are patterns, as in deny rules, of files that commands may not change: they are
    put back after a command. ``unenforced_rules``: whether a command runs, in a tier that cannot hide them, although it could
    open paths that rules hide. May be used by several threads. ``close`` it or use a ``with`` block: that kills what
    still runs.
    """

    def __init__(
        self,
        workspace: str | Root,
        *,
        sandbox: SandboxChoice = "auto",
        carrier: CarrierChoice = "auto",
        mode: Mode = "workspace-write",
        read_roots: Sequence[str | Root] = (),
        write_roots: Sequence[str | Root] = (),
        state_dir: str | None = None,
        git: GitMode = "commit",
        limits: CommandLimits | None = None,
        internet: Network | None = None,
        keep: Sequence[str] = (),
        unenforced_rules: UnenforcedRules = "refuse",
    ) -> None:
        if mode not in _MODES:
            raise SetupError(f"mode must be one of {', '.join(_MODES)}, not {mode!r}")
        root = open_root(workspace, "workspace")
        read = [open_root(root, "read root") for root in read_roots]
        write = [open_root(root, "write root") for root in write_roots]
        self._choice = pick_tier(sandbox, carrier, [one.real for one in (root, *read, *write)])
        if mode == "workspace-write" and self._choice.name == "reduced":
            inside = [one.real for one in (root, *write)]
            self._choice = judge_exposed_code(self._choice, inside, by_name=sandbox == "reduced")
        with StartErrors(), contextlib.ExitStack() as stack:
            self.fs = stack.enter_context(FileGuard(root))
            self._sandbox = Sandbox(
                root,
                writable=mode == "workspace-write",
                read_roots=read,
                write_roots=write,
                state_dir=state_dir,
                choice=self._choice,
                limits=limits or CommandLimits(),
                git=git,
                keep=keep,
            )
            stack.pop_all()
        self._read_only = mode == "read-only"
        self._guarded = GuardedNetwork(internet)
        self._limits: tuple[PathLimit, ...] = ()
        self._approved: Approvals = NO_APPROVALS
        self._unenforced_rules: Final = unenforced_rules
        self._check: Check = _no_check
        self._programs: set[LongProcess] = set()

    def __repr__(self) -> str:
        return f"<ProcessGuard {self.workspace!r}: tier {self.tier}>"

    @property
    def tier(self) -> Tier:
        """The tier every command of this guard runs in."""
        return self._choice.name

    @property
    def choice(self) -> TierChoice:
        """The tier and the reason for it."""
        return self._choice

    @property
    def workspace(self) -> str:
        """The real path of the workspace, where commands find it."""
        return self._sandbox.workspace

    def with_check(self, check: Check) -> ProcessGuard:
        """A view of the same sandbox that calls ``check`` while a command runs, in addition to the call's own check."""
        view = copy.copy(self)
        view._check = check
        return view

    def with_judge(self, judge: UrlJudge) -> ProcessGuard:
        """A view of the same sandbox that calls ``judge`` with every URL that a command with the guarded network asks for.

        ``judge`` raises a ``ToolkitError`` to refuse it, before its name is looked up. For a tunnel (https) the URL has no
        path. It is called in other threads.
        """
        view = copy.copy(self)
        view._guarded = self._guarded.with_judge(judge)
        return view

    def read_only(self) -> ProcessGuard:
        """A view of the same sandbox whose commands can write only their private ``/tmp``.

        Limit: ``unsafe-none`` enforces nothing, not even this.
        """
        view = copy.copy(self)
        view._read_only = True
        return view

    def with_limits(self, limits: tuple[PathLimit, ...], approved: Approvals = NO_APPROVALS) -> ProcessGuard:
        """A view of the same sandbox whose commands obey these rules on paths, each but for what was approved.

        Limit: ``unsafe-none`` enforces nothing, not even this.
        """
        view = copy.copy(self)
        view._limits, view._approved = limits, approved
        return view

    def for_git(self) -> ProcessGuard:
        """The read-only view for ``GitGuard``, which also runs where there is no tier: its commands are fixed."""
        view = self.read_only()
        if self.tier == "none":
            view._choice = dataclasses.replace(self._choice, unsafe=True)
        return view

    def shell(self, text: str, **options: Unpack[RunOptions]) -> ProcessResult:
        """Run shell text with bash, without any start-up file; the options are those of ``run``.

        Only files last from one call to the next.
        """
        return self.run(["bash", "--noprofile", "--norc", "-c", "--", text], **options)

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str = ".",
        stdin: bytes | None = None,
        env: Mapping[str, str] = {},
        timeout: float | None = 30,
        max_output: int = MAX_OUTPUT,
        network: CommandNetwork = "none",
        on_output: OnOutput | None = None,
        check: Check | None = None,
    ) -> ProcessResult:
        """Run one program and wait until it ends, at most ``timeout`` seconds.

        ``argv[0]`` is a bare name, looked up on a fixed path, or a path; a relative one is relative to ``cwd`` and its
        directory must be in the workspace. ``cwd`` is a path in the workspace. ``on_output`` is called with every
        chunk of output as it comes; notes of the sandbox itself are part of ``stderr``. ``check`` is called about every
        50 ms. When either raises, everything is killed first.
        """
        check_both = _combine(self._check, check or _no_check)
        check_both()
        if (timeout is not None and not timeout > 0) or max_output < 0:
            raise InvalidArguments("timeout must be greater than 0, max_output at least 0")
        kept = {"stdout": HeadTail(max_output), "stderr": HeadTail(max_output)}
        sinks = {name: _make_sink(name, kept[name], on_output) for name in kept}
        started = time.monotonic()
        notes: list[str] = []
        with contextlib.ExitStack() as stack:
            request = self._prepare_request(stack, argv, cwd, env, network, sandbox=True)
            request = self._review_after(stack, request, notes)
            request, hidden = self._limit_paths(request, check_both)
            unsandboxed = self._choice.unsafe
            start_proxy = self._guarded.proxy_for(network, self._choice, unsandboxed=unsandboxed)
            # Never the host's /dev/null: a process that has it open can change its mode.
            source = memory_file(stdin or b"")
            command, stdout, stderr = stack.enter_context(
                self._sandbox.start(request, source, unsandboxed=unsandboxed, start_proxy=start_proxy)
            )
            by_descriptor = {stdout: sinks["stdout"], stderr: sinks["stderr"]}
            timed_out = read_until_exit(command, by_descriptor, timeout, check_both)
            outcome = command.outcome()
        for note in (outcome.note, *outcome.refusals, *notes):
            if note:
                sinks["stderr"](f"\n[{note}]\n".encode())
        result = self._result(request, outcome, kept, timed_out, time.monotonic() - started)
        return dataclasses.replace(result, notes=(*outcome.refusals, *notes), hidden=hidden)

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str = ".",
        env: Mapping[str, str] = {},
        network: CommandNetwork = "none",
        sandbox: bool = True,
        read_roots: Sequence[str] = (),
        limit_writes: bool = False,
    ) -> LongProcess:
        """Start a program that runs until it is closed, such as a server that its caller talks to over pipes.

        It sees what a command sees, with a HOME of its own for as long as it lives. Limits are those of a command, except
        that its time is not limited, and the bytes it writes to disk only with ``limit_writes``. A program that cannot be
        run is noticed only after a moment; ``LongProcess.outcome`` then raises the reason.

        ``read_roots`` are directories that it reads besides those of this guard. The environment of a program that is
        named by its absolute path (a venv, a prefix of Node) is found without them; see ``find_environment``. In both,
        and in ``argv[0]``, ``~/`` is the home of this user.

        ``sandbox=False`` runs it without a sandbox, whatever tier this guard has: for programs that a person chose by
        name. Its file must not be where commands can write, or a command could choose what runs outside.
        """
        self._check()
        argv = [expand_home(argv[0]), *argv[1:]] if argv else argv
        with contextlib.ExitStack() as stack:
            view, argv = self._reading(stack, argv, read_roots) if sandbox else (self, argv)
            request = view._prepare_request(stack, argv, cwd, env, network, sandbox=sandbox)
            request = dataclasses.replace(request, until_closed=True, counts_writes=limit_writes)
            if not sandbox:
                self._sandbox.refuse_writable_program(request)
            else:
                request = self._review_after(stack, request, [], long=True)
                request, _ = view._limit_paths(request, self._check)
            unsandboxed = self._choice.unsafe or not sandbox
            start_proxy = self._guarded.proxy_for(network, self._choice, unsandboxed=unsandboxed)
            with StartErrors():
                pipe = open_pipe()
            try:
                command, stdout, stderr = stack.enter_context(
                    view._sandbox.start(
                        request, stdin_from_pipe(pipe), unsandboxed=unsandboxed, start_proxy=start_proxy
                    )
                )
                with StartErrors():
                    program = LongProcess(command, pipe[1], stdout, stderr, stack, sandboxed=not unsandboxed)
            except BaseException:
                close_pipe(pipe[1])
                raise
        return program.register_in(self._programs)

    def _reading(
        self, stack: contextlib.ExitStack, argv: Sequence[str], read_roots: Sequence[str]
    ) -> tuple[ProcessGuard, Sequence[str]]:
        """A view whose commands also read these directories and the environment of the program, and the command for it.

        It is ended with ``stack``.
        """
        roots, environment, path = [expand_home(root) for root in read_roots], list[str](), list[str]()
        if argv and os.path.isabs(argv[0]):
            found = find_environment(argv[0], self._sandbox.places_of_tools)
            environment, path, argv = found.roots, found.path, [found.program, *argv[1:]]
        if not roots and not environment:
            return self, argv
        view = copy.copy(self)
        # What is there twice could be hidden in one place and not in the other.
        view._sandbox = self._sandbox.reading(roots, environment, path, real=bool(self._limits))
        stack.callback(view._sandbox.close)
        return view, argv

    def accept_changes(self) -> contextlib.AbstractContextManager[Accept]:
        """For a change of files that ``keep`` covers, by somebody who may: ``with guard.accept_changes() as accept: ...``.

        ``accept(path, data)`` names a file by its real path, with its new content, None if it was removed. It is not put
        back after the commands that run at the moment. Meanwhile no command starts or ends.
        """
        return self._sandbox.accept_changes()

    def close(self) -> None:
        """Kill every command and end the fork server; later calls are refused. A second time does nothing."""
        for program in list(self._programs):
            program.close(grace=0)
        self._sandbox.close()
        self.fs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _prepare_request(
        self,
        stack: contextlib.ExitStack,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        network: CommandNetwork,
        *,
        sandbox: bool,
    ) -> CommandRequest:
        """Check a command and its place; its HOME is removed with ``stack``."""
        if sandbox and not self._choice.runs_commands:
            raise ToolNotAllowed(f"commands cannot run: this machine has no sandbox ({self._choice.reason})")
        command = check_argv(argv)
        place = self._resolve_cwd(cwd)
        self._check_program(command[0], place)
        unsandboxed = self._choice.unsafe or not sandbox
        with StartErrors():
            home, tmp = stack.enter_context(self._sandbox.home_and_tmp(unsandboxed=unsandboxed))
        variables = build_environment(
            env, path=self._sandbox.path, home=home, tmp=tmp, trusted=not sandbox, proxied=network == "guarded"
        )
        gitconfig = "" if self._read_only else self._sandbox.gitconfig
        return CommandRequest(list(command), place, variables, network, self._read_only, home, gitconfig=gitconfig)

    def _review_after(
        self, stack: contextlib.ExitStack, request: CommandRequest, notes: list[str], *, long: bool = False
    ) -> CommandRequest:
        """Review what the command changed when ``stack`` ends, which is after everything of it; ``notes`` get the result.

        They are logged as well, because an error of the call would hide them. Without a sandbox nothing is reviewed:
        what such a command leaves running could change things later.
        """
        if self._choice.unsafe:
            return request
        request, end = self._sandbox.begin_review(request, long=long)

        owner = os.getpid()

        def review() -> None:
            if os.getpid() != owner:  # in a fork: the command is not over
                return
            notes.extend(end())
            for note in notes:
                _log.warning("after a command: %s", note)

        stack.callback(review)
        return request

    def _limit_paths(self, request: CommandRequest, check: Check) -> tuple[CommandRequest, tuple[HiddenPaths, ...]]:
        """The request with what path rules keep from the command; refused where the tier cannot do that."""
        if not self._limits or self._choice.unsafe:
            return request, ()
        limited, hidden = self._sandbox.limit_paths(request, self._limits, self._approved, check)
        if self.tier == "full" or not limited.limited:
            here = os.path.realpath(os.path.join(self.workspace, request.cwd))
            if any(entry.hides and is_below(here, os.path.join(entry.root, entry.path)) for entry in limited.limited):
                rules = ", ".join(found.because for found in hidden)
                raise SandboxViolation(
                    f"the working directory {display(request.cwd)!r} is hidden from commands by {rules}"
                )
            return limited, hidden
        if self._unenforced_rules == "accept":
            return request, ()
        rules = ", ".join(dict.fromkeys(limit.because for limit in self._limits))
        raise ToolNotAllowed(
            f"the command was not run: it could open what {rules} keeps from it, which the reduced sandbox of this machine"
            ' cannot hide; CommandSettings(unenforced_rules="accept") accepts that'
        )

    def _resolve_cwd(self, cwd: str) -> str:
        """Check ``cwd``; returns it relative to the workspace, as the supervisor resolves it again."""
        try:
            self.fs.open_dir(cwd).close()
        except ToolFailed as error:
            path = error.details.get("path")
            # A dangling link is missing under its own name.
            near = [name for name in self.fs.similar_paths(cwd) if name != path] if error.reason == "NOT_FOUND" else []
            hint = f". Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise ToolFailed(error.reason, f"the working directory {error.message}{hint}", path=path) from None
        return self.fs.path(cwd).text

    def _check_program(self, name: str, cwd: str) -> None:
        """The directory of a relative path must be in the workspace; the file itself may be a link to a system program."""
        folder, slash, _ = name.rpartition("/")
        if not slash or name.startswith("/"):
            return
        try:
            self.fs.open_dir(f"{cwd}/{folder}").close()
        except ToolFailed:
            raise ToolFailed("COMMAND_NOT_FOUND", f"'{display(name)}' does not exist in the workspace") from None

    def _result(
        self,
        request: CommandRequest,
        outcome: CommandExit,
        kept: Mapping[str, HeadTail],
        timed_out: bool,
        seconds: float,
    ) -> ProcessResult:
        stdout, stderr = kept["stdout"], kept["stderr"]
        return ProcessResult(
            command=tuple(request.argv),
            cwd=request.cwd,
            exit_code=outcome.exit_code,
            signal=outcome.signal,
            stdout=stdout.data(),
            stderr=stderr.data(),
            stdout_truncated=stdout.is_truncated,
            stderr_truncated=stderr.is_truncated,
            stdout_bytes=stdout.total,
            stderr_bytes=stderr.total,
            timed_out=timed_out,
            duration_ms=round(seconds * 1000),
            tier=self.tier,
            carrier=self._choice.carrier,
            network="host" if self._choice.unsafe else request.network,
            ended_by=outcome.ended_by,
        )


def _make_sink(name: str, kept: HeadTail, on_output: OnOutput | None) -> Sink:
    if on_output is None:
        return kept.add

    def keep_and_report(data: bytes) -> None:
        kept.add(data)
        on_output(name, data)

    return keep_and_report


def _combine(first: Check, second: Check) -> Check:
    def check_both() -> None:
        first()
        second()

    return check_both


def _no_check() -> None:
    """The check of a call that may not be ended early."""


# -- a program that runs until it is closed ----------------------------------------------------------------------------


class LongProcess:
    """A program that runs until it is closed: what ``ProcessGuard.start`` returns.

    ``stdin`` and ``stdout`` are descriptors to wait on; only ``close`` closes them. ``read`` and ``write`` never block. One
    thread may read and one may write at a time. ``resources`` are its own once it is made.

    Promise: ``close`` returns when nothing of the program is alive: its input is closed, it gets a short time to end by
    itself, then everything it started is killed. The same happens when its ``ProcessGuard`` is closed, and in a sandbox
    when this process dies, however it dies. Its stderr is read all the time, and only the end of it is kept, so that the
    program does not block and memory does not grow.
    Limit: without a sandbox, processes that left its process group are not killed, and nothing is killed when this process
    is: such a program only sees the end of its input. A fork of this process has no program: there it is closed, and goes
    on here.
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


# -- reading what a command writes -------------------------------------------------------------------------------------


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

    ``check`` is called about every 50 ms and raises to end the command. On every way out, exceptions of the caller's
    functions included, the command and everything it started are killed first.
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


# -- the reduced tier --------------------------------------------------------------------------------------------------


def judge_exposed_code(choice: TierChoice, roots: Sequence[str], *, by_name: bool) -> TierChoice:
    """The reduced tier as ``choice``, or no tier if commands could change code that runs outside it.

    That tier has no read-only mounts: an interpreter inside a root can be changed by commands, and what they write there
    runs outside the sandbox, in this process or at the next start.

    Somebody who requested the tier by name gets it, with a warning. ``roots`` are where commands may write, the workspace
    first.
    """
    places = places_to_hold(roots)
    if not places:
        return choice
    place = os.path.relpath(places[0], roots[0])
    exposed = f"the reduced sandbox cannot keep commands from changing the Python that runs this program ({place!r})"
    if by_name:
        _log.warning(
            "%s: what they write there runs outside the sandbox; use an environment outside the workspace", exposed
        )
        return choice
    why = f'{exposed}; use an environment outside the workspace, or request sandbox="reduced" by name'
    return dataclasses.replace(choice, name="none", reason=f"{choice.reason}; reduced: {why}")
