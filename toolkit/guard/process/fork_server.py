"""The fork server: a process with one thread that starts commands inside the sandbox. This module runs in it.

::

    agent's process ── socket ── fork server ── supervisor (per command) ── command and all it starts

``ProcessGuard`` starts the fork server once. For each command it sends a ``CommandRequest`` and four descriptors; the
fork server starts a supervisor, which builds the sandbox, starts the command, reports how it ended and exits. The end
of any of the four ends everything to its right. Bubblewrap, if used, runs between the fork server and the supervisor.

Promise: once the command's socket is closed, or ``ended`` is reported, nothing the command started is alive. In the full
tier the kernel keeps that promise, even if the supervisor or the fork server is killed. Limit: in the reduced tier the
supervisor kills descendants, or the fork server if the supervisor was killed; when both are killed, descendants survive.
"""

from __future__ import annotations

import array
import contextlib
import gc
import os
import resource
import select
import signal
import socket
from collections.abc import Callable
from typing import Final, NoReturn

from toolkit.guard.files.resolve import HANDLE, pick
from toolkit.guard.process import namespaces
from toolkit.guard.process.bubblewrap import BubblewrapStarter
from toolkit.guard.process.kernel import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    PR_SET_PDEATHSIG,
    Unsupported,
    clone,
    filter_program,
    forbid_new_capabilities,
    landlock_abi,
    machine,
    number_of,
    prctl,
    reason,
)
from toolkit.guard.process.messages import CommandRequest, Roots, Setup, decode_setup, read_request
from toolkit.guard.process.supervisor import Supervisor, kill_descendants, most_tasks, send_report

_DESCRIPTORS: Final = 5  # as they come to the fork server, see ``_ForkStarter.start``
_ROOM: Final = 16  # descriptors; more than what a command needs here, while it runs or when it ends


def main(control_fd: int, workspace_fd: int) -> NoReturn:
    """Serve until the other end of the socket, or the process that started this one, is gone."""
    _forget_signals_of_parent()
    _allow_most_open_files()
    for fd in (control_fd, workspace_fd):
        os.set_inheritable(fd, False)
    parent = os.pidfd_open(os.getppid())
    control = socket.socket(fileno=control_fd)
    try:
        starter = _make_starter(decode_setup(control.recv(1 << 16)), workspace_fd)
    except (OSError, Unsupported) as error:
        control.send(f"{number_of(error)} {reason(error)}".encode())
        os._exit(1)
    control.send(b"ready")
    _Server(control, starter).serve(parent)
    os._exit(0)


def _forget_signals_of_parent() -> None:
    """Signals that the program around us blocks or ignores would stay so here, and in every command."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's handler would let a command interrupt its supervisor


def _allow_most_open_files() -> None:
    """How many files the program around us may open at the moment says nothing about this process."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _make_starter(setup: Setup, workspace_fd: int) -> _ForkStarter | BubblewrapStarter:
    landlock_abi()  # no tier without it
    with contextlib.suppress(OSError):  # protects nothing: where memory runs out, commands are to be killed first
        _write("/proc/self/oom_score_adj", "1000")
    prctl("dumpable", PR_SET_DUMPABLE, 0)  # no command can look into this process, whatever its uid
    server = os.pidfd_open(os.getpid())
    if setup.bubblewrap:
        return BubblewrapStarter(setup, workspace_fd, server)
    return (
        _NamespaceStarter(setup, workspace_fd, server) if setup.is_full else _ForkStarter(setup, workspace_fd, server)
    )


