from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builtin.patches import add, delete, envelope, files_in, outcome, update, write
from tests.builtin.snapshots import Snapshots
from tests.builtin.workspace import toolkit_for
from tests.projects import REPOSITORY
from toolkit import (
    ApprovalRequest,
    Approve,
    InvalidArguments,
    Rule,
    SandboxViolation,
    ToolCall,
    ToolFailed,
    ToolNotAllowed,
)
from toolkit.generated import SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit

# What comes out, file by file

MAIN = "def a():\n    pass\n\ndef b():\n    pass\n"


@pytest.mark.parametrize(
    ("before", "parts", "after"),
    [
        pytest.param({}, [add("new/deep/a.txt", "one", "")], {"new/deep/a.txt": "one\n\n"}, id="adds with directories"),
        pytest.param({"a": "old\n"}, [add("a", "new")], {"a": "new\n"}, id="replaces a file that is added"),
        pytest.param({"a": "x\n", "b": "y\n"}, [delete("a")], {"b": "y\n"}, id="deletes"),
        pytest.param({"a": "x\n"}, [update("a", "@@", "-x", "+y", to="d/b")], {"d/b": "y\n"}, id="moves"),
        pytest.param({"a": "x\n", "b": "z\n"}, [update("a", "@@", "-x", "+y", to="b")], {"b": "y\n"}, id="moves onto another"),
        pytest.param({"a": "x\n"}, [update("a", "@@", " x", to="b")], {"b": "x\n"}, id="moves unchanged"),
        pytest.param({"m.py": MAIN}, [update("m.py", "@@ def b():", "-    pass", "+    go()")],
                     {"m.py": "def a():\n    pass\n\ndef b():\n    go()\n"}, id="goes below an anchor"),
        pytest.param({"m.py": MAIN}, [update("m.py", "@@", "-    pass", "+    1", "@@", "-    pass", "+    2")],
                     {"m.py": "def a():\n    1\n\ndef b():\n    2\n"}, id="takes one place after the other"),
        pytest.param({"a": "x\nx\n"}, [update("a", "@@", "-x", "+y", "*** End of File")], {"a": "x\ny\n"}, id="goes to the end"),
        pytest.param({"a": "one\ntwo\n"}, [update("a", "@@", "+end")], {"a": "one\ntwo\nend\n"}, id="appends"),
        pytest.param({"a": "one  \n\ttwo\n"}, [update("a", "@@", " one", "-two", "+2")], {"a": "one  \n2\n"}, id="forgives white space"),
        pytest.param({"a": "say “hi” – now\n"}, [update("a", "@@", '-say "hi" - now', "+bye")], {"a": "bye\n"}, id="forgives punctuation"),
        pytest.param({"a": "x\n"}, [add("b", "1"), update("b", "@@", "-1", "+2"), delete("a")], {"b": "2\n"}, id="goes on with its own files"),
        pytest.param({"a": "x\n"}, [delete("a"), add("a", "again")], {"a": "again\n"}, id="deletes and adds"),
        pytest.param({"a": "x\n"}, [add("b", "1"), delete("b")], {"a": "x\n"}, id="adds and deletes"),
        pytest.param({"a": "1\n", "b": "2\n"}, [update("a", "@@", " 1", to="c"), update("b", "@@", " 2", to="a"),
                     update("c", "@@", " 1", to="b")], {"a": "2\n", "b": "1\n"}, id="swaps through a third name"),
        pytest.param({"a": "x\n"}, [update("./a", "@@", "-x", "+y"), update("a", "@@", "-y", "+z")], {"a": "z\n"}, id="knows two spellings"),
        pytest.param({"a": "x\n"}, [update("a", "-x", "+y")], {"a": "y\n"}, id="needs no marker for the first hunk"),
        pytest.param({"a": "x\n"}, [update("a", "@@", "-x", "+y", to="a")], {"a": "y\n"}, id="stays when it is moved onto itself"),
        pytest.param({"a": "x"}, [update("a", "@@", "-x", "+y")], {"a": "y\n"}, id="ends the last line"),
        pytest.param({"a": ""}, [update("a", "@@", "+y")], {"a": "y\n"}, id="fills an empty file"),
        pytest.param({"a": "x\n"}, [update("a", "@@", "-x")], {"a": ""}, id="empties a file"),
        pytest.param({"a": "a\nb\n"}, [update("a", "@@", " a", "-b", "+c", "")], {"a": "a\nc\n"}, id="takes an empty line for the end"),
    ],
)  # fmt: skip
def test_applies(tmp_path: Path, before: dict[str, str], parts: list[str], after: dict[str, str]) -> None:
    write(tmp_path, before)

    assert outcome(tmp_path, envelope(*parts)) == "done"

    assert files_in(tmp_path) == {name: text.encode() for name, text in after.items()}


