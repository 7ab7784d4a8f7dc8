"""The four type checkers as functions: each takes files and returns its messages by line."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.mypy_cache import PLUGIN, cache_of_this_process
from tests.projects import DOWNSTREAM, REPOSITORY, run

BIN = Path(sys.executable).parent


@dataclass(slots=True)
class Report:
    """The output of a checker: errors and revealed types by file and line."""

    errors: dict[tuple[str, int], list[str]] = field(default_factory=lambda: defaultdict(list))
    revealed: dict[tuple[str, int], str] = field(default_factory=dict)
    notes: dict[tuple[str, int], list[str]] = field(default_factory=lambda: defaultdict(list))

    def take(self, file: str, line: int, is_error: bool, message: str) -> None:
        place = (Path(file).name, line)
        found = _REVEALED.search(message)
        if found and not is_error:
            self.revealed[place] = plain(found[1])
        elif is_error:
            self.errors[place].append(message)
        else:
            self.notes[place].append(message)


_REVEALED = re.compile(
    r"(?:Revealed type is \"|Type of \".*\" is \"|revealed type: |Revealed type: `)(.+?)[\"`]?(?: \[reveal-type\])?$",
    re.DOTALL,
)


def plain(type_text: str) -> str:
    """A revealed type without module names and with one kind of quotes."""
    return re.sub(r"(?<![\w'])(?:\w+\.)+(?=\w)", "", type_text.replace('"', "'")).rstrip("?")


def mypy(files: Sequence[Path], folder: Path, *options: str, settings: str = "") -> Report:
    command = [
        str(BIN / "mypy"),
        "--strict",
        "--no-pretty",
        "--show-error-codes",
        f"--config-file={settings}",
        *options,
    ]
    done = run([*command, *map(str, files)], folder, check=False)
    report = _lines(done.stdout, r"(.+?):(\d+)(?::\d+)?: (error|note): (.*)", done.stderr)
    checked = re.search(r"(\d+) source files?\)?$", done.stdout)
    _require_complete_run(done, report, files, int(checked[1]) if checked else 0)
    return report


def mypy_with_plugin(files: Sequence[Path], folder: Path, *options: str) -> Report:
    settings = folder / "mypy-plugin.ini"
    settings.write_text(PLUGIN)
    cache = f"--cache-dir={cache_of_this_process(plugin=True)}"
    return mypy(files, folder, cache, *options, settings=str(settings))


def pyright(files: Sequence[Path], folder: Path, mode: str = "strict") -> Report:
    config = folder / "pyright-cases.json"
    config.write_text(
        json.dumps(
            {
                "typeCheckingMode": mode,
                "pythonVersion": "3.11",
                # Relative to the folder: pyright drops an absolute path and then checks everything in the folder.
                "include": [os.path.relpath(file, folder) for file in files],
                "extraPaths": [str(folder), str(REPOSITORY), str(DOWNSTREAM)],
                "reportUnnecessaryIsInstance": False,
            }
        )
    )
    done = run(
        [str(BIN / "pyright"), "--outputjson", "-p", str(config), "--pythonpath", sys.executable], folder, check=False
    )
    report, output = Report(), json.loads(done.stdout)
    for item in output["generalDiagnostics"]:
        report.take(item["file"], item["range"]["start"]["line"] + 1, item["severity"] == "error", item["message"])
    _require_complete_run(done, report, files, output["summary"]["filesAnalyzed"])
    return report


def pyrefly(files: Sequence[Path], folder: Path) -> Report:
    # Only with a settings file, however small, does pyrefly run its full set of checks.
    paths = json.dumps([str(folder), str(REPOSITORY), str(DOWNSTREAM)])
    (folder / "pyrefly.toml").write_text(f'python-version = "3.11"\nsearch-path = {paths}\n')
    options = [f"--python-interpreter-path={sys.executable}", "--output-format=min-text"]
    done = run([str(BIN / "pyrefly"), "check", *options, *map(str, files)], folder, check=False)
    report = _lines(done.stdout, r"\s*(ERROR|INFO)\s+(.+?):(\d+):\S+: (.*)", done.stderr, order=(1, 2, 0, 3))
    _require_complete_run(done, report, files)
    return report


def ty(files: Sequence[Path], folder: Path) -> Report:
    paths = [option for path in (folder, REPOSITORY, DOWNSTREAM) for option in ("--extra-search-path", str(path))]
    options = ["--python", sys.prefix, "--python-version", "3.11", "--output-format", "concise", *paths]
    done = run([str(BIN / "ty"), "check", *options, *map(str, files)], folder, check=False)
    report = _lines(done.stdout, r"(.+?):(\d+):\d+: (error|info|warning)\S* (.*)", done.stderr)
    _require_complete_run(done, report, files)
    return report


def _require_complete_run(
    done: CompletedProcess[str], report: Report, files: Sequence[Path], checked: int | None = None
) -> None:
    """A checker that fails on an option or a missing file finds nothing, which must not count as clean."""
    missing = [str(file) for file in files if not file.is_file()]
    exited_as_reported = done.returncode == (1 if report.errors else 0)
    if missing or not exited_as_reported or checked is not None and checked < len(files):
        raise AssertionError(
            f"{done.args[0]} did not check everything (exit code {done.returncode}, {len(report.errors)} lines with errors,"
            f" {checked} of {len(files)} files, missing: {missing})\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        )


def _lines(output: str, pattern: str, errors: str, order: tuple[int, ...] = (0, 1, 2, 3)) -> Report:
    report, read = Report(), 0
    for line in output.splitlines():
        found = re.fullmatch(pattern, line)
        if found:
            file, number, kind, message = (found.groups()[index] for index in order)
            report.take(file, int(number), kind.lower() == "error", message)
            read += 1
    if output.strip() and not read and "no issues" not in output and "All checks passed" not in output:
        raise AssertionError(f"the checker's output was not understood:\n{output}\n{errors}")
    return report


Checker = Callable[[Sequence[Path], Path], Report]
CHECKERS: dict[str, Checker] = {
    "mypy": mypy,
    "mypy with plugin": mypy_with_plugin,
    "pyright": pyright,
    "pyrefly": pyrefly,
    "ty": ty,
}
MYPY_AND_REST = [name if name.startswith("mypy") else pytest.param(name, marks=pytest.mark.whole) for name in CHECKERS]
"""Rows for tests of which ``make test`` runs those of mypy. All checkers say the same in test_words.py and test_checkers.py."""
