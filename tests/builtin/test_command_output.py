"""What becomes of a command's bytes before a model or a watcher sees them; fed directly, in every way they can be cut."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import tries
from toolkit.builtin.shell.output import STREAMS, OutputCollector, OutputEscaper, Stream, shorten
from toolkit.visible import drop_hidden, escape_hidden


def escaped(*chunks: bytes) -> str:
    escaper = OutputEscaper()
    return "".join([*map(escaper.feed, chunks), escaper.end()])


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\ttext\n", "plain\ttext\n"),
        ("caf\u00e9 \u6f22\u5b57 \U0001f600\n".encode(), "caf\u00e9 \u6f22\u5b57 \U0001f600\n"),
        (b"one\r\ntwo\r\n", "one\ntwo\n"),
        (b"10%\r50%\r100%\n", "10%\n50%\n100%\n"),
        (b"\r\r\n", "\n\n"),
        (b"ends in\r", "ends in\n"),
        (b"\x1b[31mred\x1b[0m \x1b]0;title\x07", "\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07"),
        (b"\0 \x08 \x7f \xc2\x85 \xc2\x9b", "\\x00 \\x08 \\x7f \\x85 \\x9b"),
        (b"\xff\xfe \xc3( \xe2\x82", "\\xff\\xfe \\xc3( \\xe2\\x82"),
        (b"\xed\xa0\x80 \xf4\x90\x80\x80", "\\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80"),
        ("\u202eevil\u2066 \u200f \ufeff \u2028 \U000e0041".encode(), "\\u202eevil\\u2066 \\u200f \\ufeff \\u2028 \\U000e0041"),
        ("\U0001f469\u200d\U0001f4bb \u0646\u0645\u06cc\u200c\u062e".encode(), "\U0001f469\u200d\U0001f4bb \u0646\u0645\u06cc\u200c\u062e"),
        ("a\u00a0b \u3000".encode(), "a\u00a0b \u3000"),
        (rb"C:\x1b\new", r"C:\x1b\new"),
    ],
)  # fmt: skip
def test_88_shows_everything_and_lets_nothing_act(data: bytes, text: str) -> None:
    assert escaped(data) == text
    assert escaped(*(bytes([byte]) for byte in data)) == text


odd_bytes = st.lists(
    st.sampled_from([b"a", b"\n", b"\r", b"\t", b"\x1b", b"\0", b"\xff", b"\xe2\x82\xac", b"\xe2", b"\x82", b"\xf0\x9f\x98\x80"])
    | st.binary(max_size=4)
).map(b"".join)  # fmt: skip


@tries(300)
@given(data=odd_bytes, cuts=st.lists(st.integers(0, 40)))
def test_88_text_does_not_depend_on_how_it_came(data: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(data)]
    text = escaped(*(data[start:stop] for start, stop in pairwise(places)))

    assert text == escaped(data)
    hidden = {unicodedata.category(character) for character in text if character not in "\t\n\u200c\u200d"}
    assert hidden.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})


@tries(300)
@given(text=st.text(st.characters(exclude_categories=["C", "Zl", "Zp"])))
def test_text_that_can_be_seen_stays_as_it_is(text: str) -> None:
    assert escaped(text.encode()) == text


class Kept:
    """Takes a whole output."""

    def __init__(self) -> None:
        self.begun = 0
        self.data = b""

    def begin(self) -> Kept:
        self.begun += 1
        return self

    def write(self, data: bytes) -> None:
        self.data += data


pieces = st.lists(st.tuples(st.sampled_from(STREAMS), st.text("abé漢\n", min_size=1, max_size=12)), max_size=20)


@tries(500)
@given(pieces=pieces, limit=st.integers(1, 40))
def test_87_keeps_both_ends_and_gives_the_whole_away(pieces: list[tuple[Stream, str]], limit: int) -> None:
    kept, told = Kept(), dict.fromkeys(STREAMS, "")

    def tell(stream: Stream, text: str) -> None:
        told[stream] += text

    collector = OutputCollector(limit, tell, kept.begin)
    for stream, text in pieces:
        collector.add(stream, text.encode())
    collector.finish()

    whole: dict[str, str] = {name: "".join(text for stream, text in pieces if stream == name) for name in STREAMS}
    cut = {name for name in STREAMS if len(whole[name].encode()) > limit}
    assert told == whole
    assert {name for name in STREAMS if collector.streams[name].is_truncated} == cut
    assert (kept.begun, kept.data) == ((1, "".join(text for _, text in pieces).encode()) if cut else (0, b""))
    for name in set(STREAMS) - cut:
        assert shorten(collector.streams[name]) == whole[name]
    for name in cut:
        check_ends(shorten(collector.streams[name]), whole[name], limit)


def check_ends(shown: str, whole: str, limit: int) -> None:
    found = re.fullmatch(r"(.*?)(…?\n)?\[\.\.\. (\d+) bytes left out \.\.\.\]\n(…?)(.*)", shown, re.DOTALL)
    assert found is not None
    head, _, missing, mark, tail = found.groups()
    head += "\n" * (found[2] == "\n")
    assert whole.startswith(head) and whole.endswith(tail)
    sizes = [len(text.encode()) for text in (head, tail, whole)]
    assert sizes[0] + int(missing) + sizes[1] == sizes[2]
    assert limit - 6 <= sizes[0] + sizes[1] <= limit
    assert (found[2] == "…\n") == (not head.endswith("\n"))
    before = whole[: len(whole) - len(tail)]
    assert bool(mark) == (bool(tail) and not before.endswith("\n"))


# -- the same as looking at every character --------------------------------------------------------------------------


def escape_one_by_one(data: bytes) -> str:
    """The definition: each character by itself."""
    text = data.decode("utf-8", "surrogateescape").replace("\r\n", "\n").replace("\r", "\n")
    return "".join(map(shown, text))


def shown(character: str) -> str:
    if 0xDC80 <= ord(character) <= 0xDCFF:
        return f"\\x{ord(character) - 0xDC00:02x}"
    if character in "\t\n\u200c\u200d" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return character
    return character.encode("unicode_escape").decode()


KINDS_OF_TEXT = st.sampled_from(
    [b"plain text ", b"\x1b[31mred\x1b[0m", b"\0", b"\0\x01\x02\x03\x04\x05", b"\b\b", b"\xff", b"\x80\xc3(", b"\r", b"\r\n",
     b"\n", b"\t", "sch\u00f6n ".encode(), "\u6f22\u5b57\u3000".encode(), "\u00a0".encode(), "\u202e".encode(),
     "\U000e0041".encode(), "\U0001f469\u200d\U0001f4bb".encode(), b"\\x1b", b"\xed\xa0\x80", b"\xc2\x9b", bytes(range(256))]
)  # fmt: skip


@given(st.lists(st.tuples(KINDS_OF_TEXT, st.integers(1, 100)), max_size=12))
@settings(deadline=None)
def test_escaping_equals_its_definition_whether_hidden_characters_are_rare_or_many(
    parts: list[tuple[bytes, int]],
) -> None:
    data = b"".join(piece * times for piece, times in parts)
    assert escaped(data) == escape_one_by_one(data)


@given(st.binary(max_size=400))
@settings(deadline=None)
def test_escaping_of_any_bytes_equals_its_definition(data: bytes) -> None:
    assert escaped(data) == escape_one_by_one(data)


def test_every_character_of_unicode_is_shown_as_defined() -> None:
    for first in range(0, 0x110000, 0x1000):
        text = "".join(chr(code) for code in range(first, first + 0x1000) if not 0xD800 <= code <= 0xDFFF)
        assert escaped(text.encode()) == escape_one_by_one(text.encode()), hex(first)
        assert escape_hidden(text) == "".join(map(shown, text)).replace("\n", "\\n"), hex(first)
        assert drop_hidden(text) == "".join(c for c in text.replace("\r", "\n") if shown(c) == c), hex(first)
