"""Links: what they lead to outside is neither read nor brought into the workspace, and none takes the place of something
that must stay as it was."""

from __future__ import annotations

from dataclasses import dataclass
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


# --- another directory in the place of one that was there


@dataclass(frozen=True)
class Exchange:
    name: str
    commands: tuple[str, ...]
    marks: tuple[pytest.MarkDecorator, ...] = ()


WHOLE = (pytest.mark.whole,)  # both parts of it are in another row
COPY = "cp -r src copy; echo evil > copy/.envrc"
MOVE = "mv src copy; echo evil > copy/.envrc"
EXCHANGES = [
    Exchange("a link to a copy", (f"{COPY}; rm -r src; ln -s copy src",)),
    Exchange("a link to itself, moved", (f"{MOVE}; ln -s copy src",), WHOLE),
    Exchange("a link to an older copy", (COPY, "rm -r src; ln -s copy src")),
    Exchange("a link to an older copy, later", (COPY, "rm -r src", "ln -s copy src"), WHOLE),
    Exchange("a link through a link", (f"{COPY}; rm -r src; ln -s copy way; ln -s way src",), WHOLE),
    Exchange("moved away and back", (MOVE, "mv copy src")),
    Exchange("removed, and an older copy moved there", (COPY, "rm -r src; mv copy src")),
    Exchange("removed, and an older copy moved there later", (COPY, "rm -r src", "mv copy src"), WHOLE),
    Exchange("removed and made again", ("rm -r src", "mkdir src; echo evil > src/.envrc")),
    Exchange("removed and made again with a link in it", ("mv src/sub x; rm -r src", "mkdir y; echo evil > y/.envrc; mkdir src; ln -s ../y src/sub; echo evil > src/.envrc")),
]  # fmt: skip


def exchange(row: Exchange, workspace: Path, way: Way, own: str) -> tuple[set[str], list[str]]:
    """What a person reads by the name that was there before, and the notes."""
    (workspace / "src/sub").mkdir()
    if own:
        (workspace / "src/.envrc").write_text(own)
    with guard(way, workspace) as process:
        results = [process.shell(command) for command in row.commands]
        assert [result.exit_code for result in results] == [0] * len(results)
        assert process.shell("true").notes == ()
    found = [path for path in (workspace / "src/.envrc", workspace / "src/sub/.envrc") if path.exists()]
    return {path.read_text() for path in found}, [note for result in results for note in result.notes]


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name, marks=row.marks) for row in EXCHANGES])
def test_unguarded_the_file_is_another_one(workspace: Path, row: Exchange) -> None:
    assert exchange(row, workspace, "unsafe-none", "mine")[0] == {"evil\n"}


@pytest.mark.sample(every=8)
@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize("own", ["mine", ""], ids=["there was one", "there was none"])
@pytest.mark.parametrize("row", [pytest.param(row, id=row.name, marks=row.marks) for row in EXCHANGES])
def test_the_file_is_the_same_or_there_is_none(workspace: Path, row: Exchange, own: str, way: Way) -> None:
    seen, notes = exchange(row, workspace, way, own)
    assert seen <= {own}
    assert "put back: src" in "".join(notes)


@pytest.mark.parametrize(
    "row",
    [
        Exchange("moved, and a link to it", ("mv src copy; ln -s copy src",)),
        Exchange("away and back", ("mv src copy", "mv copy src")),
        Exchange("a copy is made and removed", ("cp -r src copy", "rm -r copy", "cp -r src copy")),
        Exchange("removed and made again as it was", ("cp -r src copy; rm -r src", "cp -r copy src")),
    ],
    ids=lambda row: row.name,
)
@pytest.mark.parametrize("way", SANDBOXED)
def test_the_same_file_may_come_back(workspace: Path, row: Exchange, way: Way) -> None:
    assert exchange(row, workspace, way, "mine") == ({"mine"}, [])


@pytest.mark.parametrize("way", SANDBOXED)
def test_what_came_with_a_new_directory_is_kept_from_then_on(workspace: Path, way: Way) -> None:
    """Also while a program runs for long, which began before the directory was made."""
    with guard(way, workspace) as process:
        program = process.start(["cat"])
        assert process.shell("mkdir new; echo first > new/.envrc").notes == ()
        result = process.shell("echo evil > new/.envrc; mkdir new/.vscode")
        assert "new/.envrc was changed" in result.notes[0] and "new/.vscode was added" in result.notes[0]
        program.close()
    assert (workspace / "new/.envrc").read_text() == "first\n"
