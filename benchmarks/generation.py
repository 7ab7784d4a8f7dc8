"""The cost of generation: from scratch, after one change, with nothing changed; and that of the command with its imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.projects import Project, tool

TOOLS = 1000


def report() -> str:
    with tempfile.TemporaryDirectory() as folder:
        Project(Path(folder) / "warm", [tool("warm")]).generate()
        project = Project(Path(folder) / "project")
        for number in range(TOOLS):
            project.write(f"acme/tools/tool_{number}.json", json.dumps(tool(f"tool_{number}")))
        scratch = _ms(project.generate)
        _change(project, "Changed.")
        changed, unchanged = _ms(project.generate), _ms(project.generate)
        _change(project, "Changed again.")
        changed_command, unchanged_command = _command_ms(project), _command_ms(project)
    return (
        f"Generating {TOOLS} tools (CPU; datamodel-code-generator is already imported)\n"
        f"  {'from scratch':<52} {scratch:>12,.0f} ms  {scratch / TOOLS:>7.1f} ms per tool\n"
        f"  {'one spec changed':<52} {changed:>12,.0f} ms\n  {'nothing changed':<52} {unchanged:>12,.1f} ms\n"
        f"  {'one spec changed, `toolkit generate`':<52} {changed_command:>12,.0f} ms\n"
        f"  {'nothing changed, `toolkit generate`':<52} {unchanged_command:>12,.0f} ms"
    )


def _change(project: Project, description: str) -> None:
    project.write("acme/tools/tool_7.json", json.dumps(tool("tool_7", description=description)))


def _ms(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start)


def _command_ms(project: Project) -> float:
    """CPU of the command, with its start and its imports."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "toolkit", "generate"], cwd=project.root, check=True, capture_output=True)
    after = os.times()
    return 1000 * sum(after[kind] - before[kind] for kind in (2, 3))
