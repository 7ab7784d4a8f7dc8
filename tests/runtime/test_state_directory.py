"""The private directory: its owner, where it may not be, and that nothing is created before it is needed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolkit import SetupError
from toolkit.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit.runtime.state_directory import StateDirectory


def test_makes_private_folders_when_they_are_asked_for(tmp_path: Path) -> None:
    state = StateDirectory(str(tmp_path / "a" / "state"), [])
    assert not (tmp_path / "a").exists()
    assert state.existing("cache") is None

    folder = state.folder("cache")

    assert folder == str(tmp_path / "a" / "state" / "cache") == state.existing("cache")
    assert {oct(path.stat().st_mode & 0o777) for path in (Path(folder), Path(folder).parent)} == {"0o700"}


def test_takes_away_what_others_may_do(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o755)
    StateDirectory(str(tmp_path / "state"), []).folder("cache")

    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users: only root can be both")
def test_refuses_what_belongs_to_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    os.chown(tmp_path / "state", 65534, -1)

    with pytest.raises(SetupError, match="is not a directory of this user"):
        StateDirectory(str(tmp_path / "state"), []).folder("cache")


def test_says_why_it_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match=r"cannot be created: .*; give another state_dir"):
        StateDirectory(str(tmp_path / "file" / "state"), []).folder("cache")


@pytest.mark.parametrize("inside", [".", "below/state", "link/state"])
def test_refuses_to_be_inside_a_root(tmp_path: Path, inside: str) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "link").symlink_to(workspace)
    with pytest.raises(SetupError, match=r"is inside .*give a state_dir outside"):
        ToolkitContext(workspace, SecurityPolicy(default="allow"), state_dir=workspace / inside)


def test_the_default_inside_a_root_is_refused_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line, and logins to servers, know only the default."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with pytest.raises(
        SetupError, match=r"the default state directory .* is inside .*; set XDG_STATE_HOME to a folder"
    ):
        ToolkitContext(tmp_path, SecurityPolicy(default="allow"))


def test_a_neighbour_of_the_workspace_is_fine(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    context = ToolkitContext(tmp_path / "work", SecurityPolicy(default="allow"), state_dir=tmp_path / "work-state")

    with create_agent_toolkit(context) as toolkit:
        toolkit.tools.done(message="ok")
    assert not (tmp_path / "work-state").exists()


def test_the_default_is_the_users_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert StateDirectory(None, []).folder("x") == str(tmp_path / ".local" / "state" / "typed-toolkit" / "x")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert StateDirectory(None, []).folder("x") == str(tmp_path / "xdg" / "typed-toolkit" / "x")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert StateDirectory(None, []).folder("x") == str(tmp_path / ".local" / "state" / "typed-toolkit" / "x")
