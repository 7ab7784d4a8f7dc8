"""The helper process: a fork server with one thread that starts commands inside the sandbox.

::

    your program ── socket ── helper ── keeper (per command) ── command and all it starts

``ProcessGuard`` starts the helper once. For each command it sends a ``Plan`` and four descriptors; the helper forks
a keeper, which builds the walls, starts the command, reports how it ended and goes. The end of any of the four ends
everything to its right.

Promise: once the job's socket is closed, nothing the command started is alive. In the full tier the keeper is the
first process of a pid namespace, so the kernel itself keeps that promise, also when keeper or helper are killed.
Limit: in the reduced tier the keeper finds and kills descendants; killed itself, it leaves them behind.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import signal
import socket
from dataclasses import asdict, dataclass
from typing import Final, NoReturn

from toolkit.guard import landlock, namespaces, seccomp
from toolkit.guard.program import SYSTEM, find
from toolkit.guard.resolve import HANDLE, open_beneath, pick
from toolkit.guard.sweep import descendants, end_all
from toolkit.guard.syscall import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    PR_SET_PDEATHSIG,
    Unsupported,
    clone,
    drop_capabilities,
    forbid_new_capabilities,
    forbid_new_privileges,
    machine,
    mark_descriptors_for_closing,
    prctl,
    reason,
)

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
_HANDLED: Final = (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM)

# What programs of the reduced tier may read of the host's /proc: nothing that belongs to a process.
_PROC_FACTS: Final = tuple(
    f"/proc/{name}" for name in ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version")
)


@dataclass(frozen=True, slots=True)
class Setup:
    """What holds for all commands of one helper."""

    tier: str
    workspace: str
    workspace_writable: bool
    read: list[str]
    write: list[str]
    home: str  # in the reduced tier: the directory that stands in for /tmp and HOME


@dataclass(frozen=True, slots=True)
class Plan:
    """One command; ``cwd`` is relative to the workspace."""

    argv: list[str]
    cwd: str
    env: dict[str, str]
    network: bool
    read_only: bool


def encode(message: Setup | Plan) -> bytes:
    """The text that carries a message to the helper."""
    return json.dumps(asdict(message)).encode()


def main(control_fd: int, workspace_fd: int) -> NoReturn:
    """Serve until the other end of the socket, or the process that started this one, is gone."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's handler would let a command interrupt its keeper
    parent = os.pidfd_open(os.getppid())
    control = socket.socket(fileno=control_fd)
    try:
        setup = Setup(**json.loads(control.recv(1 << 16)))
        server = _Server(setup, control, workspace_fd)
    except (OSError, Unsupported) as error:
        control.send(reason(error).encode())
        os._exit(1)
    control.send(b"ready")
    server.serve(parent)
    os._exit(0)


class _Server:
    def __init__(self, setup: Setup, control: socket.socket, workspace_fd: int) -> None:
        self._setup = setup
        self._control = control
        self._workspace_fd = workspace_fd
        self._jobs: dict[int, int] = {}  # handle of a keeper -> socket of its job
        self._poller = select.poll()
        self._self = os.pidfd_open(os.getpid())
        self._full = setup.tier == "full"
        self._roots = namespaces.Roots(setup.workspace, setup.workspace_writable, tuple(setup.read), tuple(setup.write))
        landlock.abi()  # no tier without it
        with contextlib.suppress(OSError):  # no wall, only a wish: where memory runs out, commands go first
            _write("/proc/self/oom_score_adj", "1000")
        prctl("dumpable", PR_SET_DUMPABLE, 0)  # no command looks into this process, whatever its uid
        if self._full:
            namespaces.enter(self._roots, workspace_fd)
        else:
            forbid_new_capabilities()
        self._prepare_for_forks()

    def _prepare_for_forks(self) -> None:
        """Do once what every child would do again; and keep the collector from copying pages by touching them."""
        for network in (False, True):
            seccomp.program(machine(), network=network)
        pick("auto")
        gc.disable()
        gc.freeze()

    def serve(self, parent: int) -> None:
        self._poller.register(parent, select.POLLIN)
        self._poller.register(self._control, select.POLLIN)
        while True:
            for fd, _ in self._poller.poll():
                if fd in self._jobs:
                    os.waitid(os.P_PIDFD, fd, os.WEXITED)  # and with it, in a pid namespace, all the others
                    self._poller.unregister(fd)
                    os.close(self._jobs.pop(fd))
                    os.close(fd)
                elif fd == parent or not self._accept():
                    return

    def _accept(self) -> bool:
        """Start the keeper of the next command; False when nobody will send one any more."""
        message, ancillary, _, _ = self._control.recvmsg(1, socket.CMSG_SPACE(5 * 4), socket.MSG_CMSG_CLOEXEC)
        if not message:
            return False
        text, stdin, stdout, stderr, job = memoryview(ancillary[0][2]).cast("i").tolist()
        with open(text, "rb") as file:
            plan = Plan(**json.loads(file.read()))
        try:
            pid = self._fork(plan)
        except OSError as error:  # no room for another process, say; the others go on
            _tell(job, {"setup": reason(error)})
            os.close(job)
        else:
            if pid == 0:
                _Keeper(self._setup, self._roots, plan, self._workspace_fd, job, self._self).run(
                    [stdin, stdout, stderr], [*self._jobs.values(), self._control.fileno()]
                )
            keeper = os.pidfd_open(pid)
            self._jobs[keeper] = job
            self._poller.register(keeper, select.POLLIN)
        for fd in (stdin, stdout, stderr):
            os.close(fd)
        return True

    def _fork(self, plan: Plan) -> int:
        if not self._full:
            return os.fork()
        return clone((namespaces.CHILD if plan.network else namespaces.CHILD_OFFLINE) | signal.SIGCHLD)


