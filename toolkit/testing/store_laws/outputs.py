"""What every output cache must do."""

from __future__ import annotations

from typing import Final

import pytest

from toolkit.errors import ToolFailed
from toolkit.stores import OUTPUT_CACHE, AsyncOutputCache, OutputCache
from toolkit.testing.store_laws.many_callers import ODD_NAMES, call_at_once
from toolkit.wire import ContentBlock

TEXT: Final = "one\nGrüße \udc80\nthree"
LONG: Final = b"".join(b"line %d of a long output\n" % number for number in range(1, 100_001))
"""About 2.5 MB: longer than what stores hold in memory."""
IMAGE: Final = ContentBlock("image", media_type="image/png", data="aGVsbG8=")


class OutputCacheLaws:
    """Tests that every ``OutputCache`` must pass. Subclass it in a test module, and override the fixture ``store``.

    The fixture ``other_store`` is a second object over the same outputs, as another process has it; by default, the same
    one. Both may be async.
    """

    @pytest.fixture
    def store(self) -> OutputCache | AsyncOutputCache:
        raise NotImplementedError(f"override the fixture `store` in {type(self).__name__}")

    @pytest.fixture
    def other_store(self, store: OutputCache | AsyncOutputCache) -> OutputCache | AsyncOutputCache:
        return store

    @pytest.fixture
    def cache(self, store: OutputCache | AsyncOutputCache) -> OutputCache:
        """The store, whose methods wait."""
        return _waiting(store)

    @pytest.fixture
    def other_cache(self, other_store: OutputCache | AsyncOutputCache) -> OutputCache:
        return _waiting(other_store)

    def test_it_says_how_much_a_model_is_shown(self, cache: OutputCache) -> None:
        assert cache.text_limit > 0

    @pytest.mark.parametrize("data", [b"", b"\n", b"one", b"one\n", b"\x00\xff\n\n", LONG], ids=len)
    def test_what_is_kept_is_read(self, cache: OutputCache, other_cache: OutputCache, data: bytes) -> None:
        """Every byte of it, by every process."""
        ref = _put(cache, data)
        with other_cache.open("s", ref) as output:
            assert b"".join(output.chunks()) == data
            assert output.size == len(data)
            assert output.total_lines == len(data.splitlines() if b"\x00" not in data else [1, 2])
            assert (output.tool, output.media_type) == ("t", None)

    def test_any_text_is_kept(self, cache: OutputCache) -> None:
        """What UTF-8 cannot express is shown as an escape."""
        with cache.open("s", _put(cache, TEXT)) as output:
            assert [line.text for line in output.lines()] == ["one", "Grüße \\udc80", "three"]

    def test_lines_are_found_by_their_numbers(self, cache: OutputCache) -> None:
        with cache.open("s", _put(cache, LONG)) as output:
            for number in (1, 2, 12_345, 99_999, 100_000):
                [line] = output.lines(number, 1)
                assert (line.number, line.text) == (number, f"line {number} of a long output")
            assert list(output.lines(100_001, 1)) == []

    def test_a_line_may_be_very_long(self, cache: OutputCache) -> None:
        with cache.open("s", _put(cache, b"x" * 1_000_000 + b"\nlast")) as output:
            assert [(line.size, line.is_clipped) for line in output.lines()] == [(1_000_000, True), (4, False)]

    def test_pieces_are_one_output(self, cache: OutputCache, other_cache: OutputCache) -> None:
        with cache.writer("s", tool="t", media_type="text/x") as writer:
            for start in range(0, len(LONG), 100_000):
                writer.write(LONG[start : start + 100_000])
            assert (writer.size, writer.lines) == (len(LONG), 100_000)
            ref = writer.finish()
            assert writer.finish() is None
        assert ref is not None
        with other_cache.open("s", ref) as output:
            assert b"".join(output.chunks()) == LONG
            assert output.media_type == "text/x"

    def test_what_is_discarded_has_no_ref(self, cache: OutputCache) -> None:
        with cache.writer("s", tool="t") as writer:
            writer.write(LONG)
            writer.discard()
            writer.write(b"more")
            assert writer.finish() is None
            assert writer.size == len(LONG) + 4

    def test_an_unfinished_output_disturbs_nobody(self, cache: OutputCache) -> None:
        with cache.writer("s", tool="t") as writer:
            writer.write(LONG)
            ref = _put(cache, b"another")
        with cache.open("s", ref) as output:
            assert b"".join(output.chunks()) == b"another"

    def test_content_blocks_are_kept(self, cache: OutputCache, other_cache: OutputCache) -> None:
        blocks = (ContentBlock("text", text="words"), IMAGE)
        ref = cache.put_blocks("s", blocks, tool="t")
        assert ref is not None
        with other_cache.open("s", ref) as output:
            assert output.blocks() == blocks
            assert [line.text for line in output.as_text().lines()] == ["words"]

    def test_a_ref_cannot_be_guessed(self, cache: OutputCache) -> None:
        """The same output gets another ref each time, of at least 128 bits."""
        refs = {_put(cache, b"the same") for _ in range(20)}
        assert len(refs) == 20
        assert min(map(len, refs)) >= 22

    def test_a_ref_is_worth_nothing_in_another_session(self, cache: OutputCache) -> None:
        """The error does not reveal whether it exists there."""
        ref = _put(cache, b"secret")
        wrong = [("another", ref), ("", ref), ("s", ref[:-1]), ("s", f"{ref}a"), ("s", ref.swapcase())]
        wrong += [("s", name) for name in ODD_NAMES]
        messages = set()
        for session, text in wrong:
            with pytest.raises(ToolFailed) as caught:
                cache.open(session, text)
            assert caught.value.reason == "NOT_FOUND", (session, text)
            messages.add(caught.value.message)
        assert len(messages) == 1

    def test_sessions_may_have_any_name(self, cache: OutputCache) -> None:
        refs = {name: cache.put(name, repr(name), tool="t") for name in ODD_NAMES}
        for name, ref in refs.items():
            assert ref is not None
            with cache.open(name, ref) as output:
                assert b"".join(output.chunks()).decode() == repr(name)

    def test_many_may_keep_outputs_at_once(self, cache: OutputCache, other_cache: OutputCache) -> None:
        def put(index: int) -> list[tuple[str, bytes]]:
            mine = [b"%d.%d\n" % (index, number) * 1000 for number in range(20)]
            return [(_put((cache, other_cache)[index % 2], data), data) for data in mine]

        for kept in call_at_once(4, put):
            for ref, data in kept:
                with cache.open("s", ref) as output:
                    assert b"".join(output.chunks()) == data

    def test_outputs_stay_when_it_is_closed(self, cache: OutputCache, other_cache: OutputCache) -> None:
        ref = _put(cache, b"stays")
        cache.close()
        cache.close()
        with other_cache.open("s", ref) as output:
            assert b"".join(output.chunks()) == b"stays"


def _put(cache: OutputCache, data: bytes | str) -> str:
    ref = cache.put("s", data, tool="t")
    assert ref is not None, "the output was not kept"
    return ref


def _waiting(store: OutputCache | AsyncOutputCache) -> OutputCache:
    assert OUTPUT_CACHE.adapt is not None
    cache: OutputCache = OUTPUT_CACHE.adapt(store)
    return cache
