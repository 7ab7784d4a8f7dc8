from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.builtin import ripgrep
from tests.builtin.ripgrep import needs_ripgrep
from tests.builtin.snapshots import Snapshots
from tests.builtin.workspace import as_somebody_else, make, make_socket, toolkit_for
from tests.examples import tries
from toolkit import InvalidArguments, Rule, SandboxViolation, ToolFailed, ToolkitError
from toolkit.builtin.search import glob, walk
from toolkit.generated import GlobArgs, SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit

# What comes back

TREE = [
    "a.py", "b.txt", "src/c.py", "src/d.pyi", "src/lib/e.py", "src/lib/deep/f.py", "src/.hid/g.py", ".env", ".github/ci.yml",
    "build/h.py", "app/[...slug]/page.tsx", "app/[id]/page.tsx", "app/x/page.tsx", "{a,b}/i.py", "back\\slash", "star*", ".git/config",
]  # fmt: skip


@pytest.mark.sample
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pattern": "*.py"}, ["a.py"]),
        ({"pattern": "**/*.py"}, ["a.py", "src/c.py", "src/lib/e.py", "src/lib/deep/f.py", "{a,b}/i.py"]),
        ({"pattern": "**/**/**/*.py"}, ["a.py", "src/c.py", "src/lib/e.py", "src/lib/deep/f.py", "{a,b}/i.py"]),
        ({"pattern": "./src//*.py"}, ["src/c.py"]),
        ({"pattern": "src/*.py*"}, ["src/c.py", "src/d.pyi"]),
        ({"pattern": "src/**"}, ["src/c.py", "src/d.pyi", "src/lib/e.py", "src/lib/deep/f.py"]),
        ({"pattern": "src/"}, ["src/c.py", "src/d.pyi", "src/lib/e.py", "src/lib/deep/f.py"]),
        ({"pattern": "src/**/f.py"}, ["src/lib/deep/f.py"]),
        ({"pattern": "src/**/deep/*"}, ["src/lib/deep/f.py"]),
        ({"pattern": "*/*/e.py"}, ["src/lib/e.py"]),
        ({"pattern": "*.{py,txt}"}, ["a.py", "b.txt"]),
        ({"pattern": "{a,b}.*"}, ["a.py", "b.txt"]),
        ({"pattern": "{src,src/lib}/*.py"}, ["src/c.py", "src/lib/e.py"]),
        ({"pattern": "{b.txt,src/{c,d}.{py,pyi}}"}, ["b.txt", "src/c.py", "src/d.pyi"]),
        ({"pattern": "src/?.py"}, ["src/c.py"]),
        ({"pattern": "[ab].*"}, ["a.py", "b.txt"]),
        ({"pattern": "[!a].*"}, ["b.txt"]),
        ({"pattern": "[a-b].[^t]*"}, ["a.py"]),
        ({"pattern": "app/[id]/page.tsx"}, []),
        ({"pattern": r"app/\[id\]/*"}, ["app/[id]/page.tsx"]),
        ({"pattern": r"app/\[...slug\]/*"}, ["app/[...slug]/page.tsx"]),
        ({"pattern": "app/[[]...slug]/*"}, ["app/[...slug]/page.tsx"]),
        ({"pattern": "app/*slug*/*"}, ["app/[...slug]/page.tsx"]),
        ({"pattern": r"\{a,b\}/*"}, ["{a,b}/i.py"]),
        ({"pattern": r"back\\slash"}, ["back\\slash"]),
        ({"pattern": r"star\*"}, ["star*"]),
        ({"pattern": "src"}, []),
        ({"pattern": "*.py", "path": "src"}, ["src/c.py"]),
        ({"pattern": "**/*.py", "path": "src/lib/"}, ["src/lib/e.py", "src/lib/deep/f.py"]),
        ({"pattern": "*.PY"}, []),
        ({"pattern": ".*"}, [".env", ".gitignore"]),
        ({"pattern": ".github/*"}, [".github/ci.yml"]),
        ({"pattern": "{.github,src}/*.{yml,pyi}"}, [".github/ci.yml", "src/d.pyi"]),
        ({"pattern": ".github/**/.git*"}, []),
        ({"pattern": "**/g.py"}, []),
        ({"pattern": "**/.hid/*"}, ["src/.hid/g.py"]),
        ({"pattern": "**/g.py", "include_hidden": True}, ["src/.hid/g.py"]),
        ({"pattern": "*", "include_hidden": True}, [".env", ".gitignore", "a.py", "b.txt", "back\\slash", "star*"]),
        ({"pattern": ".git/*", "include_hidden": True}, []),
        ({"pattern": "build/*"}, []),
        ({"pattern": "build/*", "respect_gitignore": False}, ["build/h.py"]),
        ({"pattern": "*", "path": "build"}, ["build/h.py"]),
        ({"pattern": "h.*", "path": "build"}, ["build/h.py"]),
        ({"pattern": "nothing/*"}, []),
        ({"pattern": "--files"}, []),
    ],
)
def test_finds_files(tmp_path: Path, toolkit: Toolkit, arguments: GlobArgs, expected: list[str]) -> None:
    make(tmp_path, *TREE)
    (tmp_path / ".gitignore").write_text("build/\n")

    output = toolkit.invoke("glob", arguments).content

    assert sorted(output.paths) == sorted(expected)
    assert (output.total, output.truncated, output.hidden) == (len(expected), False, 0)


