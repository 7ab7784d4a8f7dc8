"""Type checkers over the programs and projects of all pages, in the reader's environment."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.docs.environment import OURS, Environment
from tests.docs.pages import PageRun

EXPECTED: Final = re.compile(r"# error: (?P<message>.*)")
"""A line of a page that shows what mypy says about it."""


def check_with_mypy(runs: Iterable[PageRun], environment: Environment) -> list[str]:
    """Programs without a project are read by one process; a project has a process, because many pages call theirs acme."""
    runs = [run for run in runs if run.checked]
    alone = [run for run in runs if list(run.checked) == [run.program] and not (run.folder / "pyproject.toml").exists()]
    files = [str(run.folder / run.program) for run in alone]
    problems = _run_mypy(files, environment, alone[0].folder.parent, alone) if alone else []
    for run in runs:
        if run not in alone:
            problems += _run_mypy(list(run.checked), environment, run.folder, [run])
    return problems


def _run_mypy(files: list[str], environment: Environment, folder: Path, runs: list[PageRun]) -> list[str]:
    wanted = expected_errors(runs)
    # The errors that pages show are those of the plugin. All else must pass without it.
    config = "pyproject.toml" if wanted else ""
    command = [
        str(environment.python),
        "-m",
        "mypy",
        "--strict",
        f"--config-file={config}",
        "--no-error-summary",
        *files,
    ]
    printed = environment.run(command, folder, plugin=bool(wanted)).stdout
    found = re.findall(r"^(.+?):(\d+): (error: .*)$", printed, re.MULTILINE)
    if not found and printed.strip():
        return [printed]
    errors = {(folder / file, int(line)): message for file, line, message in found}
    problems = [
        f"{place[0]}:{place[1]}: {message}"
        for place, message in errors.items()
        if place not in wanted or wanted[place] not in message
    ]
    return problems + [f"{place[0]}:{place[1]}: mypy finds no error here" for place in wanted if place not in errors]


def check_with_pyright(runs: Iterable[PageRun], environment: Environment, root: Path) -> list[str]:
    """One process; each page is an execution environment, so that each finds its own packages."""
    runs = [run for run in runs if run.checked]
    files = [f"{run.folder.name}/{file}" for run in runs for file in run.checked]
    settings = {
        "include": files,
        "executionEnvironments": [{"root": run.folder.name} for run in runs],
        "pythonVersion": "3.11",
        "typeCheckingMode": "standard",
    }
    config = root / "pyrightconfig.json"
    config.write_text(json.dumps(settings))
    command = [str(OURS / "pyright"), "--outputjson", "--pythonpath", str(environment.python), "--project", str(config)]
    found = json.loads(environment.run(command, root).stdout)
    assert found["summary"]["filesAnalyzed"] >= len(files), found["summary"]
    wanted = expected_errors(runs)
    errors = {
        (Path(one["file"]), one["range"]["start"]["line"] + 1): one["message"] for one in found["generalDiagnostics"]
    }
    problems = [f"{place[0]}:{place[1]}: {message}" for place, message in errors.items() if place not in wanted]
    return problems + [f"{place[0]}:{place[1]}: pyright finds no error here" for place in wanted if place not in errors]


def expected_errors(runs: Iterable[PageRun]) -> dict[tuple[Path, int], str]:
    """Lines of checked files that show an error."""
    return {
        (run.folder / file, number): found["message"]
        for run in runs
        for file in run.checked
        for number, line in enumerate((run.folder / file).read_text().splitlines(), 1)
        if (found := EXPECTED.search(line))
    }