@pytest.mark.parametrize(
    ("before", "rows", "after"),
    [
        (b"one\r\ntwo\r\n", ["-two", "+2", "+3"], b"one\r\n2\r\n3\r\n"),
        (b"one\r\ntwo", ["-two", "+2"], b"one\r\n2\r\n"),
        (b"one\ntwo\r\nthree\rfour", ["-two", "+2"], b"one\n2\nthree\rfour\n"),
        (b"\xfe\xc3\none\n\x80", [" one", "+two"], b"\xfe\xc3\none\ntwo\n\x80\n"),
        (b"\xef\xbb\xbfone\ntwo\n", ["-two", "+2"], b"\xef\xbb\xbfone\n2\n"),
        (b"\xef\xbb\xbfone\ntwo\n", ["-one", "+1"], b"\xef\xbb\xbf1\ntwo\n"),
        (b"\xef\xbb\xbfone\ntwo\n", ["-\ufeffone", "+1"], b"1\ntwo\n"),
        (b"\xef\xbb\xbfone\ntwo\n", ["-\ufeffone", "+\ufeff1"], b"\xef\xbb\xbf1\ntwo\n"),
        ("a\u2028b\x0bc\x85d\none\n".encode(), ["-one", "+1"], "a\u2028b\x0bc\x85d\n1\n".encode()),
        (b"  one \n", [" one", "+two"], b"  one \ntwo\n"),
        (b"one\n\n\n", [" one", "+two"], b"one\ntwo\n\n\n"),
    ],
)
def test_keeps_every_byte_that_is_not_to_change(tmp_path: Path, before: bytes, rows: list[str], after: bytes) -> None:
    write(tmp_path, {"f": before})

    assert outcome(tmp_path, envelope(update("f", "@@", *rows))) == "done"

    assert (tmp_path / "f").read_bytes() == after


def test_keeps_modes_and_takes_them_along(tmp_path: Path) -> None:
    write(tmp_path, {"a": "x\n", "b": "x\n", "c": "x\n"})
    for name, mode in (("a", 0o640), ("b", 0o755), ("c", 0o600)):
        (tmp_path / name).chmod(mode)

    patch = envelope(
        update("a", "@@", "-x", "+y"), update("b", "@@", "-x", "+y", to="moved"), add("c", "new"), add("d", "new")
    )
    before = os.umask(0o022)
    assert outcome(tmp_path, patch) == "done"
    os.umask(before)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"a": 0o640, "moved": 0o755, "c": 0o600, "d": 0o644}


def test_goes_through_links_that_stay_inside(tmp_path: Path) -> None:
    write(tmp_path, {"real/a": "x\n"})
    (tmp_path / "link").symlink_to("real/a")
    (tmp_path / "folder").symlink_to("real")

    assert outcome(tmp_path, envelope(update("link", "@@", "-x", "+y"), add("folder/b", "new"))) == "done"

    assert files_in(tmp_path) == {"real/a": b"y\n", "real/b": b"new\n", "link": b"real/a"}
    assert outcome(tmp_path, envelope(delete("link"))) == "NOT_FILE"
    assert (
        outcome(tmp_path, envelope(update("link", "@@", "-y", "+z"), update("real/a", "@@", "-y", "+z"))) == "CONFLICT"
    )
    assert files_in(tmp_path)["real/a"] == b"y\n"


def test_takes_absolute_paths_inside_and_odd_names(tmp_path: Path) -> None:
    name = "tab\there, é, \x01 and blank"
    write(tmp_path, {name: "x\n"})

    assert outcome(tmp_path, envelope(update(f"{tmp_path}/{name}", "@@", "-x", "+y"), add("b c", "z"))) == "done"

    assert files_in(tmp_path) == {name: b"y\n", "b c": b"z\n"}


def test_deletes_and_replaces_what_it_could_not_change(tmp_path: Path) -> None:
    write(tmp_path, {"binary": b"\0" * 10, "other": b"\0" * 10, "keep": ""})
    for name in ("huge", "larger"):
        with (tmp_path / name).open("wb") as file:
            file.truncate(20 << 20)

    patch = envelope(delete("binary"), delete("huge"), add("other", "text"), add("larger", "text"))
    assert outcome(tmp_path, patch) == "done"

    assert files_in(tmp_path) == {"keep": b"", "other": b"text\n", "larger": b"text\n"}


def test_tells_what_it_did_and_does_nothing_in_a_dry_run(tmp_path: Path, toolkit: Toolkit) -> None:
    write(tmp_path, {"a": "x\n", "b": "1\n2\n", "c": "q\n"})
    patch = envelope(
        update("a", "@@", "-x", "+y", "+z"), delete("b"), update("c", "@@", "-q", "+r", to="e"), add("d", "new")
    )

    shown = toolkit.tools.apply_patch(patch=patch, dry_run=True)
    assert files_in(tmp_path) == {"a": b"x\n", "b": b"1\n2\n", "c": b"q\n"}
    done = toolkit.tools.apply_patch(patch=patch)

    facts = [(file.path, file.action, file.moved_to, file.added, file.removed) for file in done.files]
    assert facts == [
        ("a", "update", None, 2, 1),
        ("b", "delete", None, 0, 2),
        ("c", "move", "e", 1, 1),
        ("d", "add", None, 1, 0),
    ]
    assert (shown.files, shown.diff) == (done.files, done.diff)
    assert (shown.applied, done.applied) == (False, True)
    assert files_in(tmp_path) == {"a": b"y\nz\n", "e": b"r\n", "d": b"new\n"}