def test_gives_the_last_changed_first(tmp_path: Path, toolkit: Toolkit) -> None:
    make(tmp_path, "old", "new/est", "middle", "same", "also")
    for path, time in {"old": 1, "new/est": 9, "middle": 5, "same": 3, "also": 3}.items():
        os.utime(tmp_path / path, (time, time))

    everything = toolkit.tools.glob(pattern="**")
    first = toolkit.tools.glob(pattern="**", limit=2)

    assert everything.paths == ["new/est", "middle", "also", "same", "old"]
    assert (first.paths, first.total, first.truncated) == (["new/est", "middle"], 5, True)


@pytest.mark.parametrize("limit", [1, 3, 7, 40])
def test_gives_the_newest_of_many_whatever_the_order_of_the_walk(tmp_path: Path, toolkit: Toolkit, limit: int) -> None:
    times = {f"d{number % 5}/{'-' * (number % 2)}f{number}": number * 7 % 10 for number in range(40)}
    make(tmp_path, *times)
    for path, seconds in times.items():
        os.utime(tmp_path / path, (seconds, seconds))

    output = toolkit.tools.glob(pattern="**", limit=limit)

    assert output.paths == sorted(times, key=lambda path: (-times[path], path))[:limit], "equal times: by the path"
    assert output.total == 40 and output.truncated == (limit < 40)


def test_an_absolute_pattern_is_taken_below_the_directory_that_is_searched(tmp_path: Path, toolkit: Toolkit) -> None:
    make(tmp_path, *TREE)

    assert toolkit.tools.glob(pattern=f"{tmp_path}/*.py").paths == ["a.py"]
    assert toolkit.tools.glob(pattern=f"{tmp_path}/src/", path="src").total == 4
    assert toolkit.tools.glob(pattern=f"{tmp_path}/src/*.py", path=f"{tmp_path}/src").paths == ["src/c.py"]


def test_links_are_found_but_never_followed(tmp_path: Path, toolkit: Toolkit) -> None:
    """Row 152."""
    make(tmp_path, "dir/x", "CLAUDE.md")
    (tmp_path / "AGENTS.md").symlink_to("CLAUDE.md")
    (tmp_path / "dir/loop").symlink_to("..")
    (tmp_path / "away").symlink_to("/")
    (tmp_path / "self").symlink_to("self")
    os.mkfifo(tmp_path / "pipe")
    make_socket(tmp_path / "sock")

    assert sorted(toolkit.tools.glob(pattern="**").paths) == [
        "AGENTS.md",
        "CLAUDE.md",
        "away",
        "dir/loop",
        "dir/x",
        "self",
    ]
    assert toolkit.tools.glob(pattern="away/*").paths == []
    assert toolkit.tools.glob(pattern="*", path="dir/loop/dir").total == 2


