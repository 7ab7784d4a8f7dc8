from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builtin.snapshots import Snapshots
from tests.builtin.workspace import Meanwhile, make, make_socket
from toolkit import (
    ApprovalRequest,
    Approve,
    InvalidArguments,
    SandboxViolation,
    ToolFailed,
    ToolkitError,
    ToolNotAllowed,
)
from toolkit.generated import EditArgs, EditOutput, Rule, SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit

MEBIBYTE = 1024 * 1024
LIMIT = 10 * MEBIBYTE


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def failure(act: Callable[[], object]) -> ToolFailed:
    with pytest.raises(ToolFailed) as caught:
        act()
    return caught.value


class Edits:
    """Edits of one file, which is asked for its bytes afterwards."""

    def __init__(self, root: Path, toolkit: Toolkit) -> None:
        self.file = root / "f"
        self.toolkit = toolkit

    def __call__(self, data: bytes, old: str, new: str, **options: Any) -> bytes:
        self.output = self.made(data, old, new, **options)
        return self.file.read_bytes()

    def made(self, data: bytes, old: str, new: str, **options: Any) -> EditOutput:
        self.file.write_bytes(data)
        return self.toolkit.tools.edit(path="f", old_string=old, new_string=new, **options)

    def refused(self, data: bytes, old: str, new: str = "new", **options: Any) -> ToolFailed:
        """Why; the file is as it was, and nothing is beside it."""
        error = failure(lambda: self.made(data, old, new, **options))
        assert self.file.read_bytes() == data
        assert os.listdir(self.file.parent) == ["f"]
        return error


@pytest.fixture
def edit(tmp_path: Path, toolkit: Toolkit) -> Edits:
    return Edits(tmp_path, toolkit)


# As it stands


@pytest.mark.parametrize(
    ("data", "old", "new", "expected"),
    [
        (b"one two three", "two", "2", b"one 2 three"),
        (b"one\ntwo\n", "two", "", b"one\n\n"),
        (b"one\ntwo\n", "two\n", "", b"one\n"),
        (b"one\ntwo", "\ntwo", "", b"one"),
        (b"one\ntwo\n", "one\ntwo\n", "", b""),
        (b"one", "one", "one\ntwo\n", b"one\ntwo\n"),
        (b"a.b", "a.b", "\\1 \\g<0> $1 &", b"\\1 \\g<0> $1 &"),
        (b"x  y\t", "  y", " y", b"x y\t"),
        ("naïve 日本 😀".encode(), "日本", "Japan", "naïve Japan 😀".encode()),
        ("e\u0301 é".encode(), "é", "e", "e\u0301 e".encode()),
        (b"  x\n  x \n", "x \n", "y\n", b"  x\n  y\n"),
        (b"tail", "tail", "\ttail ", b"\ttail "),
    ],
)
def test_replaces_the_only_occurrence(edit: Edits, data: bytes, old: str, new: str, expected: bytes) -> None:
    for options in ({}, {"match_mode": "exact"}, {"replace_all": True}, {"expected_replacements": 1}):
        assert edit(data, old, new, **options) == expected
        assert (edit.output.path, edit.output.replacements, edit.output.match_mode) == ("f", 1, "exact")
        assert edit.output.sha256 == digest(expected)
        assert edit.output.dry_run is False


@pytest.mark.parametrize(
    ("data", "old", "new", "expected", "count"),
    [
        (b"a b a", "a", "c", b"c b c", 2),
        (b"aaaa", "aa", "b", b"bb", 2),
        (b"aaa", "aa", "b", b"ba", 1),
        (b"a\na\n", "a\n", "", b"", 2),
        (b"a\r\nb\na\nb\r\n", "a\nb", "x\ny\nz", b"x\r\ny\nz\nx\ny\r\nz\r\n", 2),
        (b"a;a\r\na;a\n", ";", "\n", b"a\r\na\r\na\na\n", 2),
        (
            b"\tif x:\n\t\tpass\n  if x:\n    pass\n",
            "if x:\n   pass",
            "if y:\n   pass",
            b"\tif y:\n\t\tpass\n  if y:\n    pass\n",
            2,
        ),
    ],
)
def test_replaces_every_occurrence(edit: Edits, data: bytes, old: str, new: str, expected: bytes, count: int) -> None:
    assert edit(data, old, new, replace_all=True) == expected
    assert edit.output.replacements == count
    if old == "aa":  # a number does not say which are meant of places that overlap
        assert edit.refused(data, old, new, expected_replacements=count).reason == "AMBIGUOUS"
    else:
        assert edit(data, old, new, expected_replacements=count) == expected


# Line ends, marks, bytes


