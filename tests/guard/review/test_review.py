"""How the review itself holds: directories without permissions, what it cannot undo, programs that run for long."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.guard import nobody
from tests.guard.repositories import git
from tests.guard.review.world import Repositories
from tests.guard.ways import FULL, SANDBOXED, Way, guard_in
from toolkit.guard.files.consent import Globs
from toolkit.guard.files.protect import Root
from toolkit.guard.review import scan
from toolkit.guard.review.scan import EntryPlace, Scanner, ScanRoot

# --- permissions

HIDDEN = """
import sys
from toolkit.guard import ProcessGuard
folder, act = sys.argv[1:]
with ProcessGuard(folder, sandbox="reduced") as guard:
    result = guard.shell("git init -q old; mkdir -p old/.git/hooks")
    result = guard.shell(act)
    print(result.exit_code, *result.notes)
"""
HIDING = [
    "git init -q a/b/new; git -C a/b/new config alias.x '!x'; chmod 311 a/b a",
    "git init -q new; git -C new config alias.x '!x'; chmod 555 new/.git",
    "git init -q new; git -C new config alias.x '!x'; chmod 111 new/.git new",
    "git init -q new; echo x > new/.git/hooks/pre-commit; chmod 555 new/.git/hooks",
    "echo x > old/.git/hooks/pre-commit; chmod 111 old/.git/hooks",
    "echo x > old/.git/hooks/pre-commit; chmod 555 old/.git/hooks old/.git",
    "git -C old config alias.x '!x'; chmod 000 old/.git/config; chmod 111 old/.git old",
]


@pytest.mark.sample
@nobody.only_root
@pytest.mark.parametrize("act", HIDING)
def test_permissions_hide_nothing(act: str) -> None:
    """As another user: root reads and writes everything anyway."""
    with nobody.folder("ws") as base:
        printed = nobody.run(HIDDEN, str(base / "ws"), act)
        assert printed.startswith("0 put back: ") and "not checked" not in printed
        assert not list(base.rglob("pre-commit"))
        assert not [path for path in base.rglob("config") if "alias" in path.read_text()]


@nobody.only_root
def test_what_cannot_be_put_back_is_named_and_the_rest_is_put_back() -> None:
    """A hook that belongs to another user and that everybody may write, in a directory that only its owner may."""
    with nobody.folder("ws") as base:
        hook = base / "ws/foreign/.git/hooks/pre-commit"
        hook.parent.mkdir(parents=True)
        hook.touch()
        hook.chmod(0o666)
        act = "echo x > foreign/.git/hooks/pre-commit; git init -q new; git -C new config alias.x '!x'"
        printed = nobody.run(HIDDEN, str(base / "ws"), act)
        assert "put back: " in printed and "new/.git/config (alias.x)" in printed
        assert "not checked: " in printed and "foreign/.git: Permission denied" in printed
        assert "alias" not in (base / "ws/new/.git/config").read_text()


REMOVAL = """
import sys
from toolkit.guard.process.command import remove_tree
try:
    remove_tree(sys.argv[1])
except OSError:
    print("refused")
