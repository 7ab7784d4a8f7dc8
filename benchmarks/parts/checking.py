"""What mypy costs for 10, 100 and 1,000 tools and 100 calls, with the plugin and without it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.results import Row, Table
from benchmarks.timing import child_cpu_ms
from tests.projects import REPOSITORY, Project, tool

SIZES = (10, 100, 1000)
CALLS = 100
SETTINGS = {"plugin": "[mypy]\nstrict = True\nplugins = toolkit.mypy\n", "overloads": "[mypy]\nstrict = True\n"}
RUNS = ("cold", "warm", "changed caller")


def caller(count: int) -> str:
    lines = ["from acme.generated import AcmeToolkit", "", "", "def calls(toolkit: AcmeToolkit) -> None:"]
    for index in range(CALLS):
        call = f'toolkit.invoke("tool_{index * 7 % count}", {{"query": "x"}})'
        lines.append(f"    print({call}.content.rows[0].id.bit_length())")
    return "\n".join([*lines, ""])


def measure(*, full: bool) -> Iterator[Table]:
    """A curve for each kind of run; ratios to ten tools with the plugin."""
    sizes, rounds = (SIZES, 3) if full else (SIZES[:1], 1)
    found = dict(_measure(sizes, rounds))
    rows = [
        Row(
            f"{run}, {name}",
            value,
            "ms",
            value / found[sizes[0], "plugin", run],
            f"{run}, plugin, {sizes[0]} tools",
            size,
        )
        for (size, name, run), value in found.items()
    ]
    yield Table("mypy", f"CPU time of mypy over {CALLS} calls", tuple(rows), axis="tools")


def _measure(sizes: Sequence[int], rounds: int) -> Iterator[tuple[tuple[int, str, str], float]]:
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            project = Project(Path(folder) / str(size), [tool(f"tool_{index}") for index in range(size)])
            project.generate()
            for name, settings in SETTINGS.items():
                project.write("mypy.ini", settings)
                best = dict.fromkeys(RUNS, float("inf"))
                for attempt in range(rounds):
                    project.write("caller.py", caller(size))
                    cache = f"cache-{name}-{attempt}"
                    best["cold"] = min(best["cold"], _cpu(project, cache))
                    best["warm"] = min(best["warm"], _cpu(project, cache))
                    project.write("caller.py", f"{caller(size)}\n# changed\n")
                    best["changed caller"] = min(best["changed caller"], _cpu(project, cache))
                yield from (((size, name, run), value) for run, value in best.items())


def _cpu(project: Project, cache: str) -> float:
    places = os.pathsep.join([str(project.root), str(REPOSITORY)])
    environment = {**os.environ, "MYPYPATH": places, "PYTHONPATH": places}
    command = [sys.executable, "-m", "mypy", f"--cache-dir={cache}", "caller.py"]
    return child_cpu_ms(command, folder=str(project.root), environment=environment)
