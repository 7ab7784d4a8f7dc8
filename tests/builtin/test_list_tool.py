from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builtin.workspace import as_somebody_else, make, make_socket, toolkit_for
from tests.examples import tries
from toolkit import InvalidArguments, SandboxViolation, ToolFailed, ToolkitError
from toolkit.generated import ListArgs, ListOutput, Toolkit


def paths_of(output: ListOutput) -> list[str]:
    return [entry.path for entry in output.entries]


# What comes back


@pytest.mark.parametrize(
    ("arguments", "expected", "truncated"),
    [
        ({}, ["a.txt", "src", "src.txt", "src0"], False),
        ({"path": "src"}, ["src/b.py", "src/lib"], False),
        ({"path": "src/"}, ["src/b.py", "src/lib"], False),
        ({"path": "src/../src/lib"}, ["src/../src/lib/c.py"], False),
        ({"recursive": True}, ["a.txt", "src", "src.txt", "src/b.py", "src/lib", "src/lib/c.py", "src0"], False),
        ({"recursive": True, "limit": 4}, ["a.txt", "src", "src.txt", "src/b.py"], True),
        ({"limit": 3}, ["a.txt", "src", "src.txt"], True),
        ({"limit": 4}, ["a.txt", "src", "src.txt", "src0"], False),
        ({"path": "src", "include_hidden": True}, ["src/.env", "src/b.py", "src/lib"], False),
        ({"include_hidden": True, "limit": 3}, [".git", ".github", "a.txt"], True),
        ({"include_hidden": True, "recursive": True, "limit": 4}, [".git", ".github", ".github/ci.yml", "a.txt"], True),
        ({"path": ".github", "recursive": True}, [".github/ci.yml"], False),
    ],
)
def test_lists_in_the_order_of_paths(
    tmp_path: Path, toolkit: Toolkit, arguments: ListArgs, expected: list[str], truncated: bool
) -> None:
    make(tmp_path, "a.txt", "src/b.py", "src/.env", "src/lib/c.py", "src.txt", "src0", ".github/ci.yml", ".git/config")

    output = toolkit.invoke("list", arguments).content

    assert paths_of(output) == expected
    assert output.truncated == truncated


def test_gives_the_facts_of_each_kind_without_following_links(tmp_path: Path, toolkit: Toolkit) -> None:
    make(tmp_path, "dir/x", "file", data=b"12")
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "away").symlink_to("/")
    os.mkfifo(tmp_path / "pipe")
    make_socket(tmp_path / "sock")

    output = toolkit.tools.list(recursive=True)

    facts = [(entry.path, entry.name, entry.kind, entry.size) for entry in output.entries]
    assert facts == [
        ("away", "away", "symlink", 0),
        ("dir", "dir", "directory", 0),
        ("dir/x", "x", "file", 2),
        ("file", "file", "file", 2),
        ("loop", "loop", "symlink", 0),
        ("pipe", "pipe", "other", 0),
        ("sock", "sock", "other", 0),
    ]
    assert output.entries[3].mtime == pytest.approx((tmp_path / "file").stat().st_mtime)


def test_shows_odd_names_escaped(tmp_path: Path, toolkit: Toolkit) -> None:
    make(tmp_path, "two\nlines", "esc\x1b[31m", "bidi\u202etxt")
    os.mkdir(os.fsencode(tmp_path) + b"/bad\xff")
    make(tmp_path, "bad\udcff/inside")

    message = toolkit.invoke("list", {"recursive": True})

    assert paths_of(message.content) == [
        "bad\\xff",
        "bad\\xff/inside",
        "bidi\\u202etxt",
        "esc\\x1b[31m",
        "two\\x0alines",
    ]
    assert len(message.text().split("\n")) == 5


names = st.sampled_from(["a", "b", "a-", "a.b", "a0", "é", ".h"])
trees = st.lists(st.lists(names, min_size=1, max_size=4), max_size=12)