def test_shows_odd_names_escaped(tmp_path: Path, toolkit: Toolkit) -> None:
    """Rows 28 and 38."""
    make(tmp_path, "two\nlines.txt", "esc\x1b[31m.txt", "bad\udcff.txt", "bad\udcff/in\nside.txt")

    message = toolkit.invoke("glob", {"pattern": "**/*.txt"})

    assert sorted(message.content.paths) == [
        "bad\\xff.txt",
        "bad\\xff/in\\x0aside.txt",
        "esc\\x1b[31m.txt",
        "two\\x0alines.txt",
    ]
    assert len(message.text().split("\n")) == 4
    assert toolkit.tools.glob(pattern="two?lines.*").paths == ["two\\x0alines.txt"]
    assert toolkit.tools.glob(pattern="two\nlines.txt").paths == ["two\\x0alines.txt"]
    assert toolkit.tools.glob(pattern="bad?.*").paths == ["bad\\xff.txt"]


def test_counts_what_the_policy_denies(tmp_path: Path) -> None:
    make(tmp_path, "a", "secret", "sub/SECRET", "keys/private/y", "keys/public")
    (tmp_path / "way").symlink_to("keys")
    policy = SecurityPolicy(default="allow", rules=[Rule("deny", path="secret"), Rule("deny", path="keys/private")])

    with create_agent_toolkit(ToolkitContext(tmp_path, policy)) as toolkit:
        output = toolkit.tools.glob(pattern="**")
        below_link = toolkit.tools.glob(pattern="**", path="way")
        listed = toolkit.tools.list(recursive=True)
        tree = toolkit.tools.tree()

    assert (sorted(output.paths), output.hidden) == (["a", "keys/public", "way"], 3)
    assert (below_link.paths, below_link.hidden) == (["way/public"], 1)
    assert ([entry.path for entry in listed.entries], listed.hidden) == (["a", "keys", "keys/public", "sub", "way"], 3)
    assert (tree.total_files, tree.hidden) == (2, 3)


# Limits


def test_costs_of_a_pattern_grow_with_its_letters_only(tmp_path: Path, toolkit: Toolkit) -> None:
    """Row 151. Multiplied out, each of these would be more patterns than there are atoms."""
    make(tmp_path, "/".join("abcdefghij") + "/file.txt", *(f"dir{number}/x" for number in range(70)))

    assert toolkit.tools.glob(pattern="**/" * 12 + "file.txt").total == 1
    assert toolkit.tools.glob(pattern="**/*/" * 9 + "nothing").total == 0
    assert toolkit.tools.glob(pattern="{a,b}{a,b}" * 90).total == 0
    assert toolkit.tools.glob(pattern="{" * 20 + "x" + "}" * 20, path="dir1").total == 1
    assert toolkit.tools.glob(pattern="*a" * 400).total == 0


@pytest.mark.slow
def test_a_tree_that_is_deeper_than_descriptors_last_is_searched_to_a_depth(tmp_path: Path, toolkit: Toolkit) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(300):
        for name in ("d", "e"):
            os.mkdir(name, dir_fd=here)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + 64, hard))
    try:
        message = toolkit.invoke("glob", {"pattern": "**/file", "limit": 500})
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert (message.content.total, message.content.truncated) == (257, True)
    assert "start in a subdirectory" in message.text()


