"""Threads that read files take turns; nobody waits for one that is stuck."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builtin.workspace import toolkit_for
from toolkit.runtime.workers import BriefTurns

WATCHDOG = 60.0


def run_in_threads(number: int, work: Callable[[], object]) -> None:
    threads = [threading.Thread(target=work) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WATCHDOG)
        assert not thread.is_alive()


def test_all_work_is_done_and_its_results_come_back() -> None:
    turns, found = BriefTurns(), []

    def work() -> None:
        for number in range(3000):
            found.append(turns.run(lambda number=number: number))  # type: ignore[misc]

    run_in_threads(8, work)
    assert sorted(found) == sorted([*range(3000)] * 8)


def test_an_error_ends_the_turn() -> None:
    turns = BriefTurns()
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            turns.run(lambda: 1 / 0)
    assert turns.run(lambda: "next") == "next"


def test_nobody_waits_for_work_that_is_stuck() -> None:
    turns, other_is_done = BriefTurns(), threading.Event()
    inside, ended = threading.Event(), []

    def stick() -> None:
        inside.set()
        ended.append(other_is_done.wait(WATCHDOG))

    stuck = threading.Thread(target=lambda: turns.run(stick))
    stuck.start()
    assert inside.wait(WATCHDOG)
    run_in_threads(4, lambda: turns.run(lambda: None))
    other_is_done.set()
    stuck.join(WATCHDOG)
    assert ended == [True]


def test_work_may_take_a_turn_inside_its_own() -> None:
    turns = BriefTurns()
    assert turns.run(lambda: turns.run(lambda: "inner")) == "inner"


def test_a_child_that_was_forked_inside_a_turn_goes_on(tmp_path: Path) -> None:
    turns = BriefTurns()
    (tmp_path / "a.txt").write_text("text\n")

    def fork() -> int:
        child = os.fork()
        if child == 0:
            os._exit(0 if turns._turn.acquire(blocking=False) else 1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert turns.run(fork) == 0


def test_files_read_by_several_threads_are_read_right(tmp_path: Path) -> None:
    for number in range(8):
        (tmp_path / f"{number}.txt").write_text(f"file {number}\n" * 50)
    wrong = []
    with toolkit_for(tmp_path) as toolkit:

        def work() -> None:
            for number in [*range(8)] * 20:
                if toolkit.tools.read_file(path=f"{number}.txt").content != f"file {number}\n" * 50:
                    wrong.append(number)

        run_in_threads(4, work)
    assert wrong == []