@tries(60)
@given(tree=trees, limit=st.integers(1, 20))
@pytest.mark.slow
def test_the_first_entries_are_those_of_the_whole_list(
    tmp_path_factory: pytest.TempPathFactory, tree: list[list[str]], limit: int
) -> None:
    root = tmp_path_factory.mktemp("ws")
    for parts in tree:
        (root / "/".join(parts)).mkdir(parents=True, exist_ok=True)
    everything = sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))
    with toolkit_for(root) as toolkit:
        output = toolkit.tools.list(recursive=True, include_hidden=True, limit=limit)

    assert paths_of(output) == everything[:limit]
    assert output.truncated == (len(everything) > limit)


@pytest.mark.slow
def test_lists_a_tree_that_is_deeper_than_descriptors_last(tmp_path: Path, toolkit: Toolkit) -> None:
    depth = 300
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + 64, hard))
    try:
        output = toolkit.tools.list(recursive=True, limit=1000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert len(output.entries) == depth
    assert not output.truncated


def test_leaves_out_what_lies_below_a_directory_it_may_not_open(tmp_path: Path, toolkit: Toolkit) -> None:
    make(tmp_path, "closed/x", "open/y")
    (tmp_path / "closed").chmod(0)

    with as_somebody_else(tmp_path):
        output = toolkit.tools.list(recursive=True)
    (tmp_path / "closed").chmod(0o755)

    assert paths_of(output) == ["closed", "open", "open/y"]


# What fails


@pytest.mark.parametrize(
    ("path", "reason", "words"),
    [
        ("scr", "NOT_FOUND", "'scr' does not exist. Did you mean 'src'?"),
        ("zzz", "NOT_FOUND", "'zzz' does not exist"),
        ("a.txt", "NOT_DIRECTORY", "'a.txt' is not a directory, or is below something that is not a directory"),
        ("pipe", "NOT_DIRECTORY", "'pipe' is not a directory, or is below something that is not a directory"),
        ("loop", "IO", "'loop' leads through too many symbolic links"),
    ],
)
def test_says_why_it_cannot_list(tmp_path: Path, toolkit: Toolkit, path: str, reason: str, words: str) -> None:
    make(tmp_path, "src/x", "a.txt")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(ToolFailed) as caught:
        toolkit.tools.list(path=path)

    assert (caught.value.reason, caught.value.message) == (reason, words)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"path": ""}, InvalidArguments),
        ({"path": ".."}, SandboxViolation),
        ({"path": "/"}, SandboxViolation),
        ({"path": "away"}, SandboxViolation),
        ({"limit": 0}, InvalidArguments),
        ({"limit": 1001}, InvalidArguments),
        ({"recursive": "yes"}, InvalidArguments),
        ({"depth": 1}, InvalidArguments),
    ],
)
def test_refuses_bad_arguments(
    tmp_path: Path, toolkit: Toolkit, arguments: ListArgs, error: type[ToolkitError]
) -> None:
    (tmp_path / "away").symlink_to("/")

    with pytest.raises(error):
        toolkit.invoke("list", arguments)


# The text a model reads


def test_shows_one_line_an_entry(tmp_path: Path, toolkit: Toolkit) -> None:
    make(tmp_path, "src/b.py", data=b"12")
    (tmp_path / "README.md").write_text("x" * 120)
    (tmp_path / "link").symlink_to("src")
    os.mkfifo(tmp_path / "pipe")

    assert toolkit.invoke("list", {"recursive": True}).text() == (
        "f      120 README.md\n"
        "l        - link\n"
        "o        - pipe\n"
        "d        - src/\n"
        "f        2 src/b.py"
    )  # fmt: skip
    assert toolkit.invoke("list", {"limit": 1}).text() == (
        "f      120 README.md\n[the first 1 entries; there are more: raise limit or list a subdirectory]"
    )


def test_says_that_there_is_nothing(tmp_path: Path, toolkit: Toolkit) -> None:
    make(tmp_path, ".hidden")

    assert toolkit.invoke("list", {}).text() == "[no entries; set include_hidden to list hidden ones]"


@pytest.mark.slow
def test_a_thousand_entries_cost_little_more_than_their_names(tmp_path: Path, toolkit: Toolkit) -> None:
    make(tmp_path, *(f"file{number:04}" for number in range(1100)))

    message = toolkit.invoke("list", {"limit": 1000})

    assert message.content.truncated
    assert len(message.text().encode()) <= 1000 * (len("file0000") + 12) + 100
