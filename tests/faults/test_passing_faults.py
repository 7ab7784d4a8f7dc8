"""What has run out for a moment (open files, processes) fails one call, as a retriable ``SYSTEM``, and no call after it."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.faults import program
from tests.guard import nobody
from tests.guard.ways import SANDBOXED, Way, guard_in, needs
from tests.projects import run
from toolkit.errors import ToolFailed
from toolkit.guard import LongProcess

RESULTS = {"exec_command": "it runs\n", "read_file": "text\n", "list": ["a.txt"]}
DESCRIPTORS = 5
"""How many are sent with a command."""
FAULTY = ["failed", "SYSTEM", True]


def outcomes(fault: str, tool: str, tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "ws").mkdir()
    done = run([sys.executable, "-m", program.__name__, fault, tool, str(tmp_path / "ws")], tmp_path)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def it_passed(tool: str) -> dict[str, object]:
    works = ["result", RESULTS[tool]]
    return {"afterwards": works, "another toolkit": works, "offered": True}


@pytest.mark.sample
@pytest.mark.parametrize("tool", program.ACTS)
@pytest.mark.parametrize("left", [0, 1, 2, 3, 5, 8, 11])
def test_a_first_call_without_descriptors_is_retriable(tmp_path: Path, tool: str, left: int) -> None:
    if tool == "exec_command":
        needs("full")
    answer = outcomes(f"{left} descriptors", tool, tmp_path)
    meanwhile = answer.pop("meanwhile")
    assert answer == it_passed(tool)
    # With some descriptors a call may do; what it may not do is fail in another way.
    assert meanwhile in (FAULTY, ["result", RESULTS[tool]])
    assert left > 0 or meanwhile == FAULTY


@pytest.mark.parametrize(
    "fault",
    [
        "blocked signals",
        "ignored children",
        *(pytest.param(f"closed {number}", marks=pytest.mark.whole) for number in range(3)),
        "closed 0 1 2",
    ],
)
def test_commands_run_whatever_the_program_did_to_its_signals_and_stdio(tmp_path: Path, fault: str) -> None:
    needs("full")
    answer = outcomes(fault, "exec_command", tmp_path)
    assert answer.pop("meanwhile") == ["result", RESULTS["exec_command"]]
    assert answer == it_passed("exec_command")


WITHOUT_PROCESSES = """
import json, resource, sys
from toolkit.errors import ToolFailed
from toolkit.guard import ProcessGuard

def run():
    with ProcessGuard(sys.argv[1]) as guard:
        if guard.tier == "none":
            return guard.choice.reason
        return guard.run(["echo", "it runs"]).stdout.decode()

soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
resource.setrlimit(resource.RLIMIT_NPROC, (1, hard))
try:
    meanwhile = run()
except ToolFailed as error:
    meanwhile = [error.reason, error.retriable]
resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
print(json.dumps([meanwhile, run()]))
"""


@nobody.only_root
def test_a_first_command_without_processes_is_retriable() -> None:
    """As another user: root may always start one more."""
    with nobody.folder("ws") as base:
        meanwhile, afterwards = json.loads(nobody.run(WITHOUT_PROCESSES, str(base / "ws")))
    assert meanwhile == ["SYSTEM", True]
    if afterwards != "it runs\n":
        pytest.skip(f"this machine gives another user no sandbox: {afterwards}")


def echo(program: LongProcess) -> bytes:
    program.write(b"x\n")
    while (text := program.read()) is None:
        os.sched_yield()
    return text


BLOCKED = "import signal; print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))"


@pytest.mark.parametrize("way", SANDBOXED)
def test_no_command_inherits_what_the_program_blocks(tmp_path: Path, way: Way) -> None:
    needs(way)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD, signal.SIGTERM])
    try:
        with guard_in(way, tmp_path) as guard:
            result = guard.run([sys.executable, "-c", BLOCKED])
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD, signal.SIGTERM])
    assert result.stdout == b"[]\n"


@pytest.mark.parametrize("way", SANDBOXED)
def test_a_fork_server_that_runs_out_of_descriptors_keeps_its_commands(tmp_path: Path, way: Way) -> None:
    needs(way)
    with guard_in(way, tmp_path) as guard:
        program = guard.start(["cat"])
        assert echo(program) == b"x\n"
        assert guard._sandbox._server is not None
        server = guard._sandbox._server.pid
        used = max(map(int, os.listdir(f"/proc/{server}/fd")))
        soft, hard = resource.prlimit(server, resource.RLIMIT_NOFILE)
        for room in range(1, 40):
            resource.prlimit(server, resource.RLIMIT_NOFILE, (used + room, hard))
            try:
                assert guard.run(["echo", "it runs"]).stdout == b"it runs\n"
            except ToolFailed as error:
                # A command whose descriptors did not arrive cannot even be told so.
                assert error.reason == "SYSTEM" or room <= DESCRIPTORS, error
        resource.prlimit(server, resource.RLIMIT_NOFILE, (soft, hard))
        assert guard._sandbox._server.pid == server
        assert guard.run(["echo", "it runs"]).stdout == b"it runs\n"
        assert echo(program) == b"x\n"


def test_a_program_for_which_no_thread_can_be_started_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with guard_in("unsafe-none", tmp_path) as guard:
        guard.run(["true"])
        before = len(os.listdir("/proc/self/fd"))
        monkeypatch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(ToolFailed, match="no more threads") as failed:
            guard.start(["cat"])
        assert failed.value.retriable
        assert len(os.listdir("/proc/self/fd")) == before
