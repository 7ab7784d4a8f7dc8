from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builtin.snapshots import Snapshots
from tests.builtin.workspace import Meanwhile, make, make_socket, toolkit_for
from tests.examples import tries
from toolkit import (
    ApprovalRequest,
    Approve,
    Deny,
    Edit,
    InvalidArguments,
    SandboxViolation,
    ToolFailed,
    ToolkitError,
    ToolNotAllowed,
)
from toolkit.generated import (
    Rule,
    SecurityPolicy,
    Toolkit,
    ToolkitContext,
    WriteFileArgs,
    WriteFileOutput,
    create_agent_toolkit,
)

LIMIT = 10 * 1024 * 1024


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def failure(act: Callable[[], object]) -> ToolFailed:
    with pytest.raises(ToolFailed) as caught:
        act()
    return caught.value


# What is written


@pytest.mark.sample
@pytest.mark.parametrize(
    "content",
    [
        "",
        "one\n",
        "no end",
        "a\r\nb\n",
        "old\rmac",
        "\ufeffmarked",
        "naïve 日本 😀\n",
        "a\0b",
        "\x1b[31m\u202e",
        "\ufffd",
    ],
)
@pytest.mark.parametrize("old", [None, b"", b"before\n", b"latin \xe9\n", b"\0binary"])
def test_writes_exactly_what_is_given(tmp_path: Path, toolkit: Toolkit, old: bytes | None, content: str) -> None:
    file = tmp_path / "a.txt"
    if old is not None:
        file.write_bytes(old)

    output = toolkit.tools.write_file(path="a.txt", content=content)

    data = content.encode()
    assert file.read_bytes() == data
    assert (output.path, output.created, output.bytes_written) == ("a.txt", old is None, len(data))
    assert output.sha256 == digest(data) == toolkit.tools.write_file(path="a.txt", content=content).sha256
    assert os.listdir(tmp_path) == ["a.txt"]


@tries(60)
@given(contents=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
@pytest.mark.slow
def test_any_text_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, contents: list[str]) -> None:
    root = tmp_path_factory.mktemp("any")
    with toolkit_for(root) as toolkit:
        sha256: str | None = None
        for content in contents:
            args: WriteFileArgs = {"path": "a", "content": content}
            if sha256 is not None:
                args["expected_sha256"] = sha256
            sha256 = toolkit.invoke("write_file", args).content.sha256
            assert (root / "a").read_bytes() == content.encode()


def test_makes_the_directories_above(tmp_path: Path, toolkit: Toolkit) -> None:
    output = toolkit.tools.write_file(path="new/./deep//a.txt", content="x")

    assert (output.path, output.created) == ("new/deep/a.txt", True)
    assert (tmp_path / "new/deep/a.txt").read_text() == "x"


@pytest.mark.parametrize("path", ["{root}/a.txt", "./a.txt", "src/../a.txt", "link"])
def test_writes_the_file_a_path_leads_to(tmp_path: Path, toolkit: Toolkit, path: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "a.txt").write_text("old\n")
    (tmp_path / "link").symlink_to("a.txt")

    output = toolkit.tools.write_file(path=path.format(root=tmp_path), content="new\n")

    assert ((tmp_path / "a.txt").read_text(), output.created) == ("new\n", False)
    assert (tmp_path / "link").is_symlink()
    assert not output.path.startswith("/")


# The diff


@pytest.mark.parametrize(
    ("old", "content", "diff"),
    [
        (None, "a\n", "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n"),
        (None, "", "--- /dev/null\n+++ b/f\n"),
        (b"a\n", "a\n", ""),
        (b"a\nb\n", "a\nc\n", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),
        (b"a\r\n", "a\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\r\n+a\n"),
        (b"caf\xe9\n", "café\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-caf\\xe9\n+café\n"),
        (b"\0", "a\n", "Binary files a/f and b/f differ\n"),
        (b"a\n", "\0", "Binary files a/f and b/f differ\n"),
    ],
)
def test_tells_the_change_as_a_diff(
    tmp_path: Path, toolkit: Toolkit, old: bytes | None, content: str, diff: str
) -> None:
    if old is not None:
        (tmp_path / "f").write_bytes(old)

    assert toolkit.tools.write_file(path="f", content=content).diff == diff