def test_the_diff_of_an_envelope_is_a_patch_again(tmp_path: Path, toolkit: Toolkit) -> None:
    before = {"a": "x\ny\n", "b": "1\n", "c/d": "q\nr\ns\n"}
    write(tmp_path / "one", before)
    write(tmp_path / "two", before)
    patch = envelope(
        update("a", "@@", "-x", "+z"), delete("b"), update("c/d", "@@", "-q", "+Q", to="e f"), add("n", "new")
    )

    with toolkit_for(tmp_path / "one") as one:
        diff = one.tools.apply_patch(patch=patch).diff
    assert outcome(tmp_path / "two", diff) == "done"

    assert files_in(tmp_path / "one") == files_in(tmp_path / "two")


# The shared corpus: what Codex itself made of the same patches

CASES = 32
# Where we differ on purpose, and how.
NO_ESCAPE = "a path that leads outside is refused, where the bare program relies on the sandbox around it"
NO_LOSS = "a file that is moved onto itself stays, where the program loses it"
DIFFERENT = {"codex-test/traversal_move": NO_ESCAPE, "probe/move_onto_itself": NO_LOSS}


def corpus_cases(corpus: Path) -> Iterator[dict[str, Any]]:
    with (corpus / "apply_patch" / "cases.jsonl").open() as file:
        yield from map(json.loads, file)


def test_does_what_codex_does(corpus: Path, tmp_path: Path) -> None:
    wrong = []
    cases = list(corpus_cases(corpus))
    for number, case in enumerate(cases):
        root = tmp_path / str(number)
        root.mkdir()
        write(root, case["files_before"])

        found = outcome(root, case["patch"])

        after = {name: data.decode() for name, data in files_in(root).items()}
        is_same = after == case["expected"]["files_after"] and (found == "done") == (case["expected"]["error"] is None)
        if is_same == (case["id"] in DIFFERENT):
            wrong.append((case["id"], found, after))
        assert found == "done" or after == case["files_before"], "what fails changes nothing"
    assert len(cases) == CASES
    assert wrong == []


def test_differs_from_codex_where_that_loses_files_or_leaves_the_workspace(corpus: Path, tmp_path: Path) -> None:
    cases = {case["id"]: case for case in corpus_cases(corpus)}
    for name, after, found in (
        ("codex-test/traversal_move", {"stay.txt": b"from\n"}, "SANDBOX_VIOLATION"),
        ("probe/move_onto_itself", {"a.txt": b"y\n"}, "done"),
    ):
        root = tmp_path / name
        root.mkdir(parents=True)
        write(root, cases[name]["files_before"])

        assert outcome(root, cases[name]["patch"]) == found
        assert files_in(root) == after
        assert [path.name for path in root.parent.iterdir()] == [root.name]


# What fails, and how it is told

SOURCE = "import os\n\n\ndef greet(name):\n    print('hello')\n    return name\n\n\ndef leave():\n    print('bye')\n"


@pytest.mark.parametrize(
    ("parts", "reason", "words"),
    [
        pytest.param([update("src/app.py", "@@", "-    print('hallo')", "+    print(name)", "     return name")], "NO_MATCH",
                     ["hunk 1 of 'src/app.py' (line 3 of the patch)", "the 2 lines", "Nearest: lines 5-6", "     5\t    print('hello')"], id="nearest"),
        pytest.param([update("src/app.py", "@@", "-def leave():", "+def go():", "@@", "-def greet(name):", "+def hi():")], "NO_MATCH",
                     ["hunk 2 of 'src/app.py' (line 6 of the patch)", "after line 9", "It would match at line 4: hunks must be in the order"], id="order"),
        pytest.param([update("src/app.py", "@@ class Foo:", "-x", "+y")], "NO_MATCH",
                     ["the line 'class Foo:' after '@@'", "must be a whole line of the file"], id="anchor"),
        pytest.param([update("src/app.py", "@@ -1,2 +1,2 @@", "-import os", "+import sys")], "NO_MATCH",
                     ["This format has no line numbers"], id="line numbers"),
        pytest.param([update("src/app.py", "@@", "-def hello(name):", "+def greet(name):", "     print('hello')")], "NO_MATCH",
                     ["is already in the file, at line 4: was the patch applied before?"], id="applied before"),
        pytest.param([update("src/app.py", "@@", "-     1\timport os", "+import sys")], "NO_MATCH",
                     ["Remove the line numbers"], id="numbered lines"),
        pytest.param([update("src/ap.py", "@@", "-x", "+y")], "NOT_FOUND", ["'src/ap.py' does not exist. Did you mean 'src/app.py'?"], id="near name"),
        pytest.param([delete("src/app.py"), update("src/app.py", "@@", "-x", "+y")], "NOT_FOUND", ["an earlier part deletes or moves it"], id="gone by then"),
        pytest.param([delete("src")], "NOT_FILE", ["'src' is a directory"], id="directory"),
        pytest.param([add("src", "x")], "NOT_FILE", ["'src' is a directory"], id="add directory"),
        pytest.param([add("new/", "x")], "NOT_FILE", ["'new/' names a directory"], id="slash"),
        pytest.param([add("src/app.py/x", "x")], "NOT_DIRECTORY", ["'src/app.py/x'"], id="below a file"),
        pytest.param([update("bin", "@@", "-x", "+y")], "BINARY_NOT_SUPPORTED", ["'bin' is not a text file"], id="binary"),
        pytest.param([add("x", "a\0b")], "BINARY_NOT_SUPPORTED", ["line 3 of the patch: a NUL character"], id="binary patch"),
        pytest.param([update("big", "@@", "-x", "+y")], "TOO_LARGE", ["only files of at most 10485760"], id="big"),
    ],
)  # fmt: skip
def test_says_what_is_wrong_and_changes_nothing(
    tmp_path: Path, toolkit: Toolkit, parts: list[str], reason: str, words: list[str]
) -> None:
    write(tmp_path, {"src/app.py": SOURCE, "bin": b"x\0\n"})
    with (tmp_path / "big").open("wb") as file:
        file.truncate(11 << 20)
    before = files_in(tmp_path)

    with pytest.raises(ToolFailed) as caught:
        toolkit.tools.apply_patch(patch=envelope(*parts, add("last", "made")))

    message = caught.value.message
    assert caught.value.reason == reason
    for one in words:
        assert one in message
    assert files_in(tmp_path) == before
    assert str(tmp_path) not in message


