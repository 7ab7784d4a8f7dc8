"""The only way to start a program: ``ProcessGuard`` runs an argument list inside the sandbox tier of this machine.

Promise, full tier: a command reads system programs, the workspace and the roots given, writes only the workspace
(not ``.git/config`` and ``.git/hooks``) and a private ``/tmp``, reaches no network and no process of the host, gets
no secret of this process, and leaves nothing running, however it, its caller or the helper ends.
Reduced tier: the same except that it can ``stat`` everything, change the metadata of files its user owns, write
``.git/config`` and an interpreter that lies in the workspace, and survive when keeper and helper are both killed from
outside. No tier: nothing runs.

Not stopped: what a command does to the workspace, a ``.git`` that was not there when it started and nested ones
included; hard links into it; with ``network=True`` any address, the host's own included. Memory and disk are bounded
per process and per file, not in total. As uid 0 or not, a command keeps the caller's uid without any capability, so it
cannot write what another user owns. ``socket(AF_UNIX)`` is refused, so programs that talk to themselves through a
socket file fail.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self, TypeAlias

from toolkit.errors import InvalidArguments, SetupError, ToolFailed, ToolNotAllowed
from toolkit.guard.fs.handles import Check
from toolkit.guard.fs.path import display
from toolkit.guard.fs.sandbox_fs import SandboxFS
from toolkit.guard.permission import Carrier, CarrierChoice, Mode, SandboxChoice
from toolkit.guard.process import environment
from toolkit.guard.process.fork_server_client import in_memory
from toolkit.guard.process.kernel.tier import Tier, TierChoice, pick_tier
from toolkit.guard.process.long_process import LongProcess
from toolkit.guard.process.messages import Plan
from toolkit.guard.process.output import Capture, pump
from toolkit.guard.process.sandbox import Ending, Sandbox, reading_end, real_root

OnOutput: TypeAlias = Callable[[str, bytes], None]

MAX_OUTPUT: Final = 1 << 20
_MODES: Final = ("workspace-write", "read-only")
_MAX_ARGUMENT_BYTES: Final = 128 * 1024 - 1  # what the kernel takes for one
_MAX_ARGV_BYTES: Final = 1 << 20  # it takes about twice that for all of them and the environment


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a command ended. Exactly one of ``exit_code`` and ``signal`` is set; after a timeout it is the signal.

    ``stdout`` and ``stderr`` keep head and tail with a note between them when more came than asked for; the
    ``_bytes`` fields count everything that came. ``network`` says whether it could reach the host's.
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
    network: bool

    @property
    def signal_name(self) -> str | None:
        """The name of the signal, such as ``SIGKILL``; None if none ended it."""
        if self.signal is None:
            return None
        try:
            return signal.Signals(self.signal).name
        except ValueError:  # those for real time have no names of their own
            return f"SIG{self.signal}"


class ProcessGuard:
    """Runs programs for one workspace, which is found once, here, and held from then on.

    ``carrier`` says who builds the full tier: ourselves (``own``), ``bubblewrap``, or the first of them that can.
    ``read_roots`` and ``write_roots`` are places outside it that commands may use as well. ``state_dir`` is where the
    reduced tier keeps the commands' HOME; a directory of the system's for temporary files if not given. May be used
    by several threads. Give it back with ``close`` or a ``with`` block: that kills what still runs.
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
    ) -> None:
        if mode not in _MODES:
            raise SetupError(f"mode is one of {', '.join(_MODES)}, not {mode!r}")
        avoid = [real_root("workspace", workspace), *map(os.path.realpath, (*read_roots, *write_roots))]
        self._choice = pick_tier(sandbox, carrier, avoid)
        self._fs = SandboxFS(workspace)
        self._sandbox = Sandbox(
            workspace,
            writable=mode == "workspace-write",
            read_roots=read_roots,
            write_roots=write_roots,
            state_dir=state_dir,
            choice=self._choice,
        )
        self._read_only = mode == "read-only"
        self._check: Check = _no_check
        self._programs: set[LongProcess] = set()

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
        """Where commands find the workspace: its real path."""
        return self._sandbox.workspace

    def bound(self, check: Check) -> ProcessGuard:
        """A view on the same sandbox that asks ``check`` all the time a command runs, beside that call's own."""
        view = copy.copy(self)
        view._check = check
        return view

    def read_only(self) -> ProcessGuard:
        """A view on the same sandbox whose commands write nothing but their private ``/tmp``.

        Limit: ``unsafe-none`` enforces nothing, this neither.
        """
        view = copy.copy(self)
        view._read_only = True
        return view

    def for_git(self) -> ProcessGuard:
        """The read-only view for ``GitGuard``, which also runs where there is no tier: what it runs is fixed."""
        view = self.read_only()
        if self.tier == "none":
            view._choice = dataclasses.replace(self._choice, unsafe=True)
        return view

    def shell(
        self,
        text: str,
        *,
        cwd: str = ".",
        stdin: bytes | None = None,
        env: Mapping[str, str] = {},
        timeout: float | None = 30,
        max_output: int = MAX_OUTPUT,
        network: bool = False,
        on_output: OnOutput | None = None,
        check: Check | None = None,
    ) -> ProcessResult:
        """Run shell text with bash, without any start-up file; nothing of it reaches the next call but files."""
        return self.run(
            ["bash", "--noprofile", "--norc", "-c", "--", text],
            cwd=cwd,
            stdin=stdin,
            env=env,
            timeout=timeout,
            max_output=max_output,
            network=network,
            on_output=on_output,
            check=check,
        )

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str = ".",
        stdin: bytes | None = None,
        env: Mapping[str, str] = {},
        timeout: float | None = 30,
        max_output: int = MAX_OUTPUT,
        network: bool = False,
        on_output: OnOutput | None = None,
        check: Check | None = None,
    ) -> ProcessResult:
        """Run one program and wait for its end, at most ``timeout`` seconds.

        ``argv[0]`` is a bare name, looked up on a fixed path, or a path; a relative one is relative to ``cwd`` and its
        directory must lie in the workspace. ``cwd`` is a path in the workspace. ``on_output`` hears every chunk of
        output as it comes, with what the sandbox itself has to say on ``stderr``; ``check`` is asked about every 50 ms.
        When either raises, everything is killed first.
        """
        ask = _both(self._check, check or _no_check)
        ask()
        if (timeout is not None and not timeout > 0) or max_output < 0:
            raise InvalidArguments("timeout must be above 0, max_output at least 0")
        captures = {"stdout": Capture(max_output), "stderr": Capture(max_output)}
        started = time.monotonic()
        with contextlib.ExitStack() as stack:
            plan = self._planned(stack, argv, cwd, env, network, sandbox=True)
            # Never the host's /dev/null: whoever holds it open can change its mode.
            running, stdout, stderr = stack.enter_context(
                self._sandbox.started(plan, in_memory(stdin or b""), unguarded=self._choice.unsafe)
            )
            sinks = {
                fd: _sink(name, captures[name], on_output) for fd, name in ((stdout, "stdout"), (stderr, "stderr"))
            }
            timed_out = pump(running, sinks, timeout, ask)
            ending = running.ending()
            if ending.note:
                sinks[stderr](f"\n[{ending.note}]\n".encode())
        return self._result(plan, ending, captures, timed_out, time.monotonic() - started)

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str = ".",
        env: Mapping[str, str] = {},
        network: bool = False,
        sandbox: bool = True,
    ) -> LongProcess:
        """Start a program that runs until it is closed: a server its caller talks to over pipes.

        It sees what a command sees, with a HOME of its own for as long as it lives. It may take a moment until a
        program that cannot be run has ended; ``LongProcess.ending`` then says why.

        ``sandbox=False`` runs it without any, whatever tier this guard has: for programs a person chose by name. Its
        file must not lie where commands may write, or one of them could choose what runs outside.
        """
        self._check()
        with contextlib.ExitStack() as stack:
            plan = self._planned(stack, argv, cwd, env, network, sandbox=sandbox)
            if not sandbox:
                self._sandbox.check_not_writable(plan)
            unguarded = self._choice.unsafe or not sandbox
            pipe = os.pipe()
            try:
                started = self._sandbox.started(plan, reading_end(pipe), unguarded=unguarded)
                running, stdout, stderr = stack.enter_context(started)
            except BaseException:
                os.close(pipe[1])
                raise
            program = LongProcess(running, pipe[1], stdout, stderr, stack.pop_all(), sandboxed=not unguarded)
        return program.closed_with(self._programs)

    def close(self) -> None:
        """Kill every command and end the helper; later calls are refused. A second time does nothing."""
        for program in list(self._programs):
            program.close(grace=0)
        self._sandbox.close()
        self._fs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _planned(
        self,
        stack: contextlib.ExitStack,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        network: bool,
        *,
        sandbox: bool,
    ) -> Plan:
        """The checked plan of a command; its HOME goes with ``stack``."""
        if sandbox and not self._choice.runs_commands:
            raise ToolNotAllowed(f"no command can run: this machine gives no sandbox ({self._choice.reason})")
        command = _checked_argv(argv)
        place = self._checked_cwd(cwd)
        self._check_program(command[0], place)
        unguarded = self._choice.unsafe or not sandbox
        home, tmp = stack.enter_context(self._sandbox.home_and_tmp(unguarded=unguarded))
        variables = environment.build(env, path=self._sandbox.path, home=home, tmp=tmp, trusted=not sandbox)
        return Plan(list(command), place, variables, network, self._read_only, home)

    def _checked_cwd(self, cwd: str) -> str:
        """``cwd`` as it is resolved again, beneath the workspace, where the command starts."""
        try:
            self._fs.open_dir(cwd).close()
        except ToolFailed as error:
            path = error.details.get("path")
            # A link that leads nowhere is missing under its own name.
            near = [name for name in self._fs.similar_paths(cwd) if name != path] if error.reason == "NOT_FOUND" else []
            hint = f". Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise ToolFailed(error.reason, f"the working directory {error.message}{hint}", path=path) from None
        return self._fs.path(cwd).text

    def _check_program(self, name: str, cwd: str) -> None:
        """A relative path must stay in the workspace up to its last name, which may be a link to a system program."""
        folder, slash, _ = name.rpartition("/")
        if not slash or name.startswith("/"):
            return
        try:
            self._fs.open_dir(f"{cwd}/{folder}").close()
        except ToolFailed:
            raise ToolFailed("COMMAND_NOT_FOUND", f"'{display(name)}' does not exist in the workspace") from None

    def _result(
        self, plan: Plan, ending: Ending, captures: Mapping[str, Capture], timed_out: bool, seconds: float
    ) -> ProcessResult:
        stdout, stderr = captures["stdout"], captures["stderr"]
        return ProcessResult(
            command=tuple(plan.argv),
            cwd=plan.cwd,
            exit_code=ending.exit_code,
            signal=ending.signal,
            stdout=stdout.data(),
            stderr=stderr.data(),
            stdout_truncated=stdout.truncated,
            stderr_truncated=stderr.truncated,
            stdout_bytes=stdout.total,
            stderr_bytes=stderr.total,
            timed_out=timed_out,
            duration_ms=round(seconds * 1000),
            tier=self.tier,
            carrier=self._choice.carrier,
            network=plan.network or self._choice.unsafe,
        )