@pytest.mark.parametrize(
    ("data", "old", "new", "expected"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "a\r\nb", "x\r\ny", b"x\r\ny\r\nc\r\n"),
        (b"a\nb\nc\n", "a\r\nb\r\n", "x\r\n", b"x\nc\n"),
        (b"a\r\nb", "b", "b\nc\n", b"a\r\nb\r\nc\r\n"),
        (b"one", "one", "one\r\ntwo", b"one\r\ntwo"),
        (b"one", "one", "one\ntwo", b"one\ntwo"),
        (b"a\r\nb\nc\r\nd\n", "b\nc", "b\nx\nc", b"a\r\nb\nx\nc\r\nd\n"),
        (b"a\r\nb\nc\r\nd\n", "a\nb\nc\nd\n", "a\nb\nc\nD\n", b"a\r\nb\nc\r\nD\n"),
        (b"a\r\nb\nc\r\nd\n", "a\nb\nc\nd\n", "a\nc\nd\n", b"a\r\nc\r\nd\n"),
        (b"a\nb\r\n", "b", "b\nc", b"a\nb\r\nc\r\n"),
        (b"a\nb\r\nc", "c", "c\nd", b"a\nb\r\nc\r\nd"),
        (b"a\r\nb\n", "a", "", b"\r\nb\n"),
        (b"a\r\nfoo\r\n", "foo\r", "bar\r", b"a\r\nbar\r\n"),
        (b"a\r\nfoo\r\n", "foo\r", "bar", b"a\r\nbar\r\n"),
        (b"old\rmac\r", "old\rmac", "new\rmac", b"new\rmac\r"),
        (b"a\r\r\nb\n", "a\r\nb", "c\nb", b"c\r\nb\n"),
        (b"\xef\xbb\xbfone\ntwo\n", "one", "1", b"\xef\xbb\xbf1\ntwo\n"),
        (b"\xef\xbb\xbfone\r\ntwo\r\n", "one\ntwo\n", "1\n", b"\xef\xbb\xbf1\r\n"),
        (b"\xef\xbb\xbf  one\n", "one ", "1", b"\xef\xbb\xbf  1\n"),
        (b"\xef\xbb\xbf  one\n two\n", "one\ntwo", "1\ntwo", b"\xef\xbb\xbf  1\n two\n"),
        (b"\xef\xbb\xbfone\n", "\ufeffone", "one", b"one\n"),
        (b"caf\xe9\nplain\n", "plain", "simple", b"caf\xe9\nsimple\n"),
        (b"\xff\n  plain \n\xc3", "plain\n", "simple\n", b"\xff\n  simple\n\xc3"),
        (b"\xe9 a\xff b \xe9", "a", "x", b"\xe9 x\xff b \xe9"),
        (b"\xff \xc3\xa9 a", "a", "ä", b"\xff \xc3\xa9 \xc3\xa4"),
        (b"\xed\xa0\x80x\xf0\x9f\x98", "x", "y", b"\xed\xa0\x80y\xf0\x9f\x98"),
    ],
)
def test_keeps_what_it_was_not_asked_to_change(edit: Edits, data: bytes, old: str, new: str, expected: bytes) -> None:
    assert edit(data, old, new) == expected


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o444])
def test_keeps_the_mode(edit: Edits, mode: int) -> None:
    edit.file.write_text("old")
    edit.file.chmod(mode)
    edit.toolkit.tools.edit(path="f", old_string="old", new_string="new")

    assert stat.S_IMODE(edit.file.stat().st_mode) == mode


# Lines that differ in whitespace


@pytest.mark.parametrize(
    ("data", "old", "new", "expected"),
    [
        # the file is deeper
        ("class A:\n    def f(self):\n        return 1\n", "def f(self):\n    return 1", "def f(self):\n    x = 2\n    return x", "class A:\n    def f(self):\n        x = 2\n        return x\n"),
        # the file is less deep
        ("def f():\n    return 1\n", "    def f():\n        return 1", "    def f():\n        if x:\n            return 2", "def f():\n    if x:\n        return 2\n"),
        # tabs in the file, spaces given
        ("\tif a:\n\t\tb()\n", "    if a:\n        b()", "    if a:\n        b()\n        if c:\n            d()", "\tif a:\n\t\tb()\n\t\tif c:\n\t\t\td()\n"),
        ("\ta()\n", "  a() ", "  a()\n    b()", "\ta()\n\t\tb()\n"),
        ("\ta()\n", "a() ", "if x:\n    a()", "\tif x:\n\t\ta()\n"),
        # spaces in the file, tabs given
        ("  if a:\n    b()\n", "\tif a:\n\t\tb()", "\tif a:\n\t\tc()\n\telse:\n\t\td()", "  if a:\n    c()\n  else:\n    d()\n"),
        ("    a()\n", "\ta() ", "\tif x:\n\t\ta()", "    if x:\n        a()\n"),
        # another width
        ("def f():\n  return 1\n", "def f():\n    return 1", "def f():\n    if x:\n        return 2", "def f():\n  if x:\n    return 2\n"),
        # nothing of the indentation given
        ("def f():\n    a()\n    b()\n", "def f():\na()\nb()", "def f():\na()\nc()\nb()", "def f():\n    a()\n    c()\n    b()\n"),
        # a line less deep than any given
        ("    if a:\n        b()\n", "  if a:\n      b() ", "if a:\n      b() ", "  if a:\n        b()\n"),
        # what stays, stays with its whitespace
        ("a  \n\tb\t\nc   \n", "a\nb\nc", "a\nB\nc", "a  \n\tB\nc   \n"),
        ("x\r\n  a\r\n", "a ", "b\nc", "x\r\n  b\r\n  c\r\n"),
        # the end of the file
        ("x\n  last", "last\n", "end\n", "x\n  end"),
        ("x\n  last", "last\n", "end\nmore\n", "x\n  end\n  more"),
        ("x\n  last", "last \n", "", "x\n"),
        ("x\n  last\n", "last \n", "", "x\n"),
        # blank lines
        ("a\n   \nb\n", "a\n\nb", "a\n\nc", "a\n   \nc\n"),
        ("  a\n  b\n", "a\nb", "a\n\nb", "  a\n\n  b\n"),
        ("\t\n\ta\n", "\na ", "\nb", "\t\n\tb\n"),
    ],
)  # fmt: skip
def test_takes_lines_that_differ_in_whitespace(edit: Edits, data: str, old: str, new: str, expected: str) -> None:
    assert edit(data.encode(), old, new).decode() == expected
    assert (edit.output.match_mode, edit.output.replacements) == ("line-trimmed", 1)
    assert edit.refused(data.encode(), old, new, match_mode="exact").reason == "NO_MATCH"