def test_cuts_a_long_diff(tmp_path: Path, toolkit: Toolkit) -> None:
    (tmp_path / "f").write_text("old\n" * 50_000)

    diff = toolkit.tools.write_file(path="f", content="new\n" * 40_000).diff

    assert diff.endswith("+new\n[diff cut here; in all, 50000 lines removed and 40000 added]\n")
    assert len(diff) < 33 * 1024


def test_does_not_read_a_huge_file_to_replace_it(tmp_path: Path, toolkit: Toolkit) -> None:
    size = 64 * 1024**3
    with (tmp_path / "f").open("wb") as file:
        try:
            file.truncate(size)
        except OSError as error:
            pytest.skip(f"no sparse file of that size here: {error.strerror}")

    output = toolkit.tools.write_file(path="f", content="small\n")

    assert output.diff == f"[no diff: the old file had {size} bytes]\n"
    assert (tmp_path / "f").read_text() == "small\n"


# What is refused


def test_leaves_alone_what_was_to_be_new(tmp_path: Path, toolkit: Toolkit) -> None:
    (tmp_path / "a.txt").write_text("old")

    error = failure(lambda: toolkit.tools.write_file(path="a.txt", content="new", create_only=True))

    assert error.reason == "ALREADY_EXISTS"
    assert error.message == "'a.txt' already exists; change it with edit, or replace it without create_only"
    assert (tmp_path / "a.txt").read_text() == "old"
    assert toolkit.tools.write_file(path="b.txt", content="new", create_only=True).created


@pytest.mark.parametrize("size", [3, LIMIT, LIMIT + 1], ids=["small", "limit", "large"])
def test_leaves_alone_what_has_changed(tmp_path: Path, toolkit: Toolkit, size: int) -> None:
    data = b"x" * size
    (tmp_path / "a.txt").write_bytes(data)
    other = digest(b"as it was read")

    error = failure(lambda: toolkit.tools.write_file(path="a.txt", content="new", expected_sha256=other))

    assert (error.reason, error.retriable, error.details["sha256"]) == ("CONFLICT", True, digest(data))
    assert error.message == (
        f"'a.txt' has changed: its sha256 is {digest(data)}, which differs from expected_sha256; read it again and redo the change"
    )
    assert (tmp_path / "a.txt").read_bytes() == data
    toolkit.tools.write_file(path="a.txt", content="new", expected_sha256=digest(data).upper())
    assert (tmp_path / "a.txt").read_text() == "new"


def test_leaves_alone_what_is_gone(tmp_path: Path, toolkit: Toolkit) -> None:
    error = failure(lambda: toolkit.tools.write_file(path="d/a.txt", content="new", expected_sha256="0" * 64))

    assert error.reason == "CONFLICT"
    assert error.message.startswith("'d/a.txt' does not exist, but expected_sha256 was given")
    assert os.listdir(tmp_path) == []


