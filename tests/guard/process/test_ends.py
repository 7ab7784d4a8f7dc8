"""However a command ends, nothing it started is alive afterwards. Time limits here are watchdogs, not measurements."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guard.ways import SANDBOXED, Way, guard_in, needs
from tests.projects import REPOSITORY
from toolkit.errors import ToolCancelled, ToolFailed

WATCHDOG = 60.0
NEVER = 10_000

# Each leaves processes that hold an open file in the workspace, and says so once they do.
FORMS = {
    "83-background": "python hold.py & echo",
    "84-setsid": "setsid python hold.py & echo",
    "84-double-fork": "( ( python hold.py & ) & ) ; echo",
    "84-daemon": "python hold.py daemon & echo",
    "84-never-the-same": "python hold.py hydra & echo",
    "85-ignores-term": "trap '' TERM HUP INT; python hold.py ignore & echo",
    "86-many": "for i in 1 2 3 4 5 6 7 8; do setsid python hold.py & done; echo",
}
HOLD = """
import os, signal, sys, time
if "ignore" in sys.argv:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
if "daemon" in sys.argv:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")
kept = open(sys.path[0] + "/held", "a")
open(f"{sys.path[0]}/ready-{time.monotonic_ns()}-{os.getpid()}", "w").close()
while "hydra" in sys.argv:  # a new number and a new session all the time: whoever looks for it comes too late
    if os.fork():
        os._exit(0)
    os.setsid()
time.sleep(10000)
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "hold.py").write_text(HOLD)
    return folder


@pytest.fixture(params=SANDBOXED)
def way(request: pytest.FixtureRequest) -> Way:
    chosen: Way = request.param
    needs(chosen)
    return chosen


def holders(workspace: Path) -> list[int]:
    """Every process on this machine that has the file open; a pid namespace hides nothing from outside."""
    wanted = os.stat(workspace / "held") if (workspace / "held").exists() else None
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or wanted is None:
            continue
        try:
            targets = [os.stat(f"/proc/{name}/fd/{fd}") for fd in os.listdir(f"/proc/{name}/fd")]
        except OSError:
            continue
        if any((info.st_dev, info.st_ino) == (wanted.st_dev, wanted.st_ino) for info in targets):
            found.append(int(name))
    return found


def wait_for(condition: object, what: str) -> None:
    assert callable(condition)
    deadline = time.monotonic() + WATCHDOG
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def ready(workspace: Path, count: int = 1) -> bool:
    return len(list(workspace.glob("ready-*"))) >= count


def waiting(form: str) -> str:
    """Shell text that starts the holders, waits until they hold, and goes on to ``exec`` what is put behind it."""
    count = 8 if "86" in form else 1
    return f"{FORMS[form]}; until [ $(ls ready-* 2>/dev/null | wc -l) -ge {count} ]; do sleep 0.02; done; "


@pytest.mark.sample
@pytest.mark.parametrize("form", FORMS)
def test_nothing_survives_the_end_of_the_command(workspace: Path, way: Way, form: str) -> None:
    with guard_in(way, workspace) as guard:
        result = guard.shell(waiting(form) + "echo end", timeout=WATCHDOG)
        assert result.stdout.endswith(b"end\n") and result.exit_code == 0 and not result.timed_out
        assert ready(workspace) and holders(workspace) == []


@pytest.mark.sample
@pytest.mark.parametrize("form", FORMS)
def test_nothing_survives_a_cancelled_call(workspace: Path, way: Way, form: str) -> None:
    def cancel() -> None:
        if ready(workspace, 8 if "86" in form else 1):
            raise ToolCancelled("the caller ended the call")

    with guard_in(way, workspace) as guard:
        with pytest.raises(ToolCancelled):
            guard.with_check(cancel).shell(f"{FORMS[form]}; sleep {NEVER}", timeout=WATCHDOG)
        assert holders(workspace) == []


def test_without_a_sandbox_setsid_survives(workspace: Path) -> None:
    """The control: the same text, unguarded."""
    with guard_in("unsafe-none", workspace) as guard:
        guard.shell(waiting("84-setsid") + "echo end", timeout=WATCHDOG)
    survivors = holders(workspace)
    assert len(survivors) == 1
    os.kill(survivors[0], signal.SIGKILL)