class _Server:
    def __init__(self, control: socket.socket, starter: _ForkStarter | BubblewrapStarter) -> None:
        self._control = control
        self._starter = starter
        self._running: dict[int, tuple[int, int]] = {}  # pidfd of a supervisor -> its pid, its command's socket
        self._poller = select.poll()

    def serve(self, parent: int) -> None:
        self._poller.register(parent, select.POLLIN)
        self._poller.register(self._control, select.POLLIN)
        while True:
            for fd, _ in self._poller.poll():
                if fd in self._running:
                    self._finish_command(fd)
                elif fd == parent or not self._accept_command():
                    return

    def _accept_command(self) -> bool:
        """Start the supervisor of the next command; False when the client has closed its socket."""
        size = socket.CMSG_SPACE(_DESCRIPTORS * 4)
        message, ancillary, _, _ = self._control.recvmsg(1, size, socket.MSG_CMSG_CLOEXEC)
        if not message:
            return False
        descriptors = [fd for _, _, data in ancillary for fd in memoryview(data).cast("i").tolist()]
        if len(descriptors) == _DESCRIPTORS:
            self._start_command(descriptors)
        else:  # the kernel drops those that this process has no room for; the caller sees that its command is gone
            _close_all(descriptors)
        return True

    def _start_command(self, descriptors: list[int]) -> None:
        client = descriptors[-1]
        try:
            _ensure_room()
            pid = self._starter.start(read_request(descriptors[0]), descriptors, self._foreign())
        except (OSError, Unsupported) as error:  # for example too many processes; the other commands go on
            send_report(client, "setup", number_of(error), reason(error))
            os.close(client)
        else:
            supervisor = os.pidfd_open(pid)
            self._running[supervisor] = (pid, client)
            self._poller.register(supervisor, select.POLLIN)
        _close_all(descriptors[:-1])

    def _foreign(self) -> list[int]:
        return [self._control.fileno(), *(client for _, client in self._running.values())]

    def _finish_command(self, supervisor: int) -> None:
        pid, client = self._running.pop(supervisor)
        end = os.waitid(os.P_PIDFD, supervisor, os.WEXITED)  # and with it, in a pid namespace, all the others
        self._poller.unregister(supervisor)
        os.close(supervisor)
        self._starter.clean_up(pid, client, killed=end is not None and end.si_code != os.CLD_EXITED)
        os.close(client)
        # Not earlier: it would take time from the command, and a server that runs until it is closed is the only one.
        self._starter.prepare_next(self._foreign())


class _ForkStarter:
    """The reduced tier: supervisors are forks of this process. The other starters have the same methods."""

    def __init__(self, setup: Setup, workspace_fd: int, server: int) -> None:
        self._setup = setup
        self._workspace_fd = workspace_fd
        self._server = server
        self._handles = self._prepare()
        self._supervisors: set[int] = set()
        _prepare_for_forks(full=setup.is_full)

    def _prepare(self) -> dict[str, int]:
        forbid_new_capabilities()
        prctl("subreaper", PR_SET_CHILD_SUBREAPER, 1)
        return _open_roots(self._setup.roots)

    def start(self, request: CommandRequest, descriptors: list[int], foreign: list[int]) -> int:
        """Start a supervisor and return its pid. ``descriptors`` are those of the message: the request, stdin, stdout,
        stderr, the command's socket; ``foreign`` are others that the supervisor must not keep."""
        pid = self._fork(request)
        if pid == 0:
            for fd in foreign:
                os.close(fd)
            self._supervise(request, descriptors, lambda: self._prepare_mounts(request))
        self._supervisors.add(pid)
        return pid

    def _supervise(self, request: CommandRequest, descriptors: list[int], prepare: Callable[[], None]) -> NoReturn:
        _, *stdio, client = descriptors
        supervisor = Supervisor(self._setup, request, self._workspace_fd, client, self._server, self._handles)
        supervisor.run(stdio, prepare)

    def prepare_next(self, foreign: list[int]) -> None:
        """Do what can be done before the next request comes: nothing, because a fork is quick."""

    def clean_up(self, pid: int, client: int, killed: bool) -> None:
        """After a supervisor has ended: return when everything of its command is gone. If it was killed, that is ours now."""
        self._supervisors.remove(pid)
        if killed:
            kill_descendants(spare=self._supervisors)

    def _fork(self, request: CommandRequest) -> int:
        return os.fork()

    def _prepare_mounts(self, request: CommandRequest) -> None:
        """There are none in this tier."""


