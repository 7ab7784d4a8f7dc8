"""Deadlines and cancellations reach the processes of workers."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fleet.agents import FREE, WATCHDOG, Meeting
from tests.fleet.processes import Sleeper
from toolkit import AssistantToolCallMessage, CancelSignal, TextMessage, ToolCall
from toolkit.fleet import Fleet, FleetCall, FleetRun

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]


def say(text: str) -> ToolCall:
    return ToolCall("1", "echo", {"text": text})


def test_a_cancelled_batch_ends_its_commands_and_reads_no_further(fleet: Fleet) -> None:
    one, other, cancel = Sleeper(), Sleeper(), CancelSignal()
    later = []

    def calls() -> Iterator[ToolCall]:
        yield one.call
        yield other.call
        later.append("read")
        yield say("never sent")

    with ThreadPoolExecutor(1) as thread:
        results = thread.submit(lambda: list(fleet.map(calls(), signal=cancel)))
        one.wait_until_started()
        other.wait_until_started()
        cancel.cancel("the user pressed stop")
        values = [str(result.value) for result in results.result(WATCHDOG)]
        one.wait_until_gone()
        other.wait_until_gone()

    assert values == ["TOOL_CANCELLED: the user pressed stop"] * 2
    assert not later
    assert [result.value for result in fleet.map([say("still there")])] == ["still there"]


def test_a_batch_that_was_cancelled_before_it_started_sends_nothing(fleet: Fleet) -> None:
    cancel = CancelSignal()
    cancel.cancel()
    assert list(fleet.map([say("one")], signal=cancel)) == []


def test_closing_the_results_ends_what_runs(fleet: Fleet) -> None:
    sleeper = Sleeper()
    results = fleet.as_completed([sleeper.call, say("quick")])
    assert next(results).result.value == "quick"
    sleeper.wait_until_started()
    results.close()
    sleeper.wait_until_gone()


def test_a_deadline_ends_the_command_of_its_call_alone(fleet: Fleet) -> None:
    sleeper = Sleeper()
    late, quick = fleet.map([FleetCall(sleeper.call, deadline=2.0), say("quick")], deadline=WATCHDOG)
    sleeper.wait_until_gone()

    assert str(late.value).startswith("TOOL_TIMEOUT: ")
    assert quick.value == "quick"


@pytest.mark.whole
def test_a_worker_that_does_not_answer_is_ended(ray_cluster: None, tmp_path: Path, meeting: Meeting) -> None:
    look, cancel = ToolCall("1", "look", {"folder": str(meeting.folder)}), CancelSignal()
    with (
        Fleet(
            "tests.fleet.agents:make_toolkit", setup=(str(tmp_path), {}), workers=1, grace=0.5, ray_options=FREE
        ) as alone,
        ThreadPoolExecutor(1) as thread,
    ):
        results = thread.submit(lambda: list(alone.map([look], signal=cancel)))
        os.kill(meeting.wait(), signal.SIGSTOP)  # it looks alive, and does nothing
        cancel.cancel("enough")
        (late,) = results.result(WATCHDOG)
        (after,) = alone.map([say("after")])

    assert str(late.value).startswith("TOOL_CANCELLED: enough") and "unknown whether" in str(late.value)
    assert after.value == "after"


@pytest.mark.whole  # the deadline must be long enough for a slow machine to start the call
def test_a_worker_that_does_not_answer_after_a_deadline_is_ended(
    ray_cluster: None, tmp_path: Path, meeting: Meeting
) -> None:
    look = ToolCall("1", "look", {"folder": str(meeting.folder)})
    with (
        Fleet(
            "tests.fleet.agents:make_toolkit", setup=(str(tmp_path), {}), workers=1, grace=0.5, ray_options=FREE
        ) as alone,
        ThreadPoolExecutor(1) as thread,
    ):
        results = thread.submit(lambda: list(alone.map([FleetCall(look, deadline=20), say("after")])))
        os.kill(meeting.wait(), signal.SIGSTOP)
        late, after = results.result(WATCHDOG)

    assert str(late.value).startswith("TOOL_TIMEOUT: ") and "unknown whether" in str(late.value)
    assert after.value == "after"


def test_a_cancelled_run_keeps_what_was_said(fleet: Fleet, meeting: Meeting) -> None:
    cancel = CancelSignal()
    with ThreadPoolExecutor(1) as thread:
        finished = thread.submit(lambda: list(fleet.run_all([FleetRun(f"meet {meeting.folder}")], signal=cancel)))
        meeting.wait()
        cancel.cancel("enough")
        (ended,) = finished.result(WATCHDOG)
    meeting.release()

    assert type(ended.error).__name__ == "RunCancelled"
    asked, called, *_ = ended.conversation.messages
    assert isinstance(asked, TextMessage) and isinstance(called, AssistantToolCallMessage)


@pytest.mark.whole
def test_an_overloaded_worker_is_tried_again(ray_cluster: None, tmp_path: Path, meeting: Meeting) -> None:
    look = ToolCall("1", "look", {"folder": str(meeting.folder)})
    with (
        Fleet(
            "tests.fleet.agents:make_toolkit_for_one",
            setup=str(tmp_path),
            workers=1,
            calls_per_worker=3,
            ray_options=FREE,
        ) as full,
        ThreadPoolExecutor(1) as thread,
    ):
        results = thread.submit(lambda: [result.value for result in full.map([look, look, look])])
        meeting.wait()
        meeting.release(3)
        assert results.result(WATCHDOG) == ["seen"] * 3


@pytest.mark.whole
def test_a_call_that_finds_no_turn_before_its_deadline_says_that_it_did_not_start(
    ray_cluster: None, tmp_path: Path, meeting: Meeting
) -> None:
    def calls() -> Iterator[ToolCall | FleetCall]:
        yield ToolCall("1", "look", {"folder": str(meeting.folder)})
        meeting.wait()  # it has the only turn
        yield FleetCall(say("late"), deadline=0.2)

    with Fleet(
        "tests.fleet.agents:make_toolkit_for_one",
        setup=str(tmp_path),
        workers=1,
        calls_per_worker=2,
        ray_options=FREE,
    ) as full:
        results = full.as_completed(calls())
        late = next(results)
        meeting.release()
        assert [ended.result.value for ended in results] == ["seen"]

    assert late.index == 1
    assert str(late.result.value).startswith("TOOL_TIMEOUT: ")


@pytest.mark.whole
def test_a_reader_who_pauses_longer_than_a_deadline_loses_nothing(ray_cluster: None, tmp_path: Path) -> None:
    with Fleet(
        "tests.fleet.agents:make_toolkit", setup=(str(tmp_path), {}), workers=2, grace=0.1, ray_options=FREE
    ) as fleet:
        list(fleet.map([say("the workers have started")] * 2))
        results = fleet.map([say(str(number)) for number in range(6)], deadline=5)
        first = next(results)
        threading.Event().wait(6)  # reports of calls that ended in time wait meanwhile
        assert [result.value for result in [first, *results]] == [str(number) for number in range(6)]
