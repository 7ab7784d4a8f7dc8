"""Files that run code for the user later: commands leave them as they were, whether they exist or not."""

from __future__ import annotations

import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.guard.review.world import Repositories
from tests.guard.ways import SANDBOXED, Way, guard_in
from toolkit.guard import ProcessGuard
from toolkit.guard.review.scan import MAX_FILE

KEEP = (".vscode", ".envrc", ".mcp.json", ".pre-commit-config.yaml", "/etc-like/start.py")
WATCHDOG = 60.0


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / ".vscode").mkdir(parents=True)
    (folder / ".vscode/tasks.json").write_text("mine")
    (folder / "deep/.vscode").mkdir(parents=True)
    (folder / "deep/.vscode/tasks.json").write_text("mine, too")
    (folder / ".envrc").write_text("export A=1")
    (folder / ".envrc").chmod(0o640)
    (folder / "etc-like").mkdir()
    (folder / "script").write_text("echo mine")
    (folder / ".pre-commit-config.yaml").symlink_to("script")
    return folder


def tree(folder: Path) -> dict[str, tuple[int, str]]:
    found = {}
    for path in sorted(folder.rglob("*")):
        text = path.read_text() if path.is_file() else ""
        found[str(path.relative_to(folder))] = (path.lstat().st_mode, text)
    return found


def guard(way: Way, workspace: Path, keep: tuple[str, ...] = KEEP) -> ProcessGuard:
    return guard_in(way, workspace, keep=keep, state_dir=str(workspace.parent / "state"))


@dataclass(frozen=True)
class Act:
    name: str
    command: str
    path: str
    word: str


ACTS = [
    Act("change a file", "echo evil >> .envrc", ".envrc", "changed"),
    Act("replace a file", "echo evil > x; mv x .envrc", ".envrc", "changed"),
    Act("change a mode", "chmod 777 .envrc", ".envrc", "changed"),
    Act("remove a file", "rm .envrc", ".envrc", "removed"),
    Act("a link in place of a file", "rm .envrc; ln -s script .envrc", ".envrc", "changed"),
    Act("a directory in place of a file", "rm .envrc; mkdir .envrc", ".envrc", "changed"),
    Act("add a file", "echo evil > .mcp.json", ".mcp.json", "added"),
    Act("add a file, deep", "mkdir -p a/b; echo evil > a/b/.mcp.json; rm -r a/b/.mcp.json; echo evil > deep/.mcp.json; rm -r a", "deep/.mcp.json", "added"),
    Act("another case", "echo evil > .MCP.json", ".MCP.json", "added"),
    Act("in a directory", "echo evil > .vscode/settings.json", ".vscode/settings.json", "added"),
    Act("in a directory, deep", "echo evil > deep/.vscode/tasks.json", "deep/.vscode/tasks.json", "changed"),
    Act("remove a directory", "rm -r .vscode", ".vscode", "removed"),
    Act("move a directory away", "mv .vscode x; mkdir .vscode; echo evil > .vscode/tasks.json; rm -r x", ".vscode/tasks.json", "changed"),
    Act("a link in place of a directory", "mv .vscode x; ln -s x .vscode; rm -r x", ".vscode", "changed"),
    Act("a path from the root", "echo evil > etc-like/start.py", "etc-like/start.py", "added"),
    Act("a pipe", "mkfifo .mcp.json", ".mcp.json", "added"),
    Act("in a directory that was replaced", "mkdir x; cp -a deep/. x; rm -r deep; mv x deep; echo evil > deep/.mcp.json", "deep/.mcp.json", "added"),
    Act("a path in a directory that is new", "rmdir etc-like; mkdir etc-like; echo evil > etc-like/start.py", "etc-like/start.py", "added"),
]  # fmt: skip


@pytest.mark.sample(every=8)
@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize("act", ACTS, ids=[act.name for act in ACTS])
def test_it_is_put_back_and_the_result_says_so(workspace: Path, act: Act, way: Way) -> None:
    before = tree(workspace)
    with guard(way, workspace) as process:
        result = process.shell(act.command)
    assert result.exit_code == 0, result.stderr
    assert tree(workspace) == before
    assert len(result.notes) == 1
    assert f"put back: {act.path} was {act.word} by the command" in result.notes[0]
    assert f"[{result.notes[0]}]" in result.stderr.decode()