@contextlib.contextmanager
def unguarded(workspace: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """The control of those below: the same program, begun before and looked at after."""
    with subprocess.Popen([sys.executable, "hold.py", *arguments], cwd=workspace) as process:
        try:
            wait_for(lambda: ready(workspace), "the control never started")
            for mark in workspace.glob("ready-*"):
                mark.unlink()
            yield process
        finally:
            process.kill()


def test_82_a_command_past_its_time_is_killed_and_says_so(workspace: Path, way: Way) -> None:
    with unguarded(workspace) as control, guard_in(way, workspace) as guard:
        result = guard.shell("echo before; python hold.py", timeout=3)
        assert result.timed_out and result.signal == signal.SIGKILL and result.exit_code is None
        assert result.stdout == b"before\n"
        assert holders(workspace) == [control.pid]
        assert not guard.run(["true"]).timed_out


@pytest.mark.every_tier
def test_85_ignoring_every_signal_does_not_help(workspace: Path, way: Way) -> None:
    with unguarded(workspace) as control:
        control.terminate()
        assert control.wait(WATCHDOG) == -signal.SIGTERM  # one that does not ignore it
    with unguarded(workspace, "ignore") as control, guard_in(way, workspace) as guard:
        control.terminate()
        assert guard.run(["python", "hold.py", "ignore"], timeout=3).timed_out
        assert holders(workspace) == [control.pid]


def test_an_exception_of_the_listener_kills_first(workspace: Path, way: Way) -> None:
    def listen(name: str, data: bytes) -> None:
        raise RuntimeError(name)

    with guard_in(way, workspace) as guard:
        with pytest.raises(RuntimeError, match="stdout"):
            guard.shell(waiting("84-setsid") + f"echo now; sleep {NEVER}", timeout=WATCHDOG, on_output=listen)
        assert holders(workspace) == []


# Each makes so many processes, or a few more, and then holds them for a while.
BOMBS = {
    "one after another": "import os, sys, time\nfor _ in range(int(sys.argv[1])):\n    if os.fork() == 0: time.sleep(10000)\ntime.sleep(float(sys.argv[2]))\n",
    "doubling": "import os, sys, time\nn = 1\nwhile n < int(sys.argv[1]):\n    os.fork()\n    n *= 2\ntime.sleep(float(sys.argv[2]))\n",
}  # fmt: skip


@pytest.mark.sample
@pytest.mark.xdist_group("many-processes")
@pytest.mark.parametrize("bomb", BOMBS)
def test_86_processes_are_bounded(workspace: Path, way: Way, bomb: str) -> None:
    # A name of its own: the same test may be running beside this one, for another tier.
    script = f"bomb-{uuid.uuid4().hex}.py"
    (workspace / script).write_text(BOMBS[bomb])
    heard = {"stdout": b"", "stderr": b""}

    def listen(name: str, data: bytes) -> None:
        heard[name] += data

    with guard_in(way, workspace) as guard:
        result = guard.run(["python", script, "2000", str(NEVER)], timeout=WATCHDOG, on_output=listen)
        assert (result.signal, result.ended_by) == (signal.SIGKILL, "processes")
        assert b"more than 256 processes" in result.stderr and b"CommandLimits.processes" in result.stderr
        assert heard == {"stdout": result.stdout, "stderr": result.stderr}
        assert guard.run(["true"]).exit_code == 0
    assert not [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if runs(pid, script)]
    with guard_in("unsafe-none", workspace) as guard:
        assert guard.run(["python", script, "300", "0"], timeout=WATCHDOG).exit_code == 0


def test_86_the_kernel_has_a_ceiling_of_its_own(workspace: Path) -> None:
    """A fork bomb that is faster than the supervisor gets no further; there is room for programs with many threads."""
    with guard_in("full", workspace) as guard:
        ceiling = int(guard.run(["cat", "/proc/sys/kernel/pid_max"]).stdout)
        release = tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
        assert ceiling == 16 * 256 or release < (6, 14)
        assert guard.shell("ulimit -u").stdout == b"4096\n"


# Takes descriptors, memory and time from whoever is to kill it, and leaves processes behind.
DISARM = """
import os, resource, subprocess, sys, time
done = 0
for pid in (os.getppid(), int(sys.argv[1])):
    for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_AS):
        try:
            resource.prlimit(pid, kind, (0, 0))
            done += 1
        except OSError:
            pass
for _ in range(8):
    subprocess.Popen([sys.executable, "hold.py"], start_new_session=True)
while len([name for name in os.listdir() if name.startswith("ready-")]) < 8:
    time.sleep(0.01)
print(done)
"""


def test_nothing_survives_a_command_that_limits_its_supervisor(workspace: Path, way: Way) -> None:
    with guard_in(way, workspace) as guard:
        guard.run(["true"])
        assert guard._sandbox._server is not None
        result = guard.run(["python", "-c", DISARM, str(guard._sandbox._server.pid)], timeout=WATCHDOG)
        assert result.stdout == b"0\n"
        assert holders(workspace) == []
        assert guard.run(["true"]).exit_code == 0
    assert holders(workspace) == []


def test_without_a_sandbox_another_process_can_be_limited(workspace: Path) -> None:
    """The control: what a command of the same user could do to the processes that are to kill it."""
    with subprocess.Popen(["sleep", str(NEVER)]) as parent, subprocess.Popen(["sleep", str(NEVER)]) as server:
        code = DISARM.replace("os.getppid()", str(parent.pid)).partition("for _ in range(8)")[0] + "print(done)"
        with guard_in("unsafe-none", workspace) as guard:
            assert guard.run(["python", "-c", code, str(server.pid)]).stdout == b"6\n"
        parent.kill()
        server.kill()


def runs(pid: int, script: str) -> bool:
    try:
        return script.encode() in Path(f"/proc/{pid}/cmdline").read_bytes() and pid != os.getpid()
    except OSError:
        return False


def test_87_endless_output_is_cut_and_memory_bounded(workspace: Path, way: Way) -> None:
    heard = 0

    def listen(name: str, data: bytes) -> None:
        nonlocal heard
        heard += len(data)

    def stop() -> None:
        if heard > 20 << 20:
            raise ToolCancelled("enough")

    with guard_in(way, workspace) as guard:
        result = guard.shell("yes | head -c 20000000", max_output=1000)
        assert result.stdout_truncated and result.stdout_bytes == 20_000_000
        assert len(result.stdout) < 1100 and b"19999000 bytes left out" in result.stdout
        with pytest.raises(ToolCancelled):
            guard.run(["yes"], timeout=WATCHDOG, on_output=listen, check=stop)
    plain = subprocess.run("yes | head -c 20000000", shell=True, capture_output=True)
    assert len(plain.stdout) == 20_000_000


CALLER = """
import sys
from pathlib import Path
from tests.guard.ways import guard_in
guard = guard_in(sys.argv[2], Path(sys.argv[1]), state_dir=sys.argv[4])
guard.run(["true"])
print(guard._sandbox._server.pid, flush=True)
guard.shell(sys.argv[3], timeout=None)
"""


KILLED = {
    ("84-daemon", "caller"): (),
    ("84-daemon", "fork server"): (pytest.mark.every_tier,),
    ("86-many", "caller"): (),
    ("86-many", "fork server"): (),
}


@pytest.mark.sample(every=8)
@pytest.mark.parametrize(
    ("form", "victim"),
    [
        pytest.param(form, victim, id=f"{form}-{victim}", marks=KILLED.get((form, victim), (pytest.mark.whole,)))
        for form in ("83-background", "84-setsid", "84-daemon", "86-many")
        for victim in ("caller", "fork server")
    ],
)
def test_nothing_survives_when_the_caller_or_the_fork_server_is_killed(
    workspace: Path, way: Way, form: str, victim: str
) -> None:
    state = workspace.parent / "state"  # nobody is left to clean up
    state.mkdir()
    command = [sys.executable, "-c", CALLER, str(workspace), way, f"{FORMS[form]}; sleep {NEVER}", str(state)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as caller:
        assert caller.stdout
        server = int(caller.stdout.readline())
        wait_for(lambda: ready(workspace, 8 if form == "86-many" else 1), "the command never started")
        assert holders(workspace)
        os.kill(caller.pid if victim == "caller" else server, signal.SIGKILL)
        wait_for(lambda: not holders(workspace), "something survived")
        wait_for(lambda: not os.path.exists(f"/proc/{server}") or zombie(server), "the fork server survived")
        caller.kill()


def zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.every_tier
def test_nothing_survives_the_supervisor_either(workspace: Path, way: Way) -> None:
    """In the reduced tier the fork server finds what is left; killed both at once, they would be the documented gap."""
    with guard_in(way, workspace) as guard:
        outcome: list[BaseException] = []

        def call() -> None:
            try:
                guard.shell(f"setsid python hold.py & sleep {NEVER}", timeout=WATCHDOG)
            except ToolFailed as error:
                outcome.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        wait_for(lambda: ready(workspace), "the command never started")
        assert guard._sandbox._server is not None
        supervisors = children(guard._sandbox._server.pid)
        assert len(supervisors) == 1
        os.kill(supervisors[0], signal.SIGKILL)
        thread.join(WATCHDOG)
        assert holders(workspace) == []
        assert outcome and "killed from outside" in str(outcome[0])


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_close_ends_the_fork_server_and_a_killed_one_is_replaced(workspace: Path, way: Way) -> None:
    guard = guard_in(way, workspace)
    guard.run(["true"])
    assert guard._sandbox._server is not None
    first = guard._sandbox._server.pid
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: zombie(first), "the fork server did not die")
    assert guard.run(["true"]).exit_code == 0
    second = guard._sandbox._server.pid
    assert second != first
    guard.close()
    guard.close()
    assert not os.path.exists(f"/proc/{second}")
    with pytest.raises(ToolFailed, match="closed"):
        guard.run(["true"])


def test_several_threads_share_one_fork_server(workspace: Path, way: Way) -> None:
    answers: list[bytes] = []
    with guard_in(way, workspace) as guard:

        def call(number: int) -> None:
            answers.append(guard.shell(f"sleep 0.1; echo {number}").stdout)

        threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WATCHDOG)
    assert sorted(answers) == sorted(f"{number}\n".encode() for number in range(8))
