"""Progress events of all workers, in one place."""

from __future__ import annotations

import threading
from collections import defaultdict

import pytest

from toolkit import Progress, ToolCall
from toolkit.fleet import Fleet

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]


def test_every_event_comes_once_in_order_and_before_its_result(fleet: Fleet) -> None:
    events: dict[int, list[object]] = defaultdict(list)
    threads = set()

    def note(index: int, progress: Progress) -> None:
        threads.add(threading.current_thread())
        events[index].append(progress.data["number"])

    calls = [ToolCall(f"id {number}", "count_aloud", {"count": 10 * number}) for number in range(8)]
    for ended in fleet.as_completed(calls, on_progress=note):
        assert events[ended.index] == [*range(10 * ended.index)]
        assert ended.result.value == 10 * ended.index or ended.result.value == str(10 * ended.index)

    assert threads == {threading.current_thread()}


def test_what_a_command_writes_is_seen(fleet: Fleet) -> None:
    seen: list[Progress] = []
    calls = [ToolCall("1", "bash", {"command": "echo hello"})]
    list(fleet.map(calls, on_progress=lambda index, progress: seen.append(progress)))

    assert "hello" in "".join(str(progress.data.get("text", "")) for progress in seen)


@pytest.mark.whole
def test_a_flood_of_events_is_bounded_and_says_what_was_left_out(fleet: Fleet) -> None:
    seen: list[Progress] = []
    calls = [ToolCall("1", "count_aloud", {"count": 20_000})]
    (result,) = fleet.map(calls, on_progress=lambda index, progress: seen.append(progress))

    left_out = sum(int(str(progress.data.get("left_out", 0))) for progress in seen)
    assert "20000" in str(result.value)
    assert sum("number" in progress.data for progress in seen) + left_out == 20_000


@pytest.mark.whole
def test_an_event_that_cannot_be_sent_loses_no_result(fleet: Fleet) -> None:
    seen: list[Progress] = []
    (result,) = fleet.map(
        [ToolCall("1", "report_a_function", {})], on_progress=lambda _, progress: seen.append(progress)
    )

    assert result.value == "reported"
    assert [set(progress.data) for progress in seen] == [{"problem"}]


def test_a_listener_that_fails_loses_no_result(fleet: Fleet) -> None:
    def fail(index: int, progress: Progress) -> None:
        raise RuntimeError("no")

    (result,) = fleet.map([ToolCall("1", "count_aloud", {"count": 3})], on_progress=fail)
    assert result.kind != "error"
