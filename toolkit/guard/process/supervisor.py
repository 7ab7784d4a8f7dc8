"""What stays beside a command: it builds the walls, starts the command, sees its end, and tells how it was.

It also sees the end of the caller and of the helper, and ends the command with them. In the full tier it is the first
process of a pid namespace and goes behind the same walls itself, which spares a fork; nobody may look into it, so it is
out of the command's reach all the same. In the reduced tier it must stay outside, to find and kill.
"""

from __future__ import annotations

import os
import resource
import select
import signal
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NoReturn

from toolkit.guard.fs.resolve import HANDLE, open_beneath, pick
from toolkit.guard.process import host_view as view
from toolkit.guard.process.kernel import landlock, seccomp
from toolkit.guard.process.kernel.syscall import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    Unsupported,
    drop_capabilities,
    forbid_new_privileges,
    mark_descriptors_for_closing,
    prctl,
    reason,
)
from toolkit.guard.process.process_tree import Census, end_all
from toolkit.guard.process.program import SYSTEM, find

if TYPE_CHECKING:
    from toolkit.guard.process.messages import Plan, Setup

PROCESSES: Final = 1024
_COUNT_EVERY_MS: Final = 50

_GIB: Final = 1 << 30
# Generous: they end what runs away, not what works hard.
_LIMITS: Final = (
    (
        resource.RLIMIT_CORE,
        1,
    ),  # with 0 the kernel still hands a crash to the host's handler, as root; with 1 it does not
    (resource.RLIMIT_FSIZE, 4 * _GIB),
    (resource.RLIMIT_NOFILE, 4096),
    (resource.RLIMIT_CPU, 6 * 3600),
    (resource.RLIMIT_AS, 64 * _GIB),
)

# Set by Python or by us, so that a program would inherit them otherwise.
HANDLED: Final = (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM)

# What programs of the reduced tier may read of the host's /proc: nothing that belongs to a process.
_PROC_FACTS: Final = tuple(
    f"/proc/{name}" for name in ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version")
)


