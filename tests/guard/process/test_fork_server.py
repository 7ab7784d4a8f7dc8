"""What commands, and a lack of resources, do to the processes that start and supervise commands."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest

from tests.guard import nobody
from tests.guard.ways import SANDBOXED, Way, guard_in, needs
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit.errors import ToolFailed, ToolkitError
from toolkit.guard import CarrierChoice, CommandNetwork, LongProcess, ProcessGuard, ProcessResult, SandboxChoice

WATCHDOG = 60.0
CHOICES: dict[Way, tuple[SandboxChoice, CarrierChoice]] = {
    "full": ("full", "own"),
    "bubblewrap": ("full", "bubblewrap"),
    "reduced": ("reduced", "auto"),
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


@pytest.fixture(params=SANDBOXED)
def way(request: pytest.FixtureRequest) -> Way:
    chosen: Way = request.param
    needs(chosen)
    return chosen


# --- signals, by every call that sends one

SIGNAL = """
import ctypes, fcntl, os, signal, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
arm = os.uname().machine == "aarch64"

def syscall(x86_64, aarch64, *arguments):
    number = aarch64 if arm else x86_64
    result = libc.syscall(*(ctypes.c_long(word) if isinstance(word, int) else word for word in (number, *arguments)))
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result

def when_data_comes(set_owner):
    # The kernel sends the signal when there is something to read.
    ours, other = socket.socketpair()
    fcntl.fcntl(ours, 10, signal.SIGKILL)  # F_SETSIG
    set_owner(ours)
    fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC)
    other.send(b"x")

INFO = struct.pack("iii116x", signal.SIGKILL, 0, -1)
WAYS = {
    "kill": lambda pid: os.kill(pid, signal.SIGKILL),
    "kill its group": lambda pid: os.kill(-pid, signal.SIGKILL),
    "tkill": lambda pid: syscall(200, 130, pid, signal.SIGKILL),
    "tgkill": lambda pid: syscall(234, 131, pid, pid, signal.SIGKILL),
    "rt_sigqueueinfo": lambda pid: syscall(129, 138, pid, signal.SIGKILL, INFO),
    "rt_tgsigqueueinfo": lambda pid: syscall(297, 240, pid, pid, signal.SIGKILL, INFO),
    "pidfd_send_signal": lambda pid: syscall(424, 424, os.pidfd_open(pid), signal.SIGKILL, 0, 0),
    "F_SETOWN": lambda pid: when_data_comes(lambda fd: fcntl.fcntl(fd, fcntl.F_SETOWN, pid)),
    "F_SETOWN of its group": lambda pid: when_data_comes(lambda fd: fcntl.fcntl(fd, fcntl.F_SETOWN, -pid)),
    "F_SETOWN_EX": lambda pid: when_data_comes(lambda fd: fcntl.fcntl(fd, 15, struct.pack("ii", 1, pid))),
    "F_SETOWN_EX of a thread": lambda pid: when_data_comes(lambda fd: fcntl.fcntl(fd, 15, struct.pack("ii", 0, pid))),
    "FIOSETOWN": lambda pid: when_data_comes(lambda fd: fcntl.ioctl(fd, 0x8901, struct.pack("i", pid))),
}
for pid in (os.getppid() if word == "supervisor" else int(word) for word in sys.argv[2:]):
    try:
        WAYS[sys.argv[1]](pid)
    except OSError:
        pass
print("still here")
"""
WAYS_TO_SIGNAL = (
    "kill", "kill its group", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal",
    "F_SETOWN", "F_SETOWN of its group", "F_SETOWN_EX", "F_SETOWN_EX of a thread", "FIOSETOWN",
)  # fmt: skip
LIKE_ANOTHER = ("tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "F_SETOWN of its group", "F_SETOWN_EX of a thread")


@contextmanager
def echoing_victim() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a group of its own that shows by an answer that it is alive."""
    pipe = subprocess.PIPE
    with subprocess.Popen(["cat"], stdin=pipe, stdout=pipe, bufsize=0, process_group=0) as victim:
        yield victim
        victim.kill()


def answers(victim: subprocess.Popen[bytes]) -> bool:
    assert victim.stdin and victim.stdout
    try:
        victim.stdin.write(b"x\n")
    except BrokenPipeError:
        return False
    return victim.stdout.readline() == b"x\n"


