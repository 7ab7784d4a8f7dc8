"""A toolkit's roots are opened when it is built. What their names lead to later changes nothing.

Each attack has its control, which is what a toolkit built after it sees.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.guard.ways import needs
from tests.projects import Project, tool
from toolkit import (
    PolicyError,
    ProgramSettings,
    SecurityPolicy,
    SetupError,
    Toolkit,
    ToolkitContext,
    ToolNotAllowed,
    create_agent_toolkit,
)

ALLOW = SecurityPolicy(default="allow")


@pytest.fixture(autouse=True)
def _sandbox() -> None:
    needs("full")


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    """Two directories, and a link ``work`` to the first of them."""
    for name in ("first", "second"):
        (tmp_path / name / name).mkdir(parents=True)
    (tmp_path / "work").symlink_to("first")
    here = os.getcwd()
    yield tmp_path
    os.chdir(here)


def turn_the_link(folders: Path) -> None:
    (folders / "work").unlink()
    (folders / "work").symlink_to("second")


def replace_the_directory(folders: Path) -> None:
    (folders / "first").rename(folders / "moved")
    (folders / "second").rename(folders / "first")


CHANGES = [turn_the_link, replace_the_directory]


def run_listing(tk: Toolkit) -> str:
    names = tk.run_program("import os\nos.listdir()", checker="off").value
    assert isinstance(names, list)
    return " ".join(names)


DOORS: dict[str, Callable[[Toolkit], str]] = {
    "a file tool": lambda tk: " ".join(entry.name for entry in tk.tools.list().entries),
    "a command": lambda tk: tk.tools.bash(command="ls").stdout.strip(),
    "a program": run_listing,
}


def look_through(door: str, tk: Toolkit) -> str:
    """What it finds in the workspace; empty if it says that it leads nowhere any more."""
    try:
        return DOORS[door](tk)
    except ToolNotAllowed as error:
        assert "the directory of a root was moved or replaced" in str(error)
        return ""


def open_toolkit(workspace: str | Path, state: Path) -> Toolkit:
    programs = ProgramSettings(workspace="read-only", imports=["os"])
    return create_agent_toolkit(ToolkitContext(workspace, ALLOW, state_dir=state, programs=programs))


@pytest.mark.parametrize("change", CHANGES)
def test_every_door_leads_to_the_workspace_that_was_opened(folders: Path, change: Callable[[Path], None]) -> None:
    with open_toolkit(folders / "work", folders / "state") as tk:
        change(folders)
        found = {door: look_through(door, tk) for door in DOORS}
        assert found.pop("a file tool") == "first"
        assert set(found.values()) <= {"first", ""}
    with open_toolkit(folders / "work", folders / "state") as tk:
        assert {look_through(door, tk) for door in DOORS} == {"second"}


def test_a_relative_workspace_does_not_follow_the_working_directory(folders: Path) -> None:
    os.chdir(folders / "first")
    with open_toolkit(".", folders / "state") as tk:
        os.chdir(folders / "second")
        assert {look_through(door, tk) for door in DOORS} == {"first"}
    with open_toolkit(".", folders / "state") as tk:
        assert {look_through(door, tk) for door in DOORS} == {"second"}


def test_extra_roots_of_commands_are_those_of_the_file_tools(folders: Path) -> None:
    (folders / "workspace").mkdir()
    context = ToolkitContext(folders / "workspace", ALLOW, read_roots=[folders / "work"], state_dir=folders / "state")
    with create_agent_toolkit(context) as tk:
        turn_the_link(folders)
        assert [entry.name for entry in tk.tools.list(path=str(folders / "work")).entries] == ["first"]
        assert tk.tools.bash(command=f"ls {folders}/first").stdout.strip() == "first"
        assert tk.tools.bash(command=f"ls {folders}/second").exit_code != 0


# -- the package of a program ------------------------------------------------------------------------------------------

READS = """
import os
from toolkit import ProgramSettings, SecurityPolicy, ToolkitContext
from acme.generated import create_agent_toolkit

tk = create_agent_toolkit(
    ToolkitContext(
        "workspace", SecurityPolicy(default="allow"), programs=ProgramSettings(imports=["os"]), state_dir="state"
    )
)
{attack}
result = tk.run_program("import os\\nos.listdir({folder!r})", checker="off")
print(result.value, [error.message for error in result.errors])
"""
REPLACE = 'os.rename("acme/generated", "acme/kept"); os.symlink({secret!r}, "acme/generated")'


def test_a_program_does_not_read_what_its_package_was_replaced_by(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", [tool("greet")])
    project.generate()
    (tmp_path / "project/workspace").mkdir()
    (tmp_path / "outside/plans").mkdir(parents=True)
    secret = str(tmp_path / "outside")

    untouched = READS.format(attack="", folder=str(project.output))
    assert "manifest.json" in project.python(untouched).stdout

    replaced = READS.format(attack=REPLACE.format(secret=secret), folder=str(project.output))
    attack = project.python(replaced, check=False)
    assert "plans" not in attack.stdout
    assert "the directory of a root was moved or replaced" in attack.stderr


# -- the policy file and the state directory ---------------------------------------------------------------------------


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    """A folder with a policy file, beside a workspace with links to both."""
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/agent.toml").write_text('default = "allow"\n')
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace/link.toml").symlink_to("../policies/agent.toml")
    (tmp_path / "workspace/folder").symlink_to(tmp_path / "policies")
    (tmp_path / "outside.toml").symlink_to("workspace/../workspace/link.toml")
    (tmp_path / "current").symlink_to("policies")
    return tmp_path


@pytest.mark.parametrize("path", ["workspace/link.toml", "workspace/folder/agent.toml", "outside.toml"])
def test_no_policy_file_is_reached_through_what_tools_can_replace(policies: Path, path: str) -> None:
    context = ToolkitContext(policies / "workspace", SecurityPolicy.load(policies / path), state_dir=policies / "state")
    with pytest.raises(
        PolicyError, match=r"the link '.*/workspace/(link\.toml|folder)', which leads to the policy file"
    ):
        create_agent_toolkit(context)


@pytest.mark.parametrize("path", ["policies/agent.toml", "current/agent.toml", "workspace/../current/agent.toml"])
def test_links_elsewhere_may_lead_to_the_policy_file(policies: Path, path: str) -> None:
    context = ToolkitContext(policies / "workspace", SecurityPolicy.load(policies / path), state_dir=policies / "state")
    with create_agent_toolkit(context) as tk:
        assert tk.tools.done(message="x").message == "x"


def test_no_workspace_contains_the_tokens_of_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in the user's state directory, wherever that of the toolkit is, and that of another shell counts as well."""
    home, state = tmp_path / "home", tmp_path / "state"
    (home / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    create_agent_toolkit(ToolkitContext(home, ALLOW, state_dir=state)).close()

    (home / ".local/state/typed-toolkit/mcp-tokens").mkdir(parents=True)
    for given in (None, state):
        with pytest.raises(SetupError, match=r"the tokens of servers in '.*/mcp-tokens' are inside '.*/home'"):
            ToolkitContext(home, ALLOW, state_dir=given)
    create_agent_toolkit(ToolkitContext(home / "project", ALLOW, state_dir=state)).close()
