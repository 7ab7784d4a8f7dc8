"""Links: what they lead to outside is neither read nor brought into the workspace, and none takes the place of something
that must stay as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guard.ways import SANDBOXED, Way, guard_in
from toolkit.guard import ProcessGuard

KEEP = (".envrc", ".vscode")
SECRET = "secret of the user"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/id").write_text(SECRET)
    (tmp_path / "ws/src").mkdir(parents=True)
    return tmp_path / "ws"


def guard(way: Way, workspace: Path) -> ProcessGuard:
    return guard_in(way, workspace, keep=KEEP, state_dir=str(workspace.parent / "state"))


def texts(folder: Path) -> set[str]:
    """What the regular files below a directory contain."""
    return {path.read_text() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}


# --- outside


@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize("target", ["inside", "outside"])
def test_what_a_link_leads_to_is_put_back_only_if_it_is_inside(workspace: Path, way: Way, target: str) -> None:
    """A command makes a link that leads through a second one, and then takes the second one away."""
    (workspace / "own").mkdir()
    (workspace / "own/id").write_text("own")
    place = "own" if target == "inside" else workspace.parent / "home"
    with guard(way, workspace) as process:
        assert process.shell(f"ln -s {place} mid; mkdir new; ln -s ../mid/id new/.envrc").notes == ()
        process.shell("rm mid; mkdir mid")
    assert SECRET not in texts(workspace) | texts(workspace.parent / "state")
    assert (workspace / "new/.envrc").is_symlink() == (target == "outside")


@pytest.mark.parametrize("way", SANDBOXED)
def test_a_link_of_the_user_stays_when_what_it_leads_to_outside_changes(workspace: Path, way: Way) -> None:
    home = workspace.parent / "home"
    (workspace / ".vscode").symlink_to(home)

    def change(name: str, data: bytes) -> None:
        (home / "id").write_text("another one")

    with guard(way, workspace) as process:
        assert process.shell("echo begun", on_output=change).notes == ()
    assert (workspace / ".vscode").is_symlink()


def test_a_link_to_everything_costs_nothing(workspace: Path) -> None:
    with guard("full", workspace) as process:
        assert process.shell("mkdir new; ln -s / new/.vscode").notes == ()
        assert process.shell("true").notes == ()
