"""Git diffs: a table of what a diff can express, and real ``git diff`` output over random trees as the oracle."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.builtin.patches import files_in, outcome, write
from tests.builtin.workspace import toolkit_for
from tests.examples import tries
from toolkit import ToolFailed
from toolkit.generated import Toolkit


def diff(path: str, *hunks: str, old: str = "a/", new: str = "b/") -> str:
    return f"diff --git {old}{path} {new}{path}\nindex 1..2 100644\n--- {old}{path}\n+++ {new}{path}\n" + "".join(hunks)


ONE = "@@ -1 +1 @@\n-x\n+y\n"
LINES = "".join(f"{number}\n" for number in range(1, 21))


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        pytest.param({"f": "x\n"}, diff("f", ONE), {"f": "y\n"}, id="changes"),
        pytest.param({"f": "x\n"}, f"--- a/f\n+++ b/f\n{ONE}", {"f": "y\n"}, id="needs no git header"),
        pytest.param({"f": "x\n"}, f"--- f\n+++ f\n{ONE}", {"f": "y\n"}, id="needs no prefix"),
        pytest.param({"f": "x\n"}, diff("f", ONE, old="", new=""), {"f": "y\n"}, id="needs no prefix with a header"),
        pytest.param({"f": "x\n"}, diff("f", ONE, old="i/", new="w/"), {"f": "y\n"}, id="knows other prefixes"),
        pytest.param({"a/f": "x\n"}, diff("a/f", ONE, old="", new=""), {"a/f": "y\n"}, id="takes a directory for no prefix"),
        pytest.param({"f": "x\n"}, f"--- f\t2024-01-01 10:00\n+++ f\t2024-01-01 10:01\n{ONE}", {"f": "y\n"}, id="leaves out times"),
        pytest.param({"f": "x\n"}, f"Subject: [PATCH] x\n\n---\n f | 2 +-\n\n{diff('f', ONE)}-- \n2.39.5\n\n", {"f": "y\n"}, id="leaves out a letter"),
        pytest.param({"f": "x\n"}, diff("f", ONE).replace("\n", "\r\n"), {"f": "y\n"}, id="takes line ends of the way"),
        pytest.param({"é b": "x\n"}, f'diff --git "a/\\303\\251 b" "b/\\303\\251 b"\n--- "a/\\303\\251 b"\n+++ "b/\\303\\251 b"\n{ONE}', {"é b": "y\n"}, id="reads quoted names"),
        pytest.param({'t\tq"\\': "x\n"}, f'--- "a/t\\tq\\"\\\\"\n+++ "b/t\\tq\\"\\\\"\n{ONE}', {'t\tq"\\': "y\n"}, id="reads escapes"),
        pytest.param({"a b": "x\n"}, f"diff --git a/a b b/a b\n--- a/a b\t\n+++ b/a b\t\n{ONE}", {"a b": "y\n"}, id="reads names with blanks"),
        pytest.param({}, "diff --git a/n b/n\nnew file mode 100644\nindex 000..111\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+1\n+2\n", {"n": "1\n2\n"}, id="adds"),
        pytest.param({}, "diff --git a/n b/n\nnew file mode 100644\nindex 000..e69\n", {"n": ""}, id="adds an empty file"),
        pytest.param({}, "--- /dev/null\n+++ b/d/n\n@@ -0,0 +1 @@\n+1\n\\ No newline at end of file\n", {"d/n": "1"}, id="adds without a line end"),
        pytest.param({"f": "x\n", "g": ""}, "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", {"g": ""}, id="deletes"),
        pytest.param({"f": "", "g": ""}, "diff --git a/f b/f\ndeleted file mode 100644\nindex e69..000\n", {"g": ""}, id="deletes an empty file"),
        pytest.param({"f": "x"}, diff("f", "@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n"), {"f": "x\n"}, id="adds a line end"),
        pytest.param({"f": "x\n"}, diff("f", "@@ -1 +1 @@\n-x\n+x\n\\ No newline at end of file\n"), {"f": "x"}, id="takes a line end away"),
        pytest.param({"f": "w\nx"}, diff("f", "@@ -1,2 +1,2 @@\n-w\n+v\n x\n\\ No newline at end of file\n"), {"f": "v\nx"}, id="keeps an open end"),
        pytest.param({"f": "w\nx"}, diff("f", "@@ -1 +1 @@\n-w\n+v\n"), {"f": "v\nx"}, id="keeps an open end it does not reach"),
        pytest.param({"f": "x"}, diff("f", "@@ -1 +1,2 @@\n x\n+y\n"), {"f": "x\ny\n"}, id="goes on behind an open end"),
        pytest.param({"f": "x\ny"}, diff("f", "@@ -1,2 +1 @@\n x\n-y\n"), {"f": "x\n"}, id="takes an open end away"),
        pytest.param({"f": "x\n"}, "diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to d/g\n", {"d/g": "x\n"}, id="renames"),
        pytest.param({"f": "x\n"}, f"diff --git a/f b/g\nrename from f\nrename to g\n--- a/f\n+++ b/g\n{ONE}", {"g": "y\n"}, id="renames and changes"),
        pytest.param({"f": "x\n"}, f"diff --git a/f b/g\ncopy from f\ncopy to g\n--- a/f\n+++ b/g\n{ONE}", {"f": "x\n", "g": "y\n"}, id="copies and changes"),
        pytest.param({"f": "x\n"}, diff("f", ONE) + "diff --git a/f b/g\ncopy from f\ncopy to g\n", {"f": "y\n", "g": "x\n"}, id="copies what was before"),
        pytest.param({"f": "1\n", "g": "2\n"}, "diff --git a/f b/g\nrename from f\nrename to g\ndiff --git a/g b/f\nrename from g\nrename to f\n",
                     {"f": "2\n", "g": "1\n"}, id="swaps"),
        pytest.param({"f": "1\n"}, "diff --git a/f b/g\nrename from f\nrename to g\ndiff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+new\n",
                     {"f": "new\n", "g": "1\n"}, id="uses a name that is free by then"),
        pytest.param({"f": b"\0\1"}, "diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n", {"g": b"\0\1"}, id="renames a binary file"),
        pytest.param({"f": LINES}, diff("f", "@@ -15,3 +15,3 @@\n 5\n-6\n+six\n 7\n"), {"f": LINES.replace("6\n", "six\n", 1)}, id="finds a hunk far off"),
        pytest.param({"f": "a\nx\n" * 5}, diff("f", "@@ -7,2 +7,2 @@\n a\n-x\n+y\n"), {"f": "a\nx\n" * 3 + "a\ny\na\nx\n"}, id="takes the place that is named"),
        pytest.param({"f": "n\n" + "a\nx\n" * 5}, diff("f", "@@ -7,2 +7,2 @@\n a\n-x\n+y\n"), {"f": "n\n" + "a\nx\n" * 3 + "a\ny\na\nx\n"}, id="takes the nearest place"),
        pytest.param({"f": "n\n" + LINES}, diff("f", "@@ -2 +2 @@\n-2\n+two\n", "@@ -9,0 +10 @@\n+new\n"),
                     {"f": "n\n1\ntwo\n3\n4\n5\n6\n7\n8\n9\nnew\n" + "".join(f"{n}\n" for n in range(10, 21))}, id="keeps the offset"),
        pytest.param({"f": LINES}, diff("f", "@@ -5,0 +6,2 @@\n+a\n+b\n"), {"f": "1\n2\n3\n4\n5\na\nb\n" + "".join(f"{n}\n" for n in range(6, 21))}, id="inserts by number"),
        pytest.param({"f": "  x \n"}, diff("f", ONE), {"f": "y\n"}, id="forgives white space in the only place"),
        pytest.param({"f": "x\r\nz\r\n"}, diff("f", "@@ -1,2 +1,2 @@\n-x\n+y\n z\n"), {"f": "y\r\nz\r\n"}, id="takes the line ends of the file"),
        pytest.param({"f": "x\r\nz\r\n"}, diff("f", "@@ -1,2 +1,2 @@\n-x\r\n+y\n z\r\n"), {"f": "y\nz\r\n"}, id="takes its own line ends if it has any"),
        pytest.param({"f": "a\n\nb\n"}, diff("f", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n"), {"f": "a\n\nc\n"}, id="takes an empty line for an empty line"),
        pytest.param({"f": "-- x\n++ y\n"}, diff("f", "@@ -1,2 +1,2 @@\n--- x\n+-- z\n ++ y\n"), {"f": "-- z\n++ y\n"}, id="reads rows that look like headers"),
        pytest.param({"f": "x\n"}, diff("f", ONE) + diff("f", "@@ -1 +1 @@\n-y\n+z\n"), {"f": "z\n"}, id="goes on with a file"),
    ],
)  # fmt: skip
def test_applies(tmp_path: Path, before: dict[str, str | bytes], patch: str, after: dict[str, str | bytes]) -> None:
    write(tmp_path, before)

    assert outcome(tmp_path, patch) == "done"

    assert files_in(tmp_path) == {
        name: text if isinstance(text, bytes) else text.encode() for name, text in after.items()
    }


@pytest.mark.parametrize(
    ("before", "patch", "reason", "words"),
    [
        ({"f": "z\n"}, diff("f", ONE), "NO_MATCH", "hunk 1 of 'f' (line 5 of the patch)"),
        ({"f": "y\n"}, diff("f", "@@ -1 +1 @@\n-x is gone\n+y\n"), "NO_MATCH", "does not match"),
        ({"f": "x\n" * 3}, diff("f", "@@ -1 +1 @@\n-x\n+y\n", "@@ -1 +1 @@\n-y\n+z\n"), "NO_MATCH", "hunk 2"),
        ({"f": "x\n"}, diff("f", "@@ -9,0 +9 @@\n+y\n"), "NO_MATCH", "cannot insert lines after line 9"),
        ({"f": "x \nx \n"}, diff("f", "@@ -5 +5 @@\n-x\n+y\n"), "AMBIGUOUS", "matches in several places"),
        ({"f": "x\n"}, "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+y\n", "ALREADY_EXISTS", "'f' already exists"),
        ({"f": "x\n", "g": "z\n"}, "diff --git a/f b/g\nrename from f\nrename to g\n", "ALREADY_EXISTS", "'g' already exists"),
        ({"f": "x\n"}, "diff --git a/f b/g\ncopy from f\ncopy to g\ndiff --git a/f b/g\ncopy from f\ncopy to g\n", "ALREADY_EXISTS", "'g'"),
        ({}, diff("f", ONE), "NOT_FOUND", "'f' does not exist"),
        ({}, "diff --git a/f b/g\nrename from f\nrename to g\n", "NOT_FOUND", "'f' does not exist"),
        ({"f": "x\n"}, "diff --git a/f b/g\nrename from f\nrename to g\n" + diff("f", ONE), "NOT_FOUND", "an earlier part deletes or moves it"),
        ({"f": "x\ny\n"}, "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", "NO_MATCH", "more lines than the patch deletes"),
        ({"f": "x\n"}, "diff --git a/f b/f\ndeleted file mode 100644\n", "NO_MATCH", "more lines than the patch deletes"),
        ({"f": "\0\n"}, diff("f", ONE), "BINARY_NOT_SUPPORTED", "'f' is not a text file"),
        ({"f": "x\n"}, "diff --git a/f b/f\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIcmZQ$\n", "BINARY_NOT_SUPPORTED", "line 3"),
        ({"f": "x\n"}, "diff --git a/f b/f\nindex 1..2\nBinary files a/f and b/f differ\n", "BINARY_NOT_SUPPORTED", "line 3"),
        ({"f": "x\n"}, f"Binary files a/g and b/g differ\n{diff('f', ONE)}", "BINARY_NOT_SUPPORTED", "line 1"),
        ({"f": "x\n"}, diff("f", "@@ -1,2 +1 @@\n-x\n+y\n"), "INVALID_PATCH", "expected '@@ -1,1 +1,1 @@'"),
        ({"f": "x\n"}, diff("f", "@@ -1 +1 @@\n-x\n+y\n+z\n"), "INVALID_PATCH", "expected '@@ -1,1 +1,2 @@'"),
        ({"f": "x\n"}, ONE + diff("f", ONE), "INVALID_PATCH", "line 1 of the patch: expected '--- a/<path>'"),
        ({"f": "x\n"}, diff("f"), "INVALID_PATCH", "does not say what changes in 'f'"),
        ({"f": "x\n"}, "diff --git a/f b/f\n--- a/f\n@@ -1 +1 @@\n-x\n+y\n", "INVALID_PATCH", "expected '+++ b/<path>'"),
        ({"f": "x\n"}, f"diff --git a/f b/f\n--- a/g\n+++ b/g\n{ONE}", "INVALID_PATCH", "differ from those in the header"),
        ({"f": "x\n"}, f"--- a/f\n+++ b/g\n{ONE}", "INVALID_PATCH", "the two names differ"),
        ({"f": "x\n"}, f"diff --git a/f b/g\n--- a/f\n+++ b/g\n{ONE}", "INVALID_PATCH", "the two names differ"),
        ({"f": "x\n"}, f"--- /dev/null\n+++ /dev/null\n{ONE}", "INVALID_PATCH", "not '/dev/null' in both"),
        ({"f": "x\n"}, "--- /dev/null\n+++ b/n\n@@ -1 +1 @@\n-x\n+y\n", "INVALID_PATCH", "with '+' before every line"),
        ({"f": "x\n"}, "--- a/f\n+++ /dev/null\n@@ -1 +1 @@\n-x\n+y\n", "INVALID_PATCH", "cannot have lines that start with '+'"),
        ({"f": "x\n"}, f'--- "a/\\377"\n+++ "b/\\377"\n{ONE}', "INVALID_PATCH", "is not UTF-8"),
        ({"f": "x\n"}, f'--- "a/\\q"\n+++ "b/\\q"\n{ONE}', "INVALID_PATCH", "expected an escape"),
        ({"f": "x\n"}, "diff --git a/f b/f\nold mode 100644\nnew mode rwx\n", "INVALID_PATCH", "expected a mode such as 100644"),
        ({"f": "x\n"}, f"diff --cc f\nindex 1,2..3\n--- a/f\n+++ b/f\n@@@ -1,1 -1,1 +1,1 @@@\n{ONE}", "INVALID_PATCH", "a combined diff"),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_says_what_is_wrong_and_changes_nothing(
    tmp_path: Path, toolkit: Toolkit, before: dict[str, str], patch: str, reason: str, words: str
) -> None:
    write(tmp_path, before)

    with pytest.raises(ToolFailed) as caught:
        toolkit.tools.apply_patch(patch=patch)

    assert (caught.value.reason, words in caught.value.message) == (reason, True), caught.value.message
    assert files_in(tmp_path) == {name: text.encode() for name, text in before.items()}


def test_tells_actions_of_renames_and_copies(tmp_path: Path, toolkit: Toolkit) -> None:
    write(tmp_path, {"f": "x\n", "h": "x\n"})
    patch = f"diff --git a/f b/g\nrename from f\nrename to g\n--- a/f\n+++ b/g\n{ONE}diff --git a/h b/i\ncopy from h\ncopy to i\n"

    output = toolkit.tools.apply_patch(patch=patch)

    facts = [(file.path, file.action, file.moved_to, file.added, file.removed) for file in output.files]
    assert facts == [("f", "move", "g", 1, 1), ("i", "add", None, 0, 0)]


@pytest.mark.parametrize(
    ("before", "line", "after"), [(0o640, "755", 0o750), (0o755, "644", 0o644), (0o600, "755", 0o700)]
)
def test_changes_only_what_git_knows_of_a_mode(tmp_path: Path, before: int, line: str, after: int) -> None:
    write(tmp_path, {"f": "x\n"})
    (tmp_path / "f").chmod(before)

    assert outcome(tmp_path, f"diff --git a/f b/f\nold mode 100644\nnew mode 100{line}\n") == "done"

    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == after


# Real diffs over random trees

GIT = ["git", "-c", "core.quotePath=true", "-c", "diff.renameLimit=100"]
ENVIRONMENT = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "HOME": "/"}

NAMES = [
    "a",
    "b.txt",
    "dir/c",
    "dir/d e",
    "dir/sub/é",
    'q"uote',
    "tab\there",
    "back\\slash",
    "-dash",
    "new/x",
    "new/y",
    " lead",
]
LINE = st.sampled_from(
    [
        "",
        "x",
        "y",
        "foo",
        "  foo",
        "foo ",
        "-",
        "+",
        "--- a/a",
        "+++ b/a",
        "@@ -1 +1 @@",
        "\\ No",
        "é\u2028",
        "\ufeffb",
        "a\rb",
    ]
)
ENDS = st.sampled_from(["\n"] * 6 + ["\r\n", "\n\n"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    lines = draw(st.lists(st.tuples(LINE, ENDS), max_size=12))
    text = "".join(line + end for line, end in lines)
    return text if draw(st.booleans()) else text.rstrip("\n")


@dataclass(frozen=True)
class Blob:
    text: str
    executable: bool


TREES = st.dictionaries(st.sampled_from(NAMES), st.builds(Blob, texts(), st.booleans()), max_size=5)


@st.composite
def two_trees(draw: st.DrawFn) -> tuple[dict[str, Blob], dict[str, Blob]]:
    """A tree and another that has much in common with it: files edited, renamed, copied, left out, added."""
    before = draw(TREES)
    after = dict(draw(TREES)) if draw(st.booleans()) else {}
    for name, blob in before.items():
        fate = draw(st.sampled_from(["keep", "edit", "rename", "copy", "drop", "mode"]))
        if fate in ("keep", "copy"):
            after[name] = blob
        if fate in ("rename", "copy"):
            after[draw(st.sampled_from(NAMES))] = blob
        if fate == "mode":
            after[name] = Blob(blob.text, not blob.executable)
        if fate == "edit":
            lines = blob.text.split("\n")
            at = draw(st.integers(0, len(lines)))
            lines[at : at + draw(st.integers(0, 2))] = draw(st.lists(LINE, max_size=2))
            after[name] = Blob("\n".join(lines), blob.executable)
    return before, after


def write_tree(root: Path, tree: Mapping[str, Blob]) -> None:
    root.mkdir(exist_ok=True)
    write(root, {name: blob.text for name, blob in tree.items()})
    for name, blob in tree.items():
        (root / name).chmod(0o755 if blob.executable else 0o644)


def git(repository: Path, *arguments: str, **more: str) -> str:
    command = [*GIT, "--git-dir", str(repository / "git"), *arguments]
    done = subprocess.run(command, cwd=repository, capture_output=True, env={**ENVIRONMENT, **more}, check=True)
    return done.stdout.decode()


def git_tree(repository: Path, root: Path, name: str) -> str:
    index = {"GIT_INDEX_FILE": str(repository / name)}
    git(repository, "--work-tree", str(root), "add", "--all", "--force", str(root), **index)
    return git(repository, "write-tree", **index).strip()


def read_tree(root: Path) -> dict[str, Blob]:
    return {
        name: Blob(data.decode(), bool((root / name).stat().st_mode & 0o111)) for name, data in files_in(root).items()
    }


OPTIONS = st.lists(
    st.sampled_from(
        ["-M", "-C", "--find-copies-harder", "-M50%", "--full-index", "--no-prefix", "-B", "--patience", "-U1", "-U8"]
    ),
    unique=True,
    max_size=3,
)


@tries(60)
@given(trees=two_trees(), options=OPTIONS)
@pytest.mark.slow
def test_what_git_writes_leads_to_the_tree_it_was_made_from(
    tmp_path_factory: pytest.TempPathFactory, trees: tuple[dict[str, Blob], dict[str, Blob]], options: list[str]
) -> None:
    before, after = trees
    base = tmp_path_factory.mktemp("git")
    git(base, "init", "--quiet")
    for name, tree in (("old", before), ("new", after)):
        write_tree(base / name, tree)
    old, new = (git_tree(base, base / name, f"{name}-index") for name in ("old", "new"))
    patch = git(base, "diff-tree", "-p", "--no-color", "-r", *options, old, new)
    assume(patch)

    umask = os.umask(0o022)
    try:
        with toolkit_for(base / "old") as toolkit:
            toolkit.tools.apply_patch(patch=patch)
            assert read_tree(base / "old") == after
            toolkit.tools.apply_patch(patch=git(base, "diff-tree", "-p", "-r", *options, new, old))
            assert read_tree(base / "old") == before
    finally:
        os.umask(umask)
