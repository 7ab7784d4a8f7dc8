"""What pyright pays for many tools: ``python -m benchmarks.pyright``. Minutes, so it is not part of ``make bench``.

One file makes 100 calls; the package has 10, 100 or 1,000 tools. CPU time of the whole run, as ratios to ten tools. The
last row makes its calls through a profile that has only the tools it uses.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import table
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
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [str(Path(sys.executable).parent / "pyright"), "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"pyright failed: {done.stdout}{done.stderr}")
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measure(folder: Path) -> Iterator[tuple[str, float]]:
    for count in COUNTS:
        project = Project(folder / str(count), [tool(f"tool_{index}") for index in range(count)])
        used = sorted({f"tool_{number}" for number in called(count)})
        settings = project.root / "pyproject.toml"
        settings.write_text(f"{settings.read_text()}\n[tool.toolkit.profiles.used]\ntools = {json.dumps(used)}\n")
        project.generate()
        for form in FORMS:
            yield f"{count:,} tools, {CALLS} x {form}", milliseconds(project, program(count, form))
        if len(used) < count:
            name = f"{count:,} tools, {CALLS} x invoke, profile of {len(used)}"
            yield name, milliseconds(project, program(count, "invoke", "UsedToolkit"))


def report() -> str:
    with tempfile.TemporaryDirectory() as folder:
        found = dict(measure(Path(folder)))
    return table("CPU time of pyright over a file of calls", found, next(iter(found)), "ms")


if __name__ == "__main__":
    print(report())  # noqa: T201