@pytest.mark.sample
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.whole] if name in LIKE_ANOTHER else []) for name in WAYS_TO_SIGNAL]
)
def test_no_signal_reaches_the_processes_around_a_command(workspace: Path, way: Way, name: str) -> None:
    with echoing_victim() as victim:
        with guard_in(way, workspace) as guard:
            guard.run(["true"])
            assert guard._sandbox._server is not None
            server = guard._sandbox._server.pid
            targets = ["supervisor", str(server), str(os.getpid()), str(victim.pid)]
            result = guard.run([sys.executable, "-c", SIGNAL, name, *targets], timeout=WATCHDOG)
            assert (result.exit_code, result.stdout) == (0, b"still here\n"), result.stderr
            assert guard.run(["true"]).exit_code == 0
            assert guard._sandbox._server.pid == server, "it is the same fork server"
        assert answers(victim)
        with guard_in("unsafe-none", workspace) as guard:
            guard.run([sys.executable, "-c", SIGNAL, name, str(victim.pid)], timeout=WATCHDOG)
        assert not answers(victim), "without a sandbox the signal arrives"


# --- the fork server is killed while a call runs


@pytest.mark.parametrize("sandbox", ["full", "reduced"])
def test_a_call_whose_fork_server_is_killed_says_so_and_the_next_one_works(
    workspace: Path, sandbox: Literal["full", "reduced"]
) -> None:
    needs(sandbox)
    state = workspace.parent / "state"
    context = ToolkitContext(workspace, SecurityPolicy(default="allow"), sandbox=sandbox, state_dir=state)
    failures: list[ToolkitError] = []
    with create_agent_toolkit(context) as toolkit:

        def call() -> None:
            try:
                toolkit.invoke("bash", {"command": "touch begun; while :; do :; done"})
            except ToolkitError as error:
                failures.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        while not (workspace / "begun").exists() and thread.is_alive():
            thread.join(0.01)
        (server,) = [pid for pid in children(os.getpid()) if b"fork_server" in command_line(pid)]
        os.kill(server, signal.SIGKILL)
        thread.join(WATCHDOG)
        assert [str(failure) for failure in failures] == [
            "TOOL_FAILED: IO: the sandbox ended before the command did: it was killed from outside"
        ]
        assert toolkit.invoke("bash", {"command": "echo next"}).content.stdout == "next\n"


def children(pid: int) -> list[int]:
    folder = Path(f"/proc/{pid}/task")
    return [int(child) for thread in folder.iterdir() for child in (thread / "children").read_text().split()]


def command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


# --- the spare supervisor of the full tier


def spare_of(guard: ProcessGuard, besides: Sequence[int] = ()) -> int:
    """The process that waits for the next command; it is there a moment after a command has ended.

    By then it has closed what it must not keep: it has one socket, to the fork server, and no pipe.
    """
    assert guard._sandbox._server is not None
    server, deadline = guard._sandbox._server.pid, time.monotonic() + WATCHDOG
    while time.monotonic() < deadline:
        for pid in children(server):
            kinds = [name.partition(":")[0] for name in open_files(pid)]
            if pid not in besides and kinds.count("socket") == 1 and "pipe" not in kinds:
                return pid
    raise AssertionError("no spare supervisor, or one that keeps what is not its own")


