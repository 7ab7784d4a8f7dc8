"""``git_status_summary`` through the public entry point: real repositories in every state, hostile ones among them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.builtin.snapshots import Snapshots
from tests.builtin.workspace import make, toolkit_for
from tests.guard.repositories import INCOMPLETE, RUN_CODE, Repository, clean_filter, git, new_repository
from toolkit import CancelSignal, ToolCall, ToolCancelled, ToolFailed, ToolkitError, ToolNotAllowed
from toolkit.builtin.shell.git_status_summary import MAX_LISTED, MAX_RAW, MAX_SHOWN
from toolkit.generated import (
    GitStatusSummaryInput,
    GitStatusSummaryOutput,
    Rule,
    SecurityPolicy,
    Toolkit,
    ToolkitContext,
    create_agent_toolkit,
)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return new_repository(tmp_path / "ws")


def summary(repository: Repository, cwd: str = ".") -> GitStatusSummaryOutput:
    with toolkit_for(repository.root) as toolkit:
        return toolkit.tools.git_status_summary(cwd=cwd)


def text_of(repository: Repository, cwd: str = ".") -> str:
    with toolkit_for(repository.root) as toolkit:
        return toolkit.invoke("git_status_summary", GitStatusSummaryInput(cwd=cwd)).text()


def refusal(repository: Repository, cwd: str = ".") -> ToolkitError:
    with pytest.raises(ToolkitError) as caught:
        summary(repository, cwd)
    return caught.value


def paths(output: GitStatusSummaryOutput) -> dict[str, list[tuple[str, str]]]:
    """Every list that is not empty, as pairs."""
    lists = {
        "staged": output.staged,
        "unstaged": output.unstaged,
        "untracked": output.untracked,
        "conflicted": output.conflicted,
    }
    return {name: [(one.path, one.status) for one in rows] for name, rows in lists.items() if rows}


# -- states of a repository ---------------------------------------------------------------------------------------------


def nothing(root: Path) -> None:
    """As it is."""


def staged(root: Path) -> None:
    make(root, "new.py")
    git(root, "add", "new.py")


def unstaged(root: Path) -> None:
    (root / "tracked").write_text("two\n")


def both(root: Path) -> None:
    (root / "tracked").write_text("two\n")
    git(root, "add", "tracked")
    (root / "tracked").write_text("three\n")


def renamed(root: Path) -> None:
    git(root, "mv", "tracked", "moved")


def renamed_and_edited(root: Path) -> None:
    (root / "tracked").write_text("line\n" * 50)
    git(root, "commit", "-qam", "long")
    git(root, "mv", "tracked", "moved")
    (root / "moved").write_text("line\n" * 49 + "last\n")


def deleted(root: Path) -> None:
    (root / "tracked").unlink()


def deleted_and_staged(root: Path) -> None:
    git(root, "rm", "-q", "tracked")


def made_executable(root: Path) -> None:
    (root / "tracked").chmod(0o755)


def turned_into_a_link(root: Path) -> None:
    (root / "tracked").unlink()
    (root / "tracked").symlink_to("elsewhere")


def intended(root: Path) -> None:
    make(root, "planned")
    git(root, "add", "-N", "planned")


def untracked(root: Path) -> None:
    make(root, "a", "folder/b", "folder/c", "ignored.log")
    (root / ".git/info/exclude").write_text("evil.sh\n*.log\n")


def conflicted(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "topic")
    (root / "tracked").write_text("theirs\n")
    git(root, "commit", "-qam", "theirs")
    git(root, "checkout", "-q", "main")
    (root / "tracked").write_text("ours\n")
    git(root, "commit", "-qam", "ours")
    git(root, "merge", "-q", "topic", check=False)


def deleted_by_them(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "topic")
    git(root, "rm", "-q", "tracked")
    git(root, "commit", "-qm", "theirs")
    git(root, "checkout", "-q", "main")
    (root / "tracked").write_text("ours\n")
    git(root, "commit", "-qam", "ours")
    git(root, "merge", "-q", "topic", check=False)


STATES: dict[str, tuple[Callable[[Path], None], Mapping[str, list[tuple[str, str]]]]] = {
    "says_that_nothing_changed": (nothing, {}),
    "tells_what_is_staged": (staged, {"staged": [("new.py", "A")]}),
    "tells_what_is_not_staged": (unstaged, {"unstaged": [("tracked", "M")]}),
    "tells_one_file_twice": (both, {"staged": [("tracked", "M")], "unstaged": [("tracked", "M")]}),
    "tells_a_rename": (renamed, {"staged": [("moved", "R")]}),
    "tells_a_rename_with_an_edit": (renamed_and_edited, {"staged": [("moved", "R")], "unstaged": [("moved", "M")]}),
    "tells_a_missing_file": (deleted, {"unstaged": [("tracked", "D")]}),
    "tells_a_staged_removal": (deleted_and_staged, {"staged": [("tracked", "D")]}),
    "tells_a_change_of_mode": (made_executable, {"unstaged": [("tracked", "M")]}),
    "tells_a_change_of_type": (turned_into_a_link, {"unstaged": [("tracked", "T")]}),
    "tells_an_intention_to_add": (intended, {"unstaged": [("planned", "A")]}),
    "tells_what_git_does_not_know": (untracked, {"untracked": [("a", "?"), ("folder/", "?")]}),
    "tells_a_conflict": (conflicted, {"conflicted": [("tracked", "UU")]}),
    "tells_a_conflict_with_a_removal": (deleted_by_them, {"conflicted": [("tracked", "UD")]}),
}


@pytest.mark.sample
@pytest.mark.parametrize("state", STATES)
def test_state(repository: Repository, state: str) -> None:
    arrange, expected = STATES[state]
    arrange(repository.root)
    output = summary(repository)
    assert paths(output) == expected
    assert output.clean == (not expected)
    counts = output.counts.model_dump()
    assert {name: count for name, count in counts.items() if count} == {
        name: len(rows) for name, rows in expected.items()
    }
    assert (output.repository_root, output.branch, output.detached) == (".", "main", False)
    assert (output.hidden, output.truncated, output.upstream) == (0, False, None)
    assert output.head == git(repository.root, "rev-parse", "HEAD").strip()


def test_a_rename_tells_the_old_name(repository: Repository) -> None:
    renamed(repository.root)
    make(repository.root, "new")
    output = summary(repository).model_dump(exclude_unset=True)
    assert output["staged"] == [{"path": "moved", "status": "R", "old_path": "tracked"}]
    assert output["untracked"] == [{"path": "new", "status": "?"}]
    (repository.root / "new").unlink()
    assert text_of(repository).endswith("staged (1):\n  R moved (was tracked)")


def test_a_repository_without_a_commit(tmp_path: Path, toolkit: Toolkit) -> None:
    git(tmp_path, "init", "-q", "-b", "trunk")
    output = toolkit.tools.git_status_summary()
    assert (output.branch, output.head, output.detached, output.clean) == ("trunk", None, False, True)
    make(tmp_path, "a", "b")
    git(tmp_path, "add", "a")
    assert paths(toolkit.tools.git_status_summary()) == {"staged": [("a", "A")], "untracked": [("b", "?")]}


def test_a_detached_head(repository: Repository) -> None:
    git(repository.root, "checkout", "-q", "--detach")
    output = summary(repository)
    assert output.detached and output.branch is None and output.clean
    assert text_of(repository).startswith(f"detached at {str(output.head)[:10]}\n")


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        (0, 0, "up to date with origin/main"),
        (2, 0, "2 ahead of origin/main"),
        (0, 1, "1 behind origin/main"),
        (1, 3, "1 ahead of and 3 behind origin/main"),
    ],
)
def test_ahead_and_behind_of_an_upstream(repository: Repository, ours: int, theirs: int, words: str) -> None:
    root = repository.root
    first = git(root, "rev-parse", "HEAD").strip()
    for number in range(theirs):
        git(root, "commit", "-q", "--allow-empty", "-m", f"theirs {number}")
    git(root, "update-ref", "refs/remotes/origin/main", "HEAD")
    repository.config(
        "remote.origin.url", "https://example.org/", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"
    )
    git(root, "branch", "-q", "--set-upstream-to=origin/main")
    git(root, "reset", "-q", "--hard", first)
    for number in range(ours):
        git(root, "commit", "-q", "--allow-empty", "-m", f"ours {number}")
    output = summary(repository)
    assert (output.upstream, output.ahead, output.behind) == ("origin/main", ours, theirs)
    assert not output.upstream_gone
    assert text_of(repository).splitlines()[0].endswith(f", {words}")


def test_an_upstream_that_is_gone(repository: Repository) -> None:
    repository.config("branch.main.remote", ".", "branch.main.merge", "refs/heads/gone")
    output = summary(repository)
    assert (output.upstream, output.upstream_gone, output.ahead, output.behind) == ("gone", True, 0, 0)
    assert text_of(repository).splitlines()[0].endswith(", upstream gone no longer exists")


# -- where it looks -----------------------------------------------------------------------------------------------------


def test_a_directory_below_shows_the_whole_repository(repository: Repository) -> None:
    make(repository.root, "src/deep/new.py")
    git(repository.root, "add", ".")
    unstaged(repository.root)
    for cwd in ("src", "src/deep/", "./src/../src/deep", str(repository.root / "src")):
        output = summary(repository, cwd)
        assert output.repository_root == "."
        assert paths(output) == {"staged": [("src/deep/new.py", "A")], "unstaged": [("tracked", "M")]}


def test_paths_are_relative_to_the_workspace_not_to_the_repository(tmp_path: Path, toolkit: Toolkit) -> None:
    inner = new_repository(tmp_path / "app")
    renamed(inner.root)
    make(inner.root, "src/new.py")
    output = toolkit.tools.git_status_summary(cwd="app/src")
    assert output.repository_root == "app"
    assert paths(output) == {"staged": [("app/moved", "R")], "untracked": [("app/src/", "?")]}
    assert output.staged[0].old_path == "app/tracked"
    assert "2 R. N... " in output.raw and "moved\ttracked" in output.raw
    assert toolkit.tools.read_file(path=output.staged[0].path).content == "one\n"


def test_a_workspace_given_by_a_link(repository: Repository) -> None:
    link = repository.root.parent / "link"
    link.symlink_to(repository.root)
    make(repository.root, "src/new.py")
    with toolkit_for(link) as toolkit:
        for cwd in (".", "src", str(link / "src")):
            assert paths(toolkit.tools.git_status_summary(cwd=cwd)) == {"untracked": [("src/", "?")]}


def test_a_linked_directory_belongs_to_where_it_leads(tmp_path: Path, toolkit: Toolkit) -> None:
    new_repository(tmp_path / "app")
    make(tmp_path / "app", "src/new.py")
    (tmp_path / "link").symlink_to("app/src")
    assert toolkit.tools.git_status_summary(cwd="link").repository_root == "app"


def test_a_repository_in_a_repository(repository: Repository) -> None:
    new_repository(repository.root / "inner")
    unstaged(repository.root / "inner")
    assert summary(repository, "inner").repository_root == "inner"
    assert paths(summary(repository, "inner")) == {"unstaged": [("inner/tracked", "M")]}
    assert paths(summary(repository)) == {"untracked": [("inner/", "?")]}


def test_a_work_tree_inside(repository: Repository) -> None:
    git(repository.root, "worktree", "add", "-q", "-b", "topic", "tree")
    unstaged(repository.root / "tree")
    output = summary(repository, "tree")
    assert (output.repository_root, output.branch) == ("tree", "topic")
    assert paths(output) == {"unstaged": [("tree/tracked", "M")]}


def test_a_submodule(repository: Repository) -> None:
    other = new_repository(repository.root.parent / "other").root
    git(repository.root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    git(repository.root, "commit", "-qm", "sub")
    unstaged(repository.root / "sub")
    assert summary(repository).clean, "what is inside submodules is not looked at"
    output = summary(repository, "sub")
    assert (output.repository_root, output.branch) == ("sub", "main")
    assert paths(output) == {"unstaged": [("sub/tracked", "M")]}


def test_a_workspace_above_several_repositories_is_none(tmp_path: Path, toolkit: Toolkit) -> None:
    new_repository(tmp_path / "app")
    with pytest.raises(ToolFailed) as caught:
        toolkit.tools.git_status_summary()
    assert caught.value.reason == "NOT_GIT_REPOSITORY"


@pytest.mark.parametrize(
    ("cwd", "word"),
    [
        ("traked", "NOT_FOUND"),
        ("tracked", "NOT_DIRECTORY"),
        ("tracked/below", "NOT_DIRECTORY"),
        ("..", "SANDBOX_VIOLATION"),
        ("/etc", "SANDBOX_VIOLATION"),
        ("out", "SANDBOX_VIOLATION"),
        ("", "INVALID_TOOL_ARGUMENTS"),
        ("a\0b", "INVALID_TOOL_ARGUMENTS"),
        ("x" * 300, "INVALID_TOOL_ARGUMENTS"),
    ],
)
def test_a_wrong_directory_is_told(repository: Repository, cwd: str, word: str) -> None:
    (repository.root / "out").symlink_to("..")
    error = refusal(repository, cwd)
    assert word in (error.code, getattr(error, "reason", None))
    assert str(repository.root) not in error.message


def test_a_missing_directory_is_told_with_those_near(repository: Repository) -> None:
    make(repository.root, "source/a.py")
    assert refusal(repository, "sorce").message == "'sorce' does not exist. Did you mean 'source'?"


# -- names --------------------------------------------------------------------------------------------------------------


def test_names_are_escaped_and_told_apart(repository: Repository) -> None:
    root = repository.root
    raw_names = (
        b"two\nlines", b"esc\x1b[31m", b"--output=x", b"-", b"sp ace", b'quo"te', b"not-utf8-\xff", b"\xe2\x80\xae.txt",
        b"tab\there", b"\n? forged", b"R100 a -> b", "Käse".encode(),
    )  # fmt: skip
    for name in raw_names:
        os.close(os.open(os.fsencode(root) + b"/" + name, os.O_CREAT))
    output = summary(repository)
    names = {row.path for row in output.untracked}
    assert names == {
        r"two\x0alines", r"esc\x1b[31m", "--output=x", "-", "sp ace", 'quo"te', r"not-utf8-\xff", r"\u202e.txt",
        r"tab\x09here", r"\x0a? forged", "R100 a -> b", "Käse",
    }  # fmt: skip
    assert sorted(output.raw.splitlines()[2:]) == sorted(f"? {name}" for name in names)
    for seen in (output.raw, text_of(repository)):
        assert seen.isprintable() or set("".join(c for c in seen if not c.isprintable())) == {"\n"}


def test_odd_names_are_staged_renamed_and_conflicted_like_others(repository: Repository) -> None:
    root = repository.root
    (root / "old\nname").write_text("x\n" * 20)
    git(root, "add", ".")
    git(root, "commit", "-qm", "odd")
    os.rename(root / "old\nname", os.fsencode(root) + b"/\xfe new")
    git(root, "add", "-A")
    output = summary(repository)
    assert [(row.path, row.status, row.old_path) for row in output.staged] == [(r"\xfe new", "R", r"old\x0aname")]
    assert r"\xfe new" + "\t" + r"old\x0aname" in output.raw


def test_a_branch_named_like_an_option(repository: Repository) -> None:
    git(repository.root, "update-ref", "refs/heads/--upload-pack=x", "HEAD")
    git(repository.root, "symbolic-ref", "HEAD", "refs/heads/--upload-pack=x")
    assert summary(repository).branch == "--upload-pack=x"


# -- limits -------------------------------------------------------------------------------------------------------------


def test_long_lists_are_cut_and_counted(repository: Repository) -> None:
    count = MAX_LISTED + 7
    make(repository.root, *(f"{number:05}" for number in range(count)))
    output = summary(repository)
    assert len(output.untracked) == MAX_LISTED and output.counts.untracked == count and output.truncated
    text = text_of(repository)
    assert f"untracked ({count}):" in text and text.endswith(f"  [{count - MAX_SHOWN} more]")
    assert len(text.splitlines()) == MAX_SHOWN + 3


def test_what_git_wrote_is_cut_between_records(repository: Repository) -> None:
    make(repository.root, *(f"{number:04}-{'x' * 240}" for number in range(MAX_RAW // 240 + 10)))
    output = summary(repository)
    assert output.truncated and MAX_RAW - 300 < len(output.raw) <= MAX_RAW
    assert all(len(line) == 247 for line in output.raw.splitlines()[2:])


# -- policy -------------------------------------------------------------------------------------------------------------


def with_rule(root: Path, rule: Rule) -> Toolkit:
    policy = SecurityPolicy(default="allow", rules=[rule])
    return create_agent_toolkit(ToolkitContext(root, policy))


def test_denied_paths_are_counted_and_not_shown(repository: Repository) -> None:
    root = repository.root
    make(root, "secrets/key", "plain", ".env")
    git(root, "add", "-f", ".")
    git(root, "commit", "-qm", "more")
    for name in ("secrets/key", "plain", ".env"):
        (root / name).write_text("changed")
    git(root, "mv", ".env", "env-now")
    policy = SecurityPolicy(default="allow", rules=[Rule("deny", path="secrets/**"), Rule("deny", path=".ENV")])
    with create_agent_toolkit(ToolkitContext(root, policy)) as toolkit:
        message = toolkit.invoke("git_status_summary", {})
    output = message.content
    assert [row.path for row in (*output.staged, *output.unstaged)] == ["env-now", "env-now", "plain"]
    assert output.hidden == 1 and output.staged[0].old_path is None
    assert message.text().endswith("\n[1 changed path not shown: denied by the policy or not approved]")
    assert "key" not in output.raw and ".env" not in output.raw and "key" not in message.text()


def test_what_needs_approval_is_counted_and_not_shown(repository: Repository) -> None:
    make(repository.root, "secrets/key", "plain")
    rule = Rule("ask", path="secrets")
    with with_rule(repository.root, rule) as toolkit:
        message = toolkit.invoke("git_status_summary", {})
    assert [row.path for row in message.content.untracked] == ["plain"]
    assert message.content.hidden == 1 and "secrets" not in message.content.raw
    with with_rule(repository.root, Rule("ask", path="other")) as toolkit:
        assert toolkit.invoke("git_status_summary", {}).content.hidden == 0


def test_only_hidden_changes_are_not_clean(repository: Repository) -> None:
    make(repository.root, "a.key", "b.key")
    with with_rule(repository.root, Rule("deny", path="*.key")) as toolkit:
        message = toolkit.invoke("git_status_summary", {})
    assert message.content.hidden == 2 and not message.content.clean
    assert message.text().splitlines()[1:] == ["[2 changed paths not shown: denied by the policy or not approved]"]


def test_a_denied_directory_is_not_asked_about(repository: Repository) -> None:
    new_repository(repository.root / "private")
    (repository.root / "link").symlink_to("private")
    with with_rule(repository.root, Rule("deny", path="private")) as toolkit:
        for cwd in ("private", "link"):
            with pytest.raises(ToolNotAllowed):
                toolkit.tools.git_status_summary(cwd=cwd)
        assert toolkit.tools.git_status_summary().hidden == 1


# -- hostile repositories, by the numbers of the attack list -------------------------------------------------------------


@pytest.mark.parametrize("name", RUN_CODE)
def test_103_to_107_a_repository_runs_nothing(repository: Repository, name: str) -> None:
    RUN_CODE[name](repository)
    assert summary(repository).branch == "main"
    assert not repository.proof.exists()
    git(repository.root, "status", check=False)
    assert repository.proof.exists(), "plain git runs nothing either: the row proves nothing"


@pytest.mark.parametrize("spoil", INCOMPLETE)
def test_107_what_git_passes_over_leads_to_no_other_repository(
    repository: Repository, spoil: Callable[[Path], None]
) -> None:
    clean_filter(repository)
    make(repository.root, "sub/")
    spoil(repository.root / "sub/.git")
    error = refusal(repository, "sub")
    assert isinstance(error, ToolFailed) and error.reason == "NOT_GIT_REPOSITORY"
    assert not repository.proof.exists()


def bare_inside(repository: Repository) -> str:
    git(repository.root, "init", "-q", "--bare", "bare")
    return "NOT_GIT_REPOSITORY"


def repository_outside(repository: Repository) -> str:
    make(repository.root, "bare/")
    (repository.root / "bare/.git").write_text("gitdir: ../../elsewhere/.git\n")
    new_repository(repository.root.parent / "elsewhere")
    return "SANDBOX_VIOLATION"


def work_tree_outside(repository: Repository) -> str:
    new_repository(repository.root / "bare").config("core.worktree", str(repository.root.parent))
    return "SANDBOX_VIOLATION"


def include_outside(repository: Repository) -> str:
    (repository.root.parent / "elsewhere").write_text("[user]\n\tname = x\n")
    new_repository(repository.root / "bare").config("include.path", "../../../elsewhere")
    return "SANDBOX_VIOLATION"


def somebody_elses(repository: Repository) -> str:
    if os.geteuid() != 0:
        pytest.skip("only root can give a repository to somebody else")
    inner = new_repository(repository.root / "bare").root
    for path in (inner, inner / ".git"):
        os.chown(path, 65534, 65534)
    return "PERMISSION_DENIED"


@pytest.mark.parametrize(
    "arrange", [bare_inside, repository_outside, work_tree_outside, include_outside, somebody_elses]
)
def test_107_to_113_repositories_that_are_refused(repository: Repository, arrange: Callable[[Repository], str]) -> None:
    word = arrange(repository)
    error = refusal(repository, "bare")
    assert word in (error.code, getattr(error, "reason", None)), error
    assert "elsewhere" not in error.message and str(repository.root.parent) not in error.message


def test_111_variables_of_the_host_are_ignored(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = new_repository(repository.root.parent / "elsewhere").root
    git(elsewhere, "checkout", "-q", "-b", "elsewhere")
    monkeypatch.setenv("GIT_DIR", str(elsewhere / ".git"))
    assert summary(repository).branch == "main"


# -- ending early -------------------------------------------------------------------------------------------------------


def test_a_cancelled_call_does_not_ask_git(repository: Repository) -> None:
    signal = CancelSignal()
    signal.cancel("the user pressed stop")
    with toolkit_for(repository.root) as toolkit, pytest.raises(ToolCancelled, match="the user pressed stop"):
        toolkit.with_options(signal=signal).tools.git_status_summary()


def test_a_deadline_in_time_changes_nothing(repository: Repository) -> None:
    with toolkit_for(repository.root) as toolkit:
        assert toolkit.with_options(deadline=600).tools.git_status_summary().clean


def test_no_command_is_needed_to_be_granted(repository: Repository) -> None:
    context = ToolkitContext(repository.root, SecurityPolicy(default="allow"), permissions=["read"], mode="read-only")
    with create_agent_toolkit(context) as toolkit:
        assert toolkit.tools.git_status_summary().clean


# -- what a model reads -------------------------------------------------------------------------------------------------


def everything(root: Path) -> None:
    make(root, "old.py", "gone.py", "src/app.py", data=b"x\n" * 20)
    git(root, "add", "old.py", "gone.py", "src/app.py")
    git(root, "commit", "-qm", "second")
    conflicted(root)
    git(root, "mv", "old.py", "src/new.py")
    make(root, "src/added.py", "notes/todo.md", "two\nlines", data=b"more\n")
    git(root, "add", "src/added.py")
    (root / "src/app.py").write_text("edited")
    (root / "gone.py").unlink()


TEXTS: dict[str, tuple[Callable[[Path], None], int]] = {
    "clean": (nothing, 60),
    "every_kind_of_change": (everything, 400),
    "untracked": (untracked, 60),
}


@pytest.mark.parametrize("case", TEXTS)
def test_text(repository: Repository, snapshots: Snapshots, case: str) -> None:
    arrange, budget = TEXTS[case]
    arrange(repository.root)
    snapshots.check(f"git_status_summary/{case}", text_of(repository), budget=budget)


def test_text_of_a_cut_list(repository: Repository, snapshots: Snapshots) -> None:
    make(repository.root, *(f"{number:05}" for number in range(2000)))
    snapshots.check("git_status_summary/cut", text_of(repository), budget=500)


def test_text_of_a_repository_below(tmp_path: Path, toolkit: Toolkit, snapshots: Snapshots) -> None:
    inner = new_repository(tmp_path / "app")
    inner.config("branch.main.remote", ".", "branch.main.merge", "refs/heads/topic")
    git(inner.root, "branch", "topic")
    git(inner.root, "commit", "-q", "--allow-empty", "-m", "ahead")
    unstaged(inner.root)
    text = toolkit.invoke("git_status_summary", {"cwd": "app"}).text()
    snapshots.check("git_status_summary/repository_below", text, budget=100)


def test_text_of_failures(tmp_path: Path, toolkit: Toolkit, snapshots: Snapshots) -> None:
    make(tmp_path, "source/a.py")
    calls: tuple[dict[str, str], ...] = ({}, {"cwd": "sources"}, {"cwd": "source/a.py"}, {"cwd": ".."})
    results = [toolkit.call(ToolCall("1", "git_status_summary", arguments)) for arguments in calls]
    snapshots.check("git_status_summary/failures", "\n".join(str(result.value) for result in results), budget=600)