def test_what_stands_there_exactly_goes_before_what_differs_in_whitespace(edit: Edits) -> None:
    assert edit(b"  a\na\n", "\na\n", "\nb\n") == b"  a\nb\n"
    assert edit.output.match_mode == "exact"
    assert edit.refused(b"\ta\n  a\n", "    a").reason == "AMBIGUOUS"


# Similar blocks


BLOCK = "def total(items):\n    # sum up the prices of items\n    result = sum(item.price for item in items)\n    return result\n"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "def total(items):\n    # sum up the price of items\n    result = sum(i.price for i in items)\n    return result",
            "def total(items):\n    # sum up the price of items\n    result = sum(i.price for i in items)\n    return round(result)",
            BLOCK.replace("return result", "return round(result)"),
        ),
        (
            "def total(items):\n    # sum up prices of items\n    result = sum(item.price for item in items)\n    return result\n",
            "def total(items):\n    # add everything\n    result = sum(item.price for item in items)\n    return result\n",
            BLOCK.replace("sum up the prices of items", "add everything"),
        ),
        (
            "  def total(items):\n    # sum up the prices of the items\n    result = sum(item.price for item in items)\n    return result",
            "  def total(items):\n    return 0",
            "def total(items):\n    return 0\n",
        ),
    ],
)
def test_takes_a_similar_block_and_changes_only_what_was_changed(
    edit: Edits, old: str, new: str, expected: str
) -> None:
    data = f"import os\n\n{BLOCK}\n\nprint(total([]))\n".encode()

    assert edit(data, old, new) == data.replace(BLOCK.encode(), expected.encode())
    assert (edit.output.match_mode, edit.output.replacements) == ("block-anchor", 1)
    assert edit.refused(data, old, new, match_mode="exact").reason == "NO_MATCH"


@pytest.mark.parametrize(
    ("data", "old"),
    [
        # more lines between the same first and last one than were given
        ("start\n" + "row\n" * 50 + "end\n", "start\nrow\nend"),
        ("start\none\ntwo\nend\n", "start\none\nend"),
        # fewer
        ("start\none\nend\n", "start\none\ntwo\nend"),
        # another last or first line
        ("start\nmiddle\nend!\n", "start\nmiddel\nend"),
        ("start!\nmiddle\nend\n", "start\nmiddel\nend"),
        # nothing alike between
        ("start\nsomething else\nend\n", "start\nquite different\nend"),
        ("start\na long line that is the same\nkeep = 1\nend\n", "start\na long line that is the same\nxyz()\nend"),
        ("start\n\nend\n", "start\nmiddle\nend"),
        # too few lines to go by
        ("start\nend\n", "start\nendd"),
        ("\nmiddle\nend\n", " \nmiddel\nend"),
    ],
)
def test_takes_no_block_that_is_longer_shorter_or_too_different(edit: Edits, data: str, old: str) -> None:
    assert edit.refused(data.encode(), old).reason == "NO_MATCH"


def test_never_takes_one_of_two_similar_blocks(edit: Edits) -> None:
    data = b"start\nmiddle 1\nend\n\nstart\nmiddle 2\nend\n"
    for options in ({}, {"replace_all": True}, {"expected_replacements": 2}):
        error = edit.refused(data, "start\nmiddle 3\nend", **options)
        assert (error.reason, error.details["ranges"]) == ("AMBIGUOUS", [(1, 3), (5, 7)])
        assert "give old_string exactly as it is in the file" in error.message


# What is refused