def test_counts_bytes_not_characters(tmp_path: Path, toolkit: Toolkit) -> None:
    assert toolkit.tools.write_file(path="fits", content="é" * (LIMIT // 2)).bytes_written == LIMIT

    error = failure(lambda: toolkit.tools.write_file(path="a/b", content="é" * (LIMIT // 2) + "x"))

    assert (error.reason, error.details["size"]) == ("TOO_LARGE", LIMIT + 1)
    assert os.listdir(tmp_path) == ["fits"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"path": "a"}, InvalidArguments),
        ({"content": "a"}, InvalidArguments),
        ({"path": "", "content": ""}, InvalidArguments),
        ({"path": "a\0b", "content": ""}, InvalidArguments),
        ({"path": "x" * 300, "content": ""}, InvalidArguments),
        ({"path": "a", "content": None}, InvalidArguments),
        ({"path": "a", "content": b"bytes"}, InvalidArguments),
        ({"path": "a", "content": "\ud800"}, InvalidArguments),
        ({"path": "a", "content": "x\udce9"}, InvalidArguments),
        ({"path": "a", "content": "x" * (LIMIT + 1)}, InvalidArguments),
        ({"path": "a", "content": "", "create_only": 1}, InvalidArguments),
        ({"path": "a", "content": "", "create_only": None}, InvalidArguments),
        ({"path": "a", "content": "", "expected_sha256": "abc"}, InvalidArguments),
        ({"path": "a", "content": "", "expected_sha256": "g" * 64}, InvalidArguments),
        ({"path": "a", "content": "", "mode": 0o777}, InvalidArguments),
        ({"path": "../a", "content": ""}, SandboxViolation),
        ({"path": "/a", "content": ""}, SandboxViolation),
    ],
)
def test_refuses_bad_arguments(
    tmp_path: Path, toolkit: Toolkit, arguments: WriteFileArgs, error: type[ToolkitError]
) -> None:
    with pytest.raises(error):
        toolkit.invoke("write_file", arguments)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("path", "reason", "words"),
    [
        ("src", "NOT_FILE", "'src' is a directory"),
        (".", "NOT_FILE", "'.' is a directory"),
        ("new/", "NOT_FILE", "'new' is a directory"),
        ("a.txt/", "NOT_DIRECTORY", "'a.txt' is not a directory, or is below something that is not a directory"),
        ("a.txt/b", "NOT_DIRECTORY", "'a.txt/b' is not a directory, or is below something that is not a directory"),
        ("fifo", "NOT_FILE", "'fifo' is not a regular file"),
        ("socket", "NOT_FILE", "'socket' is not a regular file"),
        ("loop", "IO", "'loop' leads through too many symbolic links"),
    ],
)
@pytest.mark.parametrize("create_only", [False, True])
def test_says_why_it_cannot_write(
    tmp_path: Path, toolkit: Toolkit, path: str, reason: str, words: str, create_only: bool
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "a.txt").write_text("kept")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "fifo")
    make_socket(tmp_path / "socket")
    before = sorted(os.listdir(tmp_path))

    error = failure(lambda: toolkit.tools.write_file(path=path, content="x", create_only=create_only))

    assert (error.reason, error.message) == (reason, words)
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "a.txt").read_text() == "kept"


# Modes of files


def test_a_new_file_gets_what_umask_leaves_and_a_replaced_one_keeps_its_mode(tmp_path: Path, toolkit: Toolkit) -> None:
    before = os.umask(0o027)
    try:
        toolkit.tools.write_file(path="new", content="")
    finally:
        os.umask(before)
    (tmp_path / "script").write_text("")
    (tmp_path / "script").chmod(0o4751)
    toolkit.tools.write_file(path="script", content="#!/bin/sh\n")

    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "script").stat().st_mode) == 0o751


# Policy, approval, read-only


def toolkit_with(root: Path, policy: SecurityPolicy, **options: object) -> Toolkit:
    return create_agent_toolkit(ToolkitContext(root, policy, **options))  # type: ignore[arg-type]


def test_a_read_only_workspace_stays_as_it_is(tmp_path: Path) -> None:
    with (
        toolkit_with(tmp_path, SecurityPolicy(default="allow"), mode="read-only") as toolkit,
        pytest.raises(SandboxViolation, match="the workspace is read-only"),
    ):
        toolkit.tools.write_file(path="d/a.txt", content="x")
    assert os.listdir(tmp_path) == []