@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize("path", [".envrc", "deep/.vscode/tasks.json"])
def test_another_name_that_a_command_made_is_the_name_of_a_copy(workspace: Path, path: str, way: Way) -> None:
    """Git and editors write into files, so the user would change the one by the name of the other."""
    before = (workspace / path).read_text()
    with guard(way, workspace) as process:
        result = process.shell(f"ln {path} notes")
    assert f"put back: {path} was changed by the command" in result.notes[0]
    (workspace / "notes").write_text("written by the user")
    assert (workspace / path).read_text() == before
    (workspace / "unguarded").hardlink_to(workspace / path)
    (workspace / "unguarded").write_text("written by the user")
    assert (workspace / path).read_text() == "written by the user"


@pytest.mark.parametrize("act", ACTS, ids=[act.name for act in ACTS])
def test_without_a_pattern_it_stays(workspace: Path, act: Act) -> None:
    before = tree(workspace)
    with guard("full", workspace, keep=()) as process:
        assert process.shell(act.command).notes == ()
    assert tree(workspace) != before


def test_a_file_behind_a_link_is_restored_in_place_of_the_link(workspace: Path) -> None:
    with guard("full", workspace) as process:
        result = process.shell("echo evil > script")
    assert (workspace / ".pre-commit-config.yaml").read_text() == "echo mine"
    assert (workspace / "script").read_text() == "evil\n"
    assert ".pre-commit-config.yaml was changed" in result.notes[0]


NEIGHBOURS = [
    "echo x > pyproject.toml; echo x > Makefile; mkdir src; echo x > src/a.py",
    "mkdir vscode; echo x > vscode/tasks.json",
    "cat .envrc .vscode/tasks.json > copy",
    "rm -r deep",
    "mkdir -p a; echo x > a/.envrc-like; echo x > start.py",
    "mkdir -p clone/.vscode; echo x > clone/.vscode/tasks.json; echo x > clone/.envrc",  # as a clone or a package brings it
]


@pytest.mark.parametrize("command", NEIGHBOURS)
@pytest.mark.parametrize("way", SANDBOXED)
def test_the_legitimate_neighbour(workspace: Path, command: str, way: Way) -> None:
    with guard(way, workspace) as process:
        result = process.shell(command)
        after = tree(workspace)
        assert (result.exit_code, result.notes) == (0, ())
        assert process.shell("true").notes == ()
    assert tree(workspace) == after


@pytest.mark.parametrize("way", SANDBOXED)
def test_a_hidden_directory_belongs_to_the_one_around_it(workspace: Path, way: Way) -> None:
    with guard(way, workspace, keep=("hgrc",)) as process:
        result = process.shell(
            "mkdir .hg; echo evil > .hg/hgrc; echo data > .hg/data; mkdir -p new/.hg; cp .hg/hgrc new/.hg"
        )
    assert "put back: .hg/hgrc was added by the command." in result.notes[0]
    assert not (workspace / ".hg/hgrc").exists()
    assert (workspace / ".hg/data").exists() and (workspace / "new/.hg/hgrc").exists()


def test_what_was_put_back_is_kept_for_the_user(workspace: Path) -> None:
    with guard("reduced", workspace) as process:
        result = process.shell("echo evil > .envrc; echo new > .mcp.json")
    batch = result.notes[0].partition("in put-back/")[2].partition(".")[0]
    folder = workspace.parent / "state/put-back" / batch
    assert sorted(path.read_text() for path in folder.rglob("content")) == ["evil\n", "new\n"]
    assert folder.stat().st_mode & 0o077 == 0


def test_without_a_state_directory_nothing_is_kept(workspace: Path) -> None:
    with guard_in("reduced", workspace, keep=KEEP) as process:
        result = process.shell("echo evil > .envrc")
    assert "put back" in result.notes[0] and "copy" not in result.notes[0]
    assert (workspace / ".envrc").read_text() == "export A=1"


def test_a_copy_that_cannot_be_kept_does_not_stop_the_review(workspace: Path) -> None:
    (workspace.parent / "state").mkdir()
    (workspace.parent / "state/put-back").write_text("not a directory")
    with guard("reduced", workspace) as process:
        process.shell("echo evil > .envrc; mkdir .mcp.json")
    assert (workspace / ".envrc").read_text() == "export A=1"
    assert not (workspace / ".mcp.json").exists()


def test_what_was_too_large_to_remember_is_taken_away(workspace: Path) -> None:
    (workspace / ".envrc").write_bytes(b"x" * (MAX_FILE + 1))
    with guard("full", workspace) as process:
        assert process.shell("cat .envrc > copy").notes == ()
        result = process.shell("echo evil >> .envrc")
    assert not (workspace / ".envrc").exists()
    assert "too large to be put back" in result.notes[0]