@pytest.mark.parametrize("old", ["", " ", "\n", "\t \r\n \n", "\r", "\u2003"])
@pytest.mark.parametrize("data", [b"", b" ", b"a b\n\n"])
def test_looks_for_no_whitespace_alone(edit: Edits, data: bytes, old: str) -> None:
    for options in ({}, {"replace_all": True}, {"match_mode": "exact"}):
        error = edit.refused(data, old, **options)
        assert error.reason == "AMBIGUOUS"
        assert "which matches almost anywhere; include text around the place, or use write_file" in error.message


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("a", "a", "are the same"),
        ("a\nb", "a\r\nb", "differ only in line endings, which edit keeps"),
        ("a\r\n", "a\n", "differ only in line endings, which edit keeps"),
    ],
)
def test_refuses_to_change_nothing(edit: Edits, old: str, new: str, words: str) -> None:
    with pytest.raises(InvalidArguments, match=words):
        edit(b"a\nb\n", old, new)


def test_refuses_a_change_that_the_files_own_whitespace_undoes(edit: Edits) -> None:
    error = edit.refused(b"  a\n", "a ", "a")

    assert error.reason == "NO_MATCH"
    assert (
        error.message
        == "nothing would change in 'f': old_string and new_string differ only in whitespace, which the file keeps"
    )


@pytest.mark.parametrize(
    ("data", "old", "ranges", "words"),
    [
        ("a\nb\na\n", "a", [(1, 1), (3, 3)], "occurs 2 times in 'f', at lines 1 and 3; add surrounding lines"),
        ("x\nx\ny\nx\nx\n", "x\nx\n", [(1, 2), (4, 5)], "occurs 2 times in 'f', at lines 1-2 and 4-5"),
        ("a a\na\n", "a", [(1, 1), (1, 1), (2, 2)], "occurs 3 times in 'f', at lines 1 and 2"),
        ("a\r\nb\r\na\r\nb\n", "a\nb", [(1, 2), (3, 4)], "at lines 1-2 and 3-4"),
        ("\ta\n b\n  a\nb\n", "a \nb", [(1, 2), (3, 4)], "at lines 1-2 and 3-4"),
        ("a\n" * 101, "a", [(line, line) for line in range(1, 101)], "99, 100 and 1 more places; add"),
        ("aaa", "aa", [(1, 1)], "occurs at overlapping places in 'f', from line 1 on"),
        ("x\n\tx\n\tx\n", "\tx\n  x", [(1, 2)], "occurs at overlapping places in 'f', from line 1 on"),
    ],
)
def test_names_every_place_where_there_are_several(
    edit: Edits, data: str, old: str, ranges: list[tuple[int, int]], words: str
) -> None:
    error = edit.refused(data.encode(), old)

    assert (error.reason, error.details["ranges"]) == ("AMBIGUOUS", ranges)
    assert words in error.message
    assert error.message.endswith("or set replace_all. Nothing was changed")


@pytest.mark.parametrize("replace_all", [False, True])
@pytest.mark.parametrize(
    ("old", "expected", "words"),
    [
        ("a", 3, "occurs 2 times in 'f', at lines 1 and 3, but expected_replacements is 3"),
        ("a", 1, "occurs 2 times in 'f', at lines 1 and 3, but expected_replacements is 1"),
        ("b", 2, "occurs once in 'f', at line 2, but expected_replacements is 2"),
    ],
)
def test_refuses_another_number_than_expected(
    edit: Edits, old: str, expected: int, words: str, replace_all: bool
) -> None:
    error = edit.refused(b"a\nb\na\n", old, expected_replacements=expected, replace_all=replace_all)

    assert (error.reason, words in error.message) == ("AMBIGUOUS", True)


@pytest.mark.parametrize(
    ("data", "old", "nearest"),
    [
        ("one\ntwo\nthree\n", "tvo three", [(3, 3, 0.67)]),
        ("value = compute(1)\n", "value = compute(2)", [(1, 1, 0.88)]),
        ("x\r\nfirst line\r\nsecond line\r\n", "first line\nsecond lines", [(2, 3, 0.98)]),
        ("alpha beta\n" * 3, "alpha betta", [(1, 1, 0.95), (2, 2, 0.95), (3, 3, 0.95)]),
        ("alpha\nbeta\n" * 3, "alpha\nbetta", [(1, 2, 0.95), (3, 4, 0.95), (5, 6, 0.95)]),
        ("prefix retrun_value suffix\n", "return_value", [(1, 1, 0.73)]),
        ("這是一個很長的句子沒有空格\n", "這是一個很短的句子沒有空格", [(1, 1, 0.83)]),
        ("a b\n", "a\nb\nc\nd", []),
    ],
)
def test_names_the_nearest_regions(edit: Edits, data: str, old: str, nearest: list[tuple[int, int, float]]) -> None:
    error = edit.refused(data.encode(), old, "something new")

    keys = ("first_line", "last_line", "similarity")
    assert error.details["nearest"] == [dict(zip(keys, region, strict=True)) for region in nearest]
    for first, last, share in nearest:
        lines = f"line {first}" if first == last else f"lines {first}-{last}"
        assert f"similar: {lines}, {share:.0%} similar\n" in error.message


