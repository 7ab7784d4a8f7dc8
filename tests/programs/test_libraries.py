"""Programs run wherever the libraries of the toolkit are installed."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.projects import REPOSITORY

CODE = """
import sys
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit

policy = SecurityPolicy(default="deny", tools={"done": "allow"})
with create_agent_toolkit(ToolkitContext(sys.argv[1], policy, state_dir=sys.argv[2])) as toolkit:
    print(toolkit.run_program("tools.done(message='hello').message", checker="off"))
"""


def test_libraries_outside_the_environment_of_the_interpreter_are_found(tmp_path: Path) -> None:
    """As with PYTHONPATH, or a folder that a .pth file names."""
    (tmp_path / "workspace").mkdir()
    places = os.pathsep.join([sysconfig.get_path("purelib"), str(REPOSITORY)])
    done = subprocess.run(
        [os.path.realpath(sys.executable), "-c", CODE, str(tmp_path / "workspace"), str(tmp_path / "state")],
        env={**os.environ, "PYTHONPATH": places},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "value='hello'" in done.stdout, done.stderr