class _NamespaceStarter(_ForkStarter):
    """The full tier, built by ourselves: supervisors are clones of this process in new namespaces.

    Making these takes half the time of a short command, so a spare one is made when a command has ended, never while one
    runs. It holds nothing of any command.
    """

    def __init__(self, setup: Setup, workspace_fd: int, server: int) -> None:
        super().__init__(setup, workspace_fd, server)
        self._spare: Spare | None = None

    def _prepare(self) -> dict[str, int]:
        namespaces.enter(self._setup.roots, self._workspace_fd)
        return {}

    def start(self, request: CommandRequest, descriptors: list[int], foreign: list[int]) -> int:
        spare = self._spare
        if spare is None or request.network == "host":  # the spare one has a network of its own
            return super().start(request, descriptors, foreign)
        self._spare = None
        if spare.hand_over(descriptors):
            return spare.pid
        self._supervisors.remove(spare.pid)  # it was killed
        return super().start(request, descriptors, foreign)

    def prepare_next(self, foreign: list[int]) -> None:
        if self._spare is not None:
            return
        try:
            _ensure_room()
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        except OSError:  # too many open files, perhaps; then the next command does without
            return
        try:
            pid = clone(namespaces.CHILD_OFFLINE | signal.SIGCHLD)
        except OSError:  # too many processes, perhaps
            ours.close()
        else:
            if pid == 0:
                for fd in (*foreign, ours.detach()):
                    os.close(fd)
                self._wait_as_spare(theirs)
            self._supervisors.add(pid)
            self._spare = Spare(pid, ours)
        theirs.close()

    def _wait_as_spare(self, channel: socket.socket) -> NoReturn:
        """In a new process: prepare all that no request is needed for, wait for one, and supervise its command."""
        failed: OSError | Unsupported | None = None
        try:
            prctl("pdeathsig", PR_SET_PDEATHSIG, signal.SIGKILL)
            self._make_own_places(offline=True)
        except (OSError, Unsupported) as error:
            failed = error
        descriptors = take_request(channel)
        request = read_request(descriptors[0])

        def prepare() -> None:
            if failed is not None:
                raise failed
            namespaces.protect_places(self._setup.roots, request)

        self._supervise(request, descriptors, prepare)

    def _fork(self, request: CommandRequest) -> int:
        return clone((namespaces.CHILD if request.network == "host" else namespaces.CHILD_OFFLINE) | signal.SIGCHLD)

    def _prepare_mounts(self, request: CommandRequest) -> None:
        self._make_own_places(offline=request.network != "host")
        namespaces.protect_places(self._setup.roots, request)

    def _make_own_places(self, *, offline: bool) -> None:
        if offline:
            namespaces.bring_up_loopback()
        namespaces.mount_private(self._setup.roots, tasks=most_tasks(self._setup.limits.processes))


class Spare:
    """A spare supervisor: a process in namespaces of its own that waits for the command it will run.

    It has nothing of a command before it, and ends with the fork server: the kernel kills it, and its socket ends.
    """

    def __init__(self, pid: int, channel: socket.socket) -> None:
        self.pid = pid
        self._channel = channel

    def hand_over(self, descriptors: list[int]) -> bool:
        """Send it the descriptors of a command, once; False if it was killed. Then it is gone when this returns."""
        with self._channel:
            try:
                self._channel.sendmsg([b"+"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))])
            except OSError:
                self._channel.close()  # whatever else was wrong, it ends by this
                os.waitpid(self.pid, 0)
                return False
        return True


def take_request(channel: socket.socket) -> list[int]:
    """In the spare process: wait for the descriptors of a command. Exits if the fork server is gone."""
    with channel:
        message, ancillary, _, _ = channel.recvmsg(1, socket.CMSG_SPACE(_DESCRIPTORS * 4), socket.MSG_CMSG_CLOEXEC)
    if not message or not ancillary:
        os._exit(1)
    return memoryview(ancillary[0][2]).cast("i").tolist()


def _prepare_for_forks(*, full: bool) -> None:
    """Do once what every child would do again; and keep the collector from copying pages by touching them."""
    for network in (False, True):
        filter_program(machine(), network=network, full=full)
    pick("auto")
    gc.disable()
    gc.freeze()


def _open_roots(roots: Roots) -> dict[str, int]:
    """A handle of each root by its path: from here on it is the same directory, whatever its name leads to."""
    handles = {path: os.open(path, HANDLE) for path in (*roots.read, *roots.write)}
    for path, handle in handles.items():
        roots.refuse_replaced(path, os.fstat(handle))
    return handles


def _ensure_room() -> None:
    """Raises ``OSError`` if few descriptors are left: the end of a command is seen, and cleaned up after, by others."""
    taken: list[int] = []
    try:
        while len(taken) < _ROOM:
            taken.append(os.dup(0))
    finally:
        _close_all(taken)


def _close_all(descriptors: list[int]) -> None:
    for fd in descriptors:
        os.close(fd)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
