"""The two tables of programs through the toolkit: right ones run to their end, wrong ones have no effect."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs.cases import INPUTS, TOOLS, ProgramCase, read_cases
from toolkit import SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit

FILES = {
    "a": "b\n",
    "a.json": '{"name": "a", "size": 1}\n',
    "a.py": "def f():\n    return 1\n",
    "a.txt": "one a\ntwo x\n",
    "app.py": "# TODO: write\nprint('x')\n",
    "b.txt": "three\n",
    "data.csv": "name,price\npear,1.5\n",
    "log.txt": "line\n" * 1200,
    "n.txt": "-3\n",
    "naïve.txt": "é\n",
    "notes.txt": "first\nsecond\n",
    "package.json": '{"dependencies": {"left-pad": "1", "@x/y": "2"}}\n',
    "pyproject.toml": 'version = "1.2"\n',
    "src/main.py": "def main() -> None: ...  # TODO\n",
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Toolkit, Path]]:
    """One toolkit for all programs: its checker and its spare interpreter stay warm."""
    folder = tmp_path_factory.mktemp("tables")
    workspace = folder / "workspace"
    workspace.mkdir()
    policy = SecurityPolicy(default="deny", tools=dict.fromkeys(TOOLS, "allow"))
    with create_agent_toolkit(ToolkitContext(workspace, policy, state_dir=folder / "state")) as toolkit:
        yield toolkit, workspace


@pytest.fixture
def toolkit(shared: tuple[Toolkit, Path]) -> Toolkit:
    toolkit, workspace = shared
    for entry in workspace.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for name, text in FILES.items():
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(text)
    return toolkit


@pytest.mark.sample
@pytest.mark.parametrize("case", read_cases("right_programs.txt"), ids=lambda case: case.name)
def test_a_right_program_runs(case: ProgramCase, toolkit: Toolkit) -> None:
    result = toolkit.run_program(case.source, inputs=INPUTS)
    assert [str(error) for error in result.errors] == []
    assert result.ran


@pytest.mark.sample
@pytest.mark.parametrize("case", read_cases("wrong_programs.txt"), ids=lambda case: case.name)
def test_a_wrong_program_has_no_effect(case: ProgramCase, toolkit: Toolkit) -> None:
    result = toolkit.run_program(case.source, inputs=INPUTS)
    assert {error.line for error in result.errors}.issuperset(case.errors)
    assert (result.ran, result.calls, result.output) == (False, (), "")