@pytest.mark.parametrize(
    ("patch", "line", "words"),
    [
        ("", 1, "expected '*** Begin Patch'"),
        ("\n\nhello\n", 3, "expected '*** Begin Patch'"),
        ("*** Begin Patch\n*** Add File: a\n+x\n", 3, "expected '*** End Patch' as the last line"),
        ("*** Begin Patch\n*** End Patch\n", 2, "no file is named"),
        ("*** Begin Patch\n", 1, "and '*** End Patch' as the last line"),
        ("<<EOF\n*** Begin Patch\n*** End Patch\nEOF\n", 3, "no file is named"),
        (envelope("*** Rename File: a\n"), 2, "not '*** Rename File: a'"),
        (envelope("*** Add File: \n+x\n"), 2, "expected '*** Add File: <path>'"),
        (envelope(add("a", "x"), "y\n"), 4, "that starts with '+'"),
        (envelope(update("a")), 2, "the update of 'a' has no hunk"),
        (envelope(update("a", to="b")), 2, "to only move the file, give one line to keep"),
        (envelope(update("a", "@@")), 4, "the hunk above has no lines"),
        (envelope(update("a", "@@", "@@", "-x")), 4, "the hunk above has no lines"),
        (envelope(update("a", "@@", "*** End of File")), 4, "the hunk above has no lines"),
        (envelope(update("a", "@@", "-x", "*** End of File", "-y")), 6, "after '*** End of File', expected '@@'"),
        (envelope(update("a", "@@", "x")), 4, "that starts with ' ', '+' or '-'"),
        (
            envelope(update("a", "@@", "-x", "*** End Patch", "-y")),
            6,
            "nothing may follow '*** End Patch' in line 5",
        ),
        (envelope(add("a", "x"), "*** Move to: b\n"), 4, "that starts with '+'"),
        (envelope(update("a", "@@", "-x", "\x1b[31m")), 5, "not '\\x1b[31m'"),
    ],
)
def test_names_the_line_that_is_wrong(toolkit: Toolkit, tmp_path: Path, patch: str, line: int, words: str) -> None:
    write(tmp_path, {"a": "x\n"})

    with pytest.raises(ToolFailed) as caught:
        toolkit.tools.apply_patch(patch=patch)

    assert (caught.value.reason, caught.value.details["line"]) == ("INVALID_PATCH", line)
    assert f"line {line} of the patch: " in caught.value.message
    assert words in caught.value.message
    assert files_in(tmp_path) == {"a": b"x\n"}


# Attacks; the numbers are those of the list

OUTSIDE = "SECRET\n"


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    write(root, {"a": "x\n", "dir/b": "y\n", ".git/config": "git\n", ".git/hooks/pre-commit": "hook\n"})
    write(tmp_path, {"secret": OUTSIDE, "outside/secret": OUTSIDE})
    (root / "link").symlink_to("../secret")
    (root / "abs").symlink_to(tmp_path / "secret")
    (root / "out").symlink_to("../outside")
    (root / "dangling").symlink_to("../made")
    (root / "g").symlink_to(".git")
    return root


