"""The supervisor: the process that stays with one command. It builds the sandbox, starts the command, waits for its end
and reports how it ended.

It also sees the end of the caller and of the fork server, and ends the command with them. In the full tier it is the
first process of a pid namespace and restricts itself as it does the command, which saves a fork; no process may look
into it, so the command cannot reach it either. In the reduced tier it stays outside the sandbox, to find and kill. A fork of
the fork server runs this module, or ``kernel/bubblewrap_main.py`` inside bubblewrap.
"""

from __future__ import annotations

import os
import resource
import select
import signal
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NoReturn

from toolkit.guard.files.resolve import HANDLE, open_beneath, pick
from toolkit.guard.process.fork_server import host_view
from toolkit.guard.process.fork_server.limit_watch import LimitWatch, most_tasks
from toolkit.guard.process.fork_server.process_tree import find_descendants, kill_descendants, others_in_namespace
from toolkit.guard.process.kernel import landlock, proxy_listener, seccomp
from toolkit.guard.process.kernel.syscall import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    Unsupported,
    drop_capabilities,
    forbid_new_privileges,
    mark_descriptors_for_closing,
    number_of,
    prctl,
    reason,
)
from toolkit.guard.process.program import SYSTEM, find

if TYPE_CHECKING:
    from toolkit.guard.process.messages import CommandRequest, Setup

# Of each process; generous, they stop runaway programs, not hard work. What all may use together: ``limit_watch``.
_RESOURCE_LIMITS: Final = (
    # With 0 the kernel still passes a crash to the host's handler, as root; with 1 it does not.
    (resource.RLIMIT_CORE, 1),
    (resource.RLIMIT_NOFILE, 4096),
)
_CPU_SECONDS: Final = 6 * 3600

# Signals that Python or this module handles; they are reset, or a program would inherit that.
_HANDLED_SIGNALS: Final = (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM)

# What commands of the reduced tier may read of the host's /proc: nothing that belongs to a process.
_PROC_FACTS: Final = tuple(
    f"/proc/{name}" for name in ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version")
)


