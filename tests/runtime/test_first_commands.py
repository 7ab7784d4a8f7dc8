"""The first commands of several threads: they share one sandbox, and nothing is left open when the toolkit is closed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.projects import run

FIRST_COMMANDS = """
import gc, json, os, threading
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit

def run_first_commands():
    context = ToolkitContext("workspace", SecurityPolicy(default="allow"), sandbox="unsafe-none", state_dir="state")
    with create_agent_toolkit(context) as toolkit:
        together = threading.Barrier(4)

        def run():
            together.wait()
            codes.append(toolkit.tools.exec_command(command=["true"]).exit_code)

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return len(os.listdir("/dev/fd"))

codes = []
os.mkdir("workspace")
gc.disable()
print(json.dumps([[run_first_commands() for _ in range(6)], codes]))
"""


@pytest.mark.slow
def test_no_descriptor_is_left_behind(tmp_path: Path) -> None:
    """Where two threads made a sandbox each, as with ``functools.cached_property`` on Python 3.12, one of them stays open."""
    descriptors, codes = json.loads(run([sys.executable, "-c", FIRST_COMMANDS], tmp_path).stdout)
    assert codes == [0] * 24
    assert len(set(descriptors)) == 1
