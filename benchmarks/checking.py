"""What mypy costs for 10, 100 and 1,000 tools and 100 calls, with the plugin and without: ``python -m benchmarks.checking``.

It takes minutes, so `make bench` leaves it out.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

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


def report(rounds: int = 3) -> str:
    """A row for each run, a column for each number of tools; ratios to ten tools with the plugin."""
    seconds = dict(_measure(rounds))
    lines = ["| mypy | " + " | ".join(f"{size:,} tools" for size in SIZES) + " |", "|---" * (len(SIZES) + 1) + "|"]
    for name in SETTINGS:
        for run in RUNS:
            base = seconds[SIZES[0], "plugin", run]
            cells = [f"{seconds[size, name, run] / base:.1f} x ({seconds[size, name, run]:.2f} s)" for size in SIZES]
            lines.append(f"| {run}, {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _measure(rounds: int) -> Iterator[tuple[tuple[int, str, str], float]]:
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
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
    """Seconds of CPU time, which depend less on what else runs than the time on the clock."""
    places = os.pathsep.join([str(project.root), str(REPOSITORY)])
    environment = {**os.environ, "MYPYPATH": places, "PYTHONPATH": places}
    command = [sys.executable, "-m", "mypy", f"--cache-dir={cache}", "caller.py"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=project.root, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    print(report())  # noqa: T201
