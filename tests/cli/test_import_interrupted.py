"""Ctrl-C during ``toolkit import``: servers end, files are whole, and what was done before stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.projects import Project

SERVER = "import time; pipe = open('started', 'w'); print('ready', file=pipe, flush=True); time.sleep(600)"
SETTINGS = f"""
[tool.toolkit.imports.sums]
tools = "sums.json"

[tool.toolkit.imports.slow]
command = ["{sys.executable}", "-c", "{SERVER}"]
sandbox = false
"""


@pytest.mark.slow
def test_leaves_nothing_half_done(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("sums.json", '[{"name": "add", "input_schema": {"type": "object"}}]')
    project.write("pyproject.toml", (tmp_path / "pyproject.toml").read_text() + SETTINGS)
    os.mkfifo(tmp_path / "started")
    command = [sys.executable, "-m", "toolkit", "import", "--trust"]
    done = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with open(tmp_path / "started") as started:
        assert started.readline().startswith("ready")
        done.send_signal(signal.SIGINT)
        _, errors = done.communicate()
        assert started.read() == ""  # the server held the other end: it is gone
    assert done.returncode == 130
    first, second, third, last = errors.splitlines()
    assert (first, second, last) == ("sums: reading sums.json", "sums: 1 tool", "interrupted")
    assert third.startswith("slow: starting ")
    assert sorted(file.name for file in (tmp_path / "acme/tools").iterdir()) == ["sums.json", "tools.json"]
