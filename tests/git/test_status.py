"""``git status`` of hostile repositories, by plain git (which runs what they say) and through the guard.

The program of a hostile repository reports on standard error that it runs, and then never ends. So a result of the guard
shows that it was not run, even in tiers where nothing can be written. Plain git in the same tier is the control.
The numbers are those of the attack list.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guard.repositories import RUN_CODE, Repository, fsmonitor, git, new_repository
from tests.guard.ways import ALL, Way, guard_in
from toolkit.errors import SandboxViolation, ToolFailed, ToolkitError
from toolkit.guard import GitChange, GitGuard, ProcessGuard

WATCHDOG = 60.0
LOUD_PROGRAM = "echo RAN >&2\ntouch {proof}\nexec sleep 10000\n"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return new_repository(tmp_path / "ws", LOUD_PROGRAM)


@pytest.fixture(params=ALL)
def way(request: pytest.FixtureRequest) -> Way:
    chosen: Way = request.param
    return chosen


@pytest.fixture
def process(repository: Repository, way: Way) -> Iterator[ProcessGuard]:
    with guard_in(way, repository.root) as process:
        yield process


@pytest.fixture
def guard(process: ProcessGuard) -> GitGuard:
    return GitGuard(process)


class Ran(Exception):
    """The hostile program was heard."""


def assert_plain_git_runs_it(process: ProcessGuard, *arguments: str, cwd: str = ".") -> None:
    """The control: without it, a row proves nothing."""
    heard = bytearray()

    def listen(name: str, data: bytes) -> None:
        heard.extend(data)
        if b"RAN" in heard:
            raise Ran

    with pytest.raises(Ran):
        process.run(["git", *arguments], cwd=cwd, timeout=WATCHDOG, on_output=listen)


@pytest.mark.sample
@pytest.mark.parametrize("name", RUN_CODE)
def test_a_repository_runs_nothing(
    repository: Repository, process: ProcessGuard, guard: GitGuard, way: Way, name: str
) -> None:
    RUN_CODE[name](repository)
    if way == "unsafe-none" and name[:3] in ("105", "107") and "worktree" not in name:
        with pytest.raises(SandboxViolation, match="filters or includes"):
            guard.status()
    else:
        assert guard.status().branch == "main"
    assert not repository.proof.exists()
    assert_plain_git_runs_it(process, "status")


@pytest.mark.parametrize("place", ["config", "included", "included-conditionally"])
def test_105_a_filter_cannot_hide_an_edit(repository: Repository, guard: GitGuard, way: Way, place: str) -> None:
    """Here the answer itself shows whether the filter ran."""
    (repository.root / ".gitattributes").write_text("tracked filter=hide\n")
    file = repository.root / ".git" / ("config" if place == "config" else "more")
    with file.open("a") as config:
        config.write('[filter "hide"]\n\tclean = echo one\n')
    if place == "included":
        repository.config("include.path", "more")
    elif place == "included-conditionally":
        repository.config(f"includeIf.gitdir:{repository.root}/.path", "more")
    repository.edit_same_size()
    if way == "unsafe-none":
        assert isinstance(refusal(guard), SandboxViolation)
    else:
        assert GitChange("tracked", "M") in guard.status().unstaged
    assert "tracked" not in git(repository.root, "status", "--short").split()


def test_105_a_same_size_edit_is_still_seen(repository: Repository, guard: GitGuard) -> None:
    repository.edit_same_size()
    assert guard.status().unstaged == (GitChange("tracked", "M"),)


def test_106_external_diff_textconv_and_pager_are_not_run(
    repository: Repository, process: ProcessGuard, guard: GitGuard
) -> None:
    (repository.root / ".gitattributes").write_text("tracked diff=X\n")
    repository.config(
        "diff.external", repository.evil, "diff.X.textconv", repository.evil, "core.pager", repository.evil,
        "pager.status", "true", "core.editor", repository.evil, "core.sshCommand", repository.evil,
    )  # fmt: skip
    repository.edit_same_size()
    assert guard.status().unstaged == (GitChange("tracked", "M"),)
    assert not repository.proof.exists()
    assert_plain_git_runs_it(process, "diff")
    assert_plain_git_runs_it(process, "diff", "--no-ext-diff")


def refusal(guard: GitGuard, cwd: str = ".") -> ToolkitError:
    with pytest.raises(ToolkitError) as caught:
        guard.status(cwd)
    return caught.value


@pytest.mark.parametrize("value", ["{base}/outside/config", "../../outside/config", "~/config"])
def test_107_an_include_outside_is_refused(repository: Repository, guard: GitGuard, value: str) -> None:
    outside = repository.root.parent / "outside"
    outside.mkdir()
    (outside / "config").write_text("[user]\n\tname = x\n")
    repository.config("include.path", value.format(base=repository.root.parent))
    assert git(repository.root, "config", "user.name", home=outside) == "x\n"
    error = refusal(guard)
    assert isinstance(error, SandboxViolation) and "outside/" not in str(error)


def test_108_an_embedded_bare_repository_is_none(
    repository: Repository, process: ProcessGuard, guard: GitGuard
) -> None:
    bare = repository.root / "bare"
    git(repository.root, "init", "-q", "--bare", str(bare))
    git(bare, "config", "core.bare", "false")
    git(bare, "config", "core.worktree", ".")
    git(bare, "config", "core.fsmonitor", repository.evil)
    error = refusal(guard, "bare")
    assert isinstance(error, ToolFailed) and error.reason == "NOT_GIT_REPOSITORY"
    assert not repository.proof.exists()
    assert_plain_git_runs_it(process, "status", cwd="bare")


def move_repository_out(repository: Repository) -> Path:
    outside = repository.root.parent / "outside-name"
    (repository.root / ".git").rename(outside)
    return outside


@pytest.mark.parametrize("form", ["file", "relative-file", "link"])
def test_109_a_repository_outside_is_refused(repository: Repository, guard: GitGuard, form: str) -> None:
    outside = move_repository_out(repository)
    pointer = repository.root / ".git"
    if form == "link":
        pointer.symlink_to(outside)
    else:
        pointer.write_text(f"gitdir: {outside if form == 'file' else '../outside-name'}\n")
    assert "main" in git(repository.root, "status")
    error = refusal(guard)
    assert isinstance(error, SandboxViolation) and "outside-name" not in str(error)


def test_109_a_common_directory_outside_is_refused(repository: Repository, guard: GitGuard) -> None:
    """Objects, branches and configuration outside, the rest inside: to git this is one repository."""
    common = repository.root.parent / "common"
    common.mkdir()
    for name in ("config", "objects", "refs"):
        (repository.root / ".git" / name).rename(common / name)
    (repository.root / ".git/commondir").write_text("../../common\n")
    assert git(repository.root, "rev-parse", "--abbrev-ref", "HEAD") == "main\n"
    error = refusal(guard)
    assert isinstance(error, SandboxViolation) and "common" not in str(error)


@pytest.mark.parametrize("value", ["{base}/outside", "../../outside"])
def test_109_a_work_tree_outside_is_refused(repository: Repository, guard: GitGuard, value: str) -> None:
    (repository.root.parent / "outside").mkdir()
    (repository.root.parent / "outside/SECRET-NAME").touch()
    repository.config("core.worktree", value.format(base=repository.root.parent))
    assert "SECRET-NAME" in git(repository.root, "status")
    error = refusal(guard)
    assert isinstance(error, SandboxViolation) and "SECRET-NAME" not in str(error)


def test_109_pointers_inside_work(repository: Repository, guard: GitGuard) -> None:
    (repository.root / ".git").rename(repository.root / "store")
    (repository.root / ".git").write_text("gitdir: store\n")
    (repository.root / "store/info/exclude").write_text("store\nevil.sh\n")
    assert guard.status().clean
    git(repository.root, "worktree", "add", "-q", "tree")
    status = guard.status("tree")
    assert (status.repository_root, status.branch, status.clean) == ("tree", "tree", True)


def test_110_a_submodule_runs_nothing(repository: Repository, process: ProcessGuard, guard: GitGuard) -> None:
    other = repository.root.parent / "other"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-qm", "x", "--allow-empty")
    git(repository.root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    git(repository.root, "commit", "-qm", "sub")
    git(repository.root / "sub", "config", "core.fsmonitor", repository.evil)
    assert guard.status().clean
    assert not repository.proof.exists()
    assert_plain_git_runs_it(process, "status")


def test_111_variables_of_the_host_are_ignored(
    repository: Repository, guard: GitGuard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    git(tmp_path / "elsewhere", "init", "-q", "-b", "elsewhere")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere/.git"))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'core.fsmonitor=touch {repository.proof}; false'")
    assert guard.status().branch == "main"
    assert not repository.proof.exists()
    assert b"elsewhere" in subprocess.run(["git", "status"], cwd=repository.root, capture_output=True).stdout
    assert repository.proof.exists()


def test_112_names_that_look_like_options_are_names(repository: Repository, guard: GitGuard) -> None:
    git(repository.root, "update-ref", "refs/heads/--upload-pack=x", "HEAD")
    git(repository.root, "symbolic-ref", "HEAD", "refs/heads/--upload-pack=x")
    (repository.root / "--output=x").touch()
    (repository.root / "-c").mkdir()
    (repository.root / "-c/f").touch()
    status = guard.status("-c")
    assert status.branch == "--upload-pack=x"
    assert status.untracked == (GitChange("--output=x", "?"), GitChange("-c/", "?"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to somebody else")
def test_113_a_repository_of_somebody_else_is_not_read(
    repository: Repository, process: ProcessGuard, guard: GitGuard
) -> None:
    fsmonitor(repository)
    for path in (repository.root, repository.root / ".git"):
        os.chown(path, 65534, 65534)
    error = refusal(guard)
    assert isinstance(error, ToolFailed) and error.reason == "PERMISSION_DENIED"
    assert not repository.proof.exists()
    assert_plain_git_runs_it(process, "-c", "safe.directory=*", "status")


def test_114_names_are_told_apart_by_nul_and_shown_on_one_line(repository: Repository, guard: GitGuard) -> None:
    for name in ("two\nlines", "esc\x1b[31m", 'quo"te', "sp ace", "\N{RIGHT-TO-LEFT OVERRIDE}"):
        (repository.root / name).touch()
    os.close(os.open(os.fsencode(repository.root) + b"/\xff", os.O_CREAT))
    (repository.root / "\n? forged").touch()
    names = {change.path for change in guard.status().untracked}
    assert names == {r"two\x0alines", r"esc\x1b[31m", 'quo"te', "sp ace", r"\u202e", r"\xff", r"\x0a? forged"}


def test_every_kind_of_change(repository: Repository, guard: GitGuard) -> None:
    root = repository.root
    for name in ("moved from", "gone", "both"):
        (root / name).write_text(f"{name}\n" * 20)
    git(root, "add", ".")
    git(root, "commit", "-qm", "second")
    git(root, "checkout", "-q", "-b", "topic")
    (root / "both").write_text("theirs\n")
    git(root, "commit", "-qam", "theirs")
    git(root, "checkout", "-q", "main")
    (root / "both").write_text("ours\n")
    git(root, "commit", "-qam", "ours")
    git(root, "branch", "-q", "--set-upstream-to=topic")
    git(root, "merge", "-q", "topic", check=False)
    git(root, "mv", "moved from", "moved to")
    (root / "added").touch()
    git(root, "add", "added")
    (root / "added").write_text("more")
    (root / "gone").unlink()
    (root / "new").touch()
    status = guard.status()
    assert set(status.staged) == {GitChange("moved to", "R", "moved from"), GitChange("added", "A")}
    assert set(status.unstaged) == {GitChange("added", "M"), GitChange("gone", "D")}
    assert status.untracked == (GitChange("new", "?"),) and status.conflicted == (GitChange("both", "UU"),)
    assert (status.branch, status.upstream, status.ahead, status.behind) == ("main", "topic", 1, 1)
    assert status.head == git(root, "rev-parse", "HEAD").strip() and not status.clean and not status.detached
    assert status.raw.startswith(b"# branch.oid ")


def test_a_detached_head_and_a_repository_without_commits(repository: Repository, guard: GitGuard) -> None:
    git(repository.root, "checkout", "-q", "--detach")
    status = guard.status()
    assert status.detached and status.branch is None and status.head and status.clean
    (repository.root / "sub").mkdir()
    git(repository.root / "sub", "init", "-q", "-b", "fresh")
    status = guard.status("sub")
    assert (status.repository_root, status.branch, status.head) == ("sub", "fresh", None)


def test_nothing_is_written(repository: Repository, guard: GitGuard) -> None:
    os.utime(repository.root / "tracked", (2_000_000_000, 2_000_000_000))
    before = (repository.root / ".git/index").read_bytes()
    assert guard.status().clean
    assert (repository.root / ".git/index").read_bytes() == before
    git(repository.root, "status")
    assert (repository.root / ".git/index").read_bytes() != before


def test_a_repository_around_the_workspace_is_not_looked_for(repository: Repository, way: Way) -> None:
    (repository.root / "inner").mkdir()
    with guard_in(way, repository.root / "inner") as process:
        error = refusal(GitGuard(process))
    assert isinstance(error, ToolFailed) and error.reason == "NOT_GIT_REPOSITORY"
    assert "main" in git(repository.root / "inner", "status")


def test_a_working_directory_outside_is_refused(guard: GitGuard) -> None:
    assert isinstance(refusal(guard, ".."), SandboxViolation)
