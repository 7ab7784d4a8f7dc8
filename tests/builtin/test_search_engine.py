"""The engine of ``grep``: it finds the same lines in blocks as line by line, wherever blocks are cut."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.builtin.test_grep_against_ripgrep import patterns, texts
from tests.examples import tries
from toolkit import ToolFailed
from toolkit.builtin.search.lines import BLOCK, LONG_LINE, Search, split_blocks
from toolkit.builtin.search.regex import compile, read_facts

# Blocks


def lines_of(text: bytes) -> list[str]:
    rows = text.replace(b"\r\n", b"\n").decode("utf-8", "replace").split("\n")
    return rows[: len(rows) - (rows[-1] == "")]


@tries(500)
@given(pattern=patterns, text=texts, regex=st.booleans(), ignore_case=st.booleans())
@example(pattern="b+*c", text=b"c\nbc\n", regex=True, ignore_case=False)
@example(pattern="ab{0}c", text=b"ac\n", regex=True, ignore_case=False)
@example(pattern="(?:ab)?c", text=b"c\n", regex=True, ignore_case=False)
@example(pattern=r"a\x62c", text=b"abc\n", regex=True, ignore_case=False)
@example(pattern=r"a[^b]+c", text=b"a\nc\naxc", regex=True, ignore_case=False)
@example(pattern="(?s)a.b", text=b"a\nb\na.b", regex=True, ignore_case=False)
@example(pattern=r"^\s*$", text=b"a\n \n\nb", regex=True, ignore_case=False)
@example(pattern=r"\Aab\z", text=b"ab\nab\nabab", regex=True, ignore_case=False)
@example(pattern="(?-m)^b", text=b"a\nb", regex=True, ignore_case=False)
@example(pattern="(?m)^b", text=b"a\nb", regex=True, ignore_case=False)
@example(pattern="(?R)a$", text=b"a\rb\nb\rc\na", regex=True, ignore_case=False)
@example(pattern="(?i-m)^B", text=b"a\nb", regex=True, ignore_case=False)
@example(pattern="(?x) a b # ab\n", text=b"ab\na b", regex=True, ignore_case=False)
@pytest.mark.slow
def test_a_block_gives_the_lines_that_match_by_themselves(
    pattern: str, text: bytes, regex: bool, ignore_case: bool
) -> None:
    (block,) = split_blocks([text]) if text else (b"",)
    try:
        matcher = compile(pattern, regex=regex, ignore_case=ignore_case)
    except ToolFailed:
        return  # which patterns are refused is compared with ripgrep

    found = [block[start:end].decode() for start, end in matcher.spans(block)]

    assert found == [line for line in lines_of(text) if matcher.matches(line)]
    assert not found or matcher.may_match(text)


@pytest.mark.parametrize(
    ("pattern", "needle", "weight"),
    [
        ("foo", "foo", 0),
        (r"foo\.bar", "foo.bar", 0),
        (r"class \w+Error\b", "class ", 0),
        (r"\w+_error\b", "_error", 0),
        ("ab+c", "ab", 0),
        ("abc?d", "ab", 0),
        ("abc*", "ab", 0),
        ("abc{0,3}", "ab", 2),
        ("abc{2}d", "abc", 1),
        ("abc{2}{0}", None, 1),
        ("foo|bar", None, 0),
        ("(foo|bar)baz", "baz", 0),
        ("(?i)foo", None, 0),
        ("(?i:foo)bar", "bar", 0),
        (r"\x41bc", "bc", 0),
        (r"\u0041bc", "bc", 0),
        (r"\p{Greek}bc", "bc", 0),
        (r"\pLbc", "bc", 0),
        ("[]a[b]]xy", "xy", 0),
        ("[^]a]xy", "xy", 0),
        (r"[\]a]xy", "xy", 0),
        ("[[:alpha:]&&[^a]]xy", "xy", 0),
        ("(a{10}){20}", None, 199),
        ("(?:a{2}|bc{3}){4}", None, 21),
        ("(?x) a{10} # b{10}", None, 100),
        ("", None, 0),
    ],
)
def test_reads_what_every_match_holds_and_what_repeats_cost(pattern: str, needle: str | None, weight: int) -> None:
    compile(pattern)

    assert (read_facts(pattern).needle, read_facts(pattern).weight) == (needle, weight)


# Streams


def cut(text: bytes, sizes: list[int]) -> Iterator[bytes]:
    at = 0
    while at < len(text):
        size = sizes[0] if sizes else len(text)
        sizes = [*sizes[1:], *sizes[:1]]
        yield text[at : at + size]
        at += size


rows = st.sampled_from(["", "a", "ab", "b", "é", "ab é", "a\r", "x" * 300])
long_texts = st.builds(
    lambda some, times, end, last: (end.join(some * (times // len(some))) + last).encode(),
    st.lists(rows, min_size=1, max_size=7),
    st.integers(7, 20_000),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n", "\xff"]),
)


@tries(60)
@given(
    text=long_texts,
    sizes=st.lists(st.sampled_from([1000, 65_536, BLOCK, BLOCK + 1, 1_000_000]), max_size=3),
    pattern=st.sampled_from(["ab", "^a", "b$", "^$", "é", "nothing", "[^a]b", r"\Aab"]),
    before=st.integers(0, 3),
    after=st.integers(0, 3),
)
@pytest.mark.slow
def test_a_stream_gives_each_line_with_those_around_it(
    text: bytes, sizes: list[int], pattern: str, before: int, after: int
) -> None:
    search = Search(compile(pattern), before=before, after=after, wanted=500)

    hits = list(search.hits(cut(text, sizes)))

    lines = lines_of(text)
    numbers = [number for number, line in enumerate(lines) if re.search(pattern, line)]
    assert search.total == len(numbers)
    assert [(hit.line, hit.text, hit.before, hit.after) for hit in hits] == [
        (number + 1, lines[number], lines[max(0, number - before) : number], lines[number + 1 : number + 1 + after])
        for number in numbers[:500]
    ]


def test_a_line_that_is_searched_in_pieces_is_one_line() -> None:
    text = b"first\n" + "é".encode() * (2 * LONG_LINE) + b"needle" + b"y" * LONG_LINE + b"needle\nlast needle\n"
    search = Search(compile("nee?dle|first"), before=2, after=1)

    hits = list(search.hits(cut(text, [100_000])))

    assert [hit.line for hit in hits] == [1, 2, 3]
    assert [len(hit.text) < 600 for hit in hits] == [True] * 3
    assert hits[0].after[0].startswith("ééé")
    assert hits[2].before[0] == "first" and len(hits[2].before) == 2


def test_a_block_is_cut_neither_within_a_character_nor_within_the_end_of_a_line() -> None:
    for shift in range(4):
        text = b"x" * shift + "é".encode() * LONG_LINE + b"\r\n"
        assert "\ufffd" not in b"".join(split_blocks(cut(text, [BLOCK]))).decode()
    text = b"x" * (LONG_LINE - 1) + b"\r\ny"
    assert b"".join(split_blocks(cut(text, [BLOCK]))) == b"x" * (LONG_LINE - 1) + b"\ny"


def test_what_is_not_wanted_is_counted() -> None:
    search = Search(compile("x"), wanted=3)

    assert len(list(search.hits([b"x\n" * 10]))) == 3
    assert list(search.hits([b"x\ny\n"])) == []
    assert (search.total, search.is_full) == (11, True)


# Columns


@pytest.mark.parametrize(
    ("pattern", "line", "column"),
    [
        ("b", "ab", 2),
        ("b+", "abb", 2),
        (r"\bb", "ab b", 4),
        (r"\Bb", "b ab", 4),
        ("abcd|c", "xabcd", 2),
        ("é$", "éé", 2),
        ("^a", "aa", 1),
        ("x*", "aa", 1),
        ("$", "aa", 3),
        (r"\z", "aa", 3),
        ("(?i)É", "aé", 2),
        ("(?x) b # last", "ab", None),
        ("b+", "a" * 5000 + "b", None),
        ("[ab]{500}c", "ab" * 300 + "c", 101),
    ],
)
def test_tells_where_the_first_match_begins(pattern: str, line: str, column: int | None) -> None:
    assert compile(pattern).column(line) == column


def test_columns_end_when_they_have_cost_enough() -> None:
    matcher = compile("[ab]{20}c")
    line = "ab" * 100 + "c"

    columns = [matcher.column(line) for _ in range(300)]

    assert columns[0] == 181
    assert columns[-1] is None


def test_a_place_near_the_match_is_found_in_a_long_line() -> None:
    line = "x" * 70_000 + "needle" + "y" * 70_000

    assert compile("ne+dle").find_near(line) == 70_006
