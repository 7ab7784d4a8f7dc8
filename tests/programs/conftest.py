"""A toolkit over a small workspace, for programs, and a warm checker for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guard.ways import guard_in
from tests.programs.cases import Check, parse, prelude
from toolkit import SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit
from toolkit.runtime.programs.check import ProgramChecker
from toolkit.runtime.programs.result import ProgramError

ALLOWED = SecurityPolicy(
    default="deny",
    tools={
        "read_file": "allow",
        "write_file": "allow",
        "list": "allow",
        "glob": "allow",
        "grep": "allow",
        "done": "allow",
        "todowrite": "allow",
        "todoread": "allow",
    },
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return _make_workspace(tmp_path)


def _make_workspace(base: Path) -> Path:
    folder = base / "workspace"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "b.txt").write_text("three\n")
    return folder


@pytest.fixture
def context(workspace: Path, tmp_path: Path) -> ToolkitContext:
    return ToolkitContext(workspace, ALLOWED, state_dir=tmp_path / "state", audit=tmp_path / "audit.jsonl")


@pytest.fixture
def toolkit(context: ToolkitContext) -> Iterator[Toolkit]:
    with create_agent_toolkit(context) as made:
        yield made


@pytest.fixture(scope="module")
def one_toolkit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toolkit]:
    """One for the tests of a file that change nothing in its workspace: its checker is started once."""
    base = tmp_path_factory.mktemp("one_toolkit")
    with create_agent_toolkit(ToolkitContext(_make_workspace(base), ALLOWED, state_dir=base / "state")) as made:
        yield made


@pytest.fixture(scope="session")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProgramChecker]:
    with guard_in("full", tmp_path_factory.mktemp("nothing"), mode="read-only") as guard:
        made = ProgramChecker(guard, seconds=120)
        yield made
        made.close()


@pytest.fixture(scope="session")
def check(checker: ProgramChecker) -> Check:
    def check_program(source: str, *previous: str) -> tuple[ProgramError, ...]:
        program = parse(source)
        assert program.errors == ()
        return checker.check(program, prelude(), previous)

    return check_program
