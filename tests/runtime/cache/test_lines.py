"""Any line of an output is found by its number, without the output being read up to there."""

from __future__ import annotations

from array import array
from itertools import islice, pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.examples import tries
from tests.runtime.cache.reading import kept
from toolkit import FileOutputCache
from toolkit.runtime.stores.outputs import MAX_LINE_CHARACTERS, STRETCH, CachedOutput, LineIndex, position_of


class Counted:
    """An output in memory that knows how much of it was read."""

    def __init__(self, data: bytes) -> None:
        index = LineIndex()
        index.feed(data)
        self.data = data
        self.read_bytes = 0
        self.output = CachedOutput(self.read, size=index.size, total_lines=index.lines, marks=index.marks, tool="t")

    def read(self, position: int, size: int) -> bytes:
        piece = self.data[position : position + size]
        self.read_bytes += len(piece)
        return piece


def lines_of(data: bytes) -> list[bytes]:
    return data.removesuffix(b"\n").split(b"\n") if data else []


rows = st.sampled_from([b"", b"x", b"\xc3\xa9" * 30, b"\xff\xfe", b"\r", b"y" * 1999, b"z" * 2001, b"w" * 70_000])
outputs = st.lists(rows, max_size=40).map(b"\n".join) | st.binary(max_size=200)


@tries(200)
@given(data=outputs, offset=st.integers(1, 50), limit=st.integers(1, 50) | st.none())
@example(data=b"", offset=1, limit=1)
@example(data=b"\n", offset=1, limit=None)
@example(data=b"x" * STRETCH + b"\n" + b"y" * STRETCH, offset=2, limit=None)
@example(data=b"x" * (STRETCH - 1) + b"\n" + b"y\n" * 10, offset=2, limit=None)
@example(data=b"\n" * (2 * STRETCH), offset=STRETCH + 1, limit=3)
@example(data=b"x" * (3 * STRETCH) + b"\n", offset=1, limit=None)
@example(data=b"x" * (3 * STRETCH), offset=1, limit=None)
@pytest.mark.slow
def test_lines_are_those_of_the_text(data: bytes, offset: int, limit: int | None) -> None:
    expected = lines_of(data)[offset - 1 :][:limit]

    found = list(Counted(data).output.lines(offset, limit))

    assert [line.number for line in found] == list(range(offset, offset + len(expected)))
    for line, raw in zip(found, expected, strict=True):
        text = raw.decode(errors="replace")
        assert (line.text, line.size) == (text[:MAX_LINE_CHARACTERS], len(raw))
        assert line.is_clipped == (len(text) > MAX_LINE_CHARACTERS)


@tries(200)
@given(data=outputs, cuts=st.lists(st.integers(0, 100_000)))
@pytest.mark.slow
def test_the_index_does_not_depend_on_how_an_output_comes_in(data: bytes, cuts: list[int]) -> None:
    data *= 5
    once, bit_by_bit = LineIndex(), LineIndex()
    once.feed(data)
    places = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
    for start, end in pairwise(places):
        bit_by_bit.feed(data[start:end])

    assert (bit_by_bit.marks, bit_by_bit.lines, bit_by_bit.size) == (once.marks, once.lines, once.size)
    assert once.marks == array("Q", (data[:end].count(b"\n") for end in range(STRETCH, len(data) + 1, STRETCH)))


@tries(100)
@given(data=st.binary(min_size=1, max_size=60).map(lambda data: data + b"\n"), number=st.integers(1, 20))
def test_a_line_feed_is_found_by_halving(data: bytes, number: int) -> None:
    places = [at for at, byte in enumerate(data) if byte == 10]
    number = min(number, len(places))

    assert position_of(data, number) == places[number - 1]


@pytest.mark.parametrize("row", [b"", b"x" * 79, b"x" * 10_000], ids=len)
def test_a_line_near_the_end_is_found_by_reading_little(row: bytes) -> None:
    kept_output = Counted((row + b"\n") * (50 * STRETCH // (len(row) + 1)))
    output = kept_output.output

    (line,) = output.lines(output.total_lines - 1, 1)

    assert line.size == len(row)
    assert kept_output.read_bytes <= 2 * STRETCH


def test_a_very_long_line_is_passed_over_without_being_read() -> None:
    kept_output = Counted(b"first\n" + "é".encode() * (20 * STRETCH) + b"\nlast")

    first, long, last = kept_output.output.lines()

    assert (first.text, last.text, last.number) == ("first", "last", 3)
    assert (long.text, long.size, long.is_clipped) == ("é" * MAX_LINE_CHARACTERS, 40 * STRETCH, True)
    assert kept_output.read_bytes <= 3 * STRETCH


def test_a_clipped_line_ends_with_a_whole_character() -> None:
    for lead in range(4):
        (line,) = Counted(b"x" * lead + "\U0001f600".encode() * 3000).output.lines()
        assert line.text == ("x" * lead + "\U0001f600" * 3000)[: len(line.text)]
        assert len(line.text) >= MAX_LINE_CHARACTERS - 1


@pytest.mark.parametrize("offset", [4, 5, 10**15])
def test_there_is_nothing_behind_the_end(offset: int) -> None:
    output = Counted(b"1\n2\n3\n").output

    assert list(output.lines(offset)) == []
    assert output.start_of(offset) == output.size


@pytest.mark.slow
def test_the_index_of_what_was_kept_is_kept(folder: Path) -> None:
    data = b"".join(b"%d\n" % number for number in range(1, 300_001))
    ref = kept(FileOutputCache(str(folder)).put("session", data, tool="t"))

    with FileOutputCache(str(folder)).open("session", ref) as output:
        assert output.total_lines == 300_000
        for number in (1, 2, 65_536, 150_000, 299_999, 300_000):
            assert [line.text for line in output.lines(number, 1)] == [str(number)]
            assert next(islice(output.chunks(output.start_of(number)), 1)).startswith(b"%d\n" % number)
