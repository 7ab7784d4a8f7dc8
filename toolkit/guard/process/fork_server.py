"""The helper process: a fork server with one thread that starts commands inside the sandbox.

::

    your program ── socket ── helper ── keeper (per command) ── command and all it starts

``ProcessGuard`` starts the helper once. For each command it sends a ``Plan`` and four descriptors; the helper starts
a keeper, which builds the walls, starts the command, reports how it ended and goes. The end of any of the four ends
everything to its right. Where bubblewrap builds the full tier, it stands between the helper and the keeper.

Promise: once the job's socket is closed, nothing the command started is alive. In the full tier the keeper is the
first process of a pid namespace, so the kernel itself keeps that promise, also when keeper or helper are killed.
Limit: in the reduced tier the keeper finds and kills descendants, and the helper does when the keeper was killed; when
both are killed at once, they are left behind.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
from typing import Final, NoReturn, Protocol

from toolkit.guard.fs.resolve import HANDLE, pick
from toolkit.guard.process.kernel import landlock, namespaces, seccomp
from toolkit.guard.process.kernel.bubblewrap import Bubblewrap
from toolkit.guard.process.kernel.syscall import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    Unsupported,
    clone,
    forbid_new_capabilities,
    machine,
    prctl,
    reason,
)
from toolkit.guard.process.messages import Plan, Roots, Setup, read_plan, read_setup
from toolkit.guard.process.process_tree import end_all
from toolkit.guard.process.supervisor import PROCESSES, Keeper, tell

_DESCRIPTORS: Final = 5  # the plan, input, output, errors, the job's socket


class _Carrier(Protocol):
    """Who builds the walls of the commands of one helper."""

    def start(self, plan: Plan, stdio: list[int], job: int, foreign: list[int]) -> int:
        """Start a keeper, and answer its number; ``foreign`` are descriptors that are not its business."""

    def ended(self, pid: int, job: int, killed: bool) -> None:
        """A keeper is gone; come back when all of its command is."""


def main(control_fd: int, workspace_fd: int) -> NoReturn:
    """Serve until the other end of the socket, or the process that started this one, is gone."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's handler would let a command interrupt its keeper
    for fd in (control_fd, workspace_fd):
        os.set_inheritable(fd, False)
    parent = os.pidfd_open(os.getppid())
    control = socket.socket(fileno=control_fd)
    try:
        carrier = _carrier(read_setup(control.recv(1 << 16)), workspace_fd)
    except (OSError, Unsupported) as error:
        control.send(reason(error).encode())
        os._exit(1)
    control.send(b"ready")
    _Server(control, carrier).serve(parent)
    os._exit(0)


def _carrier(setup: Setup, workspace_fd: int) -> _Carrier:
    landlock.abi()  # no tier without it
    with contextlib.suppress(OSError):  # no wall, only a wish: where memory runs out, commands go first
        _write("/proc/self/oom_score_adj", "1000")
    prctl("dumpable", PR_SET_DUMPABLE, 0)  # no command looks into this process, whatever its uid
    server = os.pidfd_open(os.getpid())
    if setup.bubblewrap:
        return Bubblewrap(setup, workspace_fd, server)
    return _Namespaces(setup, workspace_fd, server) if setup.full else _Forks(setup, workspace_fd, server)


