"""Playgrounds that the tests share: one that allows much, and one whose policy allows, asks and denies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builtin.commands import needs_a_sandbox
from tests.playground.running import RunningPlayground, playground

POLICY = """default = "deny"

[tools]
read_file = "allow"
write_file = "ask"
edit = "ask"
exec_command = "ask"
bash = "allow"
list = "allow"
glob = "allow"
run_program = "allow"
todowrite = "allow"

[[rules]]
decision = "deny"
path = "secrets/**"
justification = "keys stay here"
"""


def make_workspace(folder: Path) -> Path:
    workspace = folder / "workspace"
    (workspace / "secrets").mkdir(parents=True)
    (workspace / "README.md").write_text("# Shop\n\nA small shop.\n")
    (workspace / "cart.py").write_text("def total(prices: list[float]) -> float:\n    return sum(prices)\n")
    (workspace / "secrets" / "key.txt").write_text("hunter2\n")
    return workspace


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlayground]:
    """Behind a policy file: some tools are allowed, some ask, the rest is denied."""
    needs_a_sandbox()
    folder = tmp_path_factory.mktemp("shop")
    (folder / "policy.toml").write_text(POLICY)
    workspace = make_workspace(folder)
    options = ("--audit", str(folder / "audit.jsonl"))
    with playground(workspace, *options, allowing=("--policy", str(folder / "policy.toml"))) as running:
        yield running