def test_deny_rules_hold_by_name_and_through_links(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/key").write_text("hidden")
    (tmp_path / "innocent").symlink_to("secrets/key")
    (tmp_path / "also").symlink_to("secrets")
    rules: list[Rule] = [Rule("deny", path="secrets/**")]
    with toolkit_with(tmp_path, SecurityPolicy(default="allow", rules=rules)) as toolkit:
        for path in ("secrets/key", "secrets/new", "SECRETS/key", "innocent", "also/key", "also/new"):
            with pytest.raises(ToolNotAllowed, match="decided by Rule"):
                toolkit.tools.write_file(path=path, content="x")
        toolkit.tools.write_file(path="public", content="x")
    assert (tmp_path / "secrets/key").read_text() == "hidden"
    assert os.listdir(tmp_path / "secrets") == ["key"]


def test_a_caller_learns_nothing_of_a_file_it_may_not_write(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("hidden")
    rules: list[Rule] = [Rule("allow", path="docs/**")]
    with toolkit_with(tmp_path, SecurityPolicy(default="deny", rules=rules)) as toolkit:
        for path in ("other", "missing"):
            with pytest.raises(ToolNotAllowed) as caught:
                toolkit.tools.write_file(path=path, content="x", expected_sha256="0" * 64)
            assert caught.value.message == "'write_file' is not allowed: the policy's default is deny"
        assert toolkit.tools.write_file(path="docs/a.md", content="x").created


class Person:
    """Somebody who is asked, and remembers what was shown."""

    def __init__(self, answer: object, before: Callable[[], object] = lambda: None) -> None:
        self.answer = answer
        self.before = before
        self.shown: list[ApprovalRequest] = []

    def __call__(self, request: ApprovalRequest) -> object:
        self.shown.append(request)
        self.before()
        return self.answer


ASK: SecurityPolicy = SecurityPolicy(default="deny", tools={"write_file": "ask"})


def test_an_approver_sees_the_change(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    person = Person(Approve())
    with toolkit_with(tmp_path, ASK, approver=person) as toolkit:
        toolkit.tools.write_file(path="a.txt", content="one\n2\x1b[2K\n")
        toolkit.tools.write_file(path="new", content="x\n")
    first, second = person.shown
    assert (first.preview.writes, second.preview.writes) == (("a.txt",), ("new",))
    assert first.preview.diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\\x1b[2K\n"
    assert second.preview.diff == "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n"
    assert (tmp_path / "a.txt").read_text() == "one\n2\x1b[2K\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": "src", "content": ""}, "TOOL_FAILED: NOT_FILE: 'src' is a directory"),
        ({"path": "../a", "content": ""}, "SANDBOX_VIOLATION: '../a' is outside"),
        ({"path": "there", "content": "", "create_only": True}, "TOOL_FAILED: ALREADY_EXISTS: 'there' already exists"),
        ({"path": "a", "content": "", "expected_sha256": "0" * 64}, "TOOL_FAILED: CONFLICT: 'a' does not exist"),
    ],
)
def test_an_approver_is_told_of_a_call_that_would_fail(tmp_path: Path, arguments: WriteFileArgs, words: str) -> None:
    make(tmp_path, "src/", "there")
    person = Person(Approve())
    with toolkit_with(tmp_path, ASK, approver=person) as toolkit, pytest.raises(ToolkitError) as caught:
        toolkit.invoke("write_file", arguments)
    assert str(caught.value).startswith(words)
    assert (person.shown[0].preview.diff or "").startswith(f"[this call would fail: {words}")


