"""Environments outside the checkout with the wheel in them, and interpreters of other versions to make them with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.projects import REPOSITORY

OURS = Path(sys.executable).parent
_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Installed:
    """A virtual environment with the wheel, and a project next to it."""

    environment: Path
    project: Path

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs a program of the environment in the project's folder, without the environment variables of the test run."""
        clean = {"PATH": f"{self.environment / 'bin'}:/usr/bin:/bin", "HOME": str(self.project.parent), "NO_COLOR": "1"}
        command = [str(self.environment / "bin" / program), *arguments]
        done = subprocess.run(command, cwd=self.project, env=clean, capture_output=True, text=True, timeout=_SECONDS)
        assert done.returncode == 0, f"{program} {arguments}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done

    @property
    def packages(self) -> Path:
        return next(self.environment.glob("lib/python*/site-packages"))


def own_environment() -> dict[str, str]:
    """The environment variables without those that lead programs to the source tree or to the tests' environment."""
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}


def call(*command: str, folder: Path = REPOSITORY) -> str:
    """Runs one of our tools; returns what it printed."""
    done = subprocess.run(
        [str(OURS / command[0]), *command[1:]],
        cwd=folder,
        env=own_environment(),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def build(target: str, folder: Path, source: Path = REPOSITORY) -> Path:
    """Builds ``wheel`` or ``sdist`` from a source tree into a folder; returns the file."""
    call("hatchling", "build", "--target", target, "--directory", str(folder), folder=source)
    return next(folder.glob({"wheel": "*.whl", "sdist": "*.tar.gz"}[target]))


def install(python: str, wheel: Path, root: Path, *requirements: str) -> Installed:
    """A new environment of an interpreter with the wheel, and with the ``requirements`` if there are any."""
    made = Installed(root / "environment", root / "project")
    call("uv", "venv", "--offline", "--quiet", "--python", python, str(made.environment))
    own = str(made.environment / "bin" / "python")
    if requirements:
        call("uv", "pip", "install", "--quiet", "--compile-bytecode", "--python", own, *requirements)
    call("uv", "pip", "install", "--offline", "--quiet", "--no-deps", "--python", own, str(wheel))
    made.project.mkdir()
    return made


def find_python(version: str) -> str | None:
    """An interpreter of this version, such as ``3.12``: on the path, or one that pyenv has."""
    candidates = [shutil.which(f"python{version}")]
    if pyenv := shutil.which("pyenv"):
        root = subprocess.run([pyenv, "root"], capture_output=True, text=True).stdout.strip()
        installed = subprocess.run([pyenv, "versions", "--bare"], capture_output=True, text=True).stdout.split()
        candidates += [f"{root}/versions/{name}/bin/python" for name in installed if name.startswith(f"{version}.")]
    return next((found for found in candidates if found and _is_version(found, version)), None)


def _is_version(python: str, version: str) -> bool:
    """Whether an interpreter starts and is this version: what pyenv puts on the path may be neither."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, timeout=60)
    except OSError:
        return False
    return done.stdout.strip() == version