class Supervisor:
    """The supervisor of one command, in a process of its own.

    ``client`` is the command's socket to the caller, ``server`` a pidfd of the fork server, ``handles`` are descriptors
    of the roots, by path.
    """

    def __init__(
        self,
        setup: Setup,
        request: CommandRequest,
        workspace_fd: int,
        client: int,
        server: int,
        handles: Mapping[str, int],
    ) -> None:
        self._roots = setup.roots
        self._limits = setup.limits
        self._request = request
        self._client = client
        self._server = server
        self._full = setup.is_full
        self._workspace_fd = workspace_fd
        self._handles = handles
        self._signals_scoped = False
        self._command = 0
        # Whether nothing else is alive in this pid namespace.
        self._is_alone = False

    def run(self, stdio: list[int], prepare_mounts: Callable[[], None]) -> NoReturn:
        """Run the command to its end."""
        try:
            self._end_with_fork_server()
            prepare_mounts()
            if self._request.network == "guarded":
                self._hand_out_listener()
            wakeup, wakeup_sink = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            signal.signal(signal.SIGCHLD, _do_nothing)
            signal.set_wakeup_fd(wakeup_sink)
            places = self._open_places()
            self._command = self._start_command(stdio)
            for fd in stdio:
                os.close(fd)
            drop_capabilities()
            end = self._wait_for_end(wakeup, self._watch_limits(places))
            if end is not None:  # else the caller learns from the end of the socket that the sandbox has ended
                # Whoever closes a server waits until nothing is left of it, not even this process.
                goes_on = self._is_alone and not self._request.until_closed
                send_report(self._client, "ended" if goes_on else "status", *end)
        except (OSError, Unsupported) as error:
            send_report(self._client, "watch" if self._command else "setup", number_of(error), reason(error))
        finally:
            if not self._full:
                kill_descendants(signals_scoped=self._signals_scoped, group=self._command)
            os._exit(0)

    def _end_with_fork_server(self) -> None:
        """Have the kernel signal this process when the fork server ends; exit if it has ended already."""
        if self._full:
            prctl("pdeathsig", PR_SET_PDEATHSIG, signal.SIGKILL)
        else:
            prctl("subreaper", PR_SET_CHILD_SUBREAPER, 1)
            signal.signal(signal.SIGTERM, _do_nothing)
            prctl("pdeathsig", PR_SET_PDEATHSIG, signal.SIGTERM)
            forbid_new_privileges()
            self._signals_scoped = landlock.scope_signals()
        if _is_readable(self._server):
            os._exit(1)

    def _hand_out_listener(self) -> None:
        if not self._full:  # the only loopback here is the host's
            raise Unsupported("the guarded network needs the full tier")
        proxy_listener.hand_out_listener(self._client)

    def _wait_for_end(self, wakeup: int, watch: LimitWatch) -> tuple[int, str] | None:
        """Wait until the command, the caller or the fork server ends, reaping orphans, or until a limit is exceeded.

        Returns a status and the name of that limit; None if the fork server has ended.
        """
        poller = select.poll()
        for fd in (wakeup, self._client, self._server):
            poller.register(fd, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poller.poll(watch.pause())]
            if self._client in ready:
                return signal.SIGKILL, ""
            if self._server in ready:
                return None
            if wakeup in ready:
                os.read(wakeup, 4096)
            status, has_children = _reap(self._command)
            if status is not None:
                # Whatever lost its parent became a child of the first process.
                self._is_alone = self._full and os.getpid() == 1 and not has_children
                self._command = 0  # its pid may be reused from now on
                return status, ""
            if ended_by := watch.exceeded():
                return signal.SIGKILL, ended_by

    def _open_places(self) -> list[int]:
        """The roots that the command may write: it may move them, or lock the way to them."""
        if self._full:
            return [os.open(path, HANDLE | os.O_DIRECTORY) for path in (self._roots.workspace, *self._roots.write)]
        home = os.open(self._request.home, HANDLE | os.O_DIRECTORY)
        return [self._workspace_fd, home, *(self._handles[path] for path in self._roots.write)]

    def _watch_limits(self, places: list[int]) -> LimitWatch:
        own = os.getpid()
        return LimitWatch(
            self._limits,
            (lambda most: others_in_namespace()) if self._full else (lambda most: find_descendants(own, most)),
            places,
            host_view.TMP if self._full else "",
            counts_writes=self._request.counts_writes,
        )

    def _start_command(self, stdio: list[int]) -> int:
        """Start the command inside the sandbox, and return its pid."""
        if self._full:
            program = self._enter_sandbox()
            moves = [(os.POSIX_SPAWN_DUP2, fd, target) for target, fd in enumerate(stdio)]
            try:
                return os.posix_spawn(
                    program,
                    self._request.argv,
                    self._request.env,
                    file_actions=moves,
                    setsid=True,
                    setsigdef=_HANDLED_SIGNALS,
                )
            except OSError as error:
                self._fail("exec", error)
        command = os.fork()
        if command == 0:
            self._exec_command(stdio)
        return command

    def _exec_command(self, stdio: list[int]) -> NoReturn:
        try:
            signal.set_wakeup_fd(-1)
            for number in _HANDLED_SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            os.setsid()
            for target, fd in enumerate(stdio):
                os.dup2(fd, target)
            program = self._enter_sandbox()
            try:
                os.execve(program, self._request.argv, self._request.env)
            except OSError as error:
                self._fail("exec", error)
        except (OSError, Unsupported) as error:
            self._fail("setup", error)
        finally:
            os._exit(1)

    def _enter_sandbox(self) -> str:
        """Restrict this process, and return the path of the program: nothing can be looked up after that."""
        self._enter_cwd()
        program = self._find_program()
        self._restrict()
        return program

    def _enter_cwd(self) -> None:
        if self._full:  # the handle opened outside belongs to the mounts outside
            self._workspace_fd = os.open(self._roots.workspace, HANDLE | os.O_DIRECTORY)
        flags = HANDLE | os.O_DIRECTORY
        try:
            os.fchdir(open_beneath(self._workspace_fd, self._request.cwd, flags, pick("auto")))
        except OSError as error:
            self._fail("cwd", error)

    def _find_program(self) -> str:
        try:
            return find(self._request.argv[0], self._request.env["PATH"], ".")
        except OSError as error:
            self._fail("find", error)

    def _restrict(self) -> None:
        rules = self._full_rules() if self._full else self._reduced_rules()
        mark_descriptors_for_closing(3)
        for kind, limit in _RESOURCE_LIMITS:
            _set_limit(kind, limit)
        _set_limit(resource.RLIMIT_FSIZE, self._limits.file_size)
        if not self._request.until_closed:
            _set_limit(resource.RLIMIT_CPU, _CPU_SECONDS)
        if self._full:
            # Counted per user namespace, so only this command's own processes count; uid 0 is never limited by it.
            _set_limit(resource.RLIMIT_NPROC, most_tasks(self._limits.processes))
        drop_capabilities()
        forbid_new_privileges()
        # In the full tier a command has a network of its own, unless it was given the host's.
        sockets = self._full or self._request.network == "host"
        landlock.restrict(rules, network=sockets)
        seccomp.install(network=sockets, full=self._full)

    def _full_rules(self) -> list[tuple[int, int]]:
        """Everything that is mounted may be read: what must not be read is not mounted."""
        writable = [self._roots.workspace, *self._roots.write] if self._may_write else []
        return [
            *_open_rules(["/"], landlock.READ),
            *_open_rules([host_view.TMP, *writable], landlock.WRITE),
            *_open_rules(host_view.DEVICES, landlock.DEVICE),
        ]

    def _reduced_rules(self) -> list[tuple[int, int]]:
        """By handle where a command could have replaced what the name stands for."""
        write = landlock.WRITE if self._may_write else landlock.READ
        return [
            (self._workspace_fd, write),
            *((self._handles[path], landlock.READ) for path in self._roots.read),
            *((self._handles[path], write) for path in self._roots.write),
            *_open_rules([*SYSTEM, *host_view.ETC, *_PROC_FACTS], landlock.READ),
            *_open_rules([self._request.home], landlock.WRITE),
            *_open_rules(host_view.DEVICES, landlock.DEVICE),
        ]

    @property
    def _may_write(self) -> bool:
        return self._roots.workspace_writable and not self._request.read_only

    def _fail(self, step: str, error: OSError | Unsupported) -> NoReturn:
        """Report the step that failed, and exit."""
        send_report(self._client, step, number_of(error), reason(error))
        os._exit(1)


def send_report(client: int, kind: str, number: int = 0, text: str = "") -> None:
    """Report to the caller: ``status`` with a wait status and the limit that ended it, ``ended`` with the same if also
    everything that the command started is gone, or the step that failed with its errno. A caller that is gone is ignored."""
    try:
        os.write(client, f"{kind} {number} {text}".encode())
    except OSError:
        return


def _open_rules(paths: list[str] | tuple[str, ...], rights: int) -> list[tuple[int, int]]:
    rules = []
    for path in paths:
        try:
            fd = os.open(path, HANDLE)
        except OSError:
            continue  # what has no rule is denied
        rules.append((fd, rights if os.path.isdir(path) else landlock.file_rights(rights)))
    return rules


def _set_limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _reap(command: int) -> tuple[int | None, bool]:
    """Reap every child that has ended; returns the command's status if it is among them, and whether others are left."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found, False
        if pid == 0:
            return found, True
        if pid == command:
            found = status


def _is_readable(fd: int) -> bool:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(0))


def _do_nothing(number: int, frame: object) -> None:
    """A handler that lets the signal interrupt a wait, instead of killing the process or being ignored."""
