"""What tests cost: ``pytest --costs FILE`` writes a line for each, and prints the files that cost most."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Generator
from operator import itemgetter
from pathlib import Path

import pytest

SHOWN = 20


class Costs:
    """Seconds of CPU, those of ended processes included, and seconds of waiting for it all."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        before = os.times()
        try:
            return (yield)
        finally:
            after = os.times()
            used, waited = sum(after[:4]) - sum(before[:4]), after.elapsed - before.elapsed
            with self.file.open("a") as file:
                file.write(f"{used:.2f}\t{waited:.2f}\t{item.nodeid}\n")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        used: dict[str, float] = defaultdict(float)
        waited: dict[str, float] = defaultdict(float)
        tests = Counter[str]()
        for line in self.file.read_text().splitlines():
            cpu, wall, test = line.split("\t", 2)
            place = test.partition("::")[0]
            used[place] += float(cpu)
            waited[place] += float(wall)
            tests[place] += 1
        terminalreporter.section(
            f"seconds of CPU, seconds in all: {sum(used.values()):.0f}, {sum(waited.values()):.0f}"
        )
        for place, seconds in sorted(used.items(), key=itemgetter(1), reverse=True)[:SHOWN]:
            terminalreporter.write_line(f"{seconds:7.1f} {waited[place]:7.1f}  {place} ({tests[place]})")
