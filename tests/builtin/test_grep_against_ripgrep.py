"""``grep`` finds what ripgrep finds. Where we read files otherwise on purpose, ripgrep is given them as we read them:
with line feeds alone at the ends of lines, and with U+FFFD for every wrong byte.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.builtin import ripgrep
from tests.builtin.ripgrep import Found, needs_ripgrep
from tests.builtin.workspace import make, toolkit_for
from tests.examples import tries
from toolkit import ToolFailed
from toolkit.generated import GrepOutput

pytestmark = needs_ripgrep


def as_read(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").decode("utf-8", "replace").encode()


def make_trees(base: Path, tree: dict[str, bytes]) -> tuple[Path, Path]:
    """The tree as it is, and as we read it; what contradicts an earlier path is left out."""
    ours, theirs = base / "ours", base / "theirs"
    for root in (ours, theirs):
        root.mkdir()
        for path, data in tree.items():
            with contextlib.suppress(OSError):
                make(
                    root,
                    os.fsdecode(path.encode("utf-8", "surrogateescape")),
                    data=data if root is ours else as_read(data),
                )
    return ours, theirs


def found_by_us(output: GrepOutput, expected: set[Found]) -> set[Found]:
    """Without the columns that ripgrep does not tell: those of empty matches at the end of a line."""
    assert not output.truncated
    untold = {(one.path, one.line) for one in expected if one.column is None}
    return {
        Found(match.path, match.line, None if (match.path, match.line) in untold else match.column, match.text)
        for match in output.matches
    }


def without_columns(found: set[Found]) -> set[Found]:
    return {one._replace(column=None) for one in found}


# Expressions

HAS_TEXT_ANCHORS = re.compile(r"\\[Az]|\(\?-m")

letters = st.sampled_from(
    ["a", "b", "c", "A", "B", "é", "É", "ß", "ſ", "k", "\u212a", "1", "_", " ", r"\.", r"\-", "-", "#"]
)
classes = st.sampled_from(
    [
        r"\w",
        r"\d",
        r"\s",
        r"\W",
        r"\S",
        ".",
        "[ab]",
        "[^a]",
        "[a-c_]",
        "[[:upper:]]",
        r"[^\s]",
        r"\pL",
        "[]a]",
        r"[\]b]",
        "[a&&[^b]]",
    ]
)
anchors = st.sampled_from(["^", "$", r"\b", r"\B", r"\A", r"\z", r"\<", r"\>", r"\b{start}"])
quantifiers = st.sampled_from(["*", "+", "?", "*?", "+?", "{2}", "{0,2}", "{1,}", "{0}", "??"])
groups = st.sampled_from(["({})", "(?:{})", "(?P<n>{})", "(?i:{})", "(?-i:{})", "(?s:{})"])
expressions = st.recursive(
    letters | letters | classes | anchors,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map("|".join),
        st.builds(lambda group, one: group.format(one), groups, inner),
        st.builds(lambda group, one, many: group.format(one) + many, groups, inner, quantifiers),
        st.builds(str.__add__, letters | classes, quantifiers),
    ),
    max_leaves=8,
)
patterns = st.builds(str.__add__, st.sampled_from(["", "", "", "(?i)", "(?-m)", "(?m)", "(?s)", "(?U)"]), expressions)

# Texts

words = st.sampled_from(
    ["a", "b", "ab", "abc", "A", "É", "é", "ß", "ss", "ſ", "k", "\u212a", "1", "_", " ", ".", "-", "#", "\t", "\r", "]"]
)
rows = st.lists(words, max_size=6).map("".join)
ends = st.sampled_from(["\n", "\n", "\n", "\r\n", "\n\n", "\r\r\n"])
texts = st.builds(
    lambda pairs, last: ("".join(row + end for row, end in pairs) + last).encode(),
    st.lists(st.tuples(rows, ends), max_size=8),
    rows,
)
contents = st.one_of(
    texts,
    texts,
    texts,
    st.builds(
        lambda text, wrong: text[: len(text) // 2] + wrong + text[len(text) // 2 :],
        texts,
        st.sampled_from([b"\xff", b"\xc3", b"\xed\xa0\x80"]),
    ),
    texts.map(lambda text: b"\xef\xbb\xbf" + text),
)


@tries(200)
@given(
    pattern=patterns,
    contents=st.lists(contents, min_size=1, max_size=4),
    regex=st.booleans() | st.just(True),
    ignore_case=st.booleans(),
)
@example(pattern="(a+)+$", contents=[b"aaaa\naaab"], regex=True, ignore_case=False)
@example(pattern="ss", contents=["ß\nſs\nSS".encode()], regex=True, ignore_case=True)
@example(pattern="ß", contents=["ẞ\nss".encode()], regex=False, ignore_case=True)
@example(pattern="a|", contents=[b"b\n\n"], regex=True, ignore_case=False)
@example(pattern=r"b+*c", contents=[b"c\nbc\n"], regex=True, ignore_case=False)
@example(pattern=r"a\s", contents=[b"a\nb\na b"], regex=True, ignore_case=False)
@example(pattern="", contents=[b"a\n\nb", b""], regex=False, ignore_case=False)
@pytest.mark.slow
def test_finds_the_lines_that_ripgrep_finds(
    tmp_path_factory: pytest.TempPathFactory, pattern: str, contents: list[bytes], regex: bool, ignore_case: bool
) -> None:
    tree = {f"{number}.txt": data for number, data in enumerate(contents)}
    ours, theirs = make_trees(tmp_path_factory.mktemp("trees"), tree)
    flags = [*(["-i"] if ignore_case else []), *([] if regex else ["-F"])]

    expected = ripgrep.lines(theirs, pattern, *flags)

    with toolkit_for(ours) as toolkit:
        if expected is None:
            with pytest.raises(ToolFailed, match="INVALID_REGEX"):
                toolkit.tools.grep(pattern=pattern, regex=regex, ignore_case=ignore_case)
            return
        output = toolkit.tools.grep(pattern=pattern, regex=regex, ignore_case=ignore_case, limit=1000)
        counts = toolkit.tools.grep(pattern=pattern, regex=regex, ignore_case=ignore_case, output="count")
        files = toolkit.tools.grep(pattern=pattern, regex=regex, ignore_case=ignore_case, output="files")
    found = found_by_us(output, expected)
    assert without_columns(found) == without_columns(expected)
    if not HAS_TEXT_ANCHORS.search(pattern):  # to find columns, ripgrep looks for these in the whole file
        assert found == expected
    assert {match.path: match.count for match in counts.matches} == {
        path: len([1 for one in expected if one.path == path]) for path in {one.path for one in expected}
    }
    assert [match.path for match in files.matches] == sorted({one.path for one in expected})


# Trees

names = st.sampled_from(
    [
        "a",
        "b",
        "c.py",
        "d.log",
        "keep.log",
        ".h",
        "é.txt",
        "x y",
        "-n",
        "[a]",
        "two\nlines",
        "bad\udcff",
        "build",
        "{a,b}",
    ]
)
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
lists = st.lists(
    st.sampled_from(
        [
            "*.log",
            "!keep.log",
            "/a",
            "b/",
            "build/",
            "a/*.py",
            "**/c.py",
            "*.py",
            "!c.py",
            "/b/**",
            "# a",
            "",
            "x y",
            "é*",
            "[abc]",
            "\\[a\\]",
            "-n",
            "!a/",
            "*",
        ]
    ),
    min_size=1,
    max_size=4,
).map(lambda rows: ("\n".join(rows) + "\n").encode())
trees = st.dictionaries(paths, st.sampled_from([b"x\n", b"y\n", b"x\ny\nx", b"x\0", b""]), min_size=1, max_size=14)
globs = st.sampled_from(
    [
        "*.py",
        "*.log",
        "a",
        "a/",
        "/a",
        "a/*",
        "a/**",
        "**/a",
        "**/b/*",
        "*.{py,txt}",
        "{a,b}/**",
        "[ab]",
        "[!a]*",
        "/*",
        "*/*",
        "?",
        "a/**/c.py",
        "\\[a\\]",
        "x*",
        "build/**",
        "b/{c.py,d.log}",
        "{a,b}",
        "é*",
        "*\n*",
    ]
)


def paths_found(output: GrepOutput) -> set[str]:
    return {match.path for match in output.matches}


@tries(200)
@given(
    tree=trees,
    at_root=lists | st.none(),
    in_a=lists | st.none(),
    exclude=st.lists(globs, max_size=2),
    include=st.lists(globs, max_size=2),
)
@pytest.mark.slow
def test_searches_the_files_that_ripgrep_searches(
    tmp_path_factory: pytest.TempPathFactory,
    tree: dict[str, bytes],
    at_root: bytes | None,
    in_a: bytes | None,
    exclude: Sequence[str],
    include: Sequence[str],
) -> None:
    root = tmp_path_factory.mktemp("ws")
    for path, data in tree.items():
        with contextlib.suppress(OSError):
            make(root, path, data=data)
    for folder, rows in {".": at_root, "a": in_a}.items():
        if rows is not None and (root / folder).is_dir():
            (root / folder / ".gitignore").write_bytes(rows)
    with_x = {one.path for one in ripgrep.lines(root, "x", *(f"-g!{glob}" for glob in exclude)) or ()}
    # For ripgrep a file that is asked for is neither hidden nor ignored, so this is asked apart.
    include = [glob for glob in include if not glob.endswith("/")]  # which for ripgrep fits no file
    included = ripgrep.files(root, "--hidden", "--no-ignore", *(f"-g{glob}" for glob in include)) if include else with_x

    with toolkit_for(root) as toolkit:
        output = toolkit.tools.grep(
            pattern="x", include=list(include), exclude=list(exclude), output="files", limit=1000
        )

    assert paths_found(output) == with_x & included
