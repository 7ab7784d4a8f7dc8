"""Tests of one ``xdist_group`` share a process, so what their session fixtures make is made once."""

from __future__ import annotations

import os

import pytest


@pytest.mark.parametrize("number", range(6))
@pytest.mark.xdist_group("groups")
def test_the_tests_of_a_group_run_in_one_process(
    number: int, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if not pytestconfig.getoption("loadgroup", default=False):
        pytest.skip("without --dist loadgroup there are no groups")
    processes = tmp_path_factory.getbasetemp().parent / "processes of a group"  # all processes of a run see it
    with processes.open("a") as file:
        file.write(f"{os.getpid()}\n")
    assert len(set(processes.read_text().split())) == 1
