"""Runs programs as another user, if root runs the tests."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.projects import PACKAGES, REPOSITORY

NOBODY: Final = 65534

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


def interpreter() -> str:
    """A Python that user can run; the one running may lie in a home directory."""
    for candidate in (sys.executable, shutil.which("python3", path="/usr/local/bin:/usr/bin") or ""):
        try:
            code = "import sys; raise SystemExit(sys.version_info < (3, 11))"
            if subprocess.run([candidate, "-c", code], user=NOBODY, group=NOBODY, capture_output=True).returncode == 0:
                return candidate
        except OSError:
            continue
    pytest.skip("no Python 3.11 here can be run by another user")


@contextlib.contextmanager
def folder(*names: str) -> Iterator[Path]:
    """A directory everybody can reach, with directories of that user in it; pytest's own are root's alone."""
    with tempfile.TemporaryDirectory() as path:
        base = Path(path)
        base.chmod(0o755)
        for name in names:
            (base / name).mkdir()
            os.chown(base / name, NOBODY, NOBODY)
        yield base


def run(code: str, *arguments: str) -> str:
    """What a program of that user's writes; our packages can be imported by it."""
    done = subprocess.run(
        [interpreter(), "-c", code, *arguments],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGES), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
        capture_output=True,
        text=True,
    )
    if "Traceback" in done.stderr and "Permission denied: '" in done.stderr:
        pytest.skip("another user cannot read this checkout")
    if "No module named 'toolkit'" in done.stderr and PACKAGES != REPOSITORY:
        pytest.skip("another user cannot read where the toolkit is installed")
    assert done.returncode == 0, done.stderr
    return done.stdout
