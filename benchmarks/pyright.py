"""What pyright pays for many tools: ``python -m benchmarks.pyright``. Minutes, so it is not part of ``make bench``.

One file makes 100 calls; the package has 10, 100 or 1,000 tools. CPU seconds of the whole run, as ratios to ten tools.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import table
from tests.projects import REPOSITORY, Project, tool

CALLS = 100
COUNTS = (10, 100, 1000)


def program(count: int, call: str) -> str:
    numbers = [index * count // CALLS for index in range(CALLS)]
    lines = [f"    print({call.format(number=number)})" for number in numbers]
    head = ["from acme.generated import AcmeToolkit", "", "", "def use(toolkit: AcmeToolkit) -> None:"]
    return "\n".join([*head, *lines, ""])


FORMS = {
    "invoke": 'toolkit.invoke("tool_{number}", {{"query": "x"}}).content.total',
    "method": 'toolkit.tools.tool_{number}(query="x").total',
}


def seconds(folder: Path, file: str) -> float:
    """The CPU time of pyright over one file that has no mistakes."""
    settings = {"pythonVersion": "3.11", "include": [file], "extraPaths": [str(folder), str(REPOSITORY)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [str(Path(sys.executable).parent / "pyright"), "--pythonpath", sys.executable]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def report() -> str:
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place:
        for count in COUNTS:
            project = Project(Path(place) / str(count), [tool(f"tool_{index}") for index in range(count)])
            project.generate()
            for form, call in FORMS.items():
                project.write(f"{form}.py", program(count, call))
                found[f"{count:,} tools, {CALLS} x {form}"] = 1000 * seconds(project.root, f"{form}.py")
    return table("pyright over a file of calls", found, f"{COUNTS[0]} tools, {CALLS} x invoke", "ms")


if __name__ == "__main__":
    print(report())  # noqa: T201
