"""How a fleet grows: ``python -m benchmarks.fleet_simulation`` prints the tables of docs/scaling.md.

A simulation of one driver and many workers, event by event, with the costs that ``benchmarks.fleet_figures`` measured on one
machine. The driver does one thing after the other. Workers have a core each. How long calls take is random, always with the
same seed, so the tables are the same each time.
"""

from __future__ import annotations

import heapq
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds, as measured on one machine."""

    driver_per_call: float = 0.60e-3
    worker_per_call: float = 0.70e-3
    transport_per_call: float = 0.30e-3
    """What is left of a call that runs alone."""
    driver_per_start: float = 23e-3
    start: float = 1.2
    """Until a worker can take its first call."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What is simulated: a batch of calls whose own time is exponentially distributed."""

    workers: int
    calls: int
    seconds: float
    """The mean time of a call itself."""
    ahead: int | None = None
    """For results in order: how many calls may be read before the result of the first of them was taken."""
    deaths: float = 0.0
    """How likely a worker dies during a call, which is then repeated on another one."""
    is_steady: bool = False
    """Whether every call takes exactly that time."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it."""

    seconds: float
    driver_busy: float
    """The part of the time in which the driver computed."""
    workers_busy: float
    """The part of the workers' time in which calls ran."""


def simulate(batch: Batch, costs: Costs = Costs(), seed: int = 1) -> Outcome:  # noqa: B008
    """Runs a batch from the start of its workers to its last result."""
    chance = random.Random(seed)
    send = take = costs.driver_per_call / 2
    ahead = batch.calls if batch.ahead is None else batch.ahead
    clock = driver_time = worked = 0.0
    # When something happens: a worker is ready (number -1), or reports a call.
    events: list[tuple[float, int, int]] = []
    for worker in range(batch.workers):
        clock += costs.driver_per_start
        heapq.heappush(events, (clock + costs.start, worker, -1))
    driver_time += clock
    is_done = bytearray(batch.calls)
    read = taken = 0
    again: list[int] = []
    idle: list[int] = []

    while events:
        now, worker, number = heapq.heappop(events)
        clock = max(clock, now)
        if number >= 0:
            clock += take
            driver_time += take
            if batch.deaths and chance.random() < batch.deaths:
                again.append(number)
                clock += costs.driver_per_start
                driver_time += costs.driver_per_start
                heapq.heappush(events, (clock + costs.start, worker, -1))
                continue
            is_done[number] = 1
            while taken < batch.calls and is_done[taken]:
                taken += 1
        idle.append(worker)
        while idle and (again or read < batch.calls and read - taken < ahead):
            if again:
                number = again.pop()
            else:
                number, read = read, read + 1
            clock += send
            driver_time += send
            own = costs.worker_per_call
            own += batch.seconds if batch.is_steady else chance.expovariate(1 / batch.seconds)
            worked += own
            heapq.heappush(events, (clock + costs.transport_per_call + own, idle.pop(), number))
    return Outcome(clock, driver_time / clock, worked / (batch.workers * clock))


CHECKED: Final = Batch(8, 160, 0.513, is_steady=True)
"""What ``fleet_figures`` also measures: commands that sleep 0.5 s, and the 13 ms that a command takes."""


def seconds_at_work(batch: Batch) -> float:
    """The time of a batch whose workers have started before."""
    costs = Costs(driver_per_start=0.0, start=0.0)
    return simulate(batch, costs).seconds


GROWTH: Final = [Batch(10**power, 10 ** (power + 3), 0.1) for power in range(4)]
DURATIONS: Final = [Batch(1000, 1_000_000, seconds) for seconds in (0.001, 0.01, 0.1, 1.0, 10.0)]
IN_ORDER: Final = [Batch(100, 100_000, 1.0, ahead) for ahead in (None, 1600, 800, 400, 200, 100)]
DEATHS: Final = [Batch(100, 100_000, 1.0, None, deaths) for deaths in (0.0, 0.001, 0.01, 0.1)]


def growth_row(batch: Batch) -> str:
    found = simulate(batch)
    size = f"{batch.workers:,} | {batch.calls:,}"
    return f"| {size} | {_time(found.seconds)} | {found.driver_busy:.0%} | {found.workers_busy:.0%} |"


def duration_row(batch: Batch) -> str:
    found = simulate(batch)
    rate = batch.calls / found.seconds
    return (
        f"| {_time(batch.seconds)} | {_time(found.seconds)} | {rate:,.0f} | {found.driver_busy:.0%} "
        f"| {found.workers_busy:.0%} |"
    )


def order_row(batch: Batch) -> str:
    found = simulate(batch)
    how = "as they come" if batch.ahead is None else f"in order, `ahead={batch.ahead}`"
    return f"| {how} | {_time(found.seconds)} | {found.workers_busy:.0%} |"


def death_row(batch: Batch) -> str:
    found = simulate(batch)
    how = f"one in {1 / batch.deaths:,.0f}" if batch.deaths else "none"
    return f"| {how} | {_time(found.seconds)} | {found.workers_busy:.0%} |"


def _time(seconds: float) -> str:
    if seconds >= 120:
        return f"{seconds / 60:.0f} min" if seconds >= 600 else f"{seconds / 60:.1f} min"
    return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds * 1e3:.0f} ms"


Row = Callable[[Batch], str]
TABLES: Final[dict[str, tuple[str, Row, list[Batch]]]] = {
    "growth": ("| workers | calls | time | driver busy | workers busy |\n|---|---|---|---|---|", growth_row, GROWTH),
    "durations": (
        "| a call takes | a million calls take | calls per second | driver busy | workers busy |\n|---|---|---|---|---|",
        duration_row,
        DURATIONS,
    ),
    "order": ("| results | time | workers busy |\n|---|---|---|", order_row, IN_ORDER),
    "deaths": ("| calls during which a worker dies | time | workers busy |\n|---|---|---|", death_row, DEATHS),
}
"""Tables of the page: name -> heading, and the rows."""


def main() -> None:
    for heading, row, batches in TABLES.values():
        sys.stdout.write("\n".join([heading, *map(row, batches)]) + "\n\n")


if __name__ == "__main__":
    main()