ESCAPES = [
    "../secret",
    "dir/../../secret",
    "{base}/secret",
    "link",
    "abs",
    "out/secret",
    "dir/../out/secret",
    "dangling",
]
GOOD = (add("good", "made"), update("a", "@@", "-x", "+changed"))
ESCAPING: dict[str, Callable[[str], str]] = {
    "46 add": lambda path: envelope(*GOOD, add(path, "bad")),
    "46 update": lambda path: envelope(*GOOD, update(path, "@@", "-SECRET", "+bad")),
    "46 delete": lambda path: envelope(*GOOD, delete(path)),
    "47 move": lambda path: envelope(*GOOD, update("dir/b", "@@", " y", to=path)),
    "48 rename to": lambda path: f"diff --git a/a b/x\nsimilarity index 100%\nrename from a\nrename to {path}\n",
    "48 rename from": lambda path: f"diff --git a/a b/x\nsimilarity index 100%\nrename from {path}\nrename to new\n",
    "48 copy from": lambda path: f"diff --git a/a b/x\nsimilarity index 100%\ncopy from {path}\ncopy to new\n",
    "48 copy to": lambda path: f"diff --git a/a b/x\nsimilarity index 100%\ncopy from a\ncopy to {path}\n",
    "46 git add": lambda path: f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+bad\n",
    "46 git update": lambda path: f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-SECRET\n+bad\n",
    "46 git delete": lambda path: f"--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-SECRET\n",
}  # fmt: skip


@pytest.mark.each("path", "what")
@pytest.mark.parametrize("path", ESCAPES)
@pytest.mark.parametrize("what", ESCAPING)
def test_no_path_of_a_patch_leaves_the_workspace(tmp_path: Path, ws: Path, what: str, path: str) -> None:
    before = files_in(tmp_path)

    found = outcome(ws, ESCAPING[what](path.format(base=tmp_path)))

    if what in ("46 delete", "46 git delete") and path in ("link", "abs", "dangling"):
        assert found in ("SANDBOX_VIOLATION", "NOT_FILE")
    else:
        assert found == "SANDBOX_VIOLATION"
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("path", ESCAPES)
def test_the_same_paths_lead_outside_when_nothing_guards_them(tmp_path: Path, ws: Path, path: str) -> None:
    before = files_in(tmp_path / "outside"), files_in(tmp_path).get("secret"), (tmp_path / "made").exists()

    Path(os.path.join(ws, path.format(base=tmp_path))).write_text("bad")

    assert (files_in(tmp_path / "outside"), files_in(tmp_path).get("secret"), (tmp_path / "made").exists()) != before


def test_git_itself_would_write_outside(tmp_path: Path, ws: Path) -> None:
    patch = ESCAPING["46 git add"]("../escaped")
    environment = {"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(tmp_path), "HOME": str(tmp_path)}

    subprocess.run(
        ["git", "apply", "--unsafe-paths"],
        cwd=tmp_path / "outside",
        input=patch,
        text=True,
        check=True,
        env=environment,
    )

    assert (tmp_path / "escaped").read_text() == "bad\n"
    assert outcome(ws, patch) == "SANDBOX_VIOLATION"


NEIGHBOURS = {
    "dots in a name": envelope(add("..a", "x"), add("dir/...", "x")),
    "up and down again": envelope(update("dir/../a", "@@", "-x", "+y")),
    "inside by the whole path": None,
}


@pytest.mark.parametrize("what", NEIGHBOURS)
def test_paths_that_only_look_like_escapes_work(ws: Path, what: str) -> None:
    patch = NEIGHBOURS[what] or envelope(add(f"{ws}/dir/new", "x"))

    assert outcome(ws, patch) == "done"


@pytest.mark.parametrize(
    "bad",
    [
        update("dir/b", "@@", "-nothing like it", "+z"),
        delete("none"),
        update("none", "@@", "-x", "+y"),
        add("a/below", "x"),
        delete("dir"),
        add("dir", "x"),
        delete("fifo"),
        add("fifo", "x"),
        update("fifo", "@@", "-x", "+y"),
        update("dir/b", "@@", " y", to="fifo"),
        add("n" * 300, "x"),
        add("x/" * 3000 + "x", "x"),
    ],
)
def test_49_what_fails_last_leaves_the_first_undone(ws: Path, bad: str) -> None:
    os.mkfifo(ws / "fifo")
    before = files_in(ws)

    assert outcome(ws, envelope(*GOOD, bad)) not in ("done", "INTERNAL")
    assert files_in(ws) == before
    assert outcome(ws, envelope(*GOOD)) == "done"


LINK = "diff --git a/l b/l\nnew file mode 120000\nindex 000..111\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+{target}\n\\ No newline at end of file\n"


@pytest.mark.parametrize("target", ["/etc/passwd", "../secret", "a"])
def test_51_no_patch_makes_a_link(tmp_path: Path, ws: Path, target: str) -> None:
    patch = LINK.format(target=target)
    control = tmp_path / "control"
    control.mkdir()
    subprocess.run(
        ["git", "apply"], cwd=control, input=patch, text=True, check=True, env={"PATH": os.environ["PATH"], "HOME": "/"}
    )
    assert (control / "l").is_symlink(), "git makes it"

    assert outcome(ws, patch) == "INVALID_PATCH"

    assert not os.path.lexists(ws / "l")
    assert outcome(ws, patch.replace("120000", "100644")) == "done"
    assert (ws / "l").read_text() == target and not (ws / "l").is_symlink()


@pytest.mark.parametrize("mode", ["120000", "160000", "040000"])
@pytest.mark.parametrize(
    "line",
    ["old mode {0}\nnew mode 100644", "old mode 100644\nnew mode {0}", "index 1..2 {0}", "deleted file mode {0}"],
)
def test_51_nor_changes_what_is_no_file(ws: Path, line: str, mode: str) -> None:
    patch = f"diff --git a/a b/a\n{line.format(mode)}\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"

    assert outcome(ws, patch) == "INVALID_PATCH"
    assert (ws / "a").read_text() == "x\n"


@pytest.mark.parametrize(
    ("mode", "given"), [("104755", 0o755), ("106777", 0o755), ("101644", 0o644), ("100755", 0o755)]
)
def test_52_no_patch_gives_set_id_bits(ws: Path, mode: str, given: int) -> None:
    new = f"diff --git a/n b/n\nnew file mode {mode}\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n"
    changed = f"diff --git a/a b/a\nold mode 100644\nnew mode {mode}\n"
    before = os.umask(0o022)
    assert (outcome(ws, new), outcome(ws, changed)) == ("done", "done")
    os.umask(before)

    assert [stat.S_IMODE((ws / name).stat().st_mode) for name in ("n", "a")] == [given, given]


LIMITED = """
import resource, sys
from tests.builtin.patches import envelope, files_in, outcome, update, add
from pathlib import Path
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
rows = ["+" + "y" * 1000] * 200
print(outcome(Path(sys.argv[1]), envelope(update("a", "@@", "-x", "+changed"), update("dir/b", "@@", " y", *rows))))
print(outcome(Path(sys.argv[1]), envelope(update("a", "@@", "-x", "+changed"))))
"""


@pytest.mark.slow
def test_54_a_limit_in_the_middle_of_a_write_keeps_every_original(ws: Path) -> None:
    before = files_in(ws)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(ws)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )

    assert done.stdout.split() == ["TOO_LARGE", "done"], done.stderr
    assert files_in(ws) == {**before, "a": b"changed\n"}


