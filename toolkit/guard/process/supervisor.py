"""The supervisor: the process that stays with one command. It builds the sandbox, starts the command, waits for its end
and reports how it ended.

It also notices the end of the caller and of the fork server, and ends the command with them. In the full tier it is the
first process of a pid namespace and restricts itself as it does the command, which saves a fork; no process may look
into it. In the reduced tier it stays outside the sandbox, to find and kill. A fork of the fork server runs this module, or
``bubblewrap_main.py`` inside bubblewrap: there it is loaded for every command, with a stand-in for ``typing``, so it
imports little.
"""

from __future__ import annotations

import functools
import os
import resource
import select
import signal
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NoReturn

from toolkit.guard.files.resolve import HANDLE, open_beneath, pick
from toolkit.guard.process.kernel import (
    DEVICE,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    READ,
    WRITE,
    Unsupported,
    drop_capabilities,
    file_rights,
    forbid_new_privileges,
    hand_out_listener,
    install_filter,
    mark_descriptors_for_closing,
    number_of,
    prctl,
    reason,
    restrict,
    scope_signals,
    syscall,
)
from toolkit.guard.process.program import SYSTEM, find

if TYPE_CHECKING:
    from toolkit.guard.permission import CommandLimits, EndedBy
    from toolkit.guard.process.messages import CommandRequest, Setup

# -- what a command of the full tier sees ------------------------------------------------------------------------------

# Whether bubblewrap or our own code builds the full tier. Besides these tables, ``SYSTEM`` (``program.py``) lists the
# directories of programs. What is in neither does not exist for a command.

# What programs look up in /etc; the rest (shadow, keys, ...) stays hidden.
_IN_ETC: Final = """
    alternatives bash.bashrc ca-certificates ca-certificates.conf debian_version fonts gai.conf gitattributes
    gitconfig group host.conf hosts inputrc java ld.so.cache ld.so.conf ld.so.conf.d locale.alias locale.conf
    localtime lsb-release magic mime.types nsswitch.conf os-release passwd perl pki/ca-trust pki/tls/certs profile
    protocols resolv.conf services ssl/certs ssl/openssl.cnf terminfo timezone xdg
"""
# Where Debian keeps what every Java program reads; passwords for remote management are next to it.
_OF_JAVA: Final = [
    f"java-{version}-openjdk/{name}"
    for version in (11, 17, 21, 25)
    for name in ("logging.properties", "net.properties", "security")
]
ETC: Final = tuple(f"/etc/{name}" for name in (*_IN_ETC.split(), *_OF_JAVA))
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
DEV_LINKS: Final = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "shm": "/tmp/.shm",
}

TMP: Final = "/tmp"
HOME: Final = "/tmp/home"
TMP_BYTES: Final = 1 << 30


def fill_tmp(gitconfig: str) -> None:
    """Make the directories that commands expect in a new ``/tmp``, and write the settings of git in HOME."""
    for folder in (HOME, f"{TMP}/.shm"):
        os.makedirs(folder, 0o700, exist_ok=True)
    write_gitconfig(HOME, gitconfig)


def write_gitconfig(home: str, text: str) -> None:
    """Write ``.gitconfig``, unless there is nothing to write."""
    if text:
        with open(f"{home}/.gitconfig", "x", errors="surrogateescape") as file:
            file.write(text)


# -- the supervisor ----------------------------------------------------------------------------------------------------