def test_says_that_bytes_that_are_no_text_cannot_be_quoted(edit: Edits) -> None:
    error = edit.refused(b"caf\xe9 au lait\n", "caf\ufffd au lait")

    assert "which read_file shows as \ufffd: leave them out of old_string" in error.message
    assert error.message.endswith("     1\tcaf\\xe9 au lait")
    assert edit(b"caf\xe9 au lait\n", "au lait", "noir") == b"caf\xe9 noir\n"


def test_no_utf_8_goes_into_a_file_of_another_encoding(edit: Edits) -> None:
    error = edit.refused(b"caf\xe9 au lait\n", "lait", "caf\xe9")
    assert error.details["reason"] == "BINARY_NOT_SUPPORTED"
    assert "only ASCII can be added" in error.message


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a\0b", "'f' is not a text file: it has NUL bytes (3 bytes in all)"),
        (b"x" * 100_000 + b"\0", "'f' is not a text file: it has NUL bytes (100001 bytes in all)"),
        ("\ufeffa".encode("utf-16-le"), "'f' is UTF-16 text, but only UTF-8 can be edited"),
        ("\ufeff\u4e2d".encode("utf-16-be"), "'f' is UTF-16 text, but only UTF-8 can be edited"),
        ("\ufeffa".encode("utf-32-le"), "'f' is UTF-32 text, but only UTF-8 can be edited"),
    ],
)
def test_refuses_what_is_no_text(edit: Edits, data: bytes, words: str) -> None:
    error = edit.refused(data, "a")

    assert error.reason == "BINARY_NOT_SUPPORTED"
    assert error.message.startswith(words)