def open_files(pid: int) -> list[str]:
    try:
        return [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return []


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + WATCHDOG
    while not has_ended(pid):
        assert time.monotonic() < deadline, "it is still alive"


def test_the_next_command_runs_also_if_the_spare_supervisor_was_killed(workspace: Path) -> None:
    with guard_in("full", workspace) as guard:
        guard.run(["true"])
        spare = spare_of(guard)
        os.kill(spare, signal.SIGKILL)
        wait_for_end(spare)
        assert guard.run(["echo", "next"]).stdout == b"next\n"
        assert spare_of(guard) != spare


@pytest.mark.parametrize("end", ["close", "kill"])
def test_the_spare_supervisor_ends_with_the_fork_server(workspace: Path, end: Literal["close", "kill"]) -> None:
    with guard_in("full", workspace) as guard:
        guard.run(["true"])
        spare = spare_of(guard)
        assert guard._sandbox._server is not None
        if end == "kill":
            os.kill(guard._sandbox._server.pid, signal.SIGKILL)
        else:
            guard.close()
        wait_for_end(spare)


def test_the_spare_supervisor_keeps_nothing_of_a_command_that_runs_meanwhile(workspace: Path) -> None:
    """Else the end of that command, and of its output, would not be seen."""
    os.mkfifo(workspace / "gate")
    with guard_in("full", workspace) as guard:
        results: list[ProcessResult] = []
        call = threading.Thread(target=lambda: results.append(guard.shell("touch begun; read line <gate; echo $line")))
        call.start()
        while not (workspace / "begun").exists() and call.is_alive():
            call.join(0.01)
        assert guard._sandbox._server is not None
        running = children(guard._sandbox._server.pid)
        guard.run(["true"])
        spare_of(guard, besides=running)
        (workspace / "gate").write_text("on\n")
        call.join(WATCHDOG)
        assert [result.stdout for result in results] == [b"on\n"]


def test_each_command_has_its_own_places_and_the_network_it_was_given(workspace: Path) -> None:
    """Also after others, with and without a network of their own: only the latter can have a spare supervisor."""
    look = "ls -A /tmp /tmp/home /tmp/.shm; touch /tmp/mine /tmp/home/mine /tmp/.shm/mine; readlink /proc/self/ns/net"
    networks: tuple[CommandNetwork, ...] = ("none", "host", "none", "none", "host", "none")
    with guard_in("full", workspace) as guard:
        for network in networks:
            result = guard.shell(look, network=network)
            assert (result.exit_code, result.stderr) == (0, b"")
            assert b"mine" not in result.stdout
            is_of_the_host = result.stdout.split()[-1].decode() == os.readlink("/proc/self/ns/net")
            assert is_of_the_host == (network == "host")


# --- this process lacks something


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """This process can open so many files, and no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    kept: list[int] = []
    highest = max(map(int, os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 32, hard))
    try:
        while True:
            try:
                kept.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                break
        for _ in range(count):
            os.close(kept.pop())
        yield
    finally:
        for fd in kept:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def echo(program: LongProcess) -> bytes:
    program.write(b"x\n")
    while (text := program.read()) is None:
        os.sched_yield()
    return text


@pytest.mark.sample
@pytest.mark.parametrize("left", range(1, 7))
def test_a_call_without_descriptors_fails_and_ends_nothing_else(workspace: Path, way: Way, left: int) -> None:
    with guard_in(way, workspace) as guard:
        program = guard.start(["cat"])
        assert echo(program) == b"x\n"
        with descriptors_left(left), pytest.raises(ToolFailed, match=r": too many open files; try again later$"):
            guard.run(["true"])
        assert guard.run(["true"]).exit_code == 0
        assert echo(program) == b"x\n"
        program.close()
        assert program.outcome().exit_code == 0


# The kernel counts descriptors on their way through a socket for all processes of a user together.
IN_FLIGHT = """
import array, json, os, socket, sys
from toolkit.errors import ToolkitError
from toolkit.guard import ProcessGuard

FILL = '''
import array, os, socket, sys
pairs, many = [], array.array("i", [0] * 250)
try:
    while True:
        pairs.append(socket.socketpair())
        pairs[-1][0].setblocking(False)
        try:
            while True:
                pairs[-1][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, many)])
        except BlockingIOError:
            pass
except OSError as error:
    print(error.errno, flush=True)
sys.stdin.read()
'''

def answer(program):
    while (text := program.read()) is None:
        os.sched_yield()
    return text.decode()

def send():
    one, other = socket.socketpair()
    try:
        one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
    except OSError as error:
        return error.errno

workspace, sandbox, carrier = sys.argv[1:]
with ProcessGuard(workspace, sandbox=sandbox, carrier=carrier) as guard:
    if guard.tier == "none":
        print(json.dumps(guard.choice.reason))
        raise SystemExit
    cat = guard.start(["cat"])
    filler = guard.start([sys.executable, "-c", FILL])
    full = answer(filler)
    refused = send()
    next_command = guard.run(["echo", "next"]).stdout.decode()
    cat.write(b"x")
    print(json.dumps([full, refused, next_command, answer(cat)]))
"""


@nobody.only_root
def test_descriptors_that_a_command_sends_and_nobody_takes_do_not_stop_others(way: Way) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard <= 8192:
        pytest.skip("this machine allows no more open files than a command may have")
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))  # as a login shell has it
    try:
        with nobody.folder("ws") as base:
            answer = json.loads(nobody.run(IN_FLIGHT, str(base / "ws"), *CHOICES[way]))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if isinstance(answer, str):
        pytest.skip(f"this machine gives another user no {way}: {answer}")
    assert answer == ["109\n", 109, "next\n", "x"]  # ETOOMANYREFS, also for the agent's own sockets
