"""Several ``toolkit generate`` of one package at the same time, and the use of a package that one left unfinished."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import command_line
from tests.projects import REPOSITORY, Project, many_tools

RUNS = 3
KILLED = """
import os, signal, sys
steps, last = 0, STEP

def count(event, args):
    global steps
    watched = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir") or event == "open" and args[1] == "wb"
    if watched and "generated" in str(args[0]):
        steps += 1
        if steps == last:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
"""
USE = """
from toolkit import Pack, SetupError
try:
    from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit
    from acme.generated.catalog import CATALOG
    names = sorted(CATALOG.tools)
    context = ToolkitContext(".", SecurityPolicy(default="allow"))
    with create_agent_toolkit(context, packs=[Pack({name: lambda args, ctx: {"rows": [], "total": 0} for name in names})]) as toolkit:
        assert sorted(tool.name for tool in toolkit.get_allowed_tools()) == names
except SetupError as error:
    assert "run `toolkit generate`" in str(error), error
    print("unfinished")
except ImportError:
    print("missing")
else:
    print("usable")
"""


def test_runs_at_the_same_time_write_one_whole_package(tmp_path: Path) -> None:
    wanted = Project(tmp_path / "wanted", many_tools(20))
    wanted.generate()
    project = Project(tmp_path / "shared", many_tools(20))
    command = [sys.executable, "-m", "toolkit", "generate"]
    environment = {"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    runs = [
        subprocess.Popen(command, cwd=project.root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(RUNS)
    ]
    for one in runs:
        _, errors = one.communicate()
        assert (one.returncode, errors) == (0, b"")
    assert project.files() == wanted.files()
    assert not (project.output / ".toolkit-staging").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "is_first", [pytest.param(True, marks=pytest.mark.whole, id="first run"), pytest.param(False, id="next run")]
)
def test_what_a_killed_run_left_says_what_to_do_or_works(tmp_path: Path, is_first: bool, everything: bool) -> None:
    """Killed before any step that changes something: the package is never used half, and the next run finishes it."""
    wanted = Project(tmp_path / "wanted", many_tools(2))
    wanted.generate()
    seen = set()
    for step in range(1, 200, 1 if everything else 5):
        project = Project(tmp_path / f"killed {step}", many_tools(1))
        if not is_first:
            project.generate()
        project.write("acme/tools/tools.json", (wanted.root / "acme/tools/tools.json").read_text())
        killed = command_line.toolkit(project.root, "generate", first=KILLED.replace("STEP", str(step)))
        if killed.returncode == 0:
            break
        assert killed.returncode == -9, killed.stderr
        used = command_line.python(project.root, USE)
        assert used.stderr == ""
        seen.add(used.stdout.strip())
        project.generate()
        assert project.files() == wanted.files(), f"killed at step {step}"
    assert step > 10
    states = {"missing", "unfinished", "usable"} if is_first else {"unfinished", "usable"}
    assert seen <= states
    assert seen == states or not everything  # which steps leave which state varies with their order
