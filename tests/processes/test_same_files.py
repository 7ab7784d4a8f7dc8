"""Several processes change the same files at the same time: no change that succeeded is lost, and nothing is left over."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.examples import repeats
from tests.projects import REPOSITORY
from toolkit import SecurityPolicy, Suspend, SuspendedCall, ToolCall, ToolkitContext, create_agent_toolkit
from toolkit.errors import ToolTimeout
from toolkit.guard import SandboxFS

PROCESSES = 4
TURNS = repeats(40)
HOLDER = """
import sys
from toolkit.guard import SandboxFS
with SandboxFS(sys.argv[1]) as fs, fs.lock("a"):
    print("held", flush=True)
    sys.stdin.readline()
"""

FORKED = """
import os, sys
from toolkit.guard import SandboxFS
with SandboxFS(sys.argv[1]) as fs:
    with fs.lock("a"):
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            print("the child has ended", flush=True)
            sys.stdin.readline()
    if not child:
        os._exit(0)
    print("released", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def start(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    )


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def run_together(job: str, workspace: Path, state: str = "state") -> list[int]:
    """How many changes each process made. ``{}`` in ``state`` gives every process a state directory of its own."""
    states = [str(workspace.parent / state.format(number)) for number in range(PROCESSES)]
    workers = [
        start("-m", "tests.processes.worker", job, str(workspace), states[number], str(number), str(TURNS))
        for number in range(PROCESSES)
    ]
    try:
        assert [read_line(worker) for worker in workers] == ["ready"] * PROCESSES
        for worker in workers:
            tell(worker)
        return [int(read_line(worker) or -1) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def refuse_to_write(workspace: Path) -> None:
    """Another process holds the lock of ``a``: a call waits for it until its deadline."""
    context = ToolkitContext(workspace, SecurityPolicy(default="allow"), state_dir=workspace.parent / "state")
    with create_agent_toolkit(context) as toolkit, pytest.raises(ToolTimeout):
        toolkit.with_options(deadline=0.2).tools.write_file(path="a", content="refused")


def lines(value: int) -> str:
    return "".join(f"line {number}: {value};\nbetween\n" for number in range(PROCESSES))


@pytest.mark.parametrize("state", ["state", "state-{}"], ids=["one state directory", "one each"])
def test_edits_of_different_lines_are_all_kept(workspace: Path, state: str) -> None:
    (workspace / "counts.txt").write_text(lines(0))
    assert run_together("edit", workspace, state) == [TURNS] * PROCESSES
    assert (workspace / "counts.txt").read_text() == lines(TURNS)


def test_a_digest_is_compared_and_set_at_once(workspace: Path) -> None:
    (workspace / "count.txt").write_text("0\n")
    assert run_together("compare", workspace) == [TURNS] * PROCESSES
    assert (workspace / "count.txt").read_text() == f"{TURNS * PROCESSES}\n"


def test_patches_of_the_same_files_lose_and_leave_nothing(workspace: Path) -> None:
    for name in ("a", "b"):
        (workspace / name).write_text(lines(0))
    assert run_together("patch", workspace) == [TURNS] * PROCESSES
    assert {path.name: path.read_text() for path in workspace.iterdir()} == {"a": lines(TURNS), "b": lines(TURNS)}
    assert list((workspace.parent / "state" / "journal").iterdir()) == []


def test_a_suspended_call_is_resumed_by_one_process_only(workspace: Path) -> None:
    policy = SecurityPolicy(default="allow", tools={"todowrite": "ask"})
    saved: list[SuspendedCall] = []
    context = ToolkitContext(
        workspace, policy, state_dir=workspace.parent / "state", approver=lambda request: Suspend(save=saved.append)
    )
    (workspace / "suspended").mkdir()
    with create_agent_toolkit(context) as toolkit:
        for number in range(30):
            toolkit.call(ToolCall(str(number), "todowrite", {"todos": []}))
            (workspace / "suspended" / f"{number}.json").write_text(saved[-1].to_json())
    assert sum(run_together("resume", workspace)) == 30


def test_a_call_that_waits_for_another_process_keeps_its_deadline(workspace: Path) -> None:
    holder = start("-c", HOLDER, str(workspace))
    try:
        assert read_line(holder) == "held"
        refuse_to_write(workspace)
        assert not (workspace / "a").exists()
        with SandboxFS(workspace) as fs:
            fs.write_text("b", "new")  # its name is free
    finally:
        holder.kill()
        holder.communicate()


def test_a_process_that_is_killed_holds_nothing(workspace: Path) -> None:
    holder = start("-c", HOLDER, str(workspace))
    try:
        assert read_line(holder) == "held"
        os.kill(holder.pid, signal.SIGKILL)
        with SandboxFS(workspace) as fs:
            fs.write_text("a", "new")
    finally:
        holder.kill()
        holder.communicate()
    assert (workspace / "a").read_text() == "new"


def test_what_a_fork_inherits_gives_up_no_lock_of_its_parent(workspace: Path) -> None:
    """The child leaves the block in which its parent took the lock; the parent still holds it."""
    holder = start("-c", FORKED, str(workspace))
    try:
        assert read_line(holder) == "the child has ended"
        refuse_to_write(workspace)
        tell(holder)
        assert read_line(holder) == "released"
        with SandboxFS(workspace) as fs:
            fs.write_text("a", "new")
    finally:
        holder.kill()
        holder.communicate()


def test_locks_hold_after_somebody_removed_the_state_directory(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    with SandboxFS(workspace) as fs:
        fs.write_text("a", "1")
    shutil.rmtree(tmp_path / "home")
    holder = start("-c", HOLDER, str(workspace))
    try:
        assert read_line(holder) == "held"
        refuse_to_write(workspace)
    finally:
        holder.kill()
        holder.communicate()


def test_without_a_home_that_can_be_written_the_locks_hold_too(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)  # where this process remembers it
    test_what_a_fork_inherits_gives_up_no_lock_of_its_parent(workspace)
