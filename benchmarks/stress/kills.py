"""Processes that work on the same files, and processes that are killed at any moment."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks import REPOSITORY
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit

PATCHED = 20
WORKER = (
    """
import sys
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit.errors import ToolFailed
job, workspace, state, number, turns = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
with create_agent_toolkit(ToolkitContext(workspace, SecurityPolicy(default="allow"), state_dir=state)) as toolkit:
    sys.stdout.write("ready\\n")
    sys.stdout.flush()
    sys.stdin.readline()
    done = 0
    for turn in range(turns):
        if job == "edit":
            toolkit.tools.edit(
                path="shared.txt", old_string=f"line {number}: {turn};", new_string=f"line {number}: {turn + 1};"
            )
            done += 1
        else:
            now = int(toolkit.tools.read_file(path="p0.txt").content)
            patch = "".join(
                f"*** Update File: p{name}.txt\\n@@\\n-{now}\\n+{now + 1}\\n" for name in range("""
    + str(PATCHED)
    + """)
            )
            toolkit.tools.apply_patch(patch=f"*** Begin Patch\\n{patch}*** End Patch\\n")
    sys.stdout.write(f"{done}\\n")
"""
)


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One kind of fault: how often it came, and what was lost or left."""

    name: str
    times: int
    lost: int
    left: int


def _start(job: str, workspace: Path, number: int, turns: int) -> subprocess.Popen[str]:
    state = str(workspace.parent / "state")
    command = [sys.executable, "-c", WORKER, job, str(workspace), state, str(number), str(turns)]
    worker = subprocess.Popen(command, cwd=REPOSITORY, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    return worker


def _go(worker: subprocess.Popen[str]) -> None:
    assert worker.stdin is not None
    worker.stdin.write("go\n")
    worker.stdin.flush()


def edits_of_several_processes(workspace: Path, turns: int, processes: int = 4) -> FaultRow:
    """Every process counts in its own line of one file."""
    shared = workspace / "shared.txt"
    shared.write_text("".join(f"line {number}: 0;\n" for number in range(processes)))
    workers = [_start("edit", workspace, number, turns) for number in range(processes)]
    for worker in workers:
        _go(worker)
    done = [int(worker.communicate()[0] or 0) for worker in workers]
    found = [int(line.split()[2].rstrip(";")) for line in shared.read_text().splitlines()]
    lost = sum(made - kept for made, kept in zip(done, found, strict=True))
    return FaultRow(f"edits of one file by {processes} processes", sum(done), lost, _leftovers(workspace))


def kills_inside_patches(workspace: Path, kills: int) -> FaultRow:
    """A process patches 20 files again and again, and is killed; the next toolkit finishes or undoes what it left."""
    chance = random.Random(3)
    for name in range(PATCHED):
        (workspace / f"p{name}.txt").write_text("0\n")
    halves = 0
    for _ in range(kills):
        worker = _start("patch", workspace, 0, 10**6)
        _go(worker)
        try:
            worker.wait(chance.uniform(0.005, 0.12))
        except subprocess.TimeoutExpired:
            worker.kill()
        worker.communicate()
        context = ToolkitContext(workspace, SecurityPolicy(default="allow"), state_dir=workspace.parent / "state")
        create_agent_toolkit(context).close()  # recovers
        halves += len({(workspace / f"p{name}.txt").read_text() for name in range(PATCHED)}) != 1
    return FaultRow(f"SIGKILL while {PATCHED} files are patched", kills, halves, _leftovers(workspace))


def _leftovers(workspace: Path) -> int:
    """Temporary files in the workspace, and journals."""
    journals = workspace.parent / "state" / "journal"
    temporary = [path for path in workspace.rglob(".*") if len(path.name) == 33]
    return len(temporary) + (len(list(journals.iterdir())) if journals.is_dir() else 0)
