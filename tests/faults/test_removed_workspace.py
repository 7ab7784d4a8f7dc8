"""A workspace that is removed while a toolkit uses it: every tool says so, instead of finding nothing in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from toolkit import SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit
from toolkit.errors import ToolFailed

CALLS: dict[str, Callable[[Toolkit], object]] = {
    "list": lambda toolkit: toolkit.tools.list(path="."),
    "tree": lambda toolkit: toolkit.tools.tree(path="."),
    "glob": lambda toolkit: toolkit.tools.glob(pattern="**"),
    "grep": lambda toolkit: toolkit.tools.grep(pattern="x"),
    "read_file": lambda toolkit: toolkit.tools.read_file(path="a.txt"),
    "write_file": lambda toolkit: toolkit.tools.write_file(path="a.txt", content="x"),
    "exec_command": lambda toolkit: toolkit.tools.exec_command(command=["true"]),
    "bash": lambda toolkit: toolkit.tools.bash(command="true"),
}


@pytest.mark.parametrize("used", [False, True], ids=["unused", "used"])
@pytest.mark.parametrize("tool", CALLS)
def test_a_removed_workspace_is_named(tmp_path: Path, tool: str, used: bool) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    policy = SecurityPolicy(default="allow")
    context = ToolkitContext(workspace, policy, sandbox="unsafe-none", state_dir=tmp_path / "state")
    with create_agent_toolkit(context) as toolkit:
        (workspace / "a.txt").write_text("x")
        if used:
            CALLS[tool](toolkit)
        (workspace / "a.txt").unlink()
        workspace.rmdir()
        with pytest.raises(ToolFailed, match="no longer exists") as failed:
            CALLS[tool](toolkit)
        assert failed.value.reason == "NOT_FOUND"