@pytest.mark.each("path", "what")
@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".git/hooks/pre-commit",
        ".git/hooks/new",
        "dir/.git/config",
        ".GIT/config",
        "g/config",
        "dir/../.git/x",
        ".git",
    ],
)
@pytest.mark.parametrize("what", ["46 add", "46 update", "46 delete", "47 move", "46 git add"])
@pytest.mark.slow
def test_55_56_57_what_git_keeps_is_not_touched(ws: Path, path: str, what: str) -> None:
    before = files_in(ws)

    assert outcome(ws, ESCAPING[what](path)) == "SANDBOX_VIOLATION"
    assert files_in(ws) == before
    assert outcome(ws, envelope(add(".gitignore", "x"), add(".github/ci.yml", "x"))) == "done"


@pytest.mark.slow
def test_58_too_much_is_refused_before_anything_is_looked_at(ws: Path) -> None:
    with toolkit_for(ws) as toolkit, pytest.raises(InvalidArguments):
        toolkit.tools.apply_patch(patch=envelope(add("x", "y" * 200_000_000)))
    assert outcome(ws, envelope(add("x", "é" * 6_000_000))) == "TOO_LARGE"
    assert not (ws / "x").exists()


@pytest.mark.parametrize("path", [".", "./", "dir", "dir/", "..", "/"])
def test_60_no_directory_is_deleted(ws: Path, path: str) -> None:
    before = files_in(ws)

    assert outcome(ws, envelope(*GOOD, delete(path))) in ("NOT_FILE", "SANDBOX_VIOLATION")
    assert files_in(ws) == before