def test_an_approval_is_void_once_the_file_changed(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("as shown")
    person = Person(Approve(), lambda: file.write_text("changed meanwhile"))
    with toolkit_with(tmp_path, ASK, approver=person) as toolkit:
        with pytest.raises(ToolNotAllowed, match="changed while the call waited for approval"):
            toolkit.tools.write_file(path="a.txt", content="new")
        person.before = lambda: (tmp_path / "b.txt").write_text("came into being")
        with pytest.raises(ToolNotAllowed, match="changed while the call waited for approval"):
            toolkit.tools.write_file(path="b.txt", content="new")
    assert (file.read_text(), (tmp_path / "b.txt").read_text()) == ("changed meanwhile", "came into being")


def test_what_is_denied_is_not_written_and_what_is_edited_is(tmp_path: Path) -> None:
    with (
        toolkit_with(tmp_path, ASK, approver=Person(Deny("not now"))) as toolkit,
        pytest.raises(ToolNotAllowed, match="not now"),
    ):
        toolkit.tools.write_file(path="a", content="x")
    assert os.listdir(tmp_path) == []
    edited = Person(Edit({"path": "b", "content": "better"}))
    with toolkit_with(tmp_path, ASK, approver=edited) as toolkit:
        toolkit.tools.write_file(path="a", content="x")
    assert (os.listdir(tmp_path), (tmp_path / "b").read_text()) == (["b"], "better")


# Side by side


def test_of_threads_that_make_one_file_one_makes_it(tmp_path: Path, toolkit: Toolkit) -> None:
    contents = [f"{number}" * 1000 for number in range(8)]
    made: list[str] = []

    def work(content: str) -> None:
        try:
            toolkit.tools.write_file(path="d/a", content=content, create_only=True)
        except ToolFailed as error:
            assert error.reason == "ALREADY_EXISTS"
        else:
            made.append(content)

    threads = [threading.Thread(target=work, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [(tmp_path / "d/a").read_text()]


def test_of_threads_that_expect_one_content_one_replaces_it(tmp_path: Path, toolkit: Toolkit) -> None:
    (tmp_path / "a").write_text("start")
    sha256 = digest(b"start")
    outcomes: list[str] = []

    def work(number: int) -> None:
        try:
            toolkit.tools.write_file(path="a", content=f"{number}", expected_sha256=sha256)
            outcomes.append("written")
        except ToolFailed as error:
            outcomes.append(str(error.reason))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["CONFLICT"] * 7 + ["written"]


@pytest.mark.parametrize("old", ["mine\n", None])
def test_what_another_process_writes_meanwhile_is_in_the_diff_or_in_the_file(
    tmp_path: Path, toolkit: Toolkit, old: str | None
) -> None:
    file = tmp_path / "f"

    def run(signal: Meanwhile) -> WriteFileOutput:
        file.unlink(missing_ok=True)
        if old is not None:
            file.write_text(old)
        return toolkit.with_options(signal=signal).tools.write_file(path="f", content="ours\n")

    run(undisturbed := Meanwhile())
    outcomes = set()
    for step in range(1, undisturbed.asked + 1):
        try:
            output = run(Meanwhile(lambda: file.write_text("theirs, longer\n"), step))
            outcomes.add("written")
            assert "-theirs, longer\n" in output.diff or file.read_text() == "theirs, longer\n"
        except ToolFailed as error:
            outcomes.add(str(error.reason))
            assert file.read_text() == "theirs, longer\n"
    assert outcomes == {"written", "CONFLICT"}
    assert os.listdir(tmp_path) == ["f"]


# The text a model reads


@pytest.mark.parametrize(
    ("case", "old", "arguments"),
    [
        ("creates", None, {"content": "one\ntwo\n"}),
        ("creates_empty", None, {"content": ""}),
        ("replaces", "one\ntwo\nthree\n", {"content": "one\n2\nthree\nfour"}),
        ("replaces_with_line_ends", "one\r\ntwo\r\n", {"content": "one\ntwo\n"}),
        ("replaces_all_of_it", "old\n" * 3000, {"content": "new\n" * 3000}),
        ("changes_nothing", "same\n", {"content": "same\n"}),
        ("replaces_binary", "\0", {"content": "text\n"}),
        ("hides_no_character", "a\n", {"content": "a\x1b[2K\u202eb\n"}),
        ("must_be_new", "old\n", {"content": "new\n", "create_only": True}),
        ("must_be_unchanged", "old\n", {"content": "new\n", "expected_sha256": "0" * 64}),
    ],
)
@pytest.mark.slow
def test_reads_well(
    tmp_path: Path, toolkit: Toolkit, snapshots: Snapshots, case: str, old: str | None, arguments: WriteFileArgs
) -> None:
    if old is not None:
        (tmp_path / "notes.txt").write_bytes(old.encode())
    try:
        shown = toolkit.invoke("write_file", {**arguments, "path": "notes.txt"}).text()
    except ToolkitError as error:
        shown = str(error)
    snapshots.check(f"write_file/{case}", shown, budget=420)


def test_nothing_that_writes_is_offered_where_nothing_may_be_written(tmp_path: Path) -> None:
    context = ToolkitContext(tmp_path, SecurityPolicy(default="allow"), mode="read-only")
    with create_agent_toolkit(context) as toolkit:
        offered = {tool.name for tool in toolkit.get_allowed_tools()}
    assert offered.isdisjoint({"write_file", "edit", "apply_patch"})
    assert "read_file" in offered


def test_models_are_not_told_our_marks(toolkit: Toolkit) -> None:
    assert all("x-resource" not in str(tool.parameters) for tool in toolkit.get_allowed_tools())
