"""``toolkit generate`` as a user runs it: from scratch, after one change, with nothing changed; then the generated package.

CPU time of the whole command and its children, so that starting Python and importing count.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks import REPOSITORY
from benchmarks.parts.imports import BASE, PROGRAMS
from benchmarks.results import Row, Table, by_curve, compared
from benchmarks.timing import child_cpu_ms
from tests.projects import Project, run, tool

SIZES: Final = (10, 100, 1000)
ALONE: Final = "datamodel-code-generator alone, all in one run"
SCRATCH: Final = "from scratch"
PYDANTIC: Final = "importing pydantic's BaseModel"
CHANGED: Final = "one spec changed"
TYPE_CHANGED: Final = "one type changed"
UNCHANGED: Final = "nothing changed"
FIRST_CALL: Final = "import and first call"

# Prints milliseconds of CPU time a tool, without the import of the generator.
ALONE_PROGRAM: Final = """
import json, sys, time
from datamodel_code_generator import DataModelType, Formatter, InputFileType, generate
options = dict(input_file_type=InputFileType.JsonSchema, output_model_type=DataModelType.PydanticV2BaseModel,
               formatters=[Formatter.BUILTIN], use_annotated=True, disable_timestamp=True)
schemas = json.load(sys.stdin)
one = dict(list(schemas.items())[:2])
generate(json.dumps({"$defs": one}), **options)
start = time.process_time()
generate(json.dumps({"$defs": schemas}), **options)
print(2000 * (time.process_time() - start) / len(schemas))
"""
# Prints the ratio of one call to the limit, and the nanoseconds it takes.
CALL_PROGRAM: Final = """
from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit
from benchmarks.limit import LIMIT, make_limit
from benchmarks.timing import least_cpu
from toolkit import Pack
pack = Pack({"tool_7": lambda args, ctx: {"rows": [], "total": 0}})
with create_agent_toolkit(ToolkitContext(".", SecurityPolicy(default="allow")), packs=[pack]) as toolkit:
    call = lambda: toolkit.execute_raw("tool_7", '{"query": "x"}').text()
    best = least_cpu({LIMIT: make_limit(), "call": call}, rounds=10)
    print(best["call"], best["call"] / best[LIMIT])
"""
FIRST_CALL_PROGRAM: Final = """
from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit import Pack
pack = Pack({"tool_7": lambda args, ctx: {"rows": [], "total": 0}})
toolkit = create_agent_toolkit(ToolkitContext(".", SecurityPolicy(default="allow")), packs=[pack])
toolkit.execute_raw("tool_7", '{"query": "x"}').text()
"""


def measure(*, full: bool) -> Iterator[Table]:
    sizes = SIZES if full else SIZES[:1]
    with tempfile.TemporaryDirectory() as folder:
        projects = {size: _project(Path(folder) / str(size), size) for size in sizes}
        _generate(_project(Path(folder) / "first", 1))
        scratch = {size: _generate(project) / size for size, project in projects.items()}
        alone = _alone_ms(100 if full else 2)
        rows = compared({ALONE: alone, SCRATCH: scratch[sizes[-1]]}, ALONE, "ms a tool")
        yield Table("scratch", f"Generating {sizes[-1]:,} tools from scratch, CPU time a tool", rows)
        yield _incremental(projects[sizes[-1]], sizes[-1], attempts=3 if full else 1)
        yield _by_tools(projects, scratch, alone, attempts=3 if full else 1)


def _project(root: Path, size: int) -> Project:
    project = Project(root)
    for number in range(size):
        project.write(f"acme/tools/tool_{number}.json", json.dumps(tool(f"tool_{number}")))
    return project


def _generate(project: Project) -> float:
    """The record of earlier runs is kept in the project's folder, so that the first run starts from scratch."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(project.root / "cache"), "PYTHONPATH": str(REPOSITORY)}
    # Users' modules are compiled once: here beside the projects, and by a run that does not count.
    environment["PYTHONPYCACHEPREFIX"] = str(project.root.parent / "compiled")
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "toolkit", "generate"]
    return child_cpu_ms(command, folder=str(project.root), environment=environment)


def _alone_ms(count: int) -> float:
    schemas = {}
    for number in range(count):
        spec = tool(f"tool_{number}")
        schemas[f"Tool{number}Input"], schemas[f"Tool{number}Output"] = spec["inputSchema"], spec["outputSchema"]
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "schemas.json"
        given.write_text(json.dumps(schemas))
        program = ALONE_PROGRAM.replace("sys.stdin", f"open({str(given)!r})")
        return float(run([sys.executable, "-W", "ignore", "-c", program], Path(folder)).stdout)


def _incremental(project: Project, size: int, attempts: int) -> Table:
    """A changed text, which the generator beneath does not see, and a changed type, for which it must run."""
    taken: dict[str, list[float]] = {name: [] for name in (PYDANTIC, CHANGED, TYPE_CHANGED, UNCHANGED)}
    for attempt in range(attempts):
        spec = tool("tool_7", description=f"Changed {attempt}.")
        project.write("acme/tools/tool_7.json", json.dumps(spec))
        taken[CHANGED].append(_generate(project))
        spec["inputSchema"]["properties"][f"added_{attempt}"] = {"type": "string"}
        project.write("acme/tools/tool_7.json", json.dumps(spec))
        taken[TYPE_CHANGED].append(_generate(project))
        taken[UNCHANGED].append(_generate(project))
        taken[PYDANTIC].append(child_cpu_ms([sys.executable, "-c", PROGRAMS[BASE]]))
    rows = compared({name: min(times) / 1000 for name, times in taken.items()}, PYDANTIC, "s")
    return Table("again", f"Generating again, {size:,} tools: the whole command, CPU time", rows)


def _by_tools(projects: dict[int, Project], scratch: dict[int, float], alone: float, attempts: int) -> Table:
    """What grows with the number of tools, and what must not: a call, the import."""
    rows: list[Row] = []
    first: dict[int, float] = {}
    for size, project in projects.items():
        rows.append(Row("generation a tool", scratch[size], "ms", scratch[size] / alone, ALONE, size))
        call, ratio = map(float, project.python(CALL_PROGRAM).stdout.split())
        rows.append(Row("one call", call, "ns", ratio, "pydantic-core for the tool `add`", size))
        first[size] = min(_first_call(project) for _ in range(attempts))
        rows.append(Row(FIRST_CALL, first[size], "ms", first[size] / first[min(first)], f"{min(first)} tools", size))
    return Table("tools", "Growth by the number of tools in the package", by_curve(rows), axis="tools")


def _first_call(project: Project) -> float:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(project.root), str(REPOSITORY)])}
    command = [sys.executable, "-c", FIRST_CALL_PROGRAM]
    return child_cpu_ms(command, folder=str(project.root), environment=environment)