@pytest.mark.parametrize(
    ("path", "reason", "words"),
    [
        ("mian.py", "NOT_FOUND", "'mian.py' does not exist. Did you mean 'main.py'?"),
        ("new/a.py", "NOT_FOUND", "'new/a.py' does not exist"),
        ("src", "NOT_FILE", "'src' is a directory"),
        (".", "NOT_FILE", "'.' is a directory"),
        ("main.py/", "NOT_DIRECTORY", "'main.py' is not a directory, or is below something that is not a directory"),
        ("fifo", "NOT_FILE", "'fifo' is not a regular file"),
        ("socket", "NOT_FILE", "'socket' is not a regular file"),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_says_why_it_cannot_edit(
    tmp_path: Path, toolkit: Toolkit, path: str, reason: str, words: str, dry_run: bool
) -> None:
    make(tmp_path, "main.py", "src/app.py", data=b"a")
    os.mkfifo(tmp_path / "fifo")
    make_socket(tmp_path / "socket")

    error = failure(lambda: toolkit.tools.edit(path=path, old_string="a", new_string="b", dry_run=dry_run))

    assert (error.reason, error.message) == (reason, words)
    assert (tmp_path / "main.py").read_text() == "a"


@pytest.mark.parametrize(
    "arguments",
    [
        {"old_string": "a", "new_string": "b"},
        {"path": "f", "new_string": "b"},
        {"path": "f", "old_string": "a"},
        {"path": "", "old_string": "a", "new_string": "b"},
        {"path": "f\0", "old_string": "a", "new_string": "b"},
        {"path": "f", "old_string": None, "new_string": "b"},
        {"path": "f", "old_string": "\ud800", "new_string": "b"},
        {"path": "f", "old_string": "a", "new_string": "x\udce9"},
        {"path": "f", "old_string": "a", "new_string": "x" * (LIMIT + 1)},
        {"path": "f", "old_string": "x" * (LIMIT + 1), "new_string": ""},
        {"path": "f", "old_string": "a", "new_string": "b", "match_mode": "fuzzy"},
        {"path": "f", "old_string": "a", "new_string": "b", "expected_replacements": 0},
        {"path": "f", "old_string": "a", "new_string": "b", "expected_replacements": True},
        {"path": "f", "old_string": "a", "new_string": "b", "expected_sha256": "abc"},
        {"path": "f", "old_string": "a", "new_string": "b", "replace_all": "yes"},
        {"path": "f", "old_string": "a", "new_string": "b", "count": 1},
    ],
)
def test_refuses_bad_arguments(tmp_path: Path, toolkit: Toolkit, arguments: EditArgs) -> None:
    (tmp_path / "f").write_text("a")

    with pytest.raises(InvalidArguments):
        toolkit.invoke("edit", arguments)
    assert (tmp_path / "f").read_text() == "a"


# What it was, and what it is now


def test_leaves_alone_what_has_changed(edit: Edits) -> None:
    other, data = digest(b"as it was read"), b"a\n"

    error = edit.refused(data, "a", expected_sha256=other)

    assert (error.reason, error.details["sha256"], error.retriable) == ("CONFLICT", digest(data), True)
    assert error.message.endswith(
        f"its sha256 is {digest(data)}, which differs from expected_sha256; read it again and redo the change"
    )
    assert edit(data, "a", "b", expected_sha256=digest(data).upper()) == b"b\n"


def test_the_digest_of_one_edit_is_what_the_next_expects(edit: Edits) -> None:
    shown = edit.made(b"a\n", "a", "b", dry_run=True)
    first = edit.toolkit.tools.edit(path="f", old_string="a", new_string="b", expected_sha256=shown.sha256)
    second = edit.toolkit.tools.edit(path="f", old_string="b", new_string="c", expected_sha256=first.sha256)

    assert second.sha256 == digest(b"c\n")


def test_a_dry_run_shows_the_same_and_writes_nothing(edit: Edits) -> None:
    data = b"one\ntwo\n"
    edit.file.write_bytes(data)
    before = edit.file.stat()

    shown = edit.toolkit.tools.edit(path="f", old_string="two", new_string="2", dry_run=True)

    assert (shown.dry_run, shown.sha256, shown.replacements) == (True, digest(data), 1)
    assert shown.diff == "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert (edit.file.read_bytes(), edit.file.stat()) == (data, before)
    assert edit.made(data, "two", "2").diff == shown.diff


def test_what_another_process_writes_during_an_edit_is_never_lost(edit: Edits) -> None:
    def run(signal: Meanwhile) -> EditOutput:
        edit.file.write_bytes(b"one\ntwo\n")
        return edit.toolkit.with_options(signal=signal).tools.edit(path="f", old_string="two", new_string="2")

    run(undisturbed := Meanwhile())
    outcomes = set()
    for step in range(1, undisturbed.asked + 1):
        try:
            run(Meanwhile(lambda: edit.file.write_bytes(b"one\ntwo\ntheirs\n"), step))
            outcomes.add("edited")
            assert edit.file.read_bytes() in (b"one\n2\ntheirs\n", b"one\ntwo\ntheirs\n")
        except ToolFailed as error:
            outcomes.add(str(error.reason))
            assert edit.file.read_bytes() == b"one\ntwo\ntheirs\n"
    assert outcomes >= {"edited", "CONFLICT"}
    assert os.listdir(edit.file.parent) == ["f"]


def test_threads_that_edit_one_file_lose_no_edit(edit: Edits) -> None:
    names = [f"name_{number}" for number in range(8)]
    edit.file.write_text("".join(f"{name} = 0\n" for name in names))
    (edit.file.parent / "link").symlink_to("f")

    def work(name: str, path: str) -> None:
        for number in range(10):
            old, new = f"{name} = {number}\n", f"{name} = {number + 1}\n"
            edit.toolkit.tools.edit(path=path, old_string=old, new_string=new)

    paths = ["f", "link", "./f", str(edit.file)] * 2
    threads = [threading.Thread(target=work, args=row) for row in zip(names, paths, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert edit.file.read_text() == "".join(f"{name} = 10\n" for name in names)


# Sizes


@pytest.mark.slow
def test_edits_a_file_of_up_to_ten_mebibytes(edit: Edits) -> None:
    data = b"first\n" + b"0123456\n" * ((LIMIT - 12) // 8) + b"xx\nend"
    assert len(data) < LIMIT

    assert edit(data, "end", "END") == data[:-3] + b"END"
    assert edit.refused(data + b"x" * (LIMIT - len(data) + 1), "first").reason == "TOO_LARGE"
    assert edit.refused(data, "end", "é" * 20).reason == "TOO_LARGE"


def test_a_file_of_64_gibibytes_is_refused_at_once(edit: Edits) -> None:
    with edit.file.open("wb") as file:
        file.write(b"a\n")
        try:
            file.truncate(64 * 1024**3)
        except OSError as error:
            pytest.skip(f"no sparse file of that size here: {error.strerror}")

    assert failure(lambda: edit.toolkit.tools.edit(path="f", old_string="a", new_string="b")).reason == "TOO_LARGE"


@pytest.mark.parametrize(
    ("data", "old", "new"),
    [
        (b"a" * 1000, "a", "b" * 100_000),
        (b"a\r\n" + b"a\n" * 1000, "a\n", "b\n" * 100_000),
        (b" " * MEBIBYTE + b"a\n", "a ", "b\n" * MEBIBYTE),
        (b" a\n" * 200_000, "a \n", "b\n"),
        (b"a\n\r\n" + b"a" * 200_000, "a", "\n"),
    ],
    ids=["plain", "mixed", "indented", "places", "mixed_places"],
)
@pytest.mark.slow
def test_refuses_what_would_grow_past_all_bounds(edit: Edits, data: bytes, old: str, new: str) -> None:
    assert edit.refused(data, old, new, replace_all=True).reason == "TOO_LARGE"


NEEDLE = 4999
HOSTILE = {
    "repeated_lines": ("a\n" * (5 * MEBIBYTE), "a\n" * NEEDLE + "b"),
    "repeated_lines_that_are_compared": ("x = a\n" * 400_000, "x = a \n" * NEEDLE + "x = b"),
    "first_and_last_line_everywhere": (" x = a\n" * 400_000, "x = a\n" + "x = b\n" * NEEDLE + "x = a"),
    "first_and_last_line_everywhere_nothing_between": (" {\n" * 400_000, "{\n" + "b\n" * NEEDLE + "{"),
    "one_line": ("x" * LIMIT, "x" * 100_000 + "y"),
    "one_line_of_words": ("word " * (2 * MEBIBYTE), "word " * 1000 + "sword"),
    "spaces": (" " * LIMIT, "a\nb\nc"),
    "blank_lines": ("\n" * LIMIT, "\n" * 1000 + "a"),
    "period": ("ab" * (5 * MEBIBYTE), "ab" * 100_000 + "b"),
    "needle_of_ten_mebibytes": ("ab\n" * (3 * MEBIBYTE), "ab\n" * (3 * MEBIBYTE - 1) + "b"),
    "code": (
        "    value = compute(other, 1)\n    return value\n\n" * 200_000,
        "value = compute(another, 1)\nreturn values",
    ),
}


@pytest.mark.sample
@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.slow
def test_looks_in_vain_within_bounds(edit: Edits, case: str) -> None:
    text, old = HOSTILE[case]

    error = edit.refused(text.encode(), old)

    assert error.reason == "NO_MATCH"
    assert len(error.message) < 4096


@pytest.mark.slow
def test_replaces_in_ten_million_places(edit: Edits) -> None:
    assert edit(b"a" * LIMIT, "a", "b", replace_all=True) == b"b" * LIMIT
    assert edit.output.replacements == LIMIT
    assert edit.refused(b"a" * LIMIT, "a").details["count"] == LIMIT


# Policy, approval, read-only


def toolkit_with(root: Path, policy: SecurityPolicy, **options: Any) -> Toolkit:
    return create_agent_toolkit(ToolkitContext(root, policy, **options))


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_read_only_workspace_stays_as_it_is(tmp_path: Path, dry_run: bool) -> None:
    (tmp_path / "f").write_text("a")
    with (
        toolkit_with(tmp_path, SecurityPolicy(default="allow"), mode="read-only") as toolkit,
        pytest.raises(SandboxViolation, match="the workspace is read-only"),
    ):
        toolkit.tools.edit(path="f", old_string="a", new_string="b", dry_run=dry_run)
    assert (tmp_path / "f").read_text() == "a"


def test_deny_rules_hold_by_name_and_through_links(tmp_path: Path) -> None:
    make(tmp_path, "secrets/key", "public", data=b"hidden")
    (tmp_path / "innocent").symlink_to("secrets/key")
    (tmp_path / "also").symlink_to("secrets")
    rules: list[Rule] = [Rule("deny", path="secrets/**")]
    with toolkit_with(tmp_path, SecurityPolicy(default="allow", rules=rules)) as toolkit:
        for path in ("secrets/key", "SECRETS/key", "innocent", "also/key"):
            for old in ("hidden", "hiddem"):
                with pytest.raises(ToolNotAllowed, match="decided by Rule") as caught:
                    toolkit.tools.edit(path=path, old_string=old, new_string="x")
                assert "hidden" not in str(caught.value)
        toolkit.tools.edit(path="public", old_string="hidden", new_string="x")
    assert (tmp_path / "secrets/key").read_text() == "hidden"


def test_a_caller_learns_nothing_of_a_file_it_may_not_edit(tmp_path: Path) -> None:
    make(tmp_path, "other", "docs/a", data=b"hidden value\n")
    rules: list[Rule] = [Rule("allow", path="docs/**")]
    with toolkit_with(tmp_path, SecurityPolicy(default="deny", rules=rules)) as toolkit:
        for path in ("other", "missing"):
            for old in ("hidden value", "hidden valve", " "):
                with pytest.raises(ToolNotAllowed) as caught:
                    toolkit.tools.edit(path=path, old_string=old, new_string="x")
                assert caught.value.message == "'edit' is not allowed: the policy's default is deny"
        assert (
            "hidden value"
            in failure(lambda: toolkit.tools.edit(path="docs/a", old_string="hidden valve", new_string="x")).message
        )


ASK: SecurityPolicy = SecurityPolicy(default="deny", tools={"edit": "ask"})


class Person:
    """Somebody who approves, and remembers what was shown."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        self.before = before
        self.shown: list[ApprovalRequest] = []

    def __call__(self, request: ApprovalRequest) -> Approve:
        self.shown.append(request)
        self.before()
        return Approve()


def test_an_approver_sees_the_change_that_is_made(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one\n  two\n")
    person = Person()
    with toolkit_with(tmp_path, ASK, approver=person) as toolkit:
        output = toolkit.tools.edit(path="f", old_string="two ", new_string="2")
        shown = person.shown[0].preview
        assert (shown.writes, shown.diff) == (("f",), output.diff)
        assert shown.diff == "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-  two\n+  2\n"
        toolkit.tools.edit(path="f", old_string="one", new_string="\x1b[2K\u202e")
    assert "+\\x1b[2K\\u202e\n" in (person.shown[1].preview.diff or "")


def test_an_approver_is_told_of_an_edit_that_would_fail(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one\n")
    person = Person()
    with toolkit_with(tmp_path, ASK, approver=person) as toolkit:
        error = failure(lambda: toolkit.tools.edit(path="f", old_string="two", new_string="2"))
    assert person.shown[0].preview.diff == f"[this call would fail: {error}]\n"
    assert error.reason == "NO_MATCH"


def test_an_approval_is_void_once_the_file_changed(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("one\ntwo\n")
    person = Person(lambda: file.write_text("one\ntwo\nmore\n"))
    with (
        toolkit_with(tmp_path, ASK, approver=person) as toolkit,
        pytest.raises(ToolNotAllowed, match="'f' changed while the call waited for approval"),
    ):
        toolkit.tools.edit(path="f", old_string="two", new_string="2")
    assert file.read_text() == "one\ntwo\nmore\n"


# The text a model reads

CODE = '''import os


def load(path):
    """Load the settings."""
    with open(path) as file:
        return parse(file.read())


def save(path, settings):
    """Save the settings."""
    with open(path, "w") as file:
        file.write(render(settings))
'''


@pytest.mark.parametrize(
    ("case", "data", "arguments", "budget"),
    [
        ("changes_a_line", CODE, {"old_string": "return parse(file.read())", "new_string": "return parse(file)"}, 260),
        ("changes_every_place", CODE, {"old_string": "settings", "new_string": "options", "replace_all": True}, 600),
        ("keeps_the_indentation", CODE, {"old_string": "with open(path) as file:\n    return parse(file.read())", "new_string": "with open(path) as file:\n    return parse(file)"}, 300),
        ("takes_a_similar_block", CODE, {"old_string": 'def load(path):\n    """Load settings."""\n    with open(path) as file:\n        return parse(file.read())', "new_string": 'def load(path):\n    """Load settings."""\n    with open(path) as file:\n        return parse(file)'}, 300),
        ("shows_a_dry_run", CODE, {"old_string": "import os\n", "new_string": "import os\nimport sys\n", "dry_run": True}, 200),
        ("cuts_a_long_diff", "row\n" * 300, {"old_string": "row", "new_string": "line", "replace_all": True}, 420),
        ("shows_line_ends", "one\r\ntwo\r\n", {"old_string": "two", "new_string": "2"}, 200),
        ("finds_nothing", CODE, {"old_string": "    with open(path) as handle:\n        return parse(handle.read())", "new_string": "x"}, 600),
        ("finds_nothing_in_a_line", CODE, {"old_string": "file.write(settings)", "new_string": "file.write(x)"}, 700),
        ("finds_nothing_like_it", CODE, {"old_string": "qqqq", "new_string": "x"}, 200),
        ("finds_nothing_in_an_empty_file", "", {"old_string": "qqqq", "new_string": "x"}, 200),
        ("finds_line_numbers", CODE, {"old_string": "     1\timport os\n     2\t", "new_string": "import sys\n"}, 500),
        ("finds_it_only_in_auto", CODE, {"old_string": "def load(path):\n  \"\"\"Load the settings.\"\"\"\n", "new_string": "x", "match_mode": "exact"}, 600),
        ("finds_the_new_text_already", CODE, {"old_string": "return parse(file.read(), strict=True)", "new_string": "return parse(file.read())"}, 500),
        ("finds_nothing_in_a_long_line", "var a=1;" * 500 + "function go(){return 42}" + "var b=2;" * 500, {"old_string": "function go(){return 43}", "new_string": "x"}, 500),
        ("finds_several", CODE, {"old_string": "path", "new_string": "name"}, 250),
        ("finds_another_number", CODE, {"old_string": "path", "new_string": "name", "expected_replacements": 2}, 250),
        ("finds_whitespace", CODE, {"old_string": "\n", "new_string": "x"}, 200),
        ("finds_the_same", CODE, {"old_string": "a", "new_string": "a"}, 200),
        ("finds_another_file", CODE, {"old_string": "import", "new_string": "x", "expected_sha256": "0" * 64}, 250),
    ],
)  # fmt: skip
def test_reads_well(edit: Edits, snapshots: Snapshots, case: str, data: str, arguments: EditArgs, budget: int) -> None:
    path = edit.file.with_name("settings.py")
    path.write_bytes(data.encode())
    try:
        shown = edit.toolkit.invoke("edit", {**arguments, "path": "settings.py"}).text()
    except ToolkitError as error:
        shown = str(error)
    snapshots.check(f"edit/{case}", shown, budget=budget)
