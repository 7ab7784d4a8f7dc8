"""A command prepares a repository so that the user's next git runs its program.

Each row is what the command does and what the user does afterwards. Without a guard the program runs, or the row proves
nothing; with it, in every tier, it does not, and the user's git still works.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.guard.review.world import Repositories
from tests.guard.ways import SANDBOXED, Way

STATUS = "git status"
INSPECT = "git status --ignore-submodules=all"
COMMIT = "git commit -q --allow-empty -m x"
# A second repository that looks like the first one, but runs the program.
COPY = "cp -r .git copy; mv copy {0}; git config -f {0}/config core.fsmonitor $E; "
BARE_BY_HAND = (
    "mkdir -p {0}/objects {0}/refs; echo ref: refs/heads/x > {0}/HEAD; "
    "git config -f {0}/config core.repositoryFormatVersion 0; git config -f {0}/config core.bare false; git config -f {0}/config core.worktree .; "
    "git config -f {0}/config core.fsmonitor $E"
)


@dataclass(frozen=True)
class Takeover:
    name: str
    command: str
    user: str = STATUS
    before: str = ""  # what the user has done before
    like: str = ""  # the row of `make test` that the guard stops for the same reason


TAKEOVERS = [
    Takeover("commondir", COPY.format("c") + "echo ../c > .git/commondir"),
    Takeover("pointer file", COPY.format("g") + "mv .git away; echo 'gitdir: g' > .git"),
    Takeover("pointer file to a hidden place", COPY.format(".git/refs/g") + "mkdir p; echo 'gitdir: ../.git/refs/g' > p/.git", "git -C p status", like="link in a directory"),
    Takeover("replaced by a link", COPY.format("g") + "mv .git away; ln -s g .git"),
    Takeover("link in a directory", COPY.format(".git/logs/g") + "mkdir p; ln -s ../.git/logs/g p/.git", "git -C p status"),
    Takeover("absent hooks", "mkdir .git/hooks; cp $E .git/hooks/pre-commit", COMMIT, before="rm -r .git/hooks"),
    Takeover("absent hooks, as a link", "mkdir h; cp $E h/pre-commit; ln -s ../h .git/hooks", COMMIT, before="rm -r .git/hooks", like="absent hooks"),
    Takeover("a hook", "cp $E .git/hooks/pre-commit", COMMIT, like="absent hooks"),
    Takeover("a hook made executable", "chmod +x nested/.git/hooks/pre-commit", "cd nested; " + COMMIT, before="printf '#!/bin/sh\\ntouch ../../marker\\n' > nested/.git/hooks/pre-commit"),
    Takeover("config", "git config core.fsmonitor $E"),
    Takeover("config of a submodule", "git config -f .git/modules/sub/config core.fsmonitor $E"),
    Takeover("hook of a submodule", "cp $E .git/modules/sub/hooks/pre-commit", "cd sub; " + COMMIT, like="config of a submodule"),
    Takeover("pointer of a submodule", COPY.format("g") + "echo 'gitdir: ../g' > sub/.git", "git -C sub status"),
    Takeover("config of another root", "git config -f $X/.git/config core.fsmonitor $E", "git -C $X status", like="hook of another root"),
    Takeover("hook of another root", "cp $E $X/.git/hooks/pre-commit", "cd $X; " + COMMIT),
    Takeover("commondir of another root", COPY.format("$X/c") + "echo ../c > $X/.git/commondir", "git -C $X status", like="hook of another root"),
    Takeover("config of a bare root", "git config -f $B/config core.bare false; git config -f $B/config core.worktree .; git config -f $B/config core.fsmonitor $E", "git -C $B status"),
    Takeover("hook of a bare root", "cp $E $B/hooks/update", "git push -q $B HEAD:refs/heads/new", like="config of a bare root"),
    Takeover("config of a repository inside", "git -C nested config core.fsmonitor $E", "git -C nested status"),
    Takeover("a moved repository", "mv nested moved; git -C moved config core.fsmonitor $E", "git -C moved status"),
    Takeover("a repository that is made again", "rm -rf nested/.git; git init -q nested; git -C nested config core.fsmonitor $E", "git -C nested status", like="a new repository"),
    Takeover("a new repository", "git init -q new; git -C new config core.fsmonitor $E", "git -C new status"),
    Takeover("a new repository with a hook", "git init -q new; cp $E new/.git/hooks/pre-commit", "cd new; " + COMMIT, like="a clone with a hook"),
    Takeover("a new repository, deep", "git init -q a/b/c/d; git -C a/b/c/d config core.fsmonitor $E", "git -C a/b/c/d status", like="a new repository"),
    Takeover("a new repository by hand", BARE_BY_HAND.format("new/.git"), "git -C new status", like="a bare repository among sources"),
    Takeover("a new repository, unreadable to a strict parser", "git init -q new; printf '[core] fsmonitor = %s\\n' $E >> new/.git/config", "git -C new status"),
    Takeover("a new repository whose config is a link", "git init -q new; git -C new config core.fsmonitor $E; mv new/.git/config c; ln -s ../../c new/.git/config", "git -C new status"),
    Takeover("a new repository in the directory of modules", COPY.format(".git/modules/m") + "mkdir m; echo 'gitdir: ../.git/modules/m' > m/.git", "git -C m status"),
    Takeover("a clone with a hook", "git clone -q nested cloned; cp $E cloned/.git/hooks/post-checkout", "git -C cloned checkout -qb x"),
    Takeover("a bare repository among sources", BARE_BY_HAND.format("new"), "git -C new status"),
    Takeover("a bare repository in a directory of sources", BARE_BY_HAND.format("src"), "git -C src status", like="a bare repository among sources"),
    Takeover("a bare repository through commondir", "mkdir e; " + COPY.format("e/g") + "cp .git/HEAD .git/index e; echo g > e/commondir; git config -f e/g/config alias.st \"!$E\"", "git -C e st"),
    Takeover("config.worktree", "git -C nested config extensions.worktreeConfig true; git -C nested config --worktree core.fsmonitor $E", "git -C nested status", like="config.worktree that was allowed"),
    Takeover("config.worktree that was allowed", "git -C nested config --worktree core.fsmonitor $E", "git -C nested status", before="git -C nested config extensions.worktreeConfig true"),
    Takeover("include.path", "git config -f .git/extra core.fsmonitor $E; git -C nested config include.path $PWD/.git/extra", "git -C nested status"),
    Takeover("an included file", "git config -f team core.fsmonitor $E", before="git config include.path ../team; git config -f team user.name n"),
    Takeover("a file included by an included file", "git config -f team2 core.fsmonitor $E", before="git config include.path ../team; git config -f team include.path team2; touch team2", like="an included file"),
    Takeover("core.hooksPath", "mkdir h; cp $E h/pre-commit; git -C nested config core.hooksPath $PWD/h", "cd nested; " + COMMIT, like="include.path"),
    Takeover("a hook where core.hooksPath leads", "cp $E tools/pre-commit", COMMIT, before="git config core.hooksPath tools", like="a hook where core.hooksPath leads, in settings that are hard to read"),
    Takeover("a hook where core.hooksPath leads, behind a link", "cp -r tools t; cp $E t/hooks/pre-commit; rm -r tools; ln -s t tools", COMMIT, before="mkdir tools/hooks; git config core.hooksPath tools/hooks"),
    Takeover("a hook where core.hooksPath leads in a second work tree", "cp $E wt/tools/pre-commit", "cd wt; " + COMMIT, before="printf '#!/bin/sh\\n' > tools/pre-commit; chmod +x tools/pre-commit; git add tools; git commit -qm t; git config core.hooksPath tools; git worktree add -q wt"),
    Takeover("a hook where core.hooksPath leads in a new work tree", "git worktree add -q wt; cp $E wt/tools/pre-commit", "cd wt; " + COMMIT, before="printf '#!/bin/sh\\n' > tools/pre-commit; chmod +x tools/pre-commit; git add tools; git commit -qm t; git config core.hooksPath tools", like="a hook where core.hooksPath leads in a second work tree"),
    Takeover("a hook where core.hooksPath leads in a submodule", "cp $E sub/h/pre-commit", "cd sub; " + COMMIT, before="git -C sub config core.hooksPath h; mkdir sub/h", like="a hook where core.hooksPath of a repository outside leads"),
    Takeover("a hook where core.hooksPath of a repository outside leads", "cp $E sub/h/pre-commit", "cd sub; " + COMMIT, before="git clone -q nested ../outside; cd ../outside; git config core.hooksPath h; rm -r ../ws/sub; git worktree add -q ../ws/sub; mkdir ../ws/sub/h"),
    Takeover("a hook where core.hooksPath leads, in settings that are hard to read", "cp $E tools/pre-commit", COMMIT, before="git config core.hooksPath tools; printf '[alias]\\n\\tx = a \\\\\\n\\tb\\n' >> .git/config"),
    Takeover("a hook where core.hooksPath leads, in settings from another system", "cp $E tools/pre-commit", COMMIT, before="git config core.hooksPath tools; sed -i 's/$/\\r/' .git/config", like="a hook where core.hooksPath leads, in settings that are hard to read"),
    Takeover("a script that a hook is a link to", "cp $E tools/script", COMMIT, before="printf '#!/bin/sh\\n' > tools/script; chmod +x tools/script; ln -s ../../tools/script .git/hooks/pre-commit"),
    Takeover("a script that a hook led to in vain", "cp $E tools/script", COMMIT, before="ln -s ../../tools/script .git/hooks/pre-commit", like="a script that a hook is a link to"),
    Takeover("config by another name", "printf '[core]\\n\\tfsmonitor = %s\\n' $E >> same", before="ln .git/config same"),
    Takeover("a hook by another name", "cat $E > same", COMMIT, before="printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; ln .git/hooks/pre-commit same", like="config by another name"),
    Takeover("filter", "git -C nested config filter.x.clean $E; echo '* filter=x' > nested/.gitattributes; echo new > nested/tracked", "git -C nested add ."),
    Takeover("diff driver", "git -C nested config diff.external $E; echo new > nested/tracked", "git -C nested diff", like="filter"),
    Takeover("merge driver", "cd nested; git config merge.x.driver $E; echo 'tracked merge=x' > .gitattributes; git checkout -qb b; echo b > tracked; git commit -qam b; git checkout -q main; echo m > tracked; git commit -qam m", "git -C nested merge b", like="filter"),
    Takeover("alias", "git -C nested config alias.st \"!$E\"", "git -C nested st"),
    Takeover("credential.helper", "git -C nested config credential.helper \"!$E\"", "printf 'host=h\\nprotocol=https\\n\\n' | git -C nested credential fill", like="alias"),
    Takeover("gpg.program", "git -C nested config gpg.program $E; git -C nested config commit.gpgSign true", "cd nested; " + COMMIT, like="alias"),
    Takeover("remote.uploadpack", "git -C nested remote add o $PWD; git -C nested config remote.o.uploadpack $E", "git -C nested fetch o", like="alias"),
    Takeover("commondir of a work tree", COPY.format("g") + "git worktree add -q wt; echo $PWD/g > .git/worktrees/wt/commondir", "git -C wt status"),
    Takeover("commondir of an old work tree", COPY.format("g") + "echo $PWD/g > .git/worktrees/wt/commondir", "git -C wt status", before="git worktree add -q wt", like="commondir of a work tree"),
    Takeover("pointer of an old work tree", COPY.format("g") + "echo gitdir: $PWD/g > wt/.git", "git -C wt status", before="git worktree add -q wt"),
    Takeover("work tree of a submodule", "ln -s .. link; git config -f .git/modules/sub/config core.worktree ../../../link", "git -C sub reset -q --hard"),
    Takeover("work tree of a new submodule", "cp -r .git/modules/sub .git/modules/m; mkdir m; echo 'gitdir: ../.git/modules/m' > m/.git; ln -s .. link; git config -f .git/modules/m/config core.worktree ../../../link", "git -C m reset -q --hard", like="work tree of a submodule"),
    Takeover("a second pointer to a submodule", "mkdir m; cp sub/.git m/.git; mv sub away; ln -s .. sub", "git -C m reset -q --hard"),
    Takeover("work tree of a clone", "git clone -q sub cloned; git -C cloned config core.worktree ../../..", "git -C cloned reset -q --hard", like="work tree of a submodule"),
    Takeover("exec in a rebase", "git rebase -q -x $E other", "echo x > tracked; git add tracked; git rebase --continue"),
    Takeover("exec in the user's rebase", "echo exec $E >> .git/rebase-merge/git-rebase-todo", "echo x > tracked; git add tracked; git rebase --continue", before="git rebase -q other"),
    Takeover("strategy of the user's rebase", "mkdir git-merge-x; echo x/../evil.sh > .git/rebase-merge/strategy", "echo x > tracked; git add tracked; git rebase --continue", before="git rebase -q other", like="exec in the user's rebase"),
    Takeover("strategy of a cherry-pick", "mkdir git-merge-x; git config -f .git/sequencer/opts options.strategy x/../evil.sh", "echo x > tracked; git add tracked; git cherry-pick --continue", before="git checkout -q other; git cherry-pick main~1 main"),
    Takeover("a message that is written through a link", "ln -sf $H/.bashrc .git/COMMIT_EDITMSG; echo $E > .git/MERGE_MSG", "echo x > new; git add new; git commit -q; . $HOME/.bashrc"),
    Takeover("a log that is written through a link", "rm nested/.git/logs/HEAD; ln -s $H/.bashrc nested/.git/logs/HEAD; git -C nested branch 'x;./evil.sh'", "git -C nested checkout -q 'x;./evil.sh'; . $HOME/.bashrc", like="a message that is written through a link"),
    Takeover("a message that is written to another name of a hook", "ln -f nested/.git/hooks/pre-commit nested/.git/COMMIT_EDITMSG; echo $E > nested/.git/MERGE_MSG", "cd nested; echo x > tracked; git commit -qa; " + COMMIT, before="cd nested; printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", like="a message that is written to another name of a hook of two names"),
    Takeover("a message that is written to another name of a hook of two names", "ln -f nested/.git/hooks/pre-commit nested/.git/COMMIT_EDITMSG; echo $E > nested/.git/MERGE_MSG", "cd nested; echo x > tracked; git commit -qa; " + COMMIT, before="cd nested; printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; ln .git/hooks/pre-commit copy"),
    Takeover("a message that is written to another name of the settings", "ln -f nested/.git/config nested/.git/COMMIT_EDITMSG; git config -f nested/.git/MERGE_MSG core.fsmonitor $E", "cd nested; echo x > tracked; git commit -qa; git status"),
    Takeover("a message that is written to another name of new settings", "git init -q new; ln new/.git/config new/.git/COMMIT_EDITMSG; git config -f new/.git/MERGE_MSG core.fsmonitor $E", "cd new; echo x > tracked; git add tracked; git commit -q; git status", like="a message that is written to another name of the settings"),
    Takeover("a message that is written to another name of new settings of a work tree", "ln -f nested/.git/config nested/.git/c; rm nested/.git/c; touch nested/.git/config.worktree; ln -f nested/.git/config.worktree nested/.git/COMMIT_EDITMSG; git config -f nested/.git/MERGE_MSG core.fsmonitor $E", "cd nested; echo x > tracked; git commit -qa; git status", before="git -C nested config extensions.worktreeConfig true", like="a message that is written to another name of the settings"),
    Takeover("a message that is written to another name of an included file", "ln -f nested/team nested/.git/COMMIT_EDITMSG; git config -f nested/.git/MERGE_MSG core.fsmonitor $E", "cd nested; echo x > tracked; git commit -qa; git status", before="cd nested; git config include.path ../team; git config -f team user.name n", like="a message that is written to another name of the settings"),
    Takeover("a log that is written to another name of a hook", "cd nested; ln -f .git/hooks/post-checkout .git/logs/HEAD; git branch \"x;$E\"", "cd nested; git checkout -q \"x;${PWD%/*}/evil.sh\"", before="cd nested; printf '#!/bin/sh\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout", like="a message that is written to another name of a hook of two names"),
    Takeover("logs that are a link", "cd nested; rm -r .git/logs; ln -s $H .git/logs; git branch 'x;./evil.sh'", "git -C nested checkout -q 'x;./evil.sh'; . $HOME/HEAD"),
    Takeover("a repository among large files, behind a link", "mkdir -p .git/lfs; git init -q .git/lfs/r; git -C .git/lfs/r config core.fsmonitor $E; ln -s .git/lfs/r r", "cd r; git status"),
    Takeover("a repository among objects, behind a link", "git init -q .git/objects/ab/r; git -C .git/objects/ab/r config core.fsmonitor $E; ln -s .git/objects/ab/r r", "cd r; git status", like="a repository among large files, behind a link"),
    Takeover("update of a submodule", "git config submodule.sub.update \"!$E\"", "git -C sub checkout -q HEAD~0; git -C sub -c user.name=n commit -qm x --allow-empty; git submodule update", like="config"),
]  # fmt: skip


def take_over(world: Repositories, row: Takeover, way: Way) -> tuple[bool, str]:
    """Whether the hostile program ran, and what the user saw."""
    world.user(row.before)
    assert not world.marker.exists()
    with world.guard(way) as guard:
        world.attack(guard, row.command)
    assert not world.marker.exists() or way == "unsafe-none"
    world.marker.unlink(missing_ok=True)
    seen = world.user(row.user)
    return world.marker.exists(), seen


ROWS = [pytest.param(row, id=row.name, marks=[pytest.mark.whole] if row.like else []) for row in TAKEOVERS]


def test_a_row_that_is_left_out_is_like_one_that_is_not() -> None:
    assert {row.like for row in TAKEOVERS} <= {row.name for row in TAKEOVERS if not row.like} | {""}


@pytest.mark.sample
@pytest.mark.parametrize("row", ROWS)
def test_unguarded_it_succeeds(world: Repositories, row: Takeover) -> None:
    ran, seen = take_over(world, row, "unsafe-none")
    assert ran, seen


@pytest.mark.sample(every=16)
@pytest.mark.parametrize("way", SANDBOXED)
@pytest.mark.parametrize("row", ROWS)
def test_under_the_guard_it_fails(make_world: Callable[[str], Repositories], row: Takeover, way: Way) -> None:
    world = make_world("guarded")
    ran, _ = take_over(world, row, way)
    assert not ran
    assert "On branch main" in world.user(
        "git rebase --abort; git cherry-pick --abort; git checkout -q main; " + INSPECT
    )
