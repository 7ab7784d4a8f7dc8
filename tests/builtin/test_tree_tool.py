from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.builtin.workspace import as_somebody_else, make, make_socket, nodes
from toolkit import InvalidArguments, SandboxViolation, ToolFailed, ToolkitError
from toolkit.generated import Toolkit, TreeArgs, TreeOutput


def shown(output: TreeOutput) -> list[str]:
    """Every path, with ``/`` behind directories and ``+`` where something below is missing."""
    marks = {"directory": "/"}
    return [node.path + marks.get(node.kind, "") + "+" * node.truncated for node in nodes(output.root)]


# What comes back


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, ["b/", "b/deep/", "b/deep/er/+", "b/c", "empty/", "A", "a"]),
        ({"max_depth": 0}, []),
        ({"max_depth": 1}, ["b/+", "empty/", "A", "a"]),
        ({"max_depth": 2}, ["b/", "b/deep/+", "b/c", "empty/", "A", "a"]),
        ({"max_depth": 3}, ["b/", "b/deep/", "b/deep/er/+", "b/c", "empty/", "A", "a"]),
        ({"max_depth": 12}, ["b/", "b/deep/", "b/deep/er/", "b/deep/er/x", "b/c", "empty/", "A", "a"]),
        ({"max_depth": 12, "entry_kind": "directory"}, ["b/", "b/deep/", "b/deep/er/", "empty/"]),
        ({"max_depth": 3, "entry_kind": "directory"}, ["b/", "b/deep/", "b/deep/er/", "empty/"]),
        ({"max_depth": 2, "entry_kind": "directory"}, ["b/", "b/deep/+", "empty/"]),
        ({"path": "b", "max_depth": 1}, ["b/deep/+", "b/c"]),
        ({"path": "b/deep/er"}, ["b/deep/er/x"]),
        ({"path": "empty"}, []),
        ({"max_depth": 1, "include_hidden": True}, [".config/+", "b/+", "empty/", ".env", "A", "a"]),
        ({"max_depth": 1, "exclude": ["A", "b/"]}, ["empty/", "a"]),
        ({"max_depth": 2, "exclude": ["/deep", "c"]}, ["b/", "b/deep/+", "empty/", "A", "a"]),
        ({"path": "b", "max_depth": 2, "exclude": ["/deep"]}, ["b/c"]),
        (
            {"max_depth": 12, "exclude": ["deep/er"]},
            ["b/", "b/deep/", "b/deep/er/", "b/deep/er/x", "b/c", "empty/", "A", "a"],
        ),
        ({"max_depth": 12, "exclude": ["b/deep/er"]}, ["b/", "b/deep/", "b/c", "empty/", "A", "a"]),
        ({"max_depth": 1, "exclude": ["*", "!a"]}, ["a"]),
        ({"max_depth": 1, "exclude": ["b/*"]}, ["b/", "empty/", "A", "a"]),
    ],
)
def test_shows_directories_then_files_each_by_code_point(
    tmp_path: Path, toolkit: Toolkit, arguments: TreeArgs, expected: list[str]
) -> None:
    make(tmp_path, "a", "A", "b/c", "b/deep/er/x", "empty/", ".env", ".config/y", ".git/HEAD")

    output = toolkit.invoke("tree", arguments).content

    assert shown(output) == expected
    assert not output.limit_reached
    assert output.total_dirs == sum(path.rstrip("+").endswith("/") for path in expected)
    assert output.total_dirs + output.total_files == len(expected)
    assert output.root.truncated == (arguments.get("max_depth") == 0)


@pytest.mark.parametrize(
    ("max_entries", "expected", "limit_reached"),
    [
        (1, ["a/+"], True),
        (2, ["a/+", "b/+"], True),
        (4, ["a/+", "b/+", "c/", "f"], True),
        (5, ["a/+", "a/1", "b/+", "c/", "f"], True),
        (7, ["a/", "a/1", "a/2", "a/3", "b/+", "c/", "f"], True),
        (8, ["a/", "a/1", "a/2", "a/3", "b/", "b/4", "c/", "f"], False),
        (9, ["a/", "a/1", "a/2", "a/3", "b/", "b/4", "c/", "f"], False),
    ],
)
def test_entries_are_counted_level_by_level(
    tmp_path: Path, toolkit: Toolkit, max_entries: int, expected: list[str], limit_reached: bool
) -> None:
    make(tmp_path, "a/1", "a/2", "a/3", "b/4", "c/", "f")

    output = toolkit.tools.tree(max_entries=max_entries)

    assert shown(output) == expected
    assert output.limit_reached == limit_reached
    assert output.root.truncated == (max_entries < 4)


