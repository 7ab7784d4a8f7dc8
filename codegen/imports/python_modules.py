"""Reads modules of a project in a subprocess.

The generator never imports a project's code: code that runs on import cannot touch the generator's state, and a module that
hangs, exits or prints does no harm.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from toolkit import errors
from toolkit.codegen.settings import Settings
from toolkit.errors import GenerationError
from toolkit.schema.problems import Finding

SECONDS: Final = 120
_MAX_SHOWN: Final = 2000


def read_modules(settings: Settings, reader: str, entries: Sequence[str], setting: str, pointer: str) -> dict[str, Any]:
    """The answer of ``reader``, a program next to this file, about ``entries``: ``setting``, at ``pointer``."""
    script = Path(__file__).with_name(reader)
    with tempfile.TemporaryDirectory(prefix="toolkit-reading-") as folder:
        answer, printed = Path(folder, "tools.json"), Path(folder, "printed")
        # Not isolated: it imports the project's code, and so finds what the project's environment provides. It leaves no
        # bytecode: after a change in the same second that keeps the size of a file, that would be taken for the new code.
        command = [sys.executable, "-P", "-B", str(script), str(answer), str(settings.import_root), settings.package]
        code = _run([*command, *entries], settings.root, printed)
        if code is None:
            raise _refuse(
                f"reading the modules of {setting!r} took longer than {SECONDS} s;"
                " move slow work out of the module level",
                pointer,
            )
        if code or not answer.is_file():
            text = printed.read_bytes()[-_MAX_SHOWN:].decode("utf-8", "replace").strip()
            last = f"; its last output:\n{text}" if text else ""
            raise _refuse(f"importing a module of {setting!r} ended the process (exit code {code}){last}", pointer)
        result: dict[str, Any] = json.loads(answer.read_bytes())
    if "failed" in result:
        raise _refuse(result["failed"], pointer)
    return result


def _refuse(message: str, pointer: str) -> GenerationError:
    return GenerationError([Finding(message, "pyproject.toml", pointer)])


def _run(command: list[str], folder: Path, printed: Path) -> int | None:
    """The exit code, or None if it took too long. Child processes of the command are ended with it."""
    with printed.open("wb") as output:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        return child.wait(SECONDS)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _environment() -> dict[str, str]:
    """Our environment, with the toolkit that runs here before any installed one."""
    home = Path(errors.__file__).resolve().parents[1]
    if home.name in ("site-packages", "dist-packages"):
        return dict(os.environ)
    paths = [str(home), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
