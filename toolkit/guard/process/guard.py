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
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import logging
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self, TypeAlias, TypedDict, Unpack

from toolkit.errors import InvalidArguments, SetupError, ToolFailed, ToolNotAllowed
from toolkit.guard.files.handles import Check
from toolkit.guard.files.path import display
from toolkit.guard.files.sandbox_fs import SandboxFS
from toolkit.guard.forks import close_pipe, open_pipe
from toolkit.guard.fs.transaction.accept import Accept
from toolkit.guard.network.network import Network
from toolkit.guard.permission import Carrier, CarrierChoice, CommandNetwork, GitMode, Mode, SandboxChoice
from toolkit.guard.process.command import CommandExit, check_argv
from toolkit.guard.process.environment import build_environment
from toolkit.guard.process.exposed_code import judge_exposed_code
from toolkit.guard.process.fork_client import memory_file
from toolkit.guard.process.guarded_network import GuardedNetwork
from toolkit.guard.process.limits import CommandLimits, EndedBy
from toolkit.guard.process.long_process import LongProcess
from toolkit.guard.process.messages import CommandRequest
from toolkit.guard.process.output import HeadTail, Sink, read_until_exit
from toolkit.guard.process.program_roots import expand_home, find_environment
from toolkit.guard.process.sandbox import Sandbox, StartErrors, real_root, stdin_from_pipe
from toolkit.guard.process.tier import Tier, TierChoice, pick_tier

if TYPE_CHECKING:
    from toolkit.guard.network.proxy import UrlJudge

OnOutput: TypeAlias = Callable[[str, bytes], None]

_log: Final = logging.getLogger("toolkit")

MAX_OUTPUT: Final = 1 << 20
_MODES: Final = ("workspace-write", "read-only")


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

    ``carrier`` is who builds the full tier: our own code (``own``), ``bubblewrap``, or the first of them that works.
    ``read_roots`` and ``write_roots`` are directories outside the workspace that commands may use as well.
    ``state_dir`` is where the reduced tier keeps the commands' HOME; the system's directory for temporary files if not
    given. ``git`` is what commands may change in repositories, ``limits`` what one may use, ``internet`` what one with
    the guarded network reaches. ``keep`` are patterns, as in deny rules, of files that commands may not change: they are
    put back after a command. May be used by several threads. ``close`` it or use a ``with`` block: that kills what
    still runs.
    """

    def __init__(
        self,
        workspace: str,
        *,
        sandbox: SandboxChoice = "auto",
        carrier: CarrierChoice = "auto",
        mode: Mode = "workspace-write",
        read_roots: Sequence[str] = (),
        write_roots: Sequence[str] = (),
        state_dir: str | None = None,
        git: GitMode = "commit",
        limits: CommandLimits | None = None,
        internet: Network | None = None,
        keep: Sequence[str] = (),
    ) -> None:
        if mode not in _MODES:
            raise SetupError(f"mode must be one of {', '.join(_MODES)}, not {mode!r}")
        avoid = [real_root("workspace", workspace), *map(os.path.realpath, (*read_roots, *write_roots))]
        self._choice = pick_tier(sandbox, carrier, avoid)
        if mode == "workspace-write" and self._choice.name == "reduced":
            self._choice = judge_exposed_code(self._choice, [workspace, *write_roots], by_name=sandbox == "reduced")
        with StartErrors(), contextlib.ExitStack() as stack:
            self._fs = stack.enter_context(SandboxFS(workspace))
            self._sandbox = Sandbox(
                workspace,
                writable=mode == "workspace-write",
                read_roots=read_roots,
                write_roots=write_roots,
                state_dir=state_dir,
                choice=self._choice,
                limits=limits or CommandLimits(),
                git=git,
                keep=keep,
            )
            stack.pop_all()
        self._read_only = mode == "read-only"
        self._guarded = GuardedNetwork(internet)
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
        return dataclasses.replace(result, notes=(*outcome.refusals, *notes))

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
        named by its absolute path (a venv, a prefix of Node) is found without them; see ``program_roots.py``. In both,
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
        roots, path = [expand_home(root) for root in read_roots], list[str]()
        if argv and os.path.isabs(argv[0]):
            found = find_environment(argv[0], self._sandbox.places_of_tools)
            roots, path, argv = [*roots, *found.roots], found.path, [found.program, *argv[1:]]
        if not roots:
            return self, argv
        view = copy.copy(self)
        view._sandbox = self._sandbox.reading(roots, path)
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
        self._fs.close()

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

    def _resolve_cwd(self, cwd: str) -> str:
        """Check ``cwd``; returns it relative to the workspace, as the supervisor resolves it again."""
        try:
            self._fs.open_dir(cwd).close()
        except ToolFailed as error:
            path = error.details.get("path")
            # A dangling link is missing under its own name.
            near = [name for name in self._fs.similar_paths(cwd) if name != path] if error.reason == "NOT_FOUND" else []
            hint = f". Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise ToolFailed(error.reason, f"the working directory {error.message}{hint}", path=path) from None
        return self._fs.path(cwd).text

    def _check_program(self, name: str, cwd: str) -> None:
        """The directory of a relative path must be in the workspace; the file itself may be a link to a system program."""
        folder, slash, _ = name.rpartition("/")
        if not slash or name.startswith("/"):
            return
        try:
            self._fs.open_dir(f"{cwd}/{folder}").close()
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
