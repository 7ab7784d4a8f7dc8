"""What every store of suspended approvals must do."""

from __future__ import annotations

from typing import Final

import pytest

from toolkit.errors import ToolFailed
from toolkit.runtime.stores.waiting import as_blocking
from toolkit.stores import ApprovalStore, AsyncApprovalStore
from toolkit.testing.store_laws.many_callers import ODD_NAMES, call_at_once, wait_until

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
