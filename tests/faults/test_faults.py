"""The n-th system call of an operation fails: all of it was done or nothing, or the next start finishes it, and we say why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.operations import OPERATIONS
from tests.projects import REPOSITORY

FAULTS = ("ENOSPC", "EIO", "EMFILE", "EINTR")
RECOVERED = ("patch", "generate")
"""What the next start finishes or undoes, as ``transaction.py`` and ``package/write.py`` say. All others leave nothing half done at any moment."""


def outcomes(base: Path, operation: str, faults: str, which: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.faults.operations", str(base / "base"), operation, faults, which]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "XDG_STATE_HOME": str(base / "user")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_outcomes(operation: str, found: list[dict[str, Any]]) -> None:
    assert {one["fault"] for one in found if one["failed"]}, "no call failed, so nothing was tried"
    assert [one["fault"] for one in found if not one["failed"]] == list(dict.fromkeys(one["fault"] for one in found))
    for one in found:
        assert one["kind"] in ("", "ours"), one
        assert one["kind"] == "" or 10 < len(one["error"]) < 300 and "Errno" not in one["error"], one
        assert one["wrong"] == [] and one["now"] in ("before", "after"), one
        assert operation in RECOVERED or one["left"] in ("before", "after"), one
        # Who is told of a failure finds the files as they were, unless the next start finishes it.
        assert one["kind"] == "" or one["left"] == "before" or operation in RECOVERED, one
        assert one["failed"] or one["kind"] == "", one


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.slow
def test_some_calls_that_fail(memory: Path, operation: str, everything: bool) -> None:
    check_outcomes(operation, outcomes(memory, operation, ",".join(FAULTS if everything else FAULTS[::3]), "sample"))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.whole
def test_every_call_that_fails(memory: Path, operation: str, fault: str) -> None:
    found = outcomes(memory, operation, fault, "all")
    if any(one["failed"] for one in found):
        check_outcomes(operation, found)
