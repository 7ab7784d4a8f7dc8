"""Virtual environments in a workspace, and what an attacker plants around them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.projects import REPOSITORY

ASKS, MISSING = ("platform", "_wmi") if sys.version_info >= (3, 12) else ("copy", "org")
"""A module of the standard library, and one that it asks for and that only another platform has."""

LIBRARY = f"lib/python{sys.version_info.major}.{sys.version_info.minor}"


def make_environment(folder: Path) -> str:
    """A virtual environment without packages; returns the path of its interpreter."""
    shutil.copytree(_made_once().name, folder, symlinks=True, dirs_exist_ok=True)
    return str(folder / "bin/python")


@cache
def _made_once() -> tempfile.TemporaryDirectory[str]:
    """What is copied, as ``venv`` takes long. Only its scripts for shells, which nothing runs here, name their place."""
    folder = tempfile.TemporaryDirectory()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", folder.name], check=True)
    return folder


def touch_code(marker: Path) -> str:
    """Code that creates ``marker``; it runs even where no module can be imported any more."""
    return f"import posix; posix.close(posix.open({str(marker)!r}, 65, 438))\n"


def plant_home(folder: Path, marker: Path) -> Path:
    """A made-up installation of Python whose standard library creates ``marker``; returns what ``home`` would name."""
    library = folder / LIBRARY
    (library / "encodings").mkdir(parents=True)
    (library / "os.py").touch()
    (library / "encodings/__init__.py").write_text(touch_code(marker))
    (folder / "bin").mkdir()
    return folder / "bin"


def run_python(python: str, code: str, *arguments: str, path: Path = REPOSITORY) -> subprocess.CompletedProcess[str]:
    """Run code that imports our packages from ``path``."""
    environment = {**os.environ, "PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [python, "-c", code, *arguments], env=environment, cwd="/", capture_output=True, text=True, timeout=600
    )