def test_leaves_out_what_it_may_not_look_into(tmp_path: Path, toolkit: Toolkit) -> None:
    make(tmp_path, "closed/x", "open/y")
    (tmp_path / "closed").chmod(0)

    with as_somebody_else(tmp_path):
        output = toolkit.tools.glob(pattern="**")
    (tmp_path / "closed").chmod(0o755)

    assert output.paths == ["open/y"]


# What fails


@pytest.mark.parametrize(
    ("arguments", "reason", "words"),
    [
        ({"path": "scr"}, "NOT_FOUND", "'scr' does not exist. Did you mean 'src'?"),
        ({"path": "a.txt"}, "NOT_DIRECTORY", "'a.txt' is not a directory"),
        ({"pattern": "."}, "INVALID_REGEX", "the pattern is empty"),
        ({"pattern": "[z-a]"}, "INVALID_REGEX", "the empty range 'z'-'a'"),
        ({"pattern": "a" * 1001}, "TOO_LARGE", "at most 1000 characters"),
        ({"pattern": "{" * 21 + "}" * 21}, "TOO_LARGE", "nests braces more than 20 deep"),
    ],
)
def test_says_why_it_cannot_find(
    tmp_path: Path, toolkit: Toolkit, arguments: GlobArgs, reason: str, words: str
) -> None:
    make(tmp_path, "src/x", "a.txt")

    with pytest.raises(ToolFailed) as caught:
        toolkit.invoke("glob", {"pattern": "*", **arguments})

    assert caught.value.reason == reason
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, InvalidArguments),
        ({"pattern": ""}, InvalidArguments),
        ({"pattern": "../*"}, SandboxViolation),
        ({"pattern": "a/../../*"}, SandboxViolation),
        ({"pattern": "/etc/*"}, SandboxViolation),
        ({"pattern": "/"}, SandboxViolation),
        ({"pattern": "*", "path": ".."}, SandboxViolation),
        ({"pattern": "*", "path": "away"}, SandboxViolation),
        ({"pattern": "*", "limit": 0}, InvalidArguments),
        ({"pattern": "*", "limit": 501}, InvalidArguments),
        ({"pattern": ["*"]}, InvalidArguments),
    ],
)
def test_refuses_bad_arguments(
    tmp_path: Path, toolkit: Toolkit, arguments: GlobArgs, error: type[ToolkitError]
) -> None:
    """Row 153 among others."""
    (tmp_path / "away").symlink_to("/")

    with pytest.raises(error):
        toolkit.invoke("glob", arguments)


def test_an_absolute_pattern_never_reaches_another_directory(tmp_path: Path) -> None:
    make(tmp_path, "ws/a/x", "ws-evil/x", "x")
    with toolkit_for(tmp_path / "ws") as toolkit:
        for pattern in (f"{tmp_path}/*", f"{tmp_path}/ws-evil/*", f"{tmp_path}/ws/../*", f"{tmp_path}/ws/b/*"):
            with pytest.raises(SandboxViolation):
                toolkit.tools.glob(pattern=pattern, path="a")


# Beside ripgrep, whose `[!a]` would match a slash

names = st.sampled_from(["a", "b", "ab", "a.py", "b.txt", ".h", "é.py", "[a]", "{a}", "x y", "-n", "a,b"])
trees = st.lists(st.lists(names, min_size=1, max_size=4).map("/".join), min_size=1, max_size=14)
pieces = st.sampled_from(
    [
        "a",
        "b",
        ".py",
        ".",
        "*",
        "?",
        "[ab]",
        "[a-c]",
        "{a,b}",
        "{a,b.txt}",
        "{*.py,b}",
        r"\[",
        r"\{",
        ",",
        "x y",
    ]
)
# To ripgrep, a class of what is not listed takes a slash as well; by itself, where that could make no difference.
parts = st.sampled_from(["**", "[!a]", "[^b]"]) | st.lists(pieces, min_size=1, max_size=3).map("".join).filter(
    lambda part: part.strip(".") != ""
)
globs = st.lists(parts, min_size=1, max_size=4).map("/".join)


