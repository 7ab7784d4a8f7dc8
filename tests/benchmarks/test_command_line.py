"""``python -m benchmarks``: it lists its parts, every part runs, and the goals have a figure in each row."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.goals import GOALS, judge
from benchmarks.parts import PARTS
from benchmarks.results import Run
from tests.projects import REPOSITORY, run

PEERS = ("agents", "anthropic", "fastmcp", "langchain_core", "matplotlib", "openai", "pydantic_ai", "pydantic_monty")
COUNTS_INSTRUCTIONS = "instructions"
"""Takes a minute under valgrind; its own tests are in test_counters.py."""


def benchmarks(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "benchmarks", *map(str, words)], REPOSITORY, check=False)


def test_the_list_names_every_part() -> None:
    done = benchmarks("--list")
    assert (done.returncode, [line.split()[0] for line in done.stdout.splitlines()]) == (0, list(PARTS))


def test_every_part_is_a_module_and_every_module_a_part() -> None:
    files = {file.stem for file in (REPOSITORY / "benchmarks" / "parts").glob("*.py")} - {"__init__"}
    assert files == set(PARTS)


def test_an_unknown_part_is_refused() -> None:
    done = benchmarks("call")
    assert done.returncode == 2
    assert "there is no part 'call'; --list names them" in done.stderr


def test_the_harness_imports_no_peer() -> None:
    code = f"""
import sys
import benchmarks.__main__, benchmarks.peers, benchmarks.plots, benchmarks.parts.calls, benchmarks.parts.imports
print([name for name in {PEERS} if name in sys.modules])
"""
    assert run([sys.executable, "-c", code], REPOSITORY).stdout.strip() == "[]"


@pytest.mark.whole
@pytest.mark.slow
@pytest.mark.sandbox
def test_a_try_out_of_every_part_gives_each_goal_a_figure(tmp_path: Path) -> None:
    names = [part.name for part in PARTS.values() if not part.slow and part.name != COUNTS_INSTRUCTIONS]
    done = benchmarks("--smoke", "--json", tmp_path / "run.json", *names)
    assert done.returncode == 0, done.stderr
    found = Run.read(tmp_path / "run.json")
    assert list(found.parts) == names
    lacking = [report.goal.row for report in judge(found) if report.figure is None]
    assert [
        row
        for row in lacking
        if not (row.startswith(("commands/", "programs/")) and "no full sandbox here" in done.stdout)
    ] == []
    assert [one["row"] for one in json.loads((tmp_path / "run.json").read_text())["goals"]] == [
        goal.row for goal in GOALS
    ]
    for goal in GOALS:
        assert f"| {goal.what} " in done.stdout


@pytest.mark.slow
def test_a_peer_that_is_missing_is_named(tmp_path: Path) -> None:
    """In an interpreter that finds no peer; the measurement goes on without it."""
    hide = "import sys\nfor name in " + repr(PEERS) + ":\n    sys.modules[name] = None\n"
    (tmp_path / "sitecustomize.py").write_text(hide)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(REPOSITORY)])}
    command = [sys.executable, "-m", "benchmarks", "--smoke", "calls"]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("anthropic", "openai-agents", "pydantic-ai", "langchain-core", "fastmcp"):
        assert f"{name} is not installed" in done.stdout
    assert "| **execute_raw(name, text).text()** " in done.stdout
