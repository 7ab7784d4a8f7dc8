"""``make stress`` in small."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.projects import REPOSITORY

WATCHDOG = 300


@pytest.mark.whole
def test_a_little_stress_loses_and_leaks_nothing() -> None:
    """In a process of its own: threads that other tests hold would count as leaked."""
    command = [sys.executable, "-m", "benchmarks.stress", "--scale", "0.001"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=WATCHDOG)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    loads, faults = done.stdout.split("\n| fault |")
    assert loads.count("\n| ") == 10 and faults.count("\n| ") == 2
