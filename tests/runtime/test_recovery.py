"""A patch whose process was killed half way: the next toolkit for that workspace finishes or undoes it first."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.projects import REPOSITORY
from toolkit.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit

PATCH = """*** Begin Patch
*** Update File: a.txt
@@
-old a
+new a
*** Update File: b.txt
@@
-old b
+new b
*** Update File: c.txt
@@
-old c
+new c
*** Add File: d.txt
+new d
*** Delete File: e.txt
*** End Patch
"""
BEFORE = {name: f"old {name[0]}\n" for name in ("a.txt", "b.txt", "c.txt", "e.txt")}
AFTER = {name: f"new {name[0]}\n" for name in ("a.txt", "b.txt", "c.txt", "d.txt")}

# The child counts the calls by which names change, and ends itself at one of them.
CHILD = """
import os, signal, sys
from toolkit.files import steps as step
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit
left = int(sys.argv[3])
def counted(act):
    def run(*arguments):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return act(*arguments)
    return run
step.exchange, step.move_new = counted(step.exchange), counted(step.move_new)
context = ToolkitContext(sys.argv[1], SecurityPolicy(default="allow"), state_dir=sys.argv[2])
create_agent_toolkit(context).tools.apply_patch(patch=sys.stdin.read())
"""


def files(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in sorted(folder.iterdir())}


@pytest.mark.parametrize("place", [1, 2, 3, 4, 5, 99])
@pytest.mark.slow
def test_a_killed_patch_is_whole_or_gone_at_the_next_start(
    tmp_path: Path, place: int, caplog: pytest.LogCaptureFixture
) -> None:
    workspace, state = tmp_path / "workspace", tmp_path / "state"
    workspace.mkdir()
    for name, text in BEFORE.items():
        (workspace / name).write_text(text)
    command = [sys.executable, "-c", CHILD, str(workspace), str(state), str(place)]
    ended = subprocess.run(command, input=PATCH, text=True, cwd=REPOSITORY, timeout=60, check=False)
    assert ended.returncode == (0 if place == 99 else -signal.SIGKILL)

    with create_agent_toolkit(ToolkitContext(workspace, SecurityPolicy(default="allow"), state_dir=state)) as toolkit:
        assert files(workspace) in (BEFORE, AFTER), "before any tool has run"
        toolkit.tools.read_file(path="a.txt")

    assert ("an interrupted patch was" in caplog.text) == (place != 99)
    assert not list((state / "journal").iterdir())
