"""Programs that run until they are closed: what they see is what commands see, and nothing of them is left behind."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guard.process.test_ends import HOLD, WATCHDOG, holders, ready, wait_for, zombie
from tests.guard.ways import ALL, SANDBOXED, Way, guard_in, needs
from tests.projects import REPOSITORY
from toolkit.errors import SandboxViolation, ToolFailed, ToolNotAllowed
from toolkit.guard import CommandNetwork, LongProcess, ProcessGuard

NETWORKS: tuple[CommandNetwork, ...] = ("none", "host")

SERVER = """
import os, subprocess, sys
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word == "echo":
        answer = rest
    elif word == "env":
        answer = " ".join(sorted(f"{name}={value}" for name, value in os.environ.items() if name not in ("LC_CTYPE", "PWD")))
    elif word == "read":
        try:
            answer = open(rest).read()
        except OSError as error:
            answer = type(error).__name__
    elif word == "connect":
        import socket
        try:
            socket.create_connection(("127.0.0.1", int(rest)), 5).close()
            answer = "connected"
        except OSError as error:
            answer = type(error).__name__
    elif word == "complain":
        sys.stderr.write("x" * int(rest) + "the end")
        sys.stderr.flush()
        answer = "complained"
    elif word == "hold":
        for form in ([], ["daemon"], ["ignore"]):
            subprocess.Popen([sys.executable, "hold.py", *form], stdin=subprocess.DEVNULL, start_new_session=not form)
        answer = "holding"
    print(answer, flush=True)
if "stubborn" in sys.argv:
    import time
    time.sleep(10000)
open("goodbye", "w").close()
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "hold.py").write_text(HOLD)
    for place in (folder, tmp_path):  # what is let out must not be what tools could have changed
        (place / "server.py").write_text(SERVER)
    return folder


@pytest.fixture(params=ALL)
def way(request: pytest.FixtureRequest) -> Way:
    chosen: Way = request.param
    needs(chosen)
    return chosen


@pytest.fixture(params=SANDBOXED)
def sandboxed(request: pytest.FixtureRequest) -> Way:
    chosen: Way = request.param
    needs(chosen)
    return chosen


def ask(process: LongProcess, line: str) -> str:
    """Write one line, and wait for one."""
    assert process.write(f"{line}\n".encode()) == len(line) + 1
    heard = b""
    while not heard.endswith(b"\n"):
        assert select.select([process.stdout], [], [], WATCHDOG)[0], "no answer"
        data = process.read()
        assert data, process.last_stderr()
        heard += data
    return heard.decode().rstrip("\n")


def test_it_is_talked_to_until_it_is_closed_and_then_ends_by_itself(workspace: Path, way: Way) -> None:
    with guard_in(way, workspace) as guard:
        process = guard.start(["python", "server.py"])
        assert ask(process, "echo one") == "one"
        assert guard.run(["true"]).exit_code == 0  # others go on beside it
        assert ask(process, "echo two") == "two"
        assert process.read() is None
        assert process.sandboxed is (way != "unsafe-none")
        process.close(grace=WATCHDOG)
        process.close()
        assert process.outcome().exit_code == 0
        assert (workspace / "goodbye").exists()


def test_its_environment_is_clean_but_for_what_is_named(
    workspace: Path, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "s3cret")
    with guard_in(way, workspace) as guard:
        process = guard.start(["python", "server.py"], env={"TOKEN": "t0ken"})
        words = ask(process, "env").split()
    names = {word.partition("=")[0] for word in words}
    assert names == {"HOME", "LANG", "PATH", "TERM", "TMPDIR", "TOKEN"}
    assert "TOKEN=t0ken" in words


def test_one_that_does_not_end_is_killed_with_all_it_started(workspace: Path, sandboxed: Way) -> None:
    with guard_in(sandboxed, workspace) as guard:
        process = guard.start(["python", "server.py", "stubborn"])
        assert ask(process, "hold") == "holding"
        wait_for(lambda: ready(workspace, 3), "nothing is held")
        assert len(holders(workspace)) == 3
        process.close(grace=0.2)
        assert holders(workspace) == []
        assert process.outcome().signal == signal.SIGKILL
        assert not (workspace / "goodbye").exists()
        assert guard.run(["true"]).exit_code == 0


def test_what_it_left_behind_is_killed_when_it_ends_by_itself(workspace: Path, sandboxed: Way) -> None:
    with guard_in(sandboxed, workspace) as guard:
        process = guard.start(["python", "server.py"])
        assert ask(process, "hold") == "holding"
        wait_for(lambda: ready(workspace, 3), "nothing is held")
        process.close(grace=WATCHDOG)
        assert process.outcome().exit_code == 0
        assert holders(workspace) == []


def test_its_output_ends_with_it_whatever_it_left_in_the_background(workspace: Path, way: Way) -> None:
    with guard_in(way, workspace) as guard:
        process = guard.start(["bash", "-c", "python hold.py & until ls ready-*; do sleep 0.02; done 2>/dev/null >&2"])
        wait_for(lambda: process.read() == b"", "somebody holds its output")
        assert holders(workspace) == []


def test_closing_the_guard_ends_it(workspace: Path, way: Way) -> None:
    guard = guard_in(way, workspace)
    process = guard.start(["python", "hold.py"])
    wait_for(lambda: ready(workspace), "it never started")
    assert holders(workspace)
    guard.close()
    assert holders(workspace) == []
    assert process.outcome().signal == signal.SIGKILL
    with pytest.raises(ToolFailed, match="closed"):
        guard.start(["python", "hold.py"])


