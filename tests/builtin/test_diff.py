"""Diffs for approvers and models: correct for all texts, and bounded for hostile ones."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import tries
from toolkit.builtin.text.diff import MAX_LINE_CHARACTERS, binary_diff, unified_diff, visible_diff
from toolkit.builtin.text.similar import MAX_LINES, line_changes

MEBIBYTE = 1024 * 1024


def diff(old: str | None, new: str | None) -> str:
    return unified_diff(old, new, "a.txt")


HEAD = "--- a/a.txt\n+++ b/a.txt\n"
TEN = "".join(f"{number}\n" for number in range(1, 11))


@pytest.mark.parametrize(
    ("old", "new", "rows"),
    [
        ("a\n", "a\n", ""),
        ("", "", ""),
        ("a\nb\n", "a\nc\n", HEAD + "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),
        ("a\n", "b\n", HEAD + "@@ -1 +1 @@\n-a\n+b\n"),
        ("a\n", "", HEAD + "@@ -1 +0,0 @@\n-a\n"),
        ("", "a\n", HEAD + "@@ -0,0 +1 @@\n+a\n"),
        (None, "a\nb\n", "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n"),
        ("a\n", None, "--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"),
        (None, "", "--- /dev/null\n+++ b/a.txt\n"),
        ("a", "a\n", HEAD + "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"),
        ("a\n", "a", HEAD + "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n"),
        ("x\na", "y\na", HEAD + "@@ -1,2 +1,2 @@\n-x\n+y\n a\n\\ No newline at end of file\n"),
        ("a\r\nb\r\n", "a\nb\r\n", HEAD + "@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n"),
        ("a\rb\n", "a\rc\n", HEAD + "@@ -1 +1 @@\n-a\rb\n+a\rc\n"),
        ("\udce9\n", "e\n", HEAD + "@@ -1 +1 @@\n-\\xe9\n+e\n"),
        (TEN, TEN.replace("5", "V"), HEAD + "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+V\n 6\n 7\n 8\n"),
        (
            TEN,
            TEN.replace("1\n", "I\n", 1).replace("9", "IX"),
            HEAD + "@@ -1,4 +1,4 @@\n-1\n+I\n 2\n 3\n 4\n@@ -6,5 +6,5 @@\n 6\n 7\n 8\n-9\n+IX\n 10\n",
        ),
        (
            TEN,
            TEN.replace("3\n", "").replace("9\n", "9\n9.5\n"),
            HEAD + "@@ -1,10 +1,10 @@\n 1\n 2\n-3\n 4\n 5\n 6\n 7\n 8\n 9\n+9.5\n 10\n",
        ),
    ],
)
def test_is_written_as_diff_u_writes_it(old: str | None, new: str | None, rows: str) -> None:
    assert diff(old, new) == rows


lines = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "\n", "long line\n", "}\n"]), max_size=30)
texts = st.builds(lambda rows, tail: "".join(rows) + tail, lines, st.sampled_from(["", "end", "a"]))


@tries(150)
@given(old=texts, new=texts)
@pytest.mark.slow
def test_turns_one_text_into_the_other_when_git_applies_it(
    tmp_path_factory: pytest.TempPathFactory, old: str, new: str
) -> None:
    folder = tmp_path_factory.mktemp("applied")
    file = folder / "a.txt"
    file.write_bytes(old.encode())
    if old == new:
        assert diff(old, new) == ""
        return

    command = ["git", "apply", "--whitespace=nowarn", "--unidiff-zero", "-"]
    done = subprocess.run(command, input=diff(old, new).encode(), cwd=folder, capture_output=True)

    assert done.returncode == 0, done.stderr
    assert file.read_bytes() == new.encode()


@tries(300)
@given(old=st.lists(st.sampled_from("abcde")), new=st.lists(st.sampled_from("abcde")))
@pytest.mark.slow
def test_changes_rebuild_the_new_lines_and_never_touch(old: list[str], new: list[str]) -> None:
    found = line_changes(old, new)

    rebuilt, at = [], 0
    for change in found:
        rebuilt += old[at : change.old_start] + new[change.new_start : change.new_end]
        at = change.old_end
        assert change.old_start < change.old_end or change.new_start < change.new_end
    assert rebuilt + old[at:] == new
    assert all(one.old_end < two.old_start and one.new_end < two.new_start for one, two in pairwise(found))


def rows(count: int, *words: str) -> str:
    return "".join(f"{words[number % len(words)]}\n" for number in range(count))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\n" * (5 * MEBIBYTE), "b\n" * (5 * MEBIBYTE)),
        ("a\nb\n" * 2_500_000, "b\na\n" * 2_500_000),
        ("\n" * (10 * MEBIBYTE), "x\n" * (5 * MEBIBYTE)),
        ("x" * (10 * MEBIBYTE), "y" * (10 * MEBIBYTE)),
        (None, "a\n" * (5 * MEBIBYTE)),
        ("a\n" * (5 * MEBIBYTE), None),
        (rows(MAX_LINES // 2 - 9, "a", "b", "b"), rows(MAX_LINES // 2 - 9, "b", "a")),
        (rows(MAX_LINES // 2 - 9, "a"), rows(MAX_LINES // 3, "a", "a", "b")),
    ],
    ids=["all", "shifted", "blank", "line", "new", "gone", "repetitive", "periodic"],
)
@pytest.mark.slow
def test_what_is_hostile_ends_soon_and_is_cut(old: str | None, new: str | None) -> None:
    assert 0 < len(diff(old, new)) < 34 * 1024


def test_a_small_change_of_a_large_file_is_shown_whole() -> None:
    text = rows(600_000, "one", "two", "three", "a longer line of text")
    at = text.index("\n", len(text) // 2)

    made = diff(text, f"{text[:at]}!{text[at:]}")

    assert len([row for row in made.splitlines() if row[0] in "+-"]) == 4
    assert len(made.splitlines()) == 3 + 3 + 2 + 3


@pytest.mark.slow
def test_a_long_diff_is_cut_with_the_count_of_all_of_it() -> None:
    made = unified_diff(rows(3000, "old"), rows(4000, "new"), "a.txt", limit=3000)

    assert "-old\n[2800 more lines removed here]\n+new\n" in made
    assert made.endswith("+new\n[diff cut here; in all, 3000 lines removed and 4000 added]\n")
    assert len(made) < 3100


def test_a_long_line_is_shown_where_it_differs() -> None:
    before, after = "x" * 50_000, "y" * 70_000

    made = diff(f"{before}old{after}\n", f"{before}new{after}\n")

    _, _, _, gone, come = made.splitlines()
    assert gone == "-[49940 characters]…" + "x" * 60 + "old" + "y" * 437 + "…[69563 characters]"
    assert come == gone.replace("-", "+").replace("old", "new")
    assert diff("", "z" * 501).splitlines()[3] == "+" + "z" * MAX_LINE_CHARACTERS + "…[1 characters]"


def test_hidden_characters_are_shown_to_people_as_escapes() -> None:
    assert visible_diff("-a\r\n+\x1b[2Ka\u202eb\tc\n") == "-a\\r\n+\\x1b[2Ka\\u202eb\tc\n"
    assert binary_diff("a.bin") == "Binary files a/a.bin and b/a.bin differ\n"


def test_git_is_what_applies(tmp_path: Path) -> None:
    """The control of the property above: git refuses a diff that is wrong."""
    (tmp_path / "a.txt").write_text("x\n")
    command = ["git", "apply", "-"]
    assert subprocess.run(command, input=diff("a\n", "b\n").encode(), cwd=tmp_path, capture_output=True).returncode
