"""Code-first tools as specs: the modules a project names under ``functions`` are read in a process of their own.

The generator never imports a project's code: what runs when such a module is imported cannot touch its state, and a module
that hangs, exits or prints does no harm.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from codegen.settings import Settings
from toolkit.errors import GenerationError, SpecError
from toolkit.spec.check import check_document
from toolkit.spec.model import ToolSpec
from toolkit.spec.problems import Problems

SECONDS: Final = 120
_READER: Final = Path(__file__).with_name("functions_reader.py")
_WHERE: Final = "@ pyproject.toml:/tool/toolkit/functions"
_MAX_TOLD: Final = 2000


def read_functions(settings: Settings) -> dict[str, list[ToolSpec]]:
    """What each entry of ``functions`` holds, in order; all mistakes are raised at once."""
    if not settings.functions:
        return {}
    told = _told(settings)
    problems: list[str] = list(told["problems"])
    found: dict[str, list[ToolSpec]] = {}
    for entry, tools in told["tools"].items():
        found[entry] = [spec for tool in tools for spec in _specs(entry, tool, problems)]
    if problems:
        raise SpecError(problems)
    return found


def _specs(entry: str, tool: dict[str, Any], problems: list[str]) -> list[ToolSpec]:
    """One tool, judged as a spec in a file would be."""
    mistakes = Problems(entry)
    specs = check_document(tool["spec"], mistakes, None)
    place = tool["place"]
    problems += [f"{finding.message} @ {entry}:{place}{finding.pointer}" for finding in mistakes.found]
    long = tool["longDescription"]
    return [replace(spec, pointer=place, function=tool["function"], long_description=long) for spec in specs]


def _told(settings: Settings) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="toolkit-functions-") as folder:
        answer, printed = Path(folder, "tools.json"), Path(folder, "printed")
        command = [sys.executable, "-P", str(_READER), str(answer), str(settings.import_root), settings.package]
        code = _run([*command, *settings.functions], settings.root, printed)
        if code is None:
            raise GenerationError(f"reading the modules of 'functions' took longer than {SECONDS} s {_WHERE}")
        if code or not answer.is_file():
            words = printed.read_bytes()[-_MAX_TOLD:].decode("utf-8", "replace").strip()
            last = f"; the last it said:\n{words}" if words else ""
            raise GenerationError(
                f"a module of 'functions' ended the process that read it (exit code {code}) {_WHERE}{last}"
            )
        told: dict[str, Any] = json.loads(answer.read_bytes())
    if "failed" in told:
        raise GenerationError(f"{told['failed']} {_WHERE}")
    return told


def _run(command: list[str], folder: Path, printed: Path) -> int | None:
    """The exit code, or None if it took too long. Whatever the process started ends with it."""
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
    """Ours, and the toolkit that runs here before any other that is installed."""
    home = Path(__file__).resolve().parents[2]
    if home.name in ("site-packages", "dist-packages"):
        return dict(os.environ)
    paths = [str(home), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
