"""What pyright pays for many tools.

One file makes 100 calls; the package has 10, 100 or 1,000 tools. CPU time of the whole run, as ratios to ten tools. The
last row makes its calls through a profile that has only the tools it uses.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.results import Row, Table
from benchmarks.timing import child_cpu_ms
from tests.projects import REPOSITORY, Project, tool

CALLS = 100
COUNTS = (10, 100, 1000)
FORMS = {
    "invoke": 'toolkit.invoke("tool_{number}", {{"query": "x"}}).content.total',
    "tools.<name>": 'toolkit.tools.tool_{number}(query="x").total',
}


def called(count: int) -> list[int]:
    """The numbers of the tools that are called, spread over all of them."""
    return [index * count // CALLS for index in range(CALLS)]


def program(count: int, form: str, toolkit: str = "AcmeToolkit") -> str:
    lines = [f"    print({FORMS[form].format(number=number)})" for number in called(count)]
    return "\n".join(
        [f"from acme.generated import {toolkit}", "", "", f"def use(toolkit: {toolkit}) -> None:", *lines, ""]
    )


def milliseconds(project: Project, text: str) -> float:
    """The CPU time of pyright over one file, which must have no mistakes."""
    project.write("program.py", text)
    paths = [str(project.root), str(REPOSITORY)]
    settings = {"pythonVersion": "3.11", "include": ["program.py"], "extraPaths": paths}
    project.write("pyrightconfig.json", json.dumps(settings))
    command = [str(Path(sys.executable).parent / "pyright"), "--pythonpath", sys.executable]
    return child_cpu_ms(command, folder=str(project.root))


def measure(*, full: bool) -> Iterator[Table]:
    with tempfile.TemporaryDirectory() as folder:
        found = list(_measure(Path(folder), COUNTS if full else COUNTS[:1]))
    first, base = found[0][2], f"{found[0][0]}, {found[0][1]} tools"
    rows = [Row(name, value, "ms", value / first, base, count) for name, count, value in found]
    yield Table("pyright", f"CPU time of pyright over {CALLS} calls", tuple(rows), axis="tools")


def _measure(folder: Path, counts: Sequence[int]) -> Iterator[tuple[str, int, float]]:
    for count in counts:
        project = Project(folder / str(count), [tool(f"tool_{index}") for index in range(count)])
        used = sorted({f"tool_{number}" for number in called(count)})
        settings = project.root / "pyproject.toml"
        settings.write_text(f"{settings.read_text()}\n[tool.toolkit.profiles.used]\ntools = {json.dumps(used)}\n")
        project.generate()
        for form in FORMS:
            yield form, count, milliseconds(project, program(count, form))
        if len(used) < count:
            yield (
                f"invoke, profile of {len(used)}",
                count,
                milliseconds(project, program(count, "invoke", "UsedToolkit")),
            )