def test_counts_each_kind_and_never_follows_links_or_opens_pipes(tmp_path: Path, toolkit: Toolkit) -> None:
    make(tmp_path, "dir/x", "file")
    (tmp_path / "dir/up").symlink_to("..")
    (tmp_path / "away").symlink_to("/")
    (tmp_path / "self").symlink_to("self")
    os.mkfifo(tmp_path / "pipe")
    make_socket(tmp_path / "sock")

    output = toolkit.tools.tree(max_depth=12)

    assert [(node.path, node.kind) for node in nodes(output.root)] == [
        ("dir", "directory"),
        ("dir/x", "file"),
        ("dir/up", "symlink"),
        ("file", "file"),
        ("away", "symlink"),
        ("self", "symlink"),
        ("pipe", "other"),
        ("sock", "other"),
    ]
    assert (output.total_dirs, output.total_files, output.total_symlinks, output.scanned) == (1, 2, 3, 8)
    assert all(node.children is None for node in nodes(output.root) if node.kind != "directory")


def test_a_tree_deeper_than_the_limit_is_cut(tmp_path: Path, toolkit: Toolkit) -> None:
    (tmp_path / "/".join("d" * 200)).mkdir(parents=True)

    output = toolkit.tools.tree(max_depth=12)

    assert output.total_dirs == 12
    assert [node.truncated for node in nodes(output.root)] == [False] * 11 + [True]


def test_marks_a_directory_it_may_not_open(tmp_path: Path, toolkit: Toolkit) -> None:
    make(tmp_path, "closed/x", "open/y")
    (tmp_path / "closed").chmod(0)

    with as_somebody_else(tmp_path):
        output = toolkit.tools.tree()
    (tmp_path / "closed").chmod(0o755)

    assert shown(output) == ["closed/+", "open/", "open/y"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".", ["src/", "src/lib/", "src/lib/keep.log", "src/.gitignore", "src/b.py", ".gitignore"]),
        ("src", ["src/lib/", "src/lib/keep.log", "src/.gitignore", "src/b.py"]),
        ("src/lib", ["src/lib/keep.log"]),
        ("./src/../src/lib", ["./src/../src/lib/keep.log"]),
        ("build", ["build/x.o"]),
        ("link", ["link/lib/", "link/lib/keep.log", "link/lib/secret", "link/.gitignore", "link/b.py"]),
    ],
)
def test_reads_the_lists_from_the_workspace_down_to_each_directory(
    tmp_path: Path, toolkit: Toolkit, path: str, expected: list[str]
) -> None:
    make(tmp_path, "build/x.o", "src/b.py", "src/lib/keep.log", "src/lib/a.log", "src/lib/secret")
    (tmp_path / ".gitignore").write_text("build/\n*.log\n/src/lib/secret\n/link\n")
    (tmp_path / "src/.gitignore").write_text("!keep.log\n")
    (tmp_path / "link").symlink_to("src")

    output = toolkit.tools.tree(path=path, include_hidden=True)

    assert shown(output) == [line.removeprefix("./") for line in expected]
    everything = toolkit.tools.tree(path=path, include_hidden=True, respect_gitignore=False)
    assert everything.total_files > len([line for line in expected if not line.endswith("/")]) or path == "build"


