"""An environment as a reader has it: the wheel, its extras and a type checker, outside of the checkout, without network."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.mypy_cache import copy_first_cache, is_up_to_date
from tests.projects import REPOSITORY

OURS: Final = Path(sys.executable).parent
STAND_INS: Final = Path(__file__).with_name("stand_ins")
"""Programs of others that pages use: ``pip`` without a registry, MCP servers without a download."""
MYPY_CACHE: Final = REPOSITORY / ".mypy_cache" / "docs"
SECONDS: Final = 600


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment with the wheel."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(self, command: list[str], folder: Path, *, plugin: bool = False) -> subprocess.CompletedProcess[str]:
        """Runs a command with the environment in front of ``PATH``; both outputs come as one, in their order.

        mypy with our ``plugin`` has a cache of its own: it would discard that of mypy without it, and the reverse.
        """
        return subprocess.run(
            command,
            cwd=folder,
            env={**self._variables(), "MYPY_CACHE_DIR": str(MYPY_CACHE / ("plugin" if plugin else "plain"))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
        )

    def _variables(self) -> dict[str, str]:
        home = self.folder.parent / "home"
        home.mkdir(exist_ok=True)
        return {
            "PATH": f"{self.folder / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(home),
            "VIRTUAL_ENV": str(self.folder),
            "NO_COLOR": "1",
            "COLUMNS": "100",
            "LANG": "C.UTF-8",
        }


def make_environment(root: Path) -> Environment:
    made = Environment(root / "environment")

    def call(*command: str | Path) -> None:
        clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        subprocess.run(command, cwd=REPOSITORY, env=clean, check=True, capture_output=True, timeout=SECONDS)

    call(OURS / "hatchling", "build", "--target", "wheel", "--directory", root)
    call(OURS / "uv", "venv", "--offline", "--quiet", "--python", sys.executable, made.folder)
    wheel = next(root.glob("*.whl"))
    call(OURS / "uv", "pip", "install", "--offline", "--quiet", "--no-deps", "--python", made.python, wheel)
    # Python searches a folder named in a .pth file, but reads no .pth file in it. So the source tree, which is installed
    # there through a .pth file, stays out.
    packages = next(made.folder.glob("lib/python*/site-packages"))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    _add_programs(made)
    _lend_caches()
    return made


def _lend_caches() -> None:
    """What mypy knows of the toolkit and its dependencies. It keeps a module that is elsewhere if the text is the same."""
    for folder, plugin in (("plain", False), ("plugin", True)):
        if not is_up_to_date(MYPY_CACHE / folder):
            copy_first_cache(MYPY_CACHE / folder, plugin=plugin)


def _add_programs(environment: Environment) -> None:
    """What people install besides, and the stand-ins."""
    programs = {
        "mypy": f"#!{environment.python}\nfrom mypy.__main__ import console_entry\nconsole_entry()\n",
        "pytest": f"#!{environment.python}\nimport pytest\nraise SystemExit(pytest.console_main())\n",
        "pyright": f'#!/bin/sh\nexec "{OURS}/pyright" --pythonpath "{environment.python}" "$@"\n',
    }
    programs |= {file.stem: f"#!{environment.python}\n{file.read_text()}" for file in STAND_INS.glob("*.py")}
    for name, text in programs.items():
        program = environment.folder / "bin" / name
        program.write_text(text)
        program.chmod(0o755)