def _checked_argv(argv: Sequence[str]) -> tuple[str, ...]:
    if isinstance(argv, str) or not all(isinstance(word, str) for word in argv):
        raise InvalidArguments("a command is a list of texts, the program first")
    if not argv or not argv[0]:
        raise InvalidArguments("a command needs the name of a program first")
    total = 0
    for word in argv:
        try:
            size = len(word.encode())
        except UnicodeEncodeError:
            raise InvalidArguments("a command must not hold lone surrogates") from None
        if "\0" in word:
            raise InvalidArguments("a command must not hold a NUL character")
        total += size + 1
        if size > _MAX_ARGUMENT_BYTES or total > _MAX_ARGV_BYTES:
            raise InvalidArguments(
                f"a command must not be longer than {_MAX_ARGV_BYTES} bytes, nor one word of it than "
                f"{_MAX_ARGUMENT_BYTES}; write long data to a file or give it as input"
            )
    return tuple(argv)


def _sink(name: str, capture: Capture, on_output: OnOutput | None) -> Callable[[bytes], None]:
    if on_output is None:
        return capture.add
    hear = on_output

    def keep_and_tell(data: bytes) -> None:
        capture.add(data)
        hear(name, data)

    return keep_and_tell


def _both(first: Check, second: Check) -> Check:
    def ask() -> None:
        first()
        second()

    return ask


def _no_check() -> None:
    """What is asked when nobody may end a command early."""