@needs_ripgrep
@tries(200)
@given(tree=trees, pattern=globs)
@example(tree=["a/b", "a.py", "a/a.py"], pattern="**/a.py")
@example(tree=["a/b/a/b"], pattern="a/**/b")
@pytest.mark.slow
def test_finds_what_ripgrep_finds(tmp_path_factory: pytest.TempPathFactory, tree: list[str], pattern: str) -> None:
    root = tmp_path_factory.mktemp("ws")
    for path in tree:
        try:
            make(root, path)
        except OSError:
            continue  # contradicts an earlier path
    expected = ripgrep.files(root, "--hidden", "--no-ignore", f"-g/{pattern}")

    with toolkit_for(root) as toolkit:
        output = toolkit.tools.glob(pattern=pattern, include_hidden=True, respect_gitignore=False, limit=500)
        without_hidden = toolkit.tools.glob(pattern=pattern, respect_gitignore=False, limit=500)

    assert set(output.paths) == expected
    hidden = {path for path in expected if any(part.startswith(".") for part in path.split("/"))}
    assert expected - hidden <= set(without_hidden.paths) <= expected


# The text a model reads

TEXTS: dict[str, Callable[[Toolkit], str]] = {
    "found": lambda toolkit: toolkit.invoke("glob", {"pattern": "**/*.py"}).text(),
    "truncated": lambda toolkit: toolkit.invoke("glob", {"pattern": "**/*.py", "limit": 2}).text(),
    "nothing": lambda toolkit: toolkit.invoke("glob", {"pattern": "*.rs"}).text(),
}


@pytest.mark.parametrize("case", TEXTS)
def test_text(tmp_path: Path, toolkit: Toolkit, snapshots: Snapshots, case: str) -> None:
    make(tmp_path, *TREE)
    for time, path in enumerate(TREE):
        os.utime(tmp_path / path, (time, time))

    snapshots.check(f"glob/{case}", TEXTS[case](toolkit), budget=250)


def test_text_says_what_the_policy_denies(tmp_path: Path, snapshots: Snapshots) -> None:
    make(tmp_path, "a.txt", "secret", "sub/x")
    policy = SecurityPolicy(default="allow", rules=[Rule("deny", path="secret")])

    with create_agent_toolkit(ToolkitContext(tmp_path, policy)) as toolkit:
        snapshots.check("glob/denied", toolkit.invoke("glob", {"pattern": "*"}).text(), budget=100)
        snapshots.check("list/denied", toolkit.invoke("list", {}).text(), budget=150)
        snapshots.check("tree/denied", toolkit.invoke("tree", {}).text(), budget=150)


def test_a_walk_ends_after_too_many_entries_and_says_so(
    tmp_path: Path, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a lower limit: a million files take long to make."""
    assert walk.MAX_ENTRIES == 1_000_000
    for module in (walk, glob):
        monkeypatch.setattr(module, "MAX_ENTRIES", 50)
    for number in range(60):
        (tmp_path / "many").mkdir(exist_ok=True)
        (tmp_path / "many" / f"file{number}").touch()
    (tmp_path / "many/below").mkdir()
    (tmp_path / "many/below/file").touch()
    message = toolkit.invoke("glob", {"pattern": "**/below/*"})
    assert (message.content.paths, message.content.truncated) == ([], True)
    assert "the search stopped after 50 entries" in message.text()


@pytest.mark.whole
def test_a_walk_ends_after_a_million_entries_and_says_so(tmp_path: Path, toolkit: Toolkit) -> None:
    for folder in range(1000):
        below = tmp_path / str(folder)
        below.mkdir()
        for number in range(1001):
            os.mknod(below / str(number))
    message = toolkit.invoke("glob", {"pattern": "**/none"})
    assert (message.content.paths, message.content.truncated) == ([], True)
    assert "the search stopped after 1000000 entries" in message.text()
