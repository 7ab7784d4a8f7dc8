"""Batches of calls: order, back-pressure, and items that cannot work."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fleet.agents import FREE, WATCHDOG, Meeting
from toolkit import SetupError, ToolCall
from toolkit.fleet import Fleet, FleetCall

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]


def say(text: str) -> ToolCall:
    return ToolCall(f"id of {text}", "echo", {"text": text})


def test_results_come_in_the_order_of_the_calls(fleet: Fleet) -> None:
    results = list(fleet.map(say(str(number)) for number in range(50)))

    assert [result.value for result in results] == [str(number) for number in range(50)]
    assert [result.tool_call_id for result in results] == [f"id of {number}" for number in range(50)]


def test_results_as_they_come_do_not_wait_for_a_slow_call(fleet: Fleet, meeting: Meeting) -> None:
    slow = ToolCall("slow", "look", {"folder": str(meeting.folder)})
    results = fleet.as_completed([slow, *(say(str(number)) for number in range(5))])

    quick = [next(results) for _ in range(5)]
    assert sorted(ended.index for ended in quick) == [1, 2, 3, 4, 5]
    assert {ended.index: ended.result.value for ended in quick} == {number + 1: str(number) for number in range(5)}

    meeting.wait()
    meeting.release()
    assert [(ended.index, ended.result.value) for ended in results] == [(0, "seen")]


@pytest.mark.whole
def test_no_more_is_read_than_there_is_room_for(ray_cluster: None, tmp_path: Path) -> None:
    read, most = itertools.count(), 0
    seen: list[int] = []

    def calls() -> Iterator[ToolCall]:
        for number in read:  # without end
            seen.append(number)
            yield say(str(number))

    setup = (str(tmp_path), dict[str, object]())
    with Fleet("tests.fleet.agents:make_toolkit", setup=setup, workers=1, ahead=3, ray_options=FREE) as small:
        results = small.map(calls())
        for taken in range(40):
            assert next(results).value == str(taken)
            most = max(most, len(seen) - taken)
        results.close()
    assert most <= 3


@pytest.mark.whole
def test_in_order_a_slow_call_stops_the_reading_of_further_ones(fleet: Fleet, meeting: Meeting) -> None:
    seen = []

    def calls() -> Iterator[ToolCall]:
        yield ToolCall("slow", "look", {"folder": str(meeting.folder)})
        for number in range(100):
            seen.append(number)
            yield say(str(number))

    with ThreadPoolExecutor(1) as thread:
        all_results = thread.submit(lambda: list(fleet.map(calls())))
        meeting.wait()
        assert len(seen) < 16  # eight times two workers, and the slow one is among them
        meeting.release()
        assert len(all_results.result(WATCHDOG)) == 101


def test_a_call_that_fails_affects_no_other(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    calls: list[ToolCall | FleetCall] = [
        say("before"),
        ToolCall("1", "no_such_tool", {}),
        ToolCall("2", "echo", {"wrong": 1}),
        ToolCall("3", "echo", {}, raw_arguments="{not JSON"),
        ToolCall("4", "echo", {"text": lambda: None}),  # cannot be sent
        FleetCall(say("other"), setup=("/no/such/folder", {})),
        FleetCall(say("other"), setup=("/tmp", {"no_such_setting": 1})),
        say("after"),
    ]
    values = [str(result.value) for result in fleet.map(calls)]

    assert values[0] == "before" and values[-1] == "after"
    assert [value.partition(":")[0] for value in values[1:-1]] == [
        "TOOL_NOT_FOUND",
        "INVALID_TOOL_ARGUMENTS",
        "INVALID_TOOL_ARGUMENTS",
        "TOOL_FAILED",
        "TOOL_FAILED",
        "TOOL_FAILED",
    ]
    assert "/no/such/folder" not in values[5] and "/no/such/folder" in caplog.text


@pytest.mark.whole
def test_an_iterable_that_fails_loses_no_result(fleet: Fleet) -> None:
    def calls() -> Iterator[ToolCall]:
        yield say("one")
        yield say("two")
        raise LookupError("the list of work ends here")

    results = fleet.map(calls())
    assert [next(results).value, next(results).value] == ["one", "two"]
    with pytest.raises(LookupError):
        next(results)
    assert [result.value for result in fleet.map([say("again")])] == ["again"]


def test_each_call_has_the_workspace_of_its_setup(fleet: Fleet, tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(20)]
    for folder in folders:
        folder.mkdir()
    calls = [FleetCall(ToolCall("1", "where", {}), setup=(str(folder), {})) for folder in folders * 2]

    assert [result.value for result in fleet.map(calls)] == [str(folder) for folder in folders * 2]


def test_a_result_that_is_too_large_is_cut_or_refused(fleet: Fleet) -> None:
    whole, cut, refused, after = fleet.map(
        [
            ToolCall("1", "repeat", {"text": "é", "times": 100}),
            ToolCall("2", "repeat", {"text": "é", "times": 200_000}),
            ToolCall("3", "many", {"count": 100_000}),
            say("after"),
        ]
    )
    assert whole.value == "é" * 100
    assert isinstance(cut.value, str) and cut.kind == "text" and len(cut.value) < 100_000
    assert "many" in refused.name and len(str(refused.value)) < 100_000
    assert after.value == "after"


def test_a_fleet_has_one_batch_at_a_time(fleet: Fleet) -> None:
    first = fleet.map([say("1"), say("2"), say("3")])
    assert next(first).value == "1"
    with pytest.raises(SetupError, match="at work"):
        next(fleet.map([say("4")]))
    assert [result.value for result in first] == ["2", "3"]
