"""Sets up the environment of ``make bench``: ``python -m benchmarks.environment FOLDER``.

Everything is installed as locked. If that fails, each requirement is tried by itself, so that one peer that cannot be
installed here does not stop the others; the benchmarks name the peers they cannot import.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
import venv
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
LOCK = REPOSITORY / "benchmarks" / "requirements.lock"
PROJECT = REPOSITORY / "pyproject.toml"


def requirements() -> list[str]:
    """What the lock is made of: the project's own dependencies, what generation needs, and the group ``bench``."""
    settings = tomllib.loads(PROJECT.read_text())
    project = settings["project"]
    found = [*project["dependencies"], *project["optional-dependencies"]["codegen"]]
    return [*found, *settings["dependency-groups"]["bench"]]


def set_up(folder: Path) -> list[str]:
    """The requirements that could not be installed."""
    venv.create(folder, clear=True)
    failed: list[str] = []
    if not _install(folder, "--require-hashes", "--requirement", str(LOCK)):
        failed = [name for name in requirements() if not _install(folder, "--constraint", str(LOCK), name)]
    if not _install(folder, "--no-deps", "--no-build-isolation", "--editable", str(REPOSITORY)):
        failed.append(str(REPOSITORY))
    return failed


def _install(folder: Path, *what: str) -> bool:
    uv = str(Path(sys.executable).with_name("uv"))
    command = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(folder / "bin" / "python"), *what]
    return subprocess.run(command, check=False).returncode == 0


if __name__ == "__main__":
    for name in set_up(Path(sys.argv[1])):
        print(f"could not be installed: {name}", file=sys.stderr)  # noqa: T201