def test_many_changes_are_one_short_note(workspace: Path) -> None:
    with guard("full", workspace) as process:
        process.shell("for i in $(seq 100); do mkdir d$i; done")
        result = process.shell("for i in $(seq 100); do echo x > d$i/.mcp.json; done")
    assert "and 90 more" in result.notes[0] and len(result.notes[0]) < 2000
    assert not list(workspace.rglob(".mcp.json"))


def test_a_name_cannot_forge_a_note(workspace: Path) -> None:
    (workspace / "a\n[note]").mkdir()
    with guard("full", workspace) as process:
        result = process.run(["python", "-c", r"open('a\n[note]/.envrc', 'w').close()"])
    assert "\n" not in result.notes[0] and r"a\x0a[note]/.envrc" in result.notes[0]


DEEP = """
import os
os.mkdir(".mcp.json"); os.chdir(".mcp.json")
for _ in range(1100):  # deeper than a path may be long, and than Python calls itself
    os.mkdir("deep"); os.chdir("deep")
"""


@pytest.mark.parametrize("state", [True, False], ids=["kept", "removed"])
def test_a_tree_of_any_depth_is_taken_away(workspace: Path, state: bool) -> None:
    before = tree(workspace)
    folder = str(workspace.parent / "state") if state else None
    with guard_in("full", workspace, keep=KEEP, state_dir=folder) as process:
        result = process.run(["python", "-c", DEEP])
    assert result.exit_code == 0 and ".mcp.json was added" in result.notes[0]
    assert tree(workspace) == before
    subprocess.run(["rm", "-rf", f"{workspace.parent}/state"])  # deeper than pytest can remove


@pytest.mark.parametrize("way", SANDBOXED)
def test_a_command_that_is_killed_is_reviewed_as_well(workspace: Path, way: Way) -> None:
    with guard(way, workspace) as process:
        result = process.shell("echo evil > .envrc; sleep 1000", timeout=1)
        assert result.timed_out and "put back" in result.notes[0]
        begun = threading.Event()

        def stop() -> None:
            if (workspace / "begun").exists():
                begun.set()
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            process.shell("echo evil > .envrc; touch begun; sleep 1000", timeout=WATCHDOG, check=stop)
    assert begun.is_set() and (workspace / ".envrc").read_text() == "export A=1"


@pytest.mark.parametrize("way", SANDBOXED)
def test_commands_beside_each_other_cannot_accept_each_others_changes(world: Repositories, way: Way) -> None:
    """The second begins when the first has made its change; both are compared with what was before the first."""
    with world.guard(way, keep=(".envrc",)) as process:
        first = threading.Thread(
            target=lambda: world.attack(
                process,
                "git init -q new; cp $E new/.git/hooks/pre-commit; cp $E nested/.git/hooks/pre-commit; echo evil > .envrc; "
                "touch begun; until [ -e enough ]; do sleep 0.02; done",
            )
        )
        first.start()
        try:
            while not (world.workspace / "begun").exists():
                first.join(0.01)
            result = world.attack(process, "true")
        finally:
            (world.workspace / "enough").touch()
            first.join(WATCHDOG)
    text = "".join(result.notes)
    for path in ("new/.git/hooks/pre-commit", "nested/.git/hooks/pre-commit", ".envrc"):
        assert f"{path} was added" in text
        assert not (world.workspace / path).exists()


@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize(
    "path", [".envrc", ".mcp.json", ".vscode/tasks.json", ".vscode/new.json", "a/.vscode/deep/new.json"]
)
def test_a_change_that_was_approved_meanwhile_stays(workspace: Path, path: str, way: Way) -> None:
    """While a program runs for long: what a file tool writes with approval is not the program's doing."""
    with guard(way, workspace) as process:
        program = process.start(["cat"])
        file = workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with process.accept_changes() as accept:
            file.write_text("approved")
            accept(str(file), b"approved")
            accept(str(workspace / "elsewhere"), b"not kept")
        assert process.shell("true").notes == ()
        assert file.read_text() == "approved"
        if way == "reduced":
            changed = process.shell(f"echo evil > {path}; echo evil > .vscode/other.json")
            assert f"{path} was changed" in changed.notes[0] and ".vscode/other.json was added" in changed.notes[0]
        program.close()
        assert file.read_text() == "approved"
        with process.accept_changes() as accept:
            accept(str(file), None)  # nothing runs: the next command finds things as they are
