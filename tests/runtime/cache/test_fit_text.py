"""One output is cut to its head and tail, between lines where that is possible, never within a character."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.examples import tries
from toolkit.runtime.stores.budget import Fitted, fit_text, note, shorten

REF = "b3V0cHV0cyBhcmUga2VwdCBhIHdoaWxl"


def size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


letters = st.sampled_from("ab\n\n\r é日\U0001f600\ud800\u200d")
texts = st.text(letters, max_size=200) | st.lists(st.sampled_from(["x" * 50, "", "é" * 9, "line"])).map("\n".join)


@tries(500)
@given(text=texts, limit=st.integers(0, 220))
@example(text="é" * 10, limit=0)
@example(text="\U0001f600", limit=3)
@example(text="a\n" * 10, limit=1)
@pytest.mark.slow
def test_head_and_tail_are_the_ends_of_the_text_within_the_limit(text: str, limit: int) -> None:
    fitted = fit_text(text, limit)

    if size(text) <= limit:
        assert fitted == Fitted(text, "", size(text), fitted.lines, 0, 0, 0)
        assert fitted.cut_lines == 0
        return
    middle = text[len(fitted.head) : len(text) - len(fitted.tail)]
    assert fitted.head + middle + fitted.tail == text
    assert middle
    assert size(fitted.head) + size(fitted.tail) <= limit
    assert (fitted.size, fitted.cut_bytes) == (size(text), size(middle))


@tries(500)
@given(text=texts, limit=st.integers(0, 220))
@pytest.mark.slow
def test_the_missing_lines_are_named(text: str, limit: int) -> None:
    fitted = fit_text(text, limit)
    rows = text.removesuffix("\n").split("\n")

    assert fitted.lines == (len(rows) if text else 0)
    if fitted.cut_bytes:
        assert 1 <= fitted.first_cut <= fitted.last_cut <= fitted.lines
        assert fitted.cut_lines == fitted.last_cut - fitted.first_cut + 1
        whole_before, whole_after = rows[: fitted.first_cut - 1], rows[fitted.last_cut :]
        assert fitted.head.startswith("".join(f"{row}\n" for row in whole_before))
        assert fitted.tail.removesuffix("\n").endswith("\n".join(whole_after))
        assert rows[fitted.first_cut - 1 : fitted.last_cut]  # something of each of these is missing
        assert len("\n".join([*whole_before, *whole_after])) < len(text)


@pytest.mark.parametrize(
    ("text", "limit", "head", "tail"),
    [
        ("one\ntwo\nthree\nfour\n", 12, "one\n", "four\n"),
        ("one\ntwo\nthree\nfour\n", 16, "one\ntwo\n", "four\n"),
        ("x" * 100, 10, "xxxxx", "xxxxx"),
        ("ab\n" + "x" * 100 + "\nyz\n", 20, "ab\nxxxxxxx", "xxxxxx\nyz\n"),
        ("a long line\n" + "x" * 100 + "\na last line\n", 40, "a long line\n", "a last line\n"),
        ("é" * 10, 7, "é", "éé"),
        ("\U0001f600" * 10, 15, "\U0001f600", "\U0001f600\U0001f600"),
        ("one\ntwo\n", 0, "", ""),
        ("1\n22\n333\n4444\n", 10, "1\n22\n", "4444\n"),
    ],
)
def test_cuts_between_lines_unless_a_line_is_long(text: str, limit: int, head: str, tail: str) -> None:
    fitted = fit_text(text, limit)

    assert (fitted.head, fitted.tail) == (head, tail)


def test_most_of_the_limit_is_used() -> None:
    text = "".join(f"line {number} of a long output\n" for number in range(10_000))

    fitted = fit_text(text, 50 * 1024)

    assert 50 * 1024 - 60 <= size(fitted.head) + size(fitted.tail) <= 50 * 1024


@pytest.mark.parametrize(
    ("text", "limit", "ref", "words"),
    [
        (
            "1\n22\n333\n4444\n", 10, REF,
            f'1\n22\n[4 of 14 bytes omitted here, line 3 of 4; read all of it with tool_output_cache or search it with tool_output_cache_grep, ref_id "{REF}"]\n4444\n',
        ),
        (
            "x" * 20, 10, REF,
            f'xxxxx\n[10 of 20 bytes omitted here, line 1 of 1; read all of it with tool_output_cache or search it with tool_output_cache_grep, ref_id "{REF}"]\nxxxxx',
        ),
        (
            "a\n" * 9, 8, None,
            "a\na\n[10 of 18 bytes omitted here, lines 3-7 of 9; they could not be stored; the call has run, so repeat it only if that is harmless]\na\na\n",
        ),
        ("one\ntwo", 0, None, "[7 of 7 bytes omitted here, lines 1-2 of 2; they could not be stored; the call has run, so repeat it only if that is harmless]\n"),
        ("one\ntwo", 7, REF, "one\ntwo"),
        ("", 0, REF, ""),
    ],
)  # fmt: skip
def test_a_line_between_says_what_is_missing_and_how_to_get_it(
    text: str, limit: int, ref: str | None, words: str
) -> None:
    assert shorten(text, limit, ref) == words


@tries(100)
@given(text=texts, limit=st.integers(0, 220), ref=st.just(REF) | st.none())
def test_the_note_is_one_line_of_bounded_length(text: str, limit: int, ref: str | None) -> None:
    line = note(fit_text(text, limit), ref)

    assert "\n" not in line
    assert len(line) <= 220
    assert (ref is None) == (REF not in line)


def test_a_huge_text_is_cut_without_looking_at_every_line() -> None:
    text = "é\n" * 5_000_000

    fitted = fit_text(text, 50 * 1024)

    assert (fitted.size, fitted.lines) == (15_000_000, 5_000_000)
    assert fitted.cut_lines * 3 == fitted.cut_bytes
