"""What people do with git all day works in every tier, is still there afterwards, and gets no note."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.guard.review.world import Repositories
from tests.guard.ways import SANDBOXED, Way, guard_in
from toolkit.errors import ToolNotAllowed
from toolkit.guard import RUNS_LATER, GitMode

# Adding a submodule writes .gitmodules, which is put back.
KEEP = tuple(name for name in RUNS_LATER if name != ".gitmodules")
# A row of `make test` next to it does most of the same.
WHOLE, EVERY_TIER = (pytest.mark.whole,), (pytest.mark.every_tier,)
CLONE = "git clone -q nested cloned"


@dataclass(frozen=True)
class Neighbour:
    name: str
    command: str
    user: str
    expected: str
    marks: tuple[pytest.MarkDecorator, ...] = ()


NEIGHBOURS = [
    Neighbour("add and commit", "echo x > new && git add new && git commit -qm mine", "git log -1 --format=%s", "mine", EVERY_TIER),
    Neighbour("amend", "git commit -q --amend -m mine", "git log -1 --format=%s", "mine", WHOLE),
    Neighbour("branch and tag", "git checkout -q -b mine && git tag v1 && git branch second", "git branch --format='%(refname:short)'; git tag", "main\nmine\nother\nsecond\nv1", WHOLE),
    Neighbour("merge", "git checkout -q -b b HEAD~1 && echo x > x && git add x && git commit -qm x && git merge -q -m merged main", "git log -1 --format=%s", "merged"),
    Neighbour("stash", "echo x > tracked && git stash -q && git stash list", "git stash list --format=%gs", "WIP on main"),
    Neighbour("rebase", "git checkout -q -b b HEAD~1 && echo x > x && git add x && git commit -qm onto && git rebase -q main", "git log -2 --format=%s", "onto\nmore four", WHOLE),
    Neighbour("a rebase that stops", "! git rebase -q other && echo x > tracked && git add tracked && GIT_EDITOR=true git rebase --continue", "git log -3 --format=%s", "more four\ntracked three\ntracked two"),
    Neighbour("a rebase that runs a program in the sandbox", "git rebase -q -x 'touch ran' HEAD~1", "ls ran", "ran", WHOLE),
    Neighbour("reset and gc", "git reset -q --hard HEAD~1 && git gc -q && git reflog expire --expire=now --all", "git log -1 --format=%s", "tracked three"),
    Neighbour("a new repository", "git init -q new && cd new && echo x > x && git add x && git commit -qm mine", "git -C new log --format=%s", "mine"),
    Neighbour("settings of a new repository", "git init -q new && git -C new config user.name me && git -C new remote add origin https://example.org/x", "git -C new config user.name; git -C new remote get-url origin", "me\nhttps://example.org/x", WHOLE),
    Neighbour("a bare repository", "mkdir b && git init -q --bare b && git push -q b HEAD:refs/heads/mine", "git -C b branch", "mine", WHOLE),
    Neighbour("what programs around git remember", "git -C nested config remote.o.gh-resolved base && git -C nested config branch.main.vscode-merge-base o/main", "git -C nested config branch.main.vscode-merge-base", "o/main"),
    Neighbour("another version control system", "mkdir -p .hg/store && echo a > .hg/store/data && echo '[paths]' > .hg/requires", "cat .hg/store/data", "a", WHOLE),
    Neighbour("a clone", CLONE, "git -C cloned log --format=%s; git -C cloned remote", "tracked one\norigin"),
    Neighbour("a bare clone", "git clone -q --bare nested cloned", "git -C cloned log --format=%s", "tracked one", WHOLE),
    Neighbour("a branch that follows another", CLONE + " && cd cloned && git checkout -q -b x origin/main && git commit -qm mine --allow-empty && git push -q origin x", "git -C cloned status -sb; git -C nested log -1 --format=%s x", "## x...origin/main [ahead 1]\nmine", WHOLE),
    Neighbour("a remote and a name inside", "git -C nested remote add o https://example.org/x && git -C nested config user.name me", "git -C nested remote; git -C nested config user.name", "o\nme", WHOLE),
    Neighbour("a work tree", "git worktree add -q wt && cd wt && echo x > x && git add x && git commit -qm mine", "git -C wt log -1 --format=%s; git worktree list | wc -l", "mine\n2"),
    Neighbour("a work tree that goes again", "git worktree add -q wt && git worktree remove wt", "git worktree list | wc -l", "1", WHOLE),
    Neighbour("a submodule in another repository", "cd nested && git -c protocol.file.allow=always submodule --quiet add $X mod && git commit -qm mine", "git -C nested submodule status | cut -c43-", "mod (heads/main)", WHOLE),
    Neighbour("a clone with its submodules", "git clone -q . cloned && cd cloned && git config submodule.sub.url $B && git -c protocol.file.allow=always submodule --quiet update --init", "git -C cloned/sub log --format=%s | tail -1", "tracked one", EVERY_TIER),
    Neighbour("a moved repository", "mv nested moved && git -C moved commit -qm mine --allow-empty", "git -C moved log -1 --format=%s", "mine", WHOLE),
    Neighbour("a moved submodule", "git mv sub moved && git commit -qm mine", "git -C moved rev-parse --show-toplevel", "ws/moved"),
    Neighbour("a removed repository", "rm -rf nested", "ls nested 2>&1 | wc -l", "1", WHOLE),
    Neighbour("a git directory elsewhere", "cd nested && git init -q --separate-git-dir=../store", "git -C nested log --format=%s", "tracked one"),
    Neighbour("another root", "cd $X && echo x > x && git add x && git commit -qm mine", "git -C $X log -1 --format=%s", "mine", WHOLE),
    Neighbour("refs that are links", "cd nested && git -c core.preferSymlinkRefs=true checkout -q -b mine && git commit -qm mine --allow-empty && test -L .git/HEAD", "git -C nested log -1 --format=%s mine", "mine"),
    Neighbour("branches with the names of kept files", "git branch lefthook.yml && git branch config.fish", "git branch --format='%(refname:short)'", "config.fish\nlefthook.yml"),
    Neighbour("directories that git itself has", "mkdir -p src/hooks src/refs && echo x > src/hooks/useState.ts && echo x > src/HEAD", "cat src/hooks/useState.ts src/HEAD", "x\nx", WHOLE),
]  # fmt: skip


@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize("row", [pytest.param(row, id=row.name, marks=row.marks) for row in NEIGHBOURS])
def test_it_works_and_stays(world: Repositories, row: Neighbour, way: Way) -> None:
    with world.guard(way, keep=KEEP) as guard:
        result = world.attack(guard, f"set -e\n{row.command}")
        assert result.exit_code == 0, result.stderr.decode()
        assert result.notes == ()
        again = world.attack(guard, "git status")  # a second command has nothing to put back either
        assert again.notes == ()
    seen = "\n".join(line.strip() for line in world.user(row.user).split("\n"))
    assert row.expected in seen


@pytest.mark.parametrize("way", SANDBOXED)
def test_a_new_work_tree_has_the_hooks_of_the_repository(world: Repositories, way: Way) -> None:
    world.user(
        "mkdir h; printf '#!/bin/sh\\ntouch hooked\\n' > h/pre-commit; chmod +x h/pre-commit; git add h; git commit -qm h"
    )
    world.user("git config core.hooksPath h")
    with world.guard(way) as guard:
        for act in ("git worktree add -q wt", "cd wt; git commit -qm mine --allow-empty"):
            result = world.attack(guard, act)
            assert (result.exit_code, result.notes) == (0, ())
    assert (world.workspace / "wt/hooked").exists()


@pytest.mark.parametrize("way", SANDBOXED)
def test_the_users_own_hooks_and_settings_survive(world: Repositories, way: Way) -> None:
    """In every kind of repository, whatever commands do beside them."""
    for folder in (".", "nested", "../extra"):
        world.user(
            f"cd {folder}; printf '#!/bin/sh\\ntouch hooked\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; "
            "git config alias.mine status; ln -s pre-commit .git/hooks/pre-merge-commit; git config core.pager less"
        )
    with world.guard(way) as guard:
        for folder in (".", "nested", "$X"):
            result = world.attack(guard, f"cd {folder}; git commit -qm mine --allow-empty")
            assert (result.exit_code, result.notes) == (0, ())
    for folder in (".", "nested", "../extra"):
        assert "mine" in world.user(
            f"cd {folder}; git log -1 --format=%s; git config alias.mine; ls .git/hooks/pre-commit"
        )
        assert (world.workspace / folder / "hooked").exists()


@pytest.mark.parametrize("mode", ["commit", "write"])
@pytest.mark.parametrize("way", SANDBOXED)
def test_with_write_commands_change_hooks_and_settings(world: Repositories, way: Way, mode: GitMode) -> None:
    act = "git config alias.mine status; cp $E .git/hooks/pre-commit; git init -q new; cp $E new/.git/hooks/pre-commit"
    with world.guard(way, mode) as guard:
        result = world.attack(guard, act)
    changed = [(world.workspace / name).exists() for name in (".git/hooks/pre-commit", "new/.git/hooks/pre-commit")]
    assert changed == [mode == "write"] * 2
    assert (result.notes == ()) == (mode == "write")
    assert ("status" in world.user("git config alias.mine")) == (mode == "write")


# --- git="read-only"


@pytest.mark.parametrize("way", ["full", "bubblewrap"])
@pytest.mark.parametrize(
    "folder",
    [".", pytest.param("nested", marks=pytest.mark.whole), "sub", pytest.param("$X", marks=pytest.mark.whole), "$B"],
)
def test_read_only_repositories_are_read_and_not_changed(world: Repositories, way: Way, folder: str) -> None:
    with world.guard(way, "read-only") as guard:
        read = world.attack(guard, f"cd {folder}; git log -1 --format=%s")
        assert read.exit_code == 0 and read.stdout
        for act in (
            "git commit -qm x --allow-empty",
            "git tag x",
            "git config user.name x",
            "touch $(git rev-parse --git-dir)/x",
        ):
            assert world.attack(guard, f"cd {folder}; {act}").exit_code != 0, act
        new = world.attack(guard, "echo x > x && git init -q new && cd new && git commit -qm x --allow-empty")
        assert (new.exit_code, new.notes) == (0, ())


def test_read_only_where_it_cannot_be_held_is_refused(world: Repositories) -> None:
    with world.guard("reduced", "read-only") as guard, pytest.raises(ToolNotAllowed, match='use git="commit"'):
        world.attack(guard, "true")


def test_read_only_in_the_reduced_tier_runs_until_there_is_a_repository(tmp_path: Path) -> None:
    with guard_in("reduced", tmp_path, git="read-only") as guard:
        assert guard.shell("echo x > f; git init -q n").exit_code == 0
        with pytest.raises(ToolNotAllowed, match='use git="commit"'):
            guard.shell("true")
    with guard_in("reduced", tmp_path, git="commit") as guard:
        assert guard.shell("true").exit_code == 0