class _Server:
    def __init__(self, control: socket.socket, carrier: _Carrier) -> None:
        self._control = control
        self._carrier = carrier
        self._jobs: dict[int, tuple[int, int]] = {}  # handle of a keeper -> its number, the socket of its job
        self._poller = select.poll()

    def serve(self, parent: int) -> None:
        self._poller.register(parent, select.POLLIN)
        self._poller.register(self._control, select.POLLIN)
        while True:
            for fd, _ in self._poller.poll():
                if fd in self._jobs:
                    self._conclude(fd)
                elif fd == parent or not self._accept():
                    return

    def _accept(self) -> bool:
        """Start the keeper of the next command; False when nobody will send one any more."""
        size = socket.CMSG_SPACE(_DESCRIPTORS * 4)
        message, ancillary, _, _ = self._control.recvmsg(1, size, socket.MSG_CMSG_CLOEXEC)
        if not message:
            return False
        text, stdin, stdout, stderr, job = memoryview(ancillary[0][2]).cast("i").tolist()
        with open(text, "rb") as file:
            plan = read_plan(file.read())
        foreign = [self._control.fileno(), *(socket for _, socket in self._jobs.values())]
        try:
            pid = self._carrier.start(plan, [stdin, stdout, stderr], job, foreign)
        except (OSError, Unsupported) as error:  # no room for another process, say; the others go on
            tell(job, "setup", text=reason(error))
            os.close(job)
        else:
            keeper = os.pidfd_open(pid)
            self._jobs[keeper] = (pid, job)
            self._poller.register(keeper, select.POLLIN)
        for fd in (stdin, stdout, stderr):
            os.close(fd)
        return True

    def _conclude(self, keeper: int) -> None:
        pid, job = self._jobs.pop(keeper)
        end = os.waitid(os.P_PIDFD, keeper, os.WEXITED)  # and with it, in a pid namespace, all the others
        self._poller.unregister(keeper)
        os.close(keeper)
        self._carrier.ended(pid, job, killed=end is not None and end.si_code != os.CLD_EXITED)
        os.close(job)


class _Forks:
    """The reduced tier: keepers are copies of this process."""

    def __init__(self, setup: Setup, workspace_fd: int, server: int) -> None:
        self._setup = setup
        self._workspace_fd = workspace_fd
        self._server = server
        self._handles = self._prepare()
        self._keepers: set[int] = set()
        _prepare_for_forks()

    def _prepare(self) -> dict[str, int]:
        forbid_new_capabilities()
        prctl("subreaper", PR_SET_CHILD_SUBREAPER, 1)
        return _hold(self._setup.roots)

    def start(self, plan: Plan, stdio: list[int], job: int, foreign: list[int]) -> int:
        pid = self._fork(plan)
        if pid == 0:
            for fd in foreign:
                os.close(fd)
            keeper = Keeper(self._setup, plan, self._workspace_fd, job, self._server, self._handles)
            keeper.run(stdio, lambda: self._make_private(plan))
        self._keepers.add(pid)
        return pid

    def ended(self, pid: int, job: int, killed: bool) -> None:
        """A keeper has ended its command, unless somebody killed it: then what it leaves comes to us."""
        self._keepers.remove(pid)
        if killed:
            end_all(spare=self._keepers)

    def _fork(self, plan: Plan) -> int:
        return os.fork()

    def _make_private(self, plan: Plan) -> bool:
        return False


class _Namespaces(_Forks):
    """The full tier, built by ourselves: keepers are copies of this process in new namespaces."""

    def _prepare(self) -> dict[str, int]:
        namespaces.enter(self._setup.roots, self._workspace_fd)
        return {}

    def _fork(self, plan: Plan) -> int:
        return clone((namespaces.CHILD if plan.network else namespaces.CHILD_OFFLINE) | signal.SIGCHLD)

    def _make_private(self, plan: Plan) -> bool:
        return namespaces.make_private(self._setup.roots, read_only=plan.read_only, processes=PROCESSES)


def _prepare_for_forks() -> None:
    """Do once what every child would do again; and keep the collector from copying pages by touching them."""
    for network in (False, True):
        seccomp.program(machine(), network=network)
    pick("auto")
    gc.disable()
    gc.freeze()


def _hold(roots: Roots) -> dict[str, int]:
    """A handle of each root by its path: from here on it is the same directory, whatever its name leads to."""
    handles = {path: os.open(path, HANDLE) for path in (*roots.read, *roots.write)}
    for path, handle in handles.items():
        roots.check(path, os.fstat(handle))
    return handles


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
