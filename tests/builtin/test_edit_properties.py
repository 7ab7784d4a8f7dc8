"""Properties of every edit: everything else stays byte for byte, and the edit can be reverted."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.builtin.workspace import toolkit_for
from tests.examples import tries
from toolkit import InvalidArguments, ToolFailed
from toolkit.generated import Toolkit

MARK = b"\xef\xbb\xbf"
INVALID = [b"\xff", b"\xe9", b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f"]
WORDS = ["a", "b", "ab", "x = 1", "é", "日本", "😀", "\u2028", "\x0c", " ", "  ", "\t", "}"]

line_ends = st.sampled_from([b"\n", b"\r\n"])
words = st.sampled_from(WORDS)
texts = st.lists(words | st.just("\n"), max_size=6).map("".join)


@contextmanager
def workspace() -> Iterator[tuple[Path, Toolkit]]:
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder, toolkit_for(Path(folder)) as toolkit:
        yield Path(folder, "f"), toolkit


@st.composite
def files(draw: st.DrawFn, ends: st.SearchStrategy[bytes] = line_ends) -> bytes:
    """Lines with any ends, bytes that are no text, a mark, and a last line with or without an end."""
    line = st.lists(words.map(str.encode) | st.sampled_from(INVALID), max_size=4).map(b"".join)
    rows = draw(st.lists(st.tuples(line, ends), max_size=8))
    return MARK * draw(st.booleans()) + b"".join(text + end for text, end in rows) + draw(line)


def plain(data: bytes) -> str:
    return data.decode(errors="surrogateescape").replace("\r\n", "\n")


@tries(120)
@given(data=st.data(), end=line_ends, old=texts, new=texts)
@pytest.mark.slow
def test_an_edit_and_its_inverse_give_the_original_bytes(data: st.DataObject, end: bytes, old: str, new: str) -> None:
    # A file with some UTF-8 in it takes more; one without takes none beside bytes of another encoding.
    before, behind = data.draw(files(st.just(end))), data.draw(files(st.just(end))).removeprefix(MARK) + "ü".encode()
    old, new = f"<{old}>", f"[{new}]"
    own = old.replace("\n", end.decode())
    with workspace() as (file, toolkit):
        file.write_bytes(before + own.encode() + behind)
        there = toolkit.tools.edit(path="f", old_string=old, new_string=new)
        changed = file.read_bytes()
        back = toolkit.tools.edit(path="f", old_string=new, new_string=own, expected_sha256=there.sha256)

        assert changed.startswith(before) and changed.endswith(behind)
        assert plain(changed[len(before) : len(changed) - len(behind)]) == new
        assert file.read_bytes() == before + own.encode() + behind
        assert (there.match_mode, back.match_mode) == ("exact", "exact")


class Line(NamedTuple):
    """A line of the file, and how the caller writes it."""

    indent: str
    text: str
    tail: str
    end: bytes
    given: str

    @property
    def in_file(self) -> bytes:
        return f"{self.indent}{self.text}{self.tail}".encode() + self.end


class Case(NamedTuple):
    """A file that holds some lines which are looked for, in one way of finding them."""

    mode: str
    before: bytes
    lines: list[Line]
    behind: bytes
    given_indents: list[str]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    mode = draw(st.sampled_from(["exact", "line-trimmed", "block-anchor"]))
    before = draw(files())
    if before not in (b"", MARK):
        before += draw(line_ends)
    behind = draw(files()).removeprefix(MARK)
    count = draw(st.integers(3, 6))
    lines: list[Line] = []
    given_indents: list[str] = []
    for number in range(count):
        text = (
            "@begin" if not number else "@end" if number == count - 1 else f"@value_{number} = compute(first, second)"
        )
        indent, tail = draw(st.sampled_from(["", "  ", "\t", "    "])), draw(st.sampled_from(["", " ", "\t"]))
        end = b"" if not behind and number == count - 1 and draw(st.booleans()) else draw(line_ends)
        given_indent, given = indent, f"{indent}{text}{tail}"
        if mode != "exact":
            given_indent = draw(st.sampled_from(["", " ", "\t\t", "      "]))
            given = given_indent + text
        if mode == "block-anchor" and 0 < number < count - 1:
            given = given.replace("second", "secnd")
        given_indents.append(given_indent)
        lines.append(Line(indent, text, tail, end, given))
    return Case(mode, before, lines, behind, given_indents)


@tries(200)
@given(case=cases(), act=st.sampled_from(["replace", "insert", "delete"]), with_end=st.booleans(), data=st.data())
@pytest.mark.slow
def test_only_the_line_that_was_changed_is_changed(case: Case, act: str, with_end: bool, data: st.DataObject) -> None:
    lines = case.lines
    at = data.draw(st.integers(0, len(lines) - 1 - (act == "insert")))
    # Between two lines that are indented differently, a new one may be indented as either.
    assume(act != "insert" or lines[at].indent == lines[at + 1].indent)
    given, line = [one.given for one in lines], lines[at]
    rows = [one.in_file for one in lines]
    new, changed = given.copy(), rows.copy()
    if act == "replace":
        new[at] = f"{case.given_indents[at]}@new"
        changed[at] = f"{line.indent}@new".encode() + line.end
    elif act == "insert":
        new.insert(at + 1, f"{case.given_indents[at]}@new")
        changed.insert(at + 1, f"{line.indent}@new".encode() + line.end)
    else:
        assume(0 < at < len(lines) - 1)
        del new[at], changed[at]
    tail = "\n" if with_end and lines[-1].end else ""
    old_string, new_string = "\n".join(given) + tail, "\n".join(new) + tail

    with workspace() as (file, toolkit):
        file.write_bytes(case.before + b"".join(rows) + case.behind)
        exact = old_string in plain(file.read_bytes())
        output = toolkit.tools.edit(path="f", old_string=old_string, new_string=new_string)

        assert file.read_bytes() == case.before + b"".join(changed) + case.behind
        assert output.match_mode == ("exact" if exact else case.mode)
        assert output.replacements == 1


@tries(150)
@given(original=files(), old=texts, new=texts, replace_all=st.booleans(), exact=st.booleans())
@pytest.mark.slow
def test_any_edit_either_changes_the_file_as_it_says_or_not_at_all(
    original: bytes, old: str, new: str, replace_all: bool, exact: bool
) -> None:
    with workspace() as (file, toolkit):
        file.write_bytes(original)
        try:
            output = toolkit.tools.edit(
                path="f",
                old_string=old,
                new_string=new,
                replace_all=replace_all,
                match_mode="exact" if exact else "auto",
            )
        except (ToolFailed, InvalidArguments):
            assert file.read_bytes() == original
        else:
            assert file.read_bytes() != original
            assert output.diff.startswith("--- a/f\n+++ b/f\n@@ ")
            assert plain(file.read_bytes()).count("\ufeff") <= plain(original).count("\ufeff")
            if output.match_mode == "exact":
                assert plain(file.read_bytes()) == plain(original).replace(old, new)
        assert os.listdir(file.parent) == ["f"]