"""


@nobody.only_root
def test_a_link_that_cannot_be_removed_is_not_followed() -> None:
    """A link of another user, in a directory where only owners remove; it leads to a file that is ours."""
    with nobody.folder("ws") as base:
        own = base / "own"
        own.touch()
        own.chmod(0o644)
        os.chown(own, nobody.NOBODY, nobody.NOBODY)
        os.chown(base / "ws", 0, 0)
        (base / "ws").chmod(0o1777)
        (base / "ws/link").symlink_to(own)
        assert nobody.run(REMOVAL, str(base / "ws")) == "refused\n"
        assert own.stat().st_mode & 0o777 == 0o644


# --- the scan


def found(scanner: Scanner) -> tuple[list[str], list[str], list[str]]:
    result = scanner.scan()
    return (
        sorted(place.path for place in result.git_folders),
        [p.path for p in result.pointers],
        [p.path for p in result.kept],
    )


def test_every_change_of_a_directory_is_seen_at_once(tmp_path: Path) -> None:
    """Right after the last scan, when the clock of the file system may not have moved."""
    scanner = Scanner([ScanRoot(Root.open(tmp_path, "workspace", writable=True))], Globs([".envrc"]), [])
    for number in range(200):
        folder = tmp_path / f"{number % 7}" / f"{number}"
        folder.mkdir(parents=True)
        assert scanner.scan().pointers == []
        (folder / ".git").write_text("gitdir: x")
        assert found(scanner) == ([], [f"{number % 7}/{number}/.git"], [])
        (folder / ".git").unlink()


def test_a_directory_that_is_exchanged_for_another_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "other/.git").mkdir(parents=True)
    os.utime(tmp_path / "other", (1, 1))
    scanner = Scanner([ScanRoot(Root.open(tmp_path, "workspace", writable=True))], Globs([]), [])
    assert found(scanner)[0] == ["other/.git"]
    (tmp_path / "a/b").rmdir()
    (tmp_path / "other").rename(tmp_path / "a/b")
    assert found(scanner)[0] == ["a/b/.git"]


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "outside/.git").mkdir(parents=True)
    (tmp_path / "ws/a").mkdir(parents=True)
    (tmp_path / "ws/link").symlink_to(tmp_path / "outside")
    (tmp_path / "ws/.git").symlink_to(tmp_path / "outside/.git")
    root = ScanRoot(Root.open(tmp_path / "ws", "workspace", writable=True))
    assert found(Scanner([root], Globs([]), [])) == ([], [".git"], [])
    with pytest.raises(NotADirectoryError):
        root.open_folder("link")
    (tmp_path / "ws/a/deep").mkdir()
    (tmp_path / "ws/via").symlink_to("a")
    with pytest.raises(NotADirectoryError):
        root.open_folder("via/deep")


@pytest.mark.parametrize("name", [".git", ".GIT", ".Git"])
def test_other_spellings_count(tmp_path: Path, name: str) -> None:
    (tmp_path / "a" / name).mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / name).touch()
    assert found(Scanner([ScanRoot(Root.open(tmp_path, "workspace", writable=True))], Globs([]), [])) == (
        [f"a/{name}"],
        [f"b/{name}"],
        [],
    )


def test_too_many_directories_are_counted_and_the_result_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "MAX_FOLDERS", 50)
    with guard_in("full", tmp_path) as guard:
        assert guard.shell("mkdir -p d/{1..20}").notes == ()
        result = guard.shell("mkdir -p e/{1..60}")
    assert "not checked: " in result.notes[0] and "too many directories" in result.notes[0]


@pytest.mark.parametrize("way", SANDBOXED)
def test_many_directories_do_not_hide_what_was_there(
    world: Repositories, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world.guard(way) as guard:
        assert world.attack(guard, "true").notes == ()
        monkeypatch.setattr(scan, "MAX_FOLDERS", 60)
        result = world.attack(
            guard,
            "mkdir -p {1..100}; cp $E nested/.git/hooks/pre-commit; git config -f .git/modules/sub/config core.pager $E",
        )
    text = "".join(result.notes)
    assert "not checked" in text and "nested/.git/hooks/pre-commit was added" in text
    assert "pager" not in (world.workspace / ".git/modules/sub/config").read_text()


# --- programs that run for long


@pytest.mark.parametrize("way", FULL)
def test_a_long_program_reads_repositories_and_changes_none(world: Repositories, way: Way) -> None:
    acts = "touch x .git/x nested/.git/x sub/.git .git/modules/sub/x .envrc 2>/dev/null; ls -d x .git/x nested/.git/x; cat .envrc; git log -1 --format=%s"
    (world.workspace / ".envrc").write_text("mine")
    with world.guard(way, keep=(".envrc",)) as guard:
        program = guard.start(["sh", "-c", f"{acts}; echo evil > .envrc; echo done; cat"])
        text = b""
        while not text.endswith(b"done\n"):
            text += program.read() or b""
        assert text.decode().split("\n")[:2] == ["x", "minemore four"]
        program.close()
    assert (world.workspace / ".envrc").read_text() == "mine"


@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize("end", ["its own end", "the end of a command"])
def test_what_a_long_program_adds_is_put_back(world: Repositories, way: Way, end: str) -> None:
    with world.guard(way, keep=(".mcp.json",)) as guard:
        program = guard.start(
            ["sh", "-c", "git init -q new; cp ./tracked new/.git/hooks/pre-commit; echo x > .mcp.json; echo done; cat"]
        )
        text = b""
        while not text.endswith(b"done\n"):
            text += program.read() or b""
        hook, settings = world.workspace / "new/.git/hooks/pre-commit", world.workspace / ".mcp.json"
        assert hook.exists() and settings.exists()
        if end == "its own end":
            program.close()
        else:
            notes = "".join(world.attack(guard, "true").notes)
            assert "new/.git/hooks/pre-commit was added" in notes and ".mcp.json was added" in notes
        assert not hook.exists() and not settings.exists()


@pytest.mark.parametrize("way", FULL)
def test_what_the_user_changes_while_it_is_held_stays(world: Repositories, way: Way) -> None:
    """During a command and during a long program: it cannot have been either of them."""
    with world.guard(way, keep=(".envrc",)) as guard:
        (world.workspace / ".envrc").write_text("mine")
        program = guard.start(["cat"])
        world.user(
            "git config alias.mine status; git -C nested config alias.mine status; echo x > nested/.git/hooks/pre-commit"
        )
        (world.workspace / ".envrc").write_text("mine, too")
        assert world.attack(guard, "true").notes == ()

        def change(name: str, data: bytes) -> None:
            world.user("git config alias.second status; printf '#!/bin/sh\\n' > .git/hooks/pre-commit")

        assert guard.shell("echo begun", on_output=change).notes == ()
        program.close()
    seen = world.user(
        "git config alias.mine; git config alias.second; git -C nested config alias.mine; ls nested/.git/hooks/pre-commit"
    )
    assert seen.split() == ["status", "status", "status", "nested/.git/hooks/pre-commit"]
    assert (world.workspace / ".git/hooks/pre-commit").exists()
    assert (world.workspace / ".envrc").read_text() == "mine, too"


# --- what mounts hold while a command runs


@pytest.mark.parametrize("way", FULL)
@pytest.mark.parametrize(
    "path",
    [".git/config", ".git/hooks/x", "$X/.git/config", "$X/.git/hooks/x", "$B/config", "$B/hooks/x"],
)
def test_settings_at_the_top_of_each_root_are_read_only(world: Repositories, way: Way, path: str) -> None:
    with world.guard(way) as guard:
        assert world.attack(guard, f"echo x >> {path}").exit_code != 0


@pytest.mark.parametrize("way", FULL)
def test_a_pointer_file_and_what_it_leads_to_are_read_only(world: Repositories, way: Way) -> None:
    world.user("git -C $X init -q --separate-git-dir=$PWD/store")
    world.user("mv .git kept; echo 'gitdir: kept' > .git")
    with world.guard(way) as guard:
        for act in (
            "echo x >> .git",
            "rm .git",
            "echo x >> kept/config",
            "echo x > kept/hooks/x",
            "mv kept other",
            "echo x >> $X/.git",
            "echo x >> store/config",
        ):
            assert world.attack(guard, act).exit_code != 0, act
        assert world.attack(guard, "git commit -qm mine --allow-empty").exit_code == 0
    assert "mine" in world.user("git log -1 --format=%s")


def test_places(tmp_path: Path) -> None:
    assert EntryPlace(0, "").child("a").child("b") == EntryPlace(0, "a/b")
    assert EntryPlace(0, "a/b").parent == EntryPlace(0, "a") and EntryPlace(0, "a").parent == EntryPlace(0, "")


APPEND = "printf '[core]\\n\\tfsmonitor = x\\n' >> same"


@pytest.mark.parametrize("way", SANDBOXED)
def test_a_second_name_of_the_users_is_no_way_around_a_mount(tmp_path: Path, way: Way) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "same").hardlink_to(tmp_path / ".git/config")
    with guard_in(way, tmp_path) as guard:
        result = guard.shell(APPEND)
    assert result.exit_code == 0 and ".git/config was changed" in result.notes[0]
    assert "fsmonitor" not in (tmp_path / ".git/config").read_text()


@pytest.mark.parametrize("way", SANDBOXED)
def test_a_second_name_that_a_command_made_is_the_name_of_a_copy(tmp_path: Path, way: Way) -> None:
    with guard_in(way, tmp_path) as guard:
        first = guard.shell("git init -q; ln .git/config same")
        assert first.exit_code == 0 and ".git/config was added" in first.notes[0]
        result = guard.shell(APPEND)
    assert (result.exit_code, result.notes) == (0, ())
    assert "fsmonitor" in (tmp_path / "same").read_text()
    assert "repositoryformatversion" in (tmp_path / ".git/config").read_text()
    assert "fsmonitor" not in (tmp_path / ".git/config").read_text()


def test_a_directory_in_the_place_of_a_read_only_root_is_searched(tmp_path: Path) -> None:
    """Our own mounts hold by handle: the directory around a root can be moved."""
    (tmp_path / "ws/a/root").mkdir(parents=True)
    with guard_in("full", tmp_path / "ws", read_roots=[str(tmp_path / "ws/a/root")]) as guard:
        result = guard.shell("mv a moved && git init -q a/root && echo x > a/root/.git/hooks/pre-commit")
    assert result.exit_code == 0 and "a/root/.git/hooks/pre-commit was added" in result.notes[0]
