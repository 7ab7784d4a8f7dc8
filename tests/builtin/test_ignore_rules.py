"""``tree`` leaves out what git ignores: both are given the same files."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.builtin.workspace import make, nodes, toolkit_for
from tests.examples import tries
from toolkit.builtin.search.ignored import Patterns
from toolkit.visible import display

Lists = dict[str, bytes]

needs_git = pytest.mark.skipif(
    shutil.which("git") is None, reason="git is not installed, so there is nothing to compare"
)


@pytest.fixture(scope="module")
def git_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("git") / "repo.git"
    subprocess.run(["git", "init", "-q", "--bare", str(path)], check=True)
    return path


def kept_by_git(git_dir: Path, root: Path) -> set[str]:
    """Every path below ``root`` but those that git ignores, by itself or for a directory above it."""
    paths = {os.fsencode(path.relative_to(root)) for path in root.rglob("*")}
    run = subprocess.run(
        ["git", "-c", "core.excludesFile=", "-c", "core.bare=false", "check-ignore", "--no-index", "-z", "--stdin"],
        input=b"".join(path + b"\0" for path in paths),
        env={**os.environ, "GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(root), "GIT_CONFIG_NOSYSTEM": "1"},
        cwd=root,
        capture_output=True,
        check=False,
    )
    assert run.returncode in (0, 1), run.stderr
    return {display(os.fsdecode(path)) for path in paths - set(run.stdout.split(b"\0"))}


def kept_by_tree(root: Path) -> set[str]:
    with toolkit_for(root) as toolkit:
        output = toolkit.tools.tree(include_hidden=True, max_depth=12, max_entries=2000)
    assert not output.limit_reached
    return {node.path for node in nodes(output.root)}


def make_tree(root: Path, paths: list[str], lists: Lists) -> None:
    """What contradicts an earlier path is left out."""
    for path in paths:
        with contextlib.suppress(OSError):
            make(root, path)
    for folder, data in lists.items():
        if (root / folder).is_dir():
            (root / folder / ".gitignore").write_bytes(data)


TREE = [
    "a", "b", "ab", "abc", "a.txt", "foo/a", "foo/bar/a", "foo/bar/baz/b", "foo/keep", "x/foo/a", "x/y/z/b", "-", "]",
    "[", "!", "!a", "#", "#a", " ", "a ", "a\t", "^", "\\", "1x", "*", "?", "a?", "a*b", "build/o", "x/build/o", "sub/a",
    "sub/build/o", "sub/sub/a", "café", "é", "{a,b}", "empty/", "foobar", "foox/bar", "foox/y/bar", "A", ".a", ".x/a",
]  # fmt: skip

ROWS: list[Lists] = [
    {".": line.encode()}
    for line in [
        "a", "/a", "a/", "foo", "foo/", "/foo/", "foo/*", "foo/**", "foo/**/", "foo/bar", "bar/baz", "**/bar", "**/bar/",
        "foo/**/b", "x/**/b", "**/z/b", "**", "**/", "/**", "*", "/*", "*/", "/*/", "*/*", "*/*/", "?", "??", "???",
        "*.txt", "a*", "*a", "*a*", "a**", "**a", "a**c", "foo**/bar", "foo**bar", "foo*/**/bar", "fo?**/bar", "x/**foo/a",
        "x/foo**/a", "***", "foo/***/b", "foo/**/**/b", "**/**/b", "foo\\/bar", "foo/**\\/b", "foo/**\\b",
        "[ab]", "[!a]", "[^a]", "[a-c]", "[c-a]", "[]]", "[!]]", "[]-]", "[a-]", "[-a]", "[\\]]", "[\\\\]", "[[]", "[a", "[",
        "[]", "[!]", "[[:digit:]]x", "[[:alpha:]]", "[[:upper:]]", "[[:punct:]]", "[[:space:]]", "[![:alnum:]]",
        "[[:nope:]]", "[[:digit:]", "[[:]", "[[:a]", "[a-[:digit:]]", "[/]", "foo[/]a", "foo[!x]a", "[é]", "caf?", "caf??",
        "#", "\\#", "#a", "\\#a", "!", "\\!", "!a", "\\!a", " ", "\\ ", "a ", "a\\ ", "a\\  ", "a\\\\ ", "a\t", "a\\\t",
        "\\", "a\\", "\\a", "\\*", "a\\*b", "\\?", "a\\?", "/", "//", "//a", "a//", "foo//bar", "./a", "foo/./a", "{a,b}",
        "a\r", "a\r\r", "\r", "a\0b", "foo/a\nx/foo/a", "*\n!a", "*\n!*/\n!*.txt", "foo\n!foo/keep", "foo/*\n!foo/keep",
        "foo/**\n!foo/bar\n!foo/bar/", "/*\n!/foo\n/foo/*\n!/foo/bar", "a\n!a\na", "!a\na", "*\n!foo/\n!foo/**",
        "build/\n!x/build/", "\ufeffa", "*\n!.gitignore",
    ]
] + [
    {".": b"*", "foo": b"!*"},
    {".": b"*.txt\na", "sub": b"!a"},
    {".": b"!a", "sub": b"a"},
    {".": b"/sub/build", "sub": b"!build"},
    {".": b"sub", "sub": b"!*"},
    {".": b"sub/*", "sub": b"!a\n!sub"},
    {".": b"sub/**", "sub": b"!a\n!sub/", "sub/sub": b"!a"},
    {"sub": b"/a"},
    {"sub": b"sub/a"},
    {"sub": b"/sub/"},
    {"sub": b"**/a"},
    {"foo": b"bar/**", "foo/bar": b"!baz/"},
    {"foo/bar": b"../a\nbaz"},
    {".": b"\xff\xfe\n*\xe9*\n*\xc3*", "foo": b"a"},
    {".": b"a", "foo": b"\n# nothing\n"},
]  # fmt: skip


@pytest.mark.sample
@needs_git
@pytest.mark.parametrize("lists", ROWS, ids=repr)
@pytest.mark.slow
def test_tree_keeps_what_git_keeps(git_dir: Path, tmp_path: Path, lists: Lists) -> None:
    make_tree(tmp_path, TREE, lists)

    assert kept_by_tree(tmp_path) == kept_by_git(git_dir, tmp_path)


names = st.text("ab.", min_size=1, max_size=3).filter(lambda name: name.strip(".") != "")
paths = st.lists(st.lists(names, min_size=1, max_size=4).map("/".join), min_size=1, max_size=12)
pieces = st.sampled_from(
    [
        "a",
        "b",
        ".",
        "*",
        "**",
        "?",
        "/",
        "/**/",
        "**/",
        "/**",
        "[ab]",
        "[!a]",
        "[^b.]",
        "[a-",
        "]",
        "\\",
        "\\/",
        "!",
        "#",
    ]
)
patterns = st.builds(
    lambda lead, body, tail: lead + "".join(body) + tail,
    st.sampled_from(["", "", "!", "/", "!/", "**/", "\\"]),
    st.lists(pieces, min_size=1, max_size=5),
    st.sampled_from(["", "", "/", " ", "\\ ", "\r"]),
)
contents = st.lists(patterns, min_size=1, max_size=5).map(lambda lines: "\n".join(lines).encode())


@needs_git
@tries(300)
@given(paths=paths, at_root=contents, in_a=contents | st.none(), in_ab=contents | st.none())
@example(paths=["a/b/a"], at_root=b"a/**", in_a=b"!b", in_ab=None)
@pytest.mark.slow
def test_tree_keeps_what_git_keeps_of_random_trees(
    git_dir: Path,
    tmp_path_factory: pytest.TempPathFactory,
    paths: list[str],
    at_root: bytes,
    in_a: bytes | None,
    in_ab: bytes | None,
) -> None:
    root = tmp_path_factory.mktemp("ws")
    lists = {".": at_root, "a": in_a, "a/b": in_ab}
    make_tree(root, paths, {folder: data for folder, data in lists.items() if data is not None})

    assert kept_by_tree(root) == kept_by_git(git_dir, root)


@pytest.mark.parametrize(
    ("pattern", "name", "path"),
    [
        ("*a" * 100 + "b", "a" * 255, "a" * 255),
        ("**/" * 200 + "b", "a", "/".join("a" * 2000)),
        ("/x/" + "**/*a/" * 100 + "b", "a", "x/" + "/".join(["aaa"] * 1000)),
        ("/" + "**/*a*a*/a*a*/" * 50 + "b", "a", "/".join(["a" * 20] * 200)),
        ("[!b]*" * 100 + "b", "a" * 255, "a" * 255),
        ("*" * 4000 + "b", "a" * 255, "a" * 255),
    ],
)
def test_no_pattern_makes_matching_explode(pattern: str, name: str, path: str) -> None:
    """An engine that tried every way to split these names would not come back within the age of the universe."""
    above = path.removesuffix(name).encode()

    assert Patterns([pattern.encode()]).decide(name.encode(), b"", lambda: above) is None
