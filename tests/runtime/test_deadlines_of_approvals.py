"""One deadline covers the whole path: a person who does not answer does not hold a call, and a late answer means nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acme.generated import SecurityPolicy
from tests.runtime.conftest import Door, MakeDoor
from toolkit import ApprovalRequest, Approve, CancelSignal, ToolCall
from toolkit.errors import ToolCancelled, ToolTimeout

WATCHDOG = 60.0
ASKS = SecurityPolicy(default="deny", tools={"read_file": "ask"})


class SlowPerson:
    """Answers a question when ``answered`` is set; remembers how many questions were open at the same time."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.answered = threading.Event()
        self.most_at_once = 0
        self._open = 0
        self._lock = threading.Lock()

    def __call__(self, request: ApprovalRequest) -> Approve:
        with self._lock:
            self._open += 1
            self.most_at_once = max(self.most_at_once, self._open)
        self.asked.set()
        assert self.answered.wait(WATCHDOG)
        with self._lock:
            self._open -= 1
        return Approve()


@pytest.fixture
def person() -> Iterator[SlowPerson]:
    somebody = SlowPerson()
    yield somebody
    somebody.answered.set()


@pytest.fixture
def make_asking(make_door: MakeDoor, tmp_path: Path) -> Any:
    def make(approver: Any) -> Door:
        door = make_door(ASKS, approver=approver)
        (tmp_path / "workspace" / "a.txt").write_text("hello")
        return door

    return make


def test_a_deadline_ends_a_call_that_waits_for_a_person(make_asking: Any, person: SlowPerson) -> None:
    door = make_asking(person).with_options(deadline=0.1)
    with pytest.raises(ToolTimeout, match="while it waited for an approval; nothing was run"):
        door.invoke("read_file", {"path": "a.txt"})


def test_a_cancelled_call_does_not_wait_for_a_person(make_asking: Any, person: SlowPerson) -> None:
    signal = CancelSignal()
    door = make_asking(person).with_options(signal=signal)

    def stop() -> None:
        assert person.asked.wait(WATCHDOG)
        signal.cancel("the user pressed stop")

    stopping = threading.Thread(target=stop)
    stopping.start()
    with pytest.raises(ToolCancelled, match="the user pressed stop, while it waited for an approval"):
        door.invoke("read_file", {"path": "a.txt"})
    stopping.join()


def test_an_async_approver_is_cancelled(make_asking: Any) -> None:
    told: list[str] = []

    async def ask(request: ApprovalRequest) -> Approve:
        told.append("asked")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append("cancelled")
            raise
        return Approve()

    door = make_asking(ask)
    for deadline in (0.1, 1, WATCHDOG):  # on a busy machine a short one ends before anybody is asked
        with pytest.raises(ToolTimeout):
            door.with_options(deadline=deadline).invoke("read_file", {"path": "a.txt"})
        if told:
            break
    assert told == ["asked", "cancelled"]


def test_the_next_question_waits_until_the_last_one_is_off_the_screen(make_asking: Any, person: SlowPerson) -> None:
    """The person still sees the question of a call that is over. An answer to it must not answer the next one."""
    asking = make_asking(person)
    with pytest.raises(ToolTimeout):
        asking.with_options(deadline=0.1).invoke("read_file", {"path": "a.txt"})
    assert person.asked.wait(WATCHDOG)
    with pytest.raises(ToolTimeout):
        asking.with_options(deadline=0.1).invoke("read_file", {"path": "a.txt"})
    assert person.most_at_once == 1
    person.answered.set()
    assert asking.with_options(deadline=WATCHDOG).invoke("read_file", {"path": "a.txt"}).content.content == "hello"
    assert person.most_at_once == 1


def test_an_approver_may_itself_call_tools_that_need_an_approval(make_asking: Any, tmp_path: Path) -> None:
    depth = 0

    def ask(request: ApprovalRequest) -> Approve:
        nonlocal depth
        depth += 1
        if depth < 3:
            asking.with_options(deadline=WATCHDOG).toolkit.call(ToolCall("2", "read_file", {"path": "a.txt"}))
        return Approve()

    asking = make_asking(ask)
    if asking.loop is not None:
        pytest.skip("a sync approver cannot call an async toolkit")
    for view in (asking, asking.with_options(deadline=WATCHDOG)):
        depth = 0
        assert view.invoke("read_file", {"path": "a.txt"}).content.content == "hello"
        assert depth == 3
