"""What all write locks must do."""

from __future__ import annotations

from typing import Final

import pytest

from toolkit.errors import ToolFailed
from toolkit.runtime.stores.waiting import as_blocking
from toolkit.stores import AsyncWriteLocks, WriteLocks, hold_lock
from toolkit.testing.store_laws.many_callers import ODD_NAMES, call_at_once, wait_until

_HOUR: Final = 3600.0


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
        """Its holder as well: a lock is not taken twice."""
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
        """Then its first holder has no power over it any more."""
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