class _Keeper:
    """What stays beside a command: it sees the end of the command, of the caller and of the helper."""

    def __init__(
        self, setup: Setup, roots: namespaces.Roots, plan: Plan, workspace_fd: int, job: int, server: int
    ) -> None:
        self._roots = roots
        self._plan = plan
        self._job = job
        self._server = server
        self._full = setup.tier == "full"
        self._home = setup.home
        self._workspace_fd = workspace_fd

    def run(self, stdio: list[int], foreign: list[int]) -> NoReturn:
        try:
            for fd in foreign:
                os.close(fd)
            self._live_no_longer_than_the_helper()
            limited = self._full and namespaces.make_private(
                self._roots, read_only=self._plan.read_only, processes=PROCESSES
            )
            wakeup, noticed = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            signal.signal(signal.SIGCHLD, _do_nothing)
            signal.set_wakeup_fd(noticed)
            command = self._start(stdio)
            for fd in stdio:
                os.close(fd)
            drop_capabilities()
            _tell(self._job, self._watch(command, wakeup, counting=not limited))
        except (OSError, Unsupported) as error:
            _tell(self._job, {"setup": reason(error)})
        finally:
            if not self._full:
                end_all(os.getpid())
            os._exit(0)

    def _live_no_longer_than_the_helper(self) -> None:
        if self._full:
            prctl("pdeathsig", PR_SET_PDEATHSIG, signal.SIGKILL)
        else:
            prctl("subreaper", PR_SET_CHILD_SUBREAPER, 1)
            signal.signal(signal.SIGTERM, _do_nothing)
            prctl("pdeathsig", PR_SET_PDEATHSIG, signal.SIGTERM)
        if _readable(self._server):
            os._exit(1)

    def _watch(self, command: int, wakeup: int, *, counting: bool) -> dict[str, object]:
        """Wait for the command, reaping orphans, until its end or that of whoever wanted it."""
        poller = select.poll()
        for fd in (wakeup, self._job, self._server):
            poller.register(fd, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poller.poll(_COUNT_EVERY_MS if counting else None)]
            if self._job in ready or self._server in ready:
                return {"status": signal.SIGKILL}
            if wakeup in ready:
                os.read(wakeup, 4096)
            status = _reap(command)
            if status is not None:
                return {"status": status}
            if counting and len(descendants(os.getpid())) > PROCESSES:
                return {"status": signal.SIGKILL, "note": f"ended: more than {PROCESSES} processes"}

    def _start(self, stdio: list[int]) -> int:
        """Start the command inside all walls, and answer its number.

        In the full tier the keeper goes behind the same walls itself, which spares a fork; as first process of its
        namespace, and one that nobody may look into, it is out of the command's reach all the same. In the reduced
        tier it must stay outside, to find and kill.
        """
        if self._full:
            program = self._go_inside()
            moves = [(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(stdio)]
            try:
                return os.posix_spawn(
                    program, self._plan.argv, self._plan.env, file_actions=moves, setsid=True, setsigdef=_HANDLED
                )
            except OSError as error:
                self._give_up({"exec": error.errno})
        command = os.fork()
        if command == 0:
            self._become(stdio)
        return command

    def _become(self, stdio: list[int]) -> NoReturn:
        try:
            signal.set_wakeup_fd(-1)
            for number in _HANDLED:
                signal.signal(number, signal.SIG_DFL)
            os.setsid()
            for target, fd in enumerate(stdio):
                os.dup2(fd, target)
            program = self._go_inside()
            try:
                os.execve(program, self._plan.argv, self._plan.env)
            except OSError as error:
                self._give_up({"exec": error.errno})
        except (OSError, Unsupported) as error:
            self._give_up({"setup": reason(error)})
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
            self._give_up({"cwd": error.errno})

    def _find_program(self) -> str:
        try:
            return find(self._plan.argv[0], self._plan.env["PATH"], ".")
        except OSError as error:
            self._give_up({"find": error.errno})

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
        return [
            *_rules(["/"], landlock.READ),
            *_rules([namespaces.TMP, *self._writable()], landlock.WRITE),
            *_rules(namespaces.DEVICES, landlock.DEVICE),
        ]

    def _reduced_rules(self) -> list[tuple[int, int]]:
        readable = [*SYSTEM, *namespaces.ETC, *_PROC_FACTS, *self._roots.read]
        workspace = landlock.WRITE if self._writable() else landlock.READ
        return [
            (self._workspace_fd, workspace),
            *_rules(readable, landlock.READ),
            *_rules([self._home, *self._writable()[1:]], landlock.WRITE),
            *_rules(namespaces.DEVICES, landlock.DEVICE),
        ]

    def _writable(self) -> list[str]:
        if self._plan.read_only or not self._roots.workspace_writable:
            return []
        return [self._roots.workspace, *self._roots.write]

    def _give_up(self, message: dict[str, object]) -> NoReturn:
        _tell(self._job, message)
        os._exit(1)


def _tell(job: int, message: dict[str, object]) -> None:
    """Tell the caller; one that is gone needs no answer."""
    with contextlib.suppress(OSError):
        os.write(job, json.dumps(message).encode())


def _rules(paths: list[str] | tuple[str, ...], rights: int) -> list[tuple[int, int]]:
    rules = []
    for path in paths:
        try:
            fd = os.open(path, HANDLE)
        except OSError:
            continue  # without a rule it stays closed
        rules.append((fd, rights if os.path.isdir(path) else landlock.for_file(rights)))
    return rules


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


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