BROKEN = {
    "too long": b"*.log\n" + b"#" * (256 * 1024),
    "too many stars": b"*.log\n" + b"*a*b*c\n" * 5000,
    "too many lines": b"*.log\n" + b"x\n" * 10_000,
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_a_list_that_nobody_wrote_is_left_unread(tmp_path: Path, toolkit: Toolkit, data: bytes) -> None:
    (tmp_path / ".gitignore").write_bytes(data)
    make(tmp_path, "a.log")

    assert shown(toolkit.tools.tree()) == ["a.log"]


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\n*.log\n", b"[\n[z-a]\n\\\n!\n/\n*.log\r\n", b"\xef\xbb\xbf*.log", b"*.log\0x"]
)
def test_a_broken_list_costs_its_broken_lines_only(tmp_path: Path, toolkit: Toolkit, data: bytes) -> None:
    (tmp_path / ".gitignore").write_bytes(data)
    make(tmp_path, "a.log", "b")

    assert shown(toolkit.tools.tree()) == ["b"]


@pytest.mark.parametrize("kind", ["directory", "fifo", "link", "unreadable"])
def test_a_list_that_is_no_readable_file_counts_as_none(tmp_path: Path, toolkit: Toolkit, kind: str) -> None:
    make(tmp_path, "a.log", "patterns")
    (tmp_path / "patterns").write_text("*.log\n")
    path = tmp_path / ".gitignore"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("patterns")
    else:
        path.write_text("*.log\n")
        path.chmod(0)

    with as_somebody_else(tmp_path):
        output = toolkit.tools.tree()

    assert shown(output) == ["a.log", "patterns"]


# What fails


@pytest.mark.parametrize(
    ("path", "reason", "words"),
    [
        ("scr", "NOT_FOUND", "'scr' does not exist. Did you mean 'src'?"),
        ("a.txt", "NOT_DIRECTORY", "'a.txt' is not a directory, or is below something that is not a directory"),
    ],
)
def test_says_why_it_cannot_show(tmp_path: Path, toolkit: Toolkit, path: str, reason: str, words: str) -> None:
    make(tmp_path, "src/x", "a.txt")

    with pytest.raises(ToolFailed) as caught:
        toolkit.tools.tree(path=path)

    assert (caught.value.reason, caught.value.message) == (reason, words)


def test_refuses_more_patterns_than_it_can_match(toolkit: Toolkit) -> None:
    with pytest.raises(ToolFailed, match="exclude has too many patterns and stars") as caught:
        toolkit.tools.tree(exclude=["*" * 101] * 100)

    assert caught.value.reason == "TOO_LARGE"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"path": ""}, InvalidArguments),
        ({"path": "../x"}, SandboxViolation),
        ({"path": "away"}, SandboxViolation),
        ({"max_depth": -1}, InvalidArguments),
        ({"max_depth": 13}, InvalidArguments),
        ({"max_entries": 0}, InvalidArguments),
        ({"max_entries": 2001}, InvalidArguments),
        ({"entry_kind": "file"}, InvalidArguments),
        ({"exclude": "*.log"}, InvalidArguments),
    ],
)
def test_refuses_bad_arguments(
    tmp_path: Path, toolkit: Toolkit, arguments: TreeArgs, error: type[ToolkitError]
) -> None:
    (tmp_path / "away").symlink_to("/")

    with pytest.raises(error):
        toolkit.invoke("tree", arguments)


# The text a model reads


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {},
            "./\n  src/\n    lib/\n      c.py\n    b.py\n  README.md\n  latest -> link\n"
            "[2 directories, 3 files, 1 link]",
        ),
        (
            {"max_depth": 1},
            "./\n  src/ …\n  README.md\n  latest -> link\n"
            "[1 directory, 1 file, 1 link; … marks deeper levels: raise max_depth, or start in such a directory]",
        ),
        (
            {"max_entries": 2},
            "./\n  src/ …\n  README.md\n  …\n"
            "[1 directory, 1 file; … marks what max_entries cut off: raise it, or start in a subdirectory]",
        ),
        (
            {"max_depth": 0},
            "./ …\n[0 directories, 0 files; … marks deeper levels: raise max_depth, or start in such a directory]",
        ),
        ({"path": "src/lib"}, "lib/\n  c.py\n[0 directories, 1 file]"),
    ],
)
def test_shows_an_indented_tree(tmp_path: Path, toolkit: Toolkit, arguments: TreeArgs, text: str) -> None:
    make(tmp_path, "src/b.py", "src/lib/c.py", "README.md")
    (tmp_path / "latest").symlink_to("README.md")

    assert toolkit.invoke("tree", arguments).text() == text


def test_shows_odd_names_escaped(tmp_path: Path, toolkit: Toolkit) -> None:
    make(tmp_path, "two\nlines", "esc\x1b[31m")
    os.mkdir(os.fsencode(tmp_path) + b"/bad\xff")
    make(tmp_path, "bad\udcff/inside")

    text = toolkit.invoke("tree", {}).text()

    assert text == "./\n  bad\\xff/\n    inside\n  esc\\x1b[31m\n  two\\x0alines\n[1 directory, 3 files]"


def test_a_name_that_ends_like_a_mark_is_no_mark(tmp_path: Path, toolkit: Toolkit) -> None:
    make(tmp_path, "wait…")

    assert toolkit.invoke("tree", {}).text() == "./\n  wait…\n[0 directories, 1 file]"


def test_a_full_tree_costs_little_more_than_its_names(tmp_path: Path, toolkit: Toolkit) -> None:
    make(tmp_path, *(f"dir{number % 10}/file{number:04}" for number in range(1000)))

    text = toolkit.invoke("tree", {"max_entries": 2000}).text()

    assert len(text.encode()) <= 1000 * (len("file0000") + 5) + 10 * 8 + 60
