"""Changes and hidden changes in ``git status``, and directories that git does not accept as repositories."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.guard.repositories import INCOMPLETE, Repository, clean_filter, git, new_repository
from toolkit.errors import SandboxViolation, ToolCancelled, ToolFailed, ToolkitError
from toolkit.guard import GitChange, GitGuard, ProcessGuard, SandboxChoice, SandboxFS
from toolkit.guard.process.tier import probe


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return new_repository(tmp_path / "ws")


@pytest.fixture(params=["full", "reduced", "unsafe-none"])
def tier(request: pytest.FixtureRequest) -> SandboxChoice:
    choice: SandboxChoice = request.param
    if choice != "unsafe-none" and probe("full" if choice == "full" else "reduced"):
        pytest.skip(f"this machine gives no {choice} tier")
    return choice


@pytest.fixture
def guard(repository: Repository, tier: SandboxChoice) -> Iterator[GitGuard]:
    with ProcessGuard(str(repository.root), sandbox=tier) as process:
        yield GitGuard(process)


def refusal(guard: GitGuard, cwd: str = ".") -> ToolkitError:
    with pytest.raises(ToolkitError) as caught:
        guard.status(cwd)
    return caught.value


@pytest.mark.parametrize("spoil", INCOMPLETE)
def test_107_what_git_passes_over_leads_to_no_other_repository(
    repository: Repository, guard: GitGuard, spoil: Callable[[Path], None]
) -> None:
    """Git continues above a ``.git`` that is not a repository, and would find one that was not checked."""
    clean_filter(repository)
    (repository.root / "sub").mkdir()
    spoil(repository.root / "sub" / ".git")
    error = refusal(guard, "sub")
    assert isinstance(error, ToolFailed) and error.reason == "NOT_GIT_REPOSITORY"
    assert not repository.proof.exists()
    git(repository.root / "sub", "status")
    assert repository.proof.exists()


def test_107_objects_outside_are_refused(repository: Repository, guard: GitGuard) -> None:
    objects = repository.root / ".git" / "objects"
    objects.rename(repository.root.parent / "outside-objects")
    objects.symlink_to(repository.root.parent / "outside-objects")
    assert isinstance(refusal(guard), SandboxViolation)
    assert "main" in git(repository.root, "status")


def move_repository_out(repository: Repository) -> Path:
    outside = repository.root.parent / "outside-name"
    (repository.root / ".git").rename(outside)
    return outside


def test_what_a_deny_rule_covers_is_counted_and_not_shown(repository: Repository, guard: GitGuard) -> None:
    root = repository.root
    for name in ("plain", "SECRET-moved", "SECRET-tracked"):
        (root / name).write_text(f"{name}\n" * 20)
    git(root, "add", ".")
    git(root, "commit", "-qm", "second")
    git(root, "mv", "SECRET-moved", "moved")
    git(root, "mv", "plain", "SECRET-now")
    (root / "SECRET-tracked").write_text("x")
    (root / "new").mkdir()
    os.close(os.open(os.fsencode(root) + b"/secret-\xff", os.O_CREAT))
    (root / "new/secret-file").touch()
    with SandboxFS(root) as fs:
        status = guard.with_deny_of(fs.with_deny(["secret-*"])).status("new")
    assert status.staged == (GitChange("moved", "R"),) and status.unstaged == ()
    assert status.untracked == (GitChange("new/", "?"),) and status.hidden == 3
    assert b"secret" not in status.raw.lower() and not status.clean
    assert guard.status().hidden == 0 and b"SECRET-now" in guard.status().raw


def test_hidden_changes_are_changes(repository: Repository, guard: GitGuard) -> None:
    (repository.root / "secret").touch()
    with SandboxFS(repository.root) as fs:
        status = guard.with_deny_of(fs.with_deny(["/secret"])).status()
    assert (status.untracked, status.hidden, status.clean) == ((), 1, False)


def test_an_upstream_that_is_gone(repository: Repository, guard: GitGuard) -> None:
    repository.config("branch.main.remote", ".", "branch.main.merge", "refs/heads/gone")
    status = guard.status()
    assert (status.upstream, status.upstream_gone, status.ahead, status.behind) == ("gone", True, 0, 0)


@pytest.mark.parametrize("when", [1, 8, 20])
def test_the_caller_ends_it(repository: Repository, guard: GitGuard, when: int) -> None:
    """At the first check, while git runs, and in between."""
    asked: list[None] = []

    def check() -> None:
        asked.append(None)
        if len(asked) == when:
            raise ToolCancelled("cancelled by the test")

    with pytest.raises(ToolCancelled):
        guard.with_check(check).status()
    assert len(asked) == when
