"""A program that is killed while it applies a patch: the next one finds the whole patch applied, or nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.projects import REPOSITORY

BEFORE = {"a.txt": "640 a\n", "d.txt": "644 d\n", "e.txt": "755 e\n", "sub": "755 directory", "sub/e2.txt": "600 E\n"}
AFTER = {
    "a.txt": "640 new a\n",
    "new": "755 directory",
    "new/c.sh": "644 new c\n",
    "new/deep": "755 directory",
    "new/deep/b.txt": "644 new b\n",
    "sub": "755 directory",
    "sub/e2.txt": "755 new e\n",
}


@pytest.mark.slow
def test_killed_at_any_step_the_next_toolkit_finds_all_of_the_patch_or_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.builtin.killed_patches", str(tmp_path / "base")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(REPOSITORY)})
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]

    assert sum(one["left"] not in (BEFORE, AFTER) for one in found) > 20, "it must be possible to be killed half way"
    assert [one for one in found if one["tree"] not in (BEFORE, AFTER) or one["journals"]] == []
    assert sorted((one["tree"] for one in (found[0], found[-1])), key=len, reverse=True) == [AFTER, BEFORE]
