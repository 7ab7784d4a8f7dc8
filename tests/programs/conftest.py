"""A toolkit over a small workspace, for programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from toolkit import SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit

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
    folder = tmp_path / "workspace"
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
