"""Programs that may see the workspace: they read it, change nothing, and no rule on paths is evaded."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from toolkit import (
    Permission,
    ProgramSettings,
    Rule,
    SecurityPolicy,
    SetupError,
    ToolkitContext,
    ToolNotAllowed,
    create_agent_toolkit,
    create_async_agent_toolkit,
)
from toolkit.guard import SandboxChoice

SHOWN = ProgramSettings(workspace="read-only", imports=["os", "pathlib"])
ALLOW = SecurityPolicy(default="allow")


def make_context(
    tmp_path: Path,
    policy: SecurityPolicy = ALLOW,
    settings: ProgramSettings = SHOWN,
    permissions: tuple[Permission, ...] = ("read", "write", "execute"),
) -> ToolkitContext:
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    (workspace / "a.txt").write_text("one\n")
    (tmp_path / "secret").write_text("SECRET")
    return ToolkitContext(workspace, policy, permissions=permissions, state_dir=tmp_path / "state", programs=settings)


def test_a_program_reads_the_workspace_and_changes_nothing(tmp_path: Path) -> None:
    with create_agent_toolkit(make_context(tmp_path)) as toolkit:
        source = "import os, pathlib\n[os.listdir(), pathlib.Path('a.txt').read_text()]"
        assert toolkit.run_program(source, checker="off").value == [["a.txt"], "one\n"]
        for act in (
            "Path('a.txt').write_text('x')",
            "Path('b').touch()",
            "Path('a.txt').unlink()",
            "Path('a.txt').chmod(0)",
        ):
            (error,) = toolkit.run_program(f"import pathlib\npathlib.{act}", checker="off").errors
            assert "Error" in error.message
        (error,) = toolkit.run_program("import pathlib\npathlib.Path('../secret').read_text()", checker="off").errors
        assert "FileNotFoundError" in error.message
    assert (tmp_path / "workspace/a.txt").read_text() == "one\n"
    assert sorted(path.name for path in (tmp_path / "workspace").iterdir()) == ["a.txt"]


def test_by_default_there_is_no_workspace(tmp_path: Path) -> None:
    context = make_context(tmp_path, settings=ProgramSettings(imports=["os"]))
    with create_agent_toolkit(context) as toolkit:
        source = f"import os\n[os.listdir(), os.path.exists({context.workspace!r})]"
        assert toolkit.run_program(source, checker="off").value == [[], False]


@pytest.mark.parametrize(
    "policy",
    [
        SecurityPolicy(default="allow", rules=[Rule("deny", path=".env")]),
        SecurityPolicy(default="allow", rules=[Rule("ask", path=".env")]),
        SecurityPolicy(default="allow", rules=[Rule("deny", tools=["grep"], path=".env")]),
        SecurityPolicy(default="allow", rules=[Rule("deny", permission="read", path=".env")]),
    ],
)
def test_what_any_tool_that_reads_is_denied_is_hidden(tmp_path: Path, policy: SecurityPolicy) -> None:
    context = make_context(tmp_path, policy)
    (tmp_path / "workspace/.env").write_text("SECRET")
    with create_agent_toolkit(context) as toolkit:
        assert toolkit.run_program("import pathlib\npathlib.Path('a.txt').read_text()", checker="off").value == "one\n"
        (error,) = toolkit.run_program("import pathlib\npathlib.Path('.env').read_text()", checker="off").errors
        assert "PermissionError" in error.message


def test_a_file_made_between_two_programs_is_hidden_from_the_second(tmp_path: Path) -> None:
    """An interpreter that waits for its program would not know the file."""
    context = make_context(tmp_path, SecurityPolicy(default="allow", rules=[Rule("deny", path=".env")]))
    with create_agent_toolkit(context) as toolkit:
        for _ in range(3):  # time for one that would wait
            assert toolkit.run_program("1", checker="off").value == 1
        (tmp_path / "workspace/.env").write_text("SECRET")
        (error,) = toolkit.run_program("import pathlib\npathlib.Path('.env').read_text()", checker="off").errors
        assert "PermissionError" in error.message


@pytest.mark.parametrize(
    "policy",
    [
        SecurityPolicy(default="deny", rules=[Rule("allow", tools=["read_file"], path="docs/**")]),
        SecurityPolicy(default="allow", tools={"read_file": "ask"}),
    ],
)
def test_it_is_refused_if_only_some_files_may_be_read(tmp_path: Path, policy: SecurityPolicy) -> None:
    for create in (create_agent_toolkit, create_async_agent_toolkit):
        with pytest.raises(SetupError, match="workspace='read-only' cannot be used, because the policy limits"):
            create(make_context(tmp_path, policy))
    create_agent_toolkit(make_context(tmp_path, policy, ProgramSettings())).close()


@pytest.mark.parametrize(
    "policy",
    [
        SecurityPolicy(default="deny", tools={"read_file": "allow"}),
        SecurityPolicy(default="allow", rules=[Rule("deny", tools=["write_file"], path="x")]),
        SecurityPolicy(default="allow", rules=[Rule("deny", permission="write", path="x")]),
        SecurityPolicy(default="allow", rules=[Rule("deny", permission="execute", command="rm")]),
    ],
)
def test_rules_that_do_not_limit_reading_are_no_reason(tmp_path: Path, policy: SecurityPolicy) -> None:
    create_agent_toolkit(make_context(tmp_path, policy)).close()


def test_it_needs_the_permission_to_read(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="does not grant the permission 'read'"):
        create_agent_toolkit(make_context(tmp_path, permissions=("execute",)))


def test_no_program_runs_without_a_sandbox(tmp_path: Path) -> None:
    """The reduced tier is used only by name: ``auto`` is the full one, and ``unsafe-none`` does not reach programs."""
    context, file = make_context(tmp_path), Path(f"/tmp/{secrets.token_hex(8)}")
    choices: tuple[SandboxChoice, ...] = ("auto", "unsafe-none")
    for sandbox in choices:
        with create_agent_toolkit(
            ToolkitContext(context.workspace, ALLOW, sandbox=sandbox, state_dir=tmp_path / "state", programs=SHOWN)
        ) as toolkit:
            try:
                source = f"import pathlib\npathlib.Path('{file}').write_text('x')"
                assert toolkit.run_program(source, checker="off").value == 1
            except ToolNotAllowed as error:
                assert "sandbox" in error.message
            assert not file.exists()