class Keeper:
    """The keeper of one command, in a process of its own.

    ``job`` is the socket to the caller, ``server`` a handle of the helper, ``handles`` those of the roots, by path.
    """

    def __init__(
        self, setup: Setup, plan: Plan, workspace_fd: int, job: int, server: int, handles: Mapping[str, int]
    ) -> None:
        self._roots = setup.roots
        self._plan = plan
        self._job = job
        self._server = server
        self._full = setup.full
        self._workspace_fd = workspace_fd
        self._handles = handles
        self._fenced = False
        self._command = 0

    def run(self, stdio: list[int], make_private: Callable[[], bool]) -> NoReturn:
        """Run the command to its end. ``make_private`` says whether the kernel bounds its processes."""
        try:
            self._live_no_longer_than_the_helper()
            limited = make_private()
            wakeup, noticed = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            signal.signal(signal.SIGCHLD, _do_nothing)
            signal.set_wakeup_fd(noticed)
            self._command = self._start(stdio)
            for fd in stdio:
                os.close(fd)
            drop_capabilities()
            status, note = self._watch(wakeup, counting=not limited)
            tell(self._job, "status", status, note)
        except (OSError, Unsupported) as error:
            tell(self._job, "setup", text=reason(error))
        finally:
            if not self._full:
                end_all(fenced=self._fenced, group=self._command)
            os._exit(0)

    def _live_no_longer_than_the_helper(self) -> None:
        if self._full:
            prctl("pdeathsig", PR_SET_PDEATHSIG, signal.SIGKILL)
        else:
            prctl("subreaper", PR_SET_CHILD_SUBREAPER, 1)
            signal.signal(signal.SIGTERM, _do_nothing)
            prctl("pdeathsig", PR_SET_PDEATHSIG, signal.SIGTERM)
            forbid_new_privileges()
            self._fenced = landlock.fence()
        if _readable(self._server):
            os._exit(1)

    def _watch(self, wakeup: int, *, counting: bool) -> tuple[int, str]:
        """Wait for the command, reaping orphans, until its end or that of whoever wanted it: its status, and why."""
        census = Census(PROCESSES)
        poller = select.poll()
        for fd in (wakeup, self._job, self._server):
            poller.register(fd, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poller.poll(_COUNT_EVERY_MS if counting else None)]
            if self._job in ready or self._server in ready:
                return signal.SIGKILL, ""
            if wakeup in ready:
                os.read(wakeup, 4096)
            status = _reap(self._command)
            if status is not None:
                self._command = 0  # the number may be anybody's from now on
                return status, ""
            if counting and census.exceeded():
                return signal.SIGKILL, f"ended: more than {PROCESSES} processes"

    def _start(self, stdio: list[int]) -> int:
        """Start the command inside all walls, and answer its number."""
        if self._full:
            program = self._go_inside()
            moves = [(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(stdio)]
            try:
                return os.posix_spawn(
                    program, self._plan.argv, self._plan.env, file_actions=moves, setsid=True, setsigdef=HANDLED
                )
            except OSError as error:
                self._give_up("exec", error)
        command = os.fork()
        if command == 0:
            self._become(stdio)
        return command

    def _become(self, stdio: list[int]) -> NoReturn:
        try:
            signal.set_wakeup_fd(-1)
            for number in HANDLED:
                signal.signal(number, signal.SIG_DFL)
            os.setsid()
            for target, fd in enumerate(stdio):
                os.dup2(fd, target)
            program = self._go_inside()
            try:
                os.execve(program, self._plan.argv, self._plan.env)
            except OSError as error:
                self._give_up("exec", error)
        except (OSError, Unsupported) as error:
            self._give_up("setup", error)
        finally:
            os._exit(1)

    def _go_inside(self) -> str:
        """Build the walls around this process; the answer is the program, because nothing is looked up after that."""
        self._enter_cwd()
        program = self._find_program()
        self._restrict()
        return program

    def _enter_cwd(self) -> None:
        if self._full:  # the handle from outside belongs to mounts outside
            self._workspace_fd = os.open(self._roots.workspace, HANDLE | os.O_DIRECTORY)
        flags = HANDLE | os.O_DIRECTORY
        try:
            os.fchdir(open_beneath(self._workspace_fd, self._plan.cwd, flags, pick("auto")))
        except OSError as error:
            self._give_up("cwd", error)

    def _find_program(self) -> str:
        try:
            return find(self._plan.argv[0], self._plan.env["PATH"], ".")
        except OSError as error:
            self._give_up("find", error)

    def _restrict(self) -> None:
        rules = self._full_rules() if self._full else self._reduced_rules()
        mark_descriptors_for_closing(3)
        for kind, limit in _LIMITS:
            _limit(kind, limit)
        if self._full:
            # Counted per user namespace, so only this command's own processes count; uid 0 is never limited by it.
            _limit(resource.RLIMIT_NPROC, PROCESSES)
        drop_capabilities()
        forbid_new_privileges()
        landlock.restrict(rules, network=self._plan.network)
        seccomp.install(network=self._plan.network)

    def _full_rules(self) -> list[tuple[int, int]]:
        """All that is mounted may be read: what must not be read is not mounted."""
        writable = [self._roots.workspace, *self._roots.write] if self._may_write else []
        return [
            *_rules(["/"], landlock.READ),
            *_rules([view.TMP, *writable], landlock.WRITE),
            *_rules(view.DEVICES, landlock.DEVICE),
        ]

    def _reduced_rules(self) -> list[tuple[int, int]]:
        """By handle, where a command could have put something else in the place of what is meant."""
        write = landlock.WRITE if self._may_write else landlock.READ
        return [
            (self._workspace_fd, write),
            *((self._handles[path], landlock.READ) for path in self._roots.read),
            *((self._handles[path], write) for path in self._roots.write),
            *_rules([*SYSTEM, *view.ETC, *_PROC_FACTS], landlock.READ),
            *_rules([self._plan.home], landlock.WRITE),
            *_rules(view.DEVICES, landlock.DEVICE),
        ]

    @property
    def _may_write(self) -> bool:
        return self._roots.workspace_writable and not self._plan.read_only

    def _give_up(self, step: str, error: OSError | Unsupported) -> NoReturn:
        tell(self._job, step, getattr(error, "errno", None) or 0, reason(error))
        os._exit(1)


def tell(job: int, kind: str, number: int = 0, text: str = "") -> None:
    """Tell the caller; one that is gone needs no answer."""
    try:
        os.write(job, f"{kind} {number} {text}".encode())
    except OSError:
        return


def _rules(paths: list[str] | tuple[str, ...], rights: int) -> list[tuple[int, int]]:
    rules = []
    for path in paths:
        try:
            fd = os.open(path, HANDLE)
        except OSError:
            continue  # without a rule it stays closed
        rules.append((fd, rights if os.path.isdir(path) else landlock.for_file(rights)))
    return rules


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _reap(command: int) -> int | None:
    """Take note of every child that ended; the answer is the command's status, if it is among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == command:
            found = status


def _readable(fd: int) -> bool:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(0))


def _do_nothing(number: int, frame: object) -> None:
    """A handler, so that the signal interrupts instead of killing or being ignored."""
