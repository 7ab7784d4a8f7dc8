"""Who may not write does not write by a command either."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.guard.ways import SANDBOXED, Way, needs
from toolkit import Rule, SecurityPolicy, ToolContext, ToolkitContext, create_agent_toolkit, tool
from toolkit.builtin import BUILTIN

EVERYTHING = {"read", "write", "execute", "network"}
DENIES: Any = SecurityPolicy(default="allow", rules=[Rule("deny", permission="write")])
ALLOWS: Any = SecurityPolicy(default="allow")
WITHHELD = {
    "the context": {"permissions": EVERYTHING - {"write"}},
    "a rule that denies": {"policy": DENIES},
}
GIVEN: dict[str, dict[str, Any]] = {
    "everything": {},
    "a rule on some files": {
        "policy": SecurityPolicy(default="allow", rules=[Rule("deny", permission="write", path="other/**")])
    },
    "a rule on one tool": {
        "policy": SecurityPolicy(default="allow", rules=[Rule("deny", permission="write", tools=["edit"])])
    },
}
ACTS: dict[str, dict[str, Any]] = {
    "bash": {"command": "echo x > made; cat kept; echo tmp > $TMPDIR/t && cat $TMPDIR/t"},
    "exec_command": {"command": ["sh", "-c", "echo x > made; cat kept; echo tmp > $TMPDIR/t && cat $TMPDIR/t"]},
    "own_command": {},
}


@tool(permissions=["execute"])
def own_command(ctx: ToolContext) -> str:
    """Run a command as an own tool does."""
    return ctx.process.shell(ACTS["bash"]["command"]).stdout.decode()


def run(folder: Path, act: str, way: Way, limit: dict[str, Any]) -> tuple[str, bool]:
    """What the command printed, and whether it made a file."""
    needs(way)
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / "kept").write_text("kept\n")
    context = ToolkitContext(
        workspace,
        **{"policy": ALLOWS, **limit},
        sandbox="reduced" if way == "reduced" else "full",
        state_dir=folder / "s",
    )
    with create_agent_toolkit(context, packs=[BUILTIN, own_command]) as tk:
        told = tk.invoke(act, ACTS[act]).text()  # type: ignore[arg-type]
    return told, (workspace / "made").exists()


@pytest.mark.parametrize("way", [way for way in SANDBOXED if way != "bubblewrap"])
@pytest.mark.parametrize("limit", WITHHELD.values(), ids=WITHHELD)
@pytest.mark.parametrize("act", ACTS)
def test_without_the_permission_a_command_changes_nothing(
    tmp_path: Path, act: str, limit: dict[str, Any], way: Way
) -> None:
    told, made = run(tmp_path, act, way, limit)
    assert not made
    assert "kept" in told and "tmp" in told, "it reads the workspace, and has a temporary directory"


@pytest.mark.parametrize("limit", GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("act", ACTS)
def test_with_the_permission_it_does(tmp_path: Path, act: str, limit: dict[str, Any]) -> None:
    """The control; rules on some files or tools do not concern commands."""
    assert run(tmp_path, act, "full", limit)[1]


@pytest.mark.parametrize(("policy", "changes"), [(DENIES, False), (ALLOWS, True)], ids=["denied", "allowed"])
def test_a_context_without_a_tool_keeps_to_the_rule(tmp_path: Path, policy: Any, changes: bool) -> None:
    needs("full")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    context: ToolkitContext = ToolkitContext(workspace, policy, sandbox="full", state_dir=tmp_path / "s")
    with ToolContext.standalone(context) as ctx:
        ctx.process.shell("echo x > made")
    assert (workspace / "made").exists() == changes