def test_61_what_is_no_file_fails_at_once(ws: Path) -> None:
    os.mkfifo(ws / "fifo")
    if os.geteuid() == 0:
        os.mknod(ws / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    for name in {"fifo", "null"} & set(os.listdir(ws)):
        for part in (add(name, "x"), update(name, "@@", "-x", "+y"), delete(name), update("a", "@@", " x", to=name)):
            assert outcome(ws, envelope(part)) == "NOT_FILE"


def test_62_a_link_at_the_temporary_name_is_not_followed(
    tmp_path: Path, ws: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with toolkit_for(ws) as toolkit:
        monkeypatch.setattr(os, "urandom", bytes)  # no longer unguessable
        (ws / f".{bytes(16).hex()}").symlink_to("../secret")

        with pytest.raises(ToolFailed):
            toolkit.tools.apply_patch(patch=envelope(update("a", "@@", "-x", "+y")))

    assert ((ws / "a").read_text(), (tmp_path / "secret").read_text()) == ("x\n", OUTSIDE)


def test_64_half_characters_are_refused(ws: Path) -> None:
    assert outcome(ws, envelope(add("x", "\udcff"))) == "INVALID_TOOL_ARGUMENTS"
    assert outcome(ws, envelope(add("\ud800", "x"))) == "INVALID_TOOL_ARGUMENTS"


# Work that has a bound


@pytest.mark.slow
def test_a_hundred_thousand_hunks_are_applied(tmp_path: Path, everything: bool) -> None:
    count = 100_000 if everything else 20_000
    write(tmp_path, {"f": "".join(f"line {number}\n" for number in range(count))})

    rows = [row for number in range(count) for row in ("@@", f"-  line {number}", f"+{number}")]
    assert outcome(tmp_path, envelope(update("f", *rows))) == "done"

    assert files_in(tmp_path)["f"] == "".join(f"{number}\n" for number in range(count)).encode()


@pytest.mark.sample
@pytest.mark.parametrize(
    ("files", "patch", "found"),
    [
        ({"f": "a\n" * 300_000}, envelope(update("f", "@@", *[" a"] * 100_000, "-b", "+c")), "NO_MATCH"),
        ({"f": "a\n" * 300_000 + "b\n"}, envelope(update("f", "@@", "-b", *[" a"] * 100_000, "+c")), "NO_MATCH"),
        ({"f": "a\nb\n" * 200_000}, envelope(update("f", *["@@", "-b", "-b", "+c"] * 50_000)), "NO_MATCH"),
        ({"f": "a \nb\n" * 100_000}, envelope(update("f", *["@@", "-a", " b", "+c"] * 10_000)), "done"),
        ({"f": "x\n"}, envelope(update("f", *[""] * 900_000)), "NO_MATCH"),
        ({"f": "x\n"}, envelope(update("f", *[""] * 1_000_000)), "TOO_LARGE"),
        ({}, envelope(*[add(str(number)) for number in range(2001)]), "TOO_LARGE"),
        ({}, envelope(*[add(f"{number}/" + "d/" * 1900 + "x") for number in range(20)]), "TOO_LARGE"),
        ({"f": "x\n" * 20_000}, envelope(*[update("f", "@@", " x")] * 2000), "TOO_LARGE"),
        ({"f": "x" * 9_000_000}, "".join(f"diff --git a/f b/g{n}\ncopy from f\ncopy to g{n}\n" for n in range(1000)), "TOO_LARGE"),
        ({"f": "x\n"}, "diff --git " + "a " * 4_000_000 + "\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n", "done"),
        ({"f": "x\n"}, '--- "' + "\\\\" * 4_000_000 + "\n+++ b/f\n", "INVALID_PATCH"),
        ({"f": "x\n"}, "--- a/f\n+++ b/f\n@@ -1,900000 +1 @@\n" + "-x\n" * 900_000, "INVALID_PATCH"),
        ({"f": "a\nb\n" * 200_000}, "--- a/f\n+++ b/f\n" + "@@ -999999999 +1 @@\n-b\n+c\n" * 100_000, "NO_MATCH"),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_hostile_patches_end_soon(tmp_path: Path, files: dict[str, str], patch: str, found: str) -> None:
    write(tmp_path, files)

    assert outcome(tmp_path, patch) == found


@pytest.mark.slow
def test_searches_that_always_go_far_are_ended(tmp_path: Path) -> None:
    """Every hunk is found near, but only without white space: before that, the whole file is searched for it in vain."""
    count = 100_000
    write(tmp_path, {"f": "".join(f"a{number}\nb \n" for number in range(count)) + "b\na0\n"})
    rows = [row for number in range(0, count, 10) for row in ("@@", f" a{number}", "-b", "+c")]

    assert outcome(tmp_path, envelope(update("f", *rows))) == "TOO_LARGE"
    assert outcome(tmp_path, envelope(update("f", *rows[:400]))) == "done"


# Rules and approval


def allowing(*rules: Rule, root: Path, approver: Any = None) -> Toolkit:
    policy: SecurityPolicy = SecurityPolicy(default="allow", rules=list(rules))
    return create_agent_toolkit(ToolkitContext(workspace=root, policy=policy, approver=approver))


PATCHES_OF_SECRET = {
    "update": envelope(*GOOD, update("keys/id", "@@", "-k", "+l")),
    "add": envelope(*GOOD, add("keys/new", "x")),
    "delete": envelope(*GOOD, delete("keys/id")),
    "move away": envelope(*GOOD, update("keys/id", "@@", " k", to="free")),
    "move there": envelope(*GOOD, update("dir/b", "@@", " y", to="keys/new")),
    "copy": "diff --git a/keys/id b/free\ncopy from keys/id\ncopy to free\n",
    "spelled otherwise": envelope(*GOOD, update("dir/../keys/id", "@@", "-k", "+l")),
    "in capitals": envelope(*GOOD, add("KEYS/id", "x")),
    "through a link": envelope(*GOOD, update("k/id", "@@", "-k", "+l")),
}


@pytest.mark.parametrize("what", PATCHES_OF_SECRET)
def test_a_rule_that_denies_one_path_refuses_the_whole_patch(ws: Path, what: str) -> None:
    write(ws, {"keys/id": "k\n"})
    (ws / "k").symlink_to("keys")
    before = files_in(ws)

    with allowing(Rule("deny", path="keys/**"), root=ws) as toolkit:
        with pytest.raises((ToolNotAllowed, SandboxViolation)):
            toolkit.tools.apply_patch(patch=PATCHES_OF_SECRET[what])
        assert files_in(ws) == before
        toolkit.tools.apply_patch(patch=envelope(*GOOD))


def test_an_approver_sees_every_path_and_the_diff(ws: Path) -> None:
    seen: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> Approve:
        seen.append(request)
        return Approve()

    patch = envelope(
        update("a", "@@", "-x", "+y"),
        update("dir/b", "@@", "-y", "+z\x1b[2J", to="c"),
        add("d", "new"),
        delete(".gitignore"),
    )
    write(ws, {".gitignore": "old\n"})
    with allowing(Rule("ask", tools=["apply_patch"]), root=ws, approver=approve) as toolkit:
        toolkit.tools.apply_patch(patch=patch)

    [request] = seen
    assert request.preview.reads == ("a", "dir/b")
    assert request.preview.writes == ("a", "dir/b", "c", "d", ".gitignore")
    assert request.preview.diff is not None
    assert "\x1b" not in request.preview.diff and "\\x1b[2J" in request.preview.diff
    assert request.preview.diff.startswith(
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\ndiff --git a/dir/b b/c\nrename from dir/b\n"
    )
    assert "--- a/.gitignore\n+++ /dev/null\n" in request.preview.diff


def test_an_approver_is_told_that_a_patch_would_fail_and_a_changed_file_voids_the_approval(ws: Path) -> None:
    shown: list[str | None] = []

    def meddle(request: ApprovalRequest) -> Approve:
        shown.append(request.preview.diff)
        (ws / "a").write_text("x\nand more\n")
        return Approve()

    with allowing(Rule("ask", tools=["apply_patch"]), root=ws, approver=meddle) as toolkit:
        with pytest.raises(ToolNotAllowed, match="changed while the call waited"):
            toolkit.tools.apply_patch(patch=envelope(update("a", "@@", "-x", "+y")))
        with pytest.raises(ToolFailed):
            toolkit.tools.apply_patch(patch=envelope(update("dir/b", "@@", "-nothing like it", "+y")))
    assert shown[1] is not None and shown[1].startswith(
        "[this call would fail: TOOL_FAILED: NO_MATCH: hunk 1 of 'dir/b'"
    )
    assert (ws / "a").read_text() == "x\nand more\n"


# What a model reads


def test_texts(tmp_path: Path, toolkit: Toolkit, snapshots: Snapshots) -> None:
    write(tmp_path, {"src/app.py": SOURCE, "old.txt": "1\n2\n", "notes.md": "todo\n", "tool.sh": "x\n"})
    patch = envelope(
        update("src/app.py", "@@ def greet(name):", "-    print('hello')", "+    print(f'hello, {name}')"),
        add("docs/new.md", "# New", "", "text"),
        update("notes.md", "@@", "-todo", "+done", to="docs/notes.md"),
        delete("old.txt"),
    )
    snapshots.check(
        "apply_patch/dry_run", toolkit.invoke("apply_patch", {"patch": patch, "dry_run": True}).text(), budget=900
    )
    snapshots.check("apply_patch/applied", toolkit.invoke("apply_patch", {"patch": patch}).text(), budget=160)
    mode = "diff --git a/tool.sh b/tool.sh\nold mode 100644\nnew mode 100755\n"
    (tmp_path / "tool.sh").chmod(0o644)
    snapshots.check(
        "apply_patch/mode", toolkit.invoke("apply_patch", {"patch": mode, "dry_run": True}).text(), budget=200
    )
    many = envelope(*[add(f"many/{number}.txt", "x") for number in range(150)])
    snapshots.check("apply_patch/many_files", toolkit.invoke("apply_patch", {"patch": many}).text(), budget=2200)
    long = envelope(add("long.txt", *[f"line {number} of a long file" for number in range(2000)]))
    snapshots.check(
        "apply_patch/long_dry_run", toolkit.invoke("apply_patch", {"patch": long, "dry_run": True}).text(), budget=8400
    )


FAILURES = {
    "no_match": envelope(update("src/app.py", "@@", " def greet(user):", "-    print('hallo')", "+    print(user)")),
    "out_of_order": envelope(
        update("src/app.py", "@@", "-def leave():", "+def go():", "@@", "-import os", "+import sys")
    ),
    "no_anchor": envelope(update("src/app.py", "@@ def greet", "-    print('hello')", "+    pass")),
    "nothing_like_it": envelope(update("src/app.py", "@@", "-zzz", "+y")),
    "bad_header": envelope("*** Create File: a\n", "+x\n"),
    "bad_counts": "--- a/src/app.py\n+++ b/src/app.py\n@@ -1,3 +1,3 @@\n import os\n-\n+# hello\n",
    "ambiguous": "--- a/src/app.py\n+++ b/src/app.py\n@@ -40 +40 @@\n-\t\n+#\n",
    "missing_file": envelope(delete("src/ap.py")),
    "exists": "--- /dev/null\n+++ b/src/app.py\n@@ -0,0 +1 @@\n+x\n",
    "link": LINK.format(target="/etc/passwd"),
    "binary": "diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\n",
    "escape": envelope(add("../x", "y")),
}


@pytest.mark.parametrize("name", FAILURES)
def test_texts_of_failures(tmp_path: Path, toolkit: Toolkit, snapshots: Snapshots, name: str) -> None:
    write(tmp_path, {"src/app.py": SOURCE})

    result = toolkit.call(ToolCall("1", "apply_patch", {"patch": FAILURES[name]}))

    assert result.kind == "error"
    snapshots.check(f"apply_patch/{name}", str(result.value), budget=600)
