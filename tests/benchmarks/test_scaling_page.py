"""docs/scaling.md shows what the simulation of fleets computes."""

from __future__ import annotations

import re

import pytest

from benchmarks.fleet_simulation import CHECKED, TABLES, Batch, Costs, seconds_at_work, simulate
from tests.projects import REPOSITORY

PAGE = REPOSITORY / "docs" / "scaling.md"
LARGE = 1_000_000
ROWS = [
    pytest.param(
        table,
        index,
        # A million calls take seconds; `make test` computes one such row.
        marks=pytest.mark.whole if batch.calls >= LARGE and (table, index) != ("growth", 3) else (),
        id=f"{table} {index}",
    )
    for table, (_, _, batches) in TABLES.items()
    for index, batch in enumerate(batches)
]


def shown_table(name: str) -> list[str]:
    found = re.search(rf"<!-- simulation: {name} -->\n(.*?)\n?<!-- end of simulation -->", PAGE.read_text(), re.DOTALL)
    assert found is not None, name
    return found[1].splitlines()


@pytest.mark.slow
@pytest.mark.sample
@pytest.mark.parametrize(("table", "index"), ROWS)
def test_a_row_of_the_page_is_what_the_simulation_computes(table: str, index: int) -> None:
    _, row, batches = TABLES[table]
    assert shown_table(table)[2 + index] == row(batches[index])


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_the_page_has_every_row(table: str) -> None:
    heading, _, batches = TABLES[table]
    shown = shown_table(table)
    assert shown[:2] == heading.splitlines() and len(shown) == 2 + len(batches)


def test_the_simulation_agrees_with_what_can_be_computed_by_hand() -> None:
    free = Costs(0.0, 0.0, 0.0, 0.0, 0.0)
    one = simulate(Batch(1, 1000, 1.0), free)
    assert one.workers_busy == pytest.approx(1) and one.driver_busy == 0

    # A driver that is always busy takes its own time for each call, whatever the workers do.
    slow = simulate(Batch(100, 1000, 0.001), Costs(0.01, 0.0, 0.0, 0.0, 0.0))
    assert slow.seconds == pytest.approx(1000 * 0.01, rel=0.01)

    # In order and with room for one call, calls run one after the other, however many workers there are.
    assert simulate(Batch(100, 1000, 1.0, 1), free).seconds == pytest.approx(one.seconds)


def test_the_page_compares_the_simulation_with_a_measurement() -> None:
    assert f"and {seconds_at_work(CHECKED):.1f} s in the simulation" in PAGE.read_text()
