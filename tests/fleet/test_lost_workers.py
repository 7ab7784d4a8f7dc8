"""Workers that die in the middle of a call."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fleet.agents import FREE, WATCHDOG, Meeting
from tests.fleet.processes import Sleeper
from toolkit import TextMessage, ToolCall
from toolkit.fleet import Fleet, FleetRun

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]


def say(text: str) -> ToolCall:
    return ToolCall("1", "echo", {"text": text})


def test_a_call_that_only_reads_is_repeated(fleet: Fleet, meeting: Meeting) -> None:
    look = ToolCall("1", "look", {"folder": str(meeting.folder)})
    with ThreadPoolExecutor(1) as thread:
        results = thread.submit(lambda: list(fleet.map([say("a"), look, say("b"), say("c")])))
        first = meeting.wait()
        os.kill(first, signal.SIGKILL)
        second = meeting.wait()
        meeting.release()
        values = [result.value for result in results.result(WATCHDOG)]

    assert second != first
    assert values == ["a", "seen", "b", "c"]


def test_a_call_that_changes_something_is_reported_and_not_repeated(fleet: Fleet, meeting: Meeting) -> None:
    change = ToolCall("1", "change", {"folder": str(meeting.folder)})
    with ThreadPoolExecutor(1) as thread:
        results = thread.submit(lambda: list(fleet.map([say("a"), change, say("b")])))
        os.kill(meeting.wait(), signal.SIGKILL)
        before, lost, after = results.result(WATCHDOG)

    assert (before.value, after.value) == ("a", "b")
    assert lost.kind == "error" and lost.name == "change"
    assert str(lost.value).startswith("TOOL_FAILED: WORKER_DIED: ")
    assert "unknown whether" in str(lost.value)
    assert (meeting.folder / "marks").read_text() == "x"


def test_its_commands_end_with_a_worker(fleet: Fleet, meeting: Meeting, session_workspace: Path) -> None:
    sleeper, look = Sleeper(), ToolCall("1", "look", {"folder": str(meeting.folder)})
    with (
        Fleet(
            "tests.fleet.agents:make_toolkit",
            setup=(str(session_workspace), {}),
            workers=1,
            calls_per_worker=2,
            ray_options=FREE,
        ) as pair,
        ThreadPoolExecutor(1) as thread,
    ):
        results = thread.submit(lambda: list(pair.map([sleeper.call, look])))
        worker = meeting.wait()
        sleeper.wait_until_started()
        os.kill(worker, signal.SIGKILL)
        sleeper.wait_until_gone()
        meeting.wait()
        meeting.release()
        lost, seen = results.result(WATCHDOG)

    assert "unknown whether" in str(lost.value)
    assert seen.value == "seen"


@pytest.mark.whole
def test_a_call_that_ends_every_worker_is_given_up(fleet: Fleet, tmp_path: Path) -> None:
    poison = ToolCall("1", "end_worker", {"unless": str(tmp_path / "no such file")})
    first, given_up, last = fleet.map([say("first"), poison, say("last")])

    assert (first.value, last.value) == ("first", "last")
    assert "3 workers died" in str(given_up.value)


@pytest.mark.whole
def test_its_neighbours_on_the_same_worker_are_not_given_up_with_it(ray_cluster: None, tmp_path: Path) -> None:
    poison = ToolCall("1", "end_worker", {"unless": str(tmp_path / "no such file")})
    reads = [ToolCall("1", "list", {"path": "."}) for _ in range(12)]
    with Fleet(
        "tests.fleet.agents:make_toolkit",
        setup=(str(tmp_path), {}),
        workers=1,
        calls_per_worker=4,
        retries=1,
        ray_options=FREE,
    ) as crowded:
        results = list(crowded.map([*reads[:2], poison, *reads[2:]]))

    assert [result.kind == "error" for result in results] == [False, False, True, *[False] * 10]


@pytest.mark.whole
def test_a_run_whose_worker_died_is_reported_with_what_it_started_with(fleet: Fleet, meeting: Meeting) -> None:
    with ThreadPoolExecutor(1) as thread:
        finished = thread.submit(lambda: list(fleet.run_all([FleetRun(f"meet {meeting.folder}")])))
        os.kill(meeting.wait(), signal.SIGKILL)
        (lost,) = finished.result(WATCHDOG)

    assert "unknown whether" in str(lost.error)
    assert list(lost.conversation.messages) == [TextMessage("user", f"meet {meeting.folder}")]
    assert (meeting.folder / "marks").read_text() == "x"