OWNER = """
import sys
from pathlib import Path
from tests.guard.ways import guard_in
guard = guard_in(sys.argv[2], Path(sys.argv[1]), state_dir=sys.argv[3])
process = guard.start(["python", "server.py", "stubborn"])
process.write(b"hold\\n")
print(guard._sandbox._server.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.sample
@pytest.mark.parametrize("victim", ["caller", "fork server"])
def test_nothing_survives_when_its_owner_is_killed(workspace: Path, sandboxed: Way, victim: str) -> None:
    state = workspace.parent / "state"  # nobody is left to clean up
    state.mkdir()
    command = [sys.executable, "-c", OWNER, str(workspace), sandboxed, str(state)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment) as owner:
        assert owner.stdout
        server = int(owner.stdout.readline())
        wait_for(lambda: ready(workspace, 3), "it never started")
        assert len(holders(workspace)) == 3
        os.kill(owner.pid if victim == "caller" else server, signal.SIGKILL)
        wait_for(lambda: not holders(workspace), "something survived")
        wait_for(lambda: not os.path.exists(f"/proc/{server}") or zombie(server), "the fork server survived")
        owner.kill()


def test_complaints_never_block_it_and_only_the_last_are_kept(workspace: Path, way: Way) -> None:
    with guard_in(way, workspace) as guard:
        process = guard.start(["python", "server.py"])
        assert ask(process, "complain 5000000") == "complained"
        assert ask(process, "echo still here") == "still here"
        process.close()
        assert process.last_stderr().endswith("xxthe end") and len(process.last_stderr()) < 10_000


def test_a_full_pipe_is_no_reason_to_wait(workspace: Path, way: Way) -> None:
    with guard_in(way, workspace) as guard:
        process = guard.start(["sleep", "10000"])
        taken = [process.write(b"x" * 65536) for _ in range(40)]
        assert taken[0] == 65536 and taken[-1] == 0
        process.close(grace=0)
        assert process.outcome().signal == signal.SIGKILL


def test_one_that_cannot_begin_says_why(workspace: Path, sandboxed: Way) -> None:
    with guard_in(sandboxed, workspace) as guard:
        process = guard.start(["no-such-program"])
        wait_for(lambda: process.read() == b"", "its output never ended")
        process.close()
        with pytest.raises(ToolFailed, match="COMMAND_NOT_FOUND"):
            process.outcome()
        with pytest.raises(ToolFailed, match="COMMAND_NOT_FOUND"):
            guard.start(["no-such-program"], sandbox=False)
        with pytest.raises(SandboxViolation, match="BASH_ENV"):
            guard.start(["bash"], env={"BASH_ENV": "x"})


@pytest.mark.every_tier
def test_it_reads_the_workspace_and_nothing_outside_unless_it_was_let_out(workspace: Path, sandboxed: Way) -> None:
    outside = workspace.parent / "outside"
    outside.write_text("a secret of the host")
    (workspace / "inside").write_text("a file of the workspace")
    with guard_in(sandboxed, workspace) as guard:
        inside = guard.start(["python", "server.py"])
        assert ask(inside, "read inside") == "a file of the workspace"
        assert ask(inside, f"read {outside}") in ("FileNotFoundError", "PermissionError")
        let_out = guard.start(["python", "../server.py"], sandbox=False)
        assert ask(let_out, f"read {outside}") == "a secret of the host"
        assert (inside.sandboxed, let_out.sandboxed) == (True, False)


def test_the_network_is_there_only_where_it_is_given(workspace: Path, sandboxed: Way) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, guard_in(sandboxed, workspace) as guard:
        port = server.getsockname()[1]
        without, with_it = (guard.start(["python", "server.py"], network=network) for network in NETWORKS)
        assert ask(without, f"connect {port}") != "connected"
        assert ask(with_it, f"connect {port}") == "connected"


def test_only_who_is_let_out_may_be_given_a_home(workspace: Path, sandboxed: Way) -> None:
    with guard_in(sandboxed, workspace) as guard:
        with pytest.raises(SandboxViolation, match="HOME"):
            guard.start(["python", "server.py"], env={"HOME": "/elsewhere"})
        process = guard.start(["python", "../server.py"], env={"HOME": "/elsewhere"}, sandbox=False)
        assert "HOME=/elsewhere" in ask(process, "env").split()


def test_a_program_of_the_workspace_is_never_let_out(workspace: Path, sandboxed: Way) -> None:
    (workspace / "run").write_text("#!/bin/sh\nexec python server.py\n")
    (workspace / "run").chmod(0o755)
    (workspace / "linked").symlink_to("run")
    with guard_in(sandboxed, workspace) as guard:
        for program in ("./run", str(workspace / "run"), "./linked"):
            with pytest.raises(SandboxViolation, match="may not run without a sandbox"):
                guard.start([program], sandbox=False)
        for word in ("server.py", "./server.py", "--file=server.py", str(workspace / "server.py"), "linked"):
            with pytest.raises(SandboxViolation, match="is a file in the workspace"):
                guard.start(["python", word], sandbox=False)
        assert ask(guard.start(["./run"]), "echo fine") == "fine"
    with guard_in(sandboxed, workspace, mode="read-only") as guard:  # where no tool could have written it
        assert ask(guard.start(["./run"], sandbox=False), "echo fine") == "fine"


def test_where_no_command_runs_only_the_named_way_out_does(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.guard.process.tier.probe", lambda *_: "this machine gives none")
    with ProcessGuard(str(workspace), sandbox="full", carrier="own") as guard:
        with pytest.raises(ToolNotAllowed, match="this machine gives none"):
            guard.start(["python", "server.py"])
        assert ask(guard.start(["python", "../server.py"], sandbox=False), "echo fine") == "fine"
