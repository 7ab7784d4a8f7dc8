"""What every store must do: output caches, suspended approvals, write locks and todo lists."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import pytest

from toolkit.errors import ToolFailed
from toolkit.runtime.stores.waiting import as_blocking
from toolkit.stores import (
    OUTPUT_CACHE,
    ApprovalStore,
    AsyncApprovalStore,
    AsyncOutputCache,
    AsyncTodoStore,
    AsyncWriteLocks,
    OutputCache,
    Todo,
    TodoStore,
    WriteLocks,
    hold_lock,
)
from toolkit.wire import ContentBlock

# ----------------------------------------------------------------------------------------------------------------------
# Several threads that start at the same moment, and waiting for what must happen.

T = TypeVar("T")

ODD_NAMES: Final[Sequence[str]] = ("", "a", "A", "../../a", "a\nb", "a:b", "{a}", "*", "ü", "\udc80", "a" * 10_000)
"""Names of sessions, keys and ids may be any text; each must be a different one."""

_WATCHDOG: Final = 60.0


def call_at_once(number: int, act: Callable[[int], T]) -> list[T]:
    """What ``act`` returns for 0, 1, 2, ..., each in a thread of its own. The first error is raised."""
    results: list[T] = []
    errors: list[BaseException] = []
    start = threading.Barrier(number)

    def run(index: int) -> None:
        try:
            start.wait(_WATCHDOG)
            results.append(act(index))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_WATCHDOG)
        assert not thread.is_alive(), f"the store did not answer within {_WATCHDOG:g} s"
    if errors:
        raise errors[0]
    return results


def wait_until(is_so: Callable[[], object], what: str) -> None:
    """Waits for something that must happen sooner or later, such as expiry."""
    give_up = time.monotonic() + _WATCHDOG
    while not is_so():
        assert time.monotonic() < give_up, what
        time.sleep(0.01)


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


# ----------------------------------------------------------------------------------------------------------------------
# What every store of suspended approvals must do.

_HOUR: Final = 3600.0


class ApprovalStoreLaws:
    """Tests that every ``ApprovalStore`` must pass. Subclass it in a test module, and override the fixture ``store``.

    The fixture ``other_store`` is a second object over the same approvals, as another process has it; by default, the same
    one. Both may be async.
    """

    max_per_session: int = 100
    """How many may wait in one session."""
    too_long: int = 2 * 1024 * 1024
    """So many characters are more than one approval may have."""

    @pytest.fixture
    def store(self) -> ApprovalStore | AsyncApprovalStore:
        raise NotImplementedError(f"override the fixture `store` in {type(self).__name__}")

    @pytest.fixture
    def other_store(self, store: ApprovalStore | AsyncApprovalStore) -> ApprovalStore | AsyncApprovalStore:
        return store

    @pytest.fixture
    def approvals(self, store: ApprovalStore | AsyncApprovalStore) -> ApprovalStore:
        """The store, whose methods wait."""
        waiting: ApprovalStore = as_blocking(store)
        return waiting

    @pytest.fixture
    def other_approvals(self, other_store: ApprovalStore | AsyncApprovalStore) -> ApprovalStore:
        waiting: ApprovalStore = as_blocking(other_store)
        return waiting

    def test_what_was_put_is_taken_once(self, approvals: ApprovalStore, other_approvals: ApprovalStore) -> None:
        """Also by another process."""
        assert approvals.put("s", "1", '{"text": "Grüße \udc80"}', digest="d", seconds=_HOUR)
        assert other_approvals.take("s", "1", digest="d") == '{"text": "Grüße \udc80"}'
        assert other_approvals.take("s", "1", digest="d") is None
        assert approvals.take("s", "1", digest="d") is None

    def test_of_several_who_take_it_one_gets_it(self, approvals: ApprovalStore, other_approvals: ApprovalStore) -> None:
        for number in range(5):
            approvals.put("s", str(number), "value", digest="d", seconds=_HOUR)

            def take(index: int, id: str = str(number)) -> str | None:
                return (approvals, other_approvals)[index % 2].take("s", id, digest="d")

            assert [one for one in call_at_once(8, take) if one is not None] == ["value"]

    def test_an_empty_text_is_taken_once(self, approvals: ApprovalStore) -> None:
        assert approvals.put("s", "1", "", digest="d", seconds=_HOUR)
        assert (approvals.take("s", "1", digest="d"), approvals.take("s", "1", digest="d")) == ("", None)

    def test_another_digest_gets_nothing_and_takes_nothing_away(self, approvals: ApprovalStore) -> None:
        approvals.put("s", "1", "value", digest="right", seconds=_HOUR)
        assert [approvals.take("s", "1", digest=wrong) for wrong in ("wrong", "", "righ", "RIGHT")] == [None] * 4
        assert approvals.take("s", "1", digest="right") == "value"

    def test_what_nobody_put_is_not_there(self, approvals: ApprovalStore) -> None:
        assert approvals.take("s", "1", digest="d") is None

    def test_an_id_is_put_once(self, approvals: ApprovalStore) -> None:
        """Also after it was taken: whoever repeats a request must not make it wait again."""
        assert approvals.put("s", "1", "first", digest="d", seconds=_HOUR)
        assert not approvals.put("s", "1", "second", digest="d", seconds=_HOUR)
        assert approvals.take("s", "1", digest="d") == "first"
        assert not approvals.put("s", "1", "third", digest="d", seconds=_HOUR)
        assert approvals.take("s", "1", digest="d") is None

    def test_sessions_do_not_see_each_other(self, approvals: ApprovalStore) -> None:
        """Whatever their names and the ids are."""
        names = [(session, id) for session in ODD_NAMES for id in ("1", session)]
        for session, id in dict.fromkeys(names):
            assert approvals.put(session, id, repr((session, id)), digest="d", seconds=_HOUR)
        for session, id in dict.fromkeys(names):
            assert approvals.take(session, id, digest="d") == repr((session, id))

    def test_it_expires(self, approvals: ApprovalStore) -> None:
        """Then its id can be used again."""
        assert approvals.put("s", "1", "old", digest="d", seconds=0.05)
        wait_until(lambda: approvals.put("s", "1", "new", digest="d", seconds=_HOUR), "an approval did not expire")
        assert approvals.take("s", "1", digest="d") == "new"

    def test_what_has_expired_cannot_be_taken(self, approvals: ApprovalStore) -> None:
        approvals.put("s", "1", "old", digest="d", seconds=0.05)
        approvals.put("s", "2", "marks the time", digest="d", seconds=0.05)
        wait_until(lambda: approvals.put("s", "2", "", digest="d", seconds=_HOUR), "an approval did not expire")
        assert approvals.take("s", "1", digest="d") is None

    @pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
    def test_everything_expires(self, approvals: ApprovalStore, seconds: float) -> None:
        with pytest.raises(ValueError, match="must expire"):
            approvals.put("s", "1", "value", digest="d", seconds=seconds)

    def test_a_session_cannot_fill_the_store(self, approvals: ApprovalStore) -> None:
        """Too many that wait are refused, until one is taken; other sessions are not concerned."""
        for number in range(self.max_per_session):
            assert approvals.put("s", str(number), "value", digest="d", seconds=_HOUR)
        with pytest.raises(ToolFailed) as caught:
            approvals.put("s", "one more", "value", digest="d", seconds=_HOUR)
        assert caught.value.reason == "TOO_LARGE", caught.value
        assert approvals.put("another", "1", "value", digest="d", seconds=_HOUR)
        assert approvals.take("s", "0", digest="d") == "value"
        assert approvals.put("s", "one more", "value", digest="d", seconds=_HOUR)

    def test_a_text_that_is_too_long_is_refused(self, approvals: ApprovalStore) -> None:
        with pytest.raises(ToolFailed) as caught:
            approvals.put("s", "1", "x" * self.too_long, digest="d", seconds=_HOUR)
        assert caught.value.reason == "TOO_LARGE", caught.value
        assert approvals.take("s", "1", digest="d") is None


# ----------------------------------------------------------------------------------------------------------------------
# What all write locks must do.


class WriteLockLaws:
    """Tests that all ``WriteLocks`` must pass. Subclass it in a test module, and override the fixture ``store``.

    The fixture ``other_store`` is a second object over the same locks, as another process has it; by default, the same one.
    Both may be async.
    """

    @pytest.fixture
    def store(self) -> WriteLocks | AsyncWriteLocks:
        raise NotImplementedError(f"override the fixture `store` in {type(self).__name__}")

    @pytest.fixture
    def other_store(self, store: WriteLocks | AsyncWriteLocks) -> WriteLocks | AsyncWriteLocks:
        return store

    @pytest.fixture
    def locks(self, store: WriteLocks | AsyncWriteLocks) -> WriteLocks:
        """The store, whose methods wait."""
        waiting: WriteLocks = as_blocking(store)
        return waiting

    @pytest.fixture
    def other_locks(self, other_store: WriteLocks | AsyncWriteLocks) -> WriteLocks:
        waiting: WriteLocks = as_blocking(other_store)
        return waiting

    def test_a_lock_excludes_others_until_it_is_released(self, locks: WriteLocks, other_locks: WriteLocks) -> None:
        """Nor by its holder: a lock is not taken twice."""
        token = locks.acquire("k", seconds=_HOUR)
        assert token
        assert (locks.acquire("k", seconds=_HOUR), other_locks.acquire("k", seconds=_HOUR)) == (None, None)
        assert locks.release("k", token)
        again = other_locks.acquire("k", seconds=_HOUR)
        assert again not in (None, token)

    def test_keys_are_independent(self, locks: WriteLocks) -> None:
        """Whatever they are."""
        tokens = [locks.acquire(key, seconds=_HOUR) for key in ODD_NAMES]
        assert None not in tokens
        assert len(set(tokens)) == len(tokens)

    def test_of_several_who_want_it_one_gets_it(self, locks: WriteLocks, other_locks: WriteLocks) -> None:
        def acquire(index: int) -> str | None:
            return (locks, other_locks)[index % 2].acquire("k", seconds=_HOUR)

        assert sum(token is not None for token in call_at_once(8, acquire)) == 1

    def test_only_the_token_of_its_holder_releases_and_extends_it(self, locks: WriteLocks) -> None:
        token = locks.acquire("k", seconds=_HOUR)
        assert token
        for wrong in ("", "wrong", token[:-1], f"{token}0"):
            assert not locks.release("k", wrong)
            assert not locks.extend("k", wrong, seconds=_HOUR)
        assert locks.acquire("k", seconds=_HOUR) is None
        assert locks.release("k", token)

    def test_a_lock_that_nobody_holds_is_not_released_or_extended(self, locks: WriteLocks) -> None:
        assert not locks.release("k", "token")
        assert not locks.extend("k", "token", seconds=_HOUR)
        token = locks.acquire("k", seconds=_HOUR)
        assert token and locks.release("k", token)
        assert not locks.release("k", token)
        assert not locks.extend("k", token, seconds=_HOUR)
        assert locks.acquire("k", seconds=_HOUR)

    def test_a_lock_expires(self, locks: WriteLocks) -> None:
        """Then its first holder has no power over it."""
        first = locks.acquire("k", seconds=0.05)
        assert first
        wait_until(lambda: locks.acquire("k", seconds=_HOUR), "a lock did not expire")
        assert not locks.extend("k", first, seconds=_HOUR)
        assert not locks.release("k", first)
        assert locks.acquire("k", seconds=_HOUR) is None

    def test_a_lock_can_be_extended_and_cut_short(self, locks: WriteLocks) -> None:
        token = locks.acquire("k", seconds=_HOUR)
        assert token
        assert locks.extend("k", token, seconds=2 * _HOUR)
        assert locks.acquire("k", seconds=_HOUR) is None
        assert locks.extend("k", token, seconds=0.05)
        wait_until(lambda: locks.acquire("k", seconds=_HOUR), "a lock did not expire")

    @pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
    def test_every_lock_expires(self, locks: WriteLocks, seconds: float) -> None:
        with pytest.raises(ValueError, match="must expire"):
            locks.acquire("k", seconds=seconds)

    def test_nothing_is_lost_between_those_who_hold_it(self, locks: WriteLocks, other_locks: WriteLocks) -> None:
        """Several threads read a number and write the next one; ``hold_lock`` waits for its turn."""
        number = [0]

        def count(index: int) -> None:
            for _ in range(10):
                with hold_lock((locks, other_locks)[index % 2], "k", seconds=_HOUR, wait=60):
                    number[0] = number[0] + 1

        call_at_once(4, count)
        assert number == [40]

    def test_who_waits_too_long_is_told(self, locks: WriteLocks) -> None:
        with hold_lock(locks, "k"), pytest.raises(ToolFailed) as caught, hold_lock(locks, "k", wait=0):
            pass
        assert caught.value.reason == "CONFLICT"


# ----------------------------------------------------------------------------------------------------------------------
# What every store of todo lists must do.

FULL: Final = Todo("7", "Grüße\n\x00\udc80 \U0001f600", "in_progress", "Grüßend", 1)
_THREADS: Final = 4
_ROUNDS: Final = 10


class TodoStoreLaws:
    """Tests that every ``TodoStore`` must pass. Subclass it in a test module, and override the fixture ``store``.

    The fixture ``other_store`` is a second object over the same lists, as another process has it; by default, the same one.
    Both may be async.

    >>> import pytest
    >>> from toolkit.stores import MemoryTodoStore
    >>> class TestMyStore(TodoStoreLaws):
    ...     @pytest.fixture
    ...     def store(self) -> MemoryTodoStore:
    ...         return MemoryTodoStore()
    """

    too_long: int = 1024 * 1024
    """So many characters are more than one session may keep."""

    @pytest.fixture
    def store(self) -> TodoStore | AsyncTodoStore:
        raise NotImplementedError(f"override the fixture `store` in {type(self).__name__}")

    @pytest.fixture
    def other_store(self, store: TodoStore | AsyncTodoStore) -> TodoStore | AsyncTodoStore:
        return store

    @pytest.fixture
    def todos(self, store: TodoStore | AsyncTodoStore) -> TodoStore:
        """The store, whose methods wait."""
        waiting: TodoStore = as_blocking(store)
        return waiting

    @pytest.fixture
    def other_todos(self, other_store: TodoStore | AsyncTodoStore) -> TodoStore:
        waiting: TodoStore = as_blocking(other_store)
        return waiting

    def test_a_session_begins_with_an_empty_list(self, todos: TodoStore) -> None:
        assert todos.read("nobody") == []

    def test_what_is_written_is_read(self, todos: TodoStore, other_todos: TodoStore) -> None:
        """With every field, any text, in its order; also by another process."""
        lists: tuple[list[Todo], ...] = ([FULL, Todo("1", "b"), Todo("2", "a", "cancelled")], [Todo("1", "b")], [])
        for written in lists:
            todos.write("s", written)
            assert todos.read("s") == written == other_todos.read("s")

    def test_a_list_that_was_read_can_be_changed(self, todos: TodoStore) -> None:
        """It is the caller's own."""
        todos.write("s", [FULL])
        todos.read("s").clear()
        assert todos.read("s") == [FULL]

    def test_sessions_do_not_see_each_other(self, todos: TodoStore) -> None:
        """Whatever their names are."""
        for name in ODD_NAMES:
            todos.write(name, [Todo("1", repr(name))])
        assert [todos.read(name)[0].content for name in ODD_NAMES] == [repr(name) for name in ODD_NAMES]

    def test_a_list_is_swapped_only_for_the_expected_one(self, todos: TodoStore, other_todos: TodoStore) -> None:
        one, two, three = [Todo("1", "one")], [Todo("1", "two")], [Todo("1", "three")]
        assert not todos.swap("s", one, two)
        assert todos.swap("s", [], one)
        assert other_todos.swap("s", one, two)
        assert not todos.swap("s", one, three)
        assert not todos.swap("s", [], three)
        assert todos.read("s") == two

    def test_of_several_who_swap_the_same_list_one_succeeds(self, todos: TodoStore, other_todos: TodoStore) -> None:
        def swap(index: int) -> bool:
            return (todos, other_todos)[index % 2].swap("s", [], [Todo("1", str(index))])

        assert sorted(call_at_once(8, swap)) == [False] * 7 + [True]

    def test_no_update_is_lost(self, todos: TodoStore, other_todos: TodoStore) -> None:
        """Several threads add to one list; who finds another list than he read tries again."""

        def add(index: int) -> None:
            store = (todos, other_todos)[index % 2]
            for number in range(_ROUNDS):
                done = False
                while not done:
                    before = store.read("s")
                    done = store.swap("s", before, [*before, Todo(f"{index}.{number}", "x")])

        call_at_once(_THREADS, add)
        wanted = {f"{index}.{number}" for index in range(_THREADS) for number in range(_ROUNDS)}
        found = [todo.id for todo in todos.read("s")]
        assert (set(found), len(found)) == (wanted, len(wanted))

    def test_a_session_cannot_fill_the_store(self, todos: TodoStore) -> None:
        """A list that is too long is refused, and the earlier one stays."""
        todos.write("s", [FULL])
        for act in (
            lambda: todos.write("s", [Todo("1", "x" * self.too_long)]),
            lambda: todos.swap("s", [FULL], [Todo("1", "x" * self.too_long)]),
        ):
            with pytest.raises(ToolFailed) as caught:
                act()
            assert caught.value.reason == "TOO_LARGE", caught.value
        assert todos.read("s") == [FULL]