# Of each process; generous, they stop runaway programs, not hard work. What all may use together: ``LimitWatch``.
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
            self._signals_scoped = scope_signals()
        if _is_readable(self._server):
            os._exit(1)

    def _hand_out_listener(self) -> None:
        if not self._full:  # the only loopback here is the host's
            raise Unsupported("the guarded network needs the full tier")
        hand_out_listener(self._client)

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
        return LimitWatch(
            self._limits,
            others_in_namespace if self._full else functools.partial(descendants, os.getpid()),
            places,
            TMP if self._full else "",
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
        restrict(rules, network=sockets)
        install_filter(network=sockets, full=self._full)

    def _full_rules(self) -> list[tuple[int, int]]:
        """Everything that is mounted may be read: what must not be read is not mounted."""
        writable = [self._roots.workspace, *self._roots.write] if self._may_write else []
        return [
            *_open_rules(["/"], READ),
            *_open_rules([TMP, *writable], WRITE),
            *_open_rules(DEVICES, DEVICE),
        ]

    def _reduced_rules(self) -> list[tuple[int, int]]:
        """By handle where a command could have replaced what the name stands for."""
        write = WRITE if self._may_write else READ
        return [
            (self._workspace_fd, write),
            *((self._handles[path], READ) for path in self._roots.read),
            *((self._handles[path], write) for path in self._roots.write),
            *_open_rules([*SYSTEM, *ETC, *_PROC_FACTS], READ),
            *_open_rules([self._request.home], WRITE),
            *_open_rules(DEVICES, DEVICE),
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
        rules.append((fd, rights if os.path.isdir(path) else file_rights(rights)))
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


# -- limits ------------------------------------------------------------------------------------------------------------

_FIRST_SECONDS: Final = 0.02  # most commands are shorter, and pay nothing
_EVERY_SECONDS: Final = 0.05
_AT_LEAST_EVERY_SECONDS: Final = 1.0
_SHARE_OF_TIME: Final = 10  # looking takes a tenth of the time at most, between these two
_BLOCK: Final = 512  # of ru_oublock
_MOST_TASKS: Final = 1 << 22  # the kernel numbers no more


def most_tasks(processes: int) -> int:
    """How many tasks a command may have that may have so many processes: threads count, too."""
    return min(max(1024, 16 * processes), _MOST_TASKS)


class LimitWatch:
    """Adds up what one command and everything it started use, and names the limit they exceed together.

    ``find_processes`` returns its processes. ``places`` are descriptors of the roots it may write; ``tmp`` is its own file
    system in memory, if it has one.

    Promise: processes, memory and bytes written to disk are added up about every 50 ms (less often where that takes
    long), however the processes came to be. Memory is anonymous memory and page tables, shared memory, files without a
    name, and in the full tier the command's own ``/tmp``; a shared page counts once. Clean copies of files, which the
    kernel can drop, do not count.

    Where the kernel does not tell what a process wrote, the loss of free space on the writable file systems counts
    instead, whoever caused it. Where it does not tell the size of unnamed files and shared memory (unreadable, or mapped
    but not open), the growth of the machine's shared memory counts.

    Limits: a command may exceed a limit briefly, between two looks. Shared memory may reach twice the limit if half of it
    has a name. Memory that only the kernel holds is not seen (pipes, sockets, descriptors in flight). Metadata does not
    count as written, nor does what is written to file systems without a disk (tmpfs, FUSE).
    """

    def __init__(
        self,
        limits: CommandLimits,
        find_processes: Callable[[], list[int]],
        places: Sequence[int],
        tmp: str,
        *,
        counts_writes: bool,
    ) -> None:
        self._limits = limits
        self._find_processes = find_processes
        self._tmp = tmp
        self._counts_writes = counts_writes
        self._places = places
        self._file_systems: dict[int, int] = {}
        self._free_before = self._shared_before = self._most_written = 0
        self._zombies: set[int] = set()
        self._all_writes_known = True
        self._next_look = time.monotonic() + _FIRST_SECONDS

    def pause(self) -> int:
        """Milliseconds until the next look."""
        return max(0, 1 + int((self._next_look - time.monotonic()) * 1000))

    def exceeded(self) -> EndedBy | None:
        """The limit that is exceeded; None also while it is not yet time for the next look."""
        if time.monotonic() < self._next_look:
            return None
        before = time.process_time()
        if not self._file_systems:
            self._note_start()
        found = self._look()
        took = time.process_time() - before
        self._next_look = time.monotonic() + min(max(_EVERY_SECONDS, _SHARE_OF_TIME * took), _AT_LEAST_EVERY_SECONDS)
        return found

    def _note_start(self) -> None:
        """Note how things are before the command has done much."""
        self._file_systems = {os.fstat(place).st_dev: place for place in self._places}
        self._free_before = self._free_bytes()
        self._shared_before = shared_memory_of_machine()

    def _look(self) -> EndedBy | None:
        pids = self._find_processes()
        if len(pids) > self._limits.processes:
            return "processes"
        processes = _read_all(pids)
        if sum(process.threads for process in processes) > most_tasks(self._limits.processes):
            return "processes"
        if self._memory_at_most(processes) > self._limits.memory and self._uses_too_much_memory(processes):
            return "memory"
        if self._counts_writes and self._written(processes) > self._limits.disk:
            return "disk"
        return None

    def _memory_at_most(self, processes: list[ProcessStatus]) -> int:
        """Cheap: what several processes share counts several times, and shared memory of others counts, too."""
        private = sum(process.private for process in processes)
        shared = sum(process.shared for process in processes)
        return private + max(shared + self._tmp_bytes(), self._shared_growth())

    def _uses_too_much_memory(self, processes: list[ProcessStatus]) -> bool:
        """Adds up twice: if processes end meanwhile, what they shared counts again for each one that is read after them."""
        if self._memory(processes) <= self._limits.memory:
            return False
        return self._memory(_read_all(self._find_processes())) > self._limits.memory

    def _memory(self, processes: list[ProcessStatus]) -> int:
        private = mapped = 0
        for process in processes:
            own, shared = shared_fairly(process)
            private += own
            mapped += shared
        named = self._tmp_bytes() + (system_v_memory() if self._tmp else 0)
        if private + max(mapped, named) > self._limits.memory:
            return private + max(mapped, named)
        files = memory_files(processes)
        return private + max(mapped, self._shared_growth() if files is None else named + files)

    def _tmp_bytes(self) -> int:
        return used_bytes(self._tmp) if self._tmp else 0

    def _shared_growth(self) -> int:
        return shared_memory_of_machine() - self._shared_before

    def _written(self, processes: list[ProcessStatus]) -> int:
        """Adds up twice: a process that is waited for meanwhile may count twice or not at all."""
        written = self._add_up_written(processes)
        if written > self._limits.disk:
            written = min(written, self._add_up_written(processes))
        elif written < self._most_written and self._add_up_written(processes) < self._most_written:
            self._all_writes_known = False  # nobody waited for a process that had written something
        self._most_written = max(self._most_written, written)
        self._note_unknown_writers(processes)
        return written if self._all_writes_known else max(written, self._free_before - self._free_bytes())

    def _add_up_written(self, processes: list[ProcessStatus]) -> int:
        total = resource.getrusage(resource.RUSAGE_CHILDREN).ru_oublock * _BLOCK
        for process in processes:
            written = 0 if process.is_zombie else written_bytes(process.pid)
            if written is None:
                self._all_writes_known = False
            else:
                total += written
        return total

    def _note_unknown_writers(self, processes: list[ProcessStatus]) -> None:
        """What a process wrote is not counted while it is a zombie, and is lost when its parent ignores it."""
        zombies = {process.pid for process in processes if process.is_zombie}
        if zombies & self._zombies or any(process.ignores_children for process in processes):
            self._all_writes_known = False
        self._zombies = zombies

    def _free_bytes(self) -> int:
        total = 0
        for place in self._file_systems.values():
            info = os.fstatvfs(place)
            total += info.f_bfree * info.f_frsize
        return total


def _read_all(pids: list[int]) -> list[ProcessStatus]:
    return [status for pid in pids if (status := read_status(pid)) is not None]


# -- what processes use ------------------------------------------------------------------------------------------------

# ``ProcessStatus`` is cheap, can be read for every process, and counts a shared page in each. ``shared_fairly`` walks the
# page tables and divides shared pages; a process that forbids that (it is not dumpable) counts as if it shared nothing.

_KCMP: Final = (312, 272)  # (x86_64, aarch64)
_KCMP_VM: Final = 1
_CHLD_BIT: Final = 1 << 16  # of SIGCHLD, in the masks of /proc
_MAX_READ: Final = 1 << 14
_MAX_DESCRIPTORS: Final = 20_000  # looked at once: more would take longer than a command may go unwatched


class ProcessStatus:
    """One process: its parent and its memory in bytes.

    ``private`` is what it would free if nobody shared it, with its page tables; ``shared`` is shared memory.
    ``ignores_children``: the kernel forgets what its children did when they end.
    """

    __slots__ = ("ignores_children", "is_zombie", "page_tables", "parent", "pid", "private", "shared", "threads")

    def __init__(self, pid: int, text: bytes) -> None:
        self.pid = pid
        self.parent = _number(text, b"\nPPid:")
        self.threads = _number(text, b"\nThreads:")
        self.is_zombie = b"\nState:\tZ" in text
        self.page_tables = _number(text, b"\nVmPTE:") << 10
        self.private = self.page_tables + ((_number(text, b"\nRssAnon:") + _number(text, b"\nVmSwap:")) << 10)
        self.shared = _number(text, b"\nRssShmem:") << 10
        self.ignores_children = bool(_number(text, b"\nSigIgn:", 16) & _CHLD_BIT)


def read_status(pid: int) -> ProcessStatus | None:
    """None if it has ended. Where only its first thread has ended, another one stands for it: the first shows nothing."""
    try:
        status = ProcessStatus(pid, _read(f"/proc/{pid}/status"))
        if status.is_zombie and status.threads > 1:
            for thread in map(int, os.listdir(f"/proc/{pid}/task")):
                status = ProcessStatus(thread, _read_or_nothing(f"/proc/{thread}/status"))
                if status.private and not status.is_zombie:
                    break
    except OSError:
        return None
    return status


def shared_fairly(process: ProcessStatus) -> tuple[int, int]:
    """Its part of private and of shared memory, where what several processes have is divided among them.

    Nothing for one that still runs in its parent's memory, as between ``vfork`` and ``exec``.
    """
    if _runs_in_memory_of(process.pid, process.parent):
        return 0, 0
    try:
        text = _read(f"/proc/{process.pid}/smaps_rollup")
    except OSError:  # it forbids that, or has ended since
        now = read_status(process.pid)
        return (now.private, now.shared) if now is not None else (0, 0)
    private = _number(text, b"\nPss_Anon:") + _number(text, b"\nSwapPss:")
    return (private << 10) + process.page_tables, _number(text, b"\nPss_Shmem:") << 10


def memory_files(processes: Collection[ProcessStatus]) -> int | None:
    """Bytes in files without a name that these processes have open (``memfd_create``) or mapped (shared memory).

    None if that cannot be told: of a file that is mapped and not open, only the part that is in page tables is known.
    """
    found = _open_memory_files(processes)
    if found is None or any(_maps_others(process.pid, found) for process in processes if not process.is_zombie):
        return None
    return sum(found.values())


def _open_memory_files(processes: Iterable[ProcessStatus]) -> dict[int, int] | None:
    """Their sizes by inode."""
    found: dict[int, int] = {}
    looked_at = 0
    for process in processes:
        if process.is_zombie:
            continue
        folder = f"/proc/{process.pid}/fd"
        try:
            names = os.listdir(folder)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        except OSError:
            return None
        looked_at += len(names)
        if looked_at > _MAX_DESCRIPTORS:
            return None
        for name in names:
            try:
                if os.readlink(f"{folder}/{name}").startswith("/memfd:"):
                    info = os.stat(f"{folder}/{name}")
                    found[info.st_ino] = info.st_blocks * 512
            except PermissionError:
                return None
            except OSError:
                continue  # it was closed
    return found


def _maps_others(pid: int, known: Collection[int]) -> bool:
    """Whether it has mapped a file without a name that is not ``known``; those of System V are counted elsewhere."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            lines = file.read().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has ended
    except OSError:
        return True
    device = _memory_device()
    for line in lines:
        words = line.split(None, 5)  # addresses, rights, offset, device, inode, name
        if words[3] == device and int(words[4]) not in known and not words[5].startswith(b"/SYSV"):
            return True
    return False


@functools.cache
def _memory_device() -> bytes:
    """The device that all files without a name are on, as ``maps`` shows it."""
    fd = os.memfd_create("")
    device = os.fstat(fd).st_dev
    os.close(fd)
    return b"%02x:%02x" % (os.major(device), os.minor(device))


def system_v_memory() -> int:
    """Bytes in the segments of this ipc namespace, attached or not."""
    try:
        with open("/proc/sysvipc/shm", "rb") as file:
            lines = file.read().splitlines()[1:]
    except OSError:
        return 0  # this kernel has none
    return sum(int(line.split()[-2]) + int(line.split()[-1]) for line in lines)


def shared_memory_of_machine() -> int:
    """Bytes of shared memory and of files in memory, of everybody."""
    return _number(_read_or_nothing("/proc/meminfo"), b"\nShmem:") << 10


def used_bytes(folder: str) -> int:
    """What is in use on the file system of ``folder``."""
    info = os.statvfs(folder)
    return (info.f_blocks - info.f_bfree) * info.f_frsize


def written_bytes(pid: int) -> int | None:
    """What it, its threads and the children it waited for have written to disk; None if that is not known.

    The kernel counts a page when it becomes dirty, so also pages of mapped files, and not those of files in memory.
    """
    try:
        return _number(_read(f"/proc/{pid}/io"), b"\nwrite_bytes:")
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it has ended, and counts with the one who waited for it
    except OSError:
        return None


def _runs_in_memory_of(pid: int, other: int) -> bool:
    try:
        return syscall("kcmp", _KCMP, pid, other, _KCMP_VM, 0, 0) == 0
    except OSError:
        return False


def _number(text: bytes, label: bytes, base: int = 10) -> int:
    """The number after ``label``; 0 where there is none."""
    words = text.partition(label)[2].split(None, 1)
    return int(words[0], base) if words else 0


def _read_or_nothing(path: str) -> bytes:
    try:
        return _read(path)
    except OSError:
        return b""


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _MAX_READ)
    finally:
        os.close(fd)


# -- the processes of a command ----------------------------------------------------------------------------------------


def children(parent: int, spare: Collection[int] = ()) -> list[int]:
    """The child processes of ``parent``, without those in ``spare``."""
    return [pid for pid in _children_by_parent().get(parent, []) if pid not in spare]


def descendants(ancestor: int, spare: Collection[int] = ()) -> list[int]:
    """Every process below ``ancestor``, zombies included; those in ``spare`` and below them are left out."""
    by_parent = _children_by_parent()
    found: list[int] = []
    pending = [ancestor]
    while pending:
        below = [pid for pid in by_parent.get(pending.pop(), []) if pid not in spare]
        found += below
        pending += below
    return found


def others_in_namespace() -> list[int]:
    """Every other process of this pid namespace, zombies included."""
    own = os.getpid()
    return [pid for name in os.listdir("/proc") if name.isdigit() and (pid := int(name)) != own]


def kill_descendants(spare: Collection[int] = (), *, signals_scoped: bool = False, group: int = 0) -> None:
    """Kill and reap everything below this process, except what is in ``spare`` and below: where no pid namespace does it.

    ``signals_scoped``: signals of this process reach only its descendants, so one system call kills them all and nothing
    can escape by forking. ``group``: a process group that most of them are likely in.

    Promise: when it returns, this process, which must be a subreaper, has no descendants left but those it must spare: a
    stopped process cannot fork, and what it forked before is found by the next look.
    Limits: needs ``/proc``; without scoped signals, a program that keeps forking to change its pid may never be found.
    """
    own = os.getpid()
    if signals_scoped:
        _send(-1, signal.SIGKILL)
    elif group:
        _send(-group, signal.SIGKILL)
    while _has_children():  # orphans become children of a subreaper: without children there are no descendants
        stopped: set[int] = set()
        while new := set(descendants(own, spare)) - stopped:
            for pid in new:
                _send(pid, signal.SIGSTOP)
            stopped |= new
        if not stopped:
            return
        for pid in stopped:
            _send(pid, signal.SIGKILL)
        for pid in children(own, spare):
            os.waitpid(pid, 0)  # its orphans become our children


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _children_by_parent() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            parent = _read_parent(name)
            if parent is not None:
                found.setdefault(parent, []).append(int(name))
    return found


def _read_parent(pid: str) -> int | None:
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None  # it has ended
    try:
        # The program name is in parentheses and may contain anything, parentheses too.
        return int(os.read(fd, 4096).rpartition(b")")[2].split(None, 2)[1])
    except (OSError, IndexError):
        return None
    finally:
        os.close(fd)


def _send(target: int, number: signal.Signals) -> None:
    """Signal a process, or many, as the kernel reads negative numbers; ignores those that have ended."""
    try:
        os.kill(target, number)
    except OSError:
        return
