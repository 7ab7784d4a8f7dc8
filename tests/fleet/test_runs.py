"""Whole agent runs over a fleet."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleet.agents import FREE
from toolkit import RunLimitReached, RunLimits, SetupError
from toolkit.fleet import Fleet, FleetRun

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]


def test_each_run_works_in_its_own_workspace(fleet: Fleet, tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(4)]
    for folder in folders:
        folder.mkdir()
    runs = [FleetRun(f"text {folder.name}", setup=(str(folder), {})) for folder in folders]
    finished = list(fleet.run_all(runs))

    assert [run.index for run in finished] == [0, 1, 2, 3]
    assert [run.error for run in finished] == [None] * 4
    assert [run.conversation.answer for run in finished] == [f"wrote text {number}" for number in range(4)]
    assert [(folder / "answer.txt").read_text() for folder in folders] == [f"text {number}" for number in range(4)]


def test_a_run_that_fails_affects_no_other_and_keeps_its_conversation(fleet: Fleet, tmp_path: Path) -> None:
    setup = (str(tmp_path), dict[str, object]())
    short, broken, whole = fleet.run_all(
        [
            FleetRun("one", setup=setup, limits=RunLimits(turns=1)),
            FleetRun("two", setup=("/no/such/folder", {"no_such_setting": 1})),
            FleetRun("three", setup=setup),
        ]
    )
    assert isinstance(short.error, RunLimitReached) and short.conversation.turns == 1
    assert "NOT_CONFIGURED" in str(broken.error)
    assert whole.conversation.answer == "wrote three"


def test_runs_need_a_factory_of_drivers(ray_cluster: None, tmp_path: Path) -> None:
    with (
        Fleet("tests.fleet.agents:make_toolkit", setup=(str(tmp_path), {}), workers=1, ray_options=FREE) as fleet,
        pytest.raises(SetupError, match="make_driver"),
    ):
        fleet.run_all([FleetRun("one")])
