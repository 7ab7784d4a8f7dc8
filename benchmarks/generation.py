"""The cost of generation: from scratch, after one change, and with nothing changed."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.projects import Project, tool

TOOLS = 100


def report() -> str:
    with tempfile.TemporaryDirectory() as folder:
        Project(Path(folder) / "warm", [tool("warm")]).generate()
        project = Project(Path(folder) / "project")
        for number in range(TOOLS):
            project.write(f"acme/tools/tool_{number}.json", json.dumps(tool(f"tool_{number}")))
        scratch = _ms(project)
        project.write("acme/tools/tool_7.json", json.dumps(tool("tool_7", description="Changed.")))
        changed, unchanged = _ms(project), _ms(project)
    return (
        f"Generating {TOOLS} tools (datamodel-code-generator is already imported)\n"
        f"  {'from scratch':<52} {scratch:>12,.0f} ms  {scratch / TOOLS:>7.1f} ms per tool\n"
        f"  {'one spec changed':<52} {changed:>12,.0f} ms\n  {'nothing changed':<52} {unchanged:>12,.1f} ms"
    )


def _ms(project: Project) -> float:
    start = time.process_time()
    project.generate()
    return 1000 * (time.process_time() - start)
