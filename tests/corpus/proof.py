"""Takes shared specs through the public entry points: generated, imported, and called in files that are type-checked.

A type checker tries every overload of ``invoke`` before the right one, which takes seconds per call among thousands. So
each tool is called in a package of a hundred, and the package of all tools is checked with every method and some calls of
``invoke``.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.corpus.arguments import NoInstance, valid_arguments
from tests.corpus.calls import calls
from tests.corpus.entry_points import disagreements
from tests.corpus.project import SharedProject, SharedTool
from tests.projects import run
from tests.typing.checkers import Report, mypy, pyright
from toolkit.codegen.package.models import check_module

A_PACKAGE = 100
INVOKE_EVERY = 1000
"""In the package of all tools, every so many-th tool is invoked."""
JUDGES: dict[str, Callable[[Sequence[Path], Path], Report]] = {
    "mypy": lambda files, root: mypy(files, root, "--explicit-package-bases"),
    "pyright": lambda files, root: pyright(files, root, "standard"),
}


@dataclass(slots=True)
class Proof:
    """The outcome for each tool, by its wire name."""

    tools: Sequence[SharedTool]
    refused: dict[str, str] = field(default_factory=dict)
    not_imported: dict[str, str] = field(default_factory=dict)
    errors: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """By checker: the tool (or the file, if no tool is known) and the error text."""

    disagreements: dict[str, list[str]] = field(default_factory=dict)
    """By tool that was called: the entry points that hand its handler something else than what was given."""

    seconds: Counter[str] = field(default_factory=Counter)
    """Wall-clock time of each stage."""

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        self.seconds[stage] += round(time.monotonic() - start)

    def failures(self) -> list[str]:
        return [
            *(
                f"{name} cannot be imported or refuses valid arguments: {why}"
                for name, why in self.not_imported.items()
            ),
            *(f"{checker}: {name}: {text}" for checker, found in self.errors.items() for name, text in found),
            *(f"{name}: {text}" for name, texts in self.disagreements.items() for text in texts),
        ]


def prove(
    root: Path,
    tools: Sequence[SharedTool],
    a_package: int = A_PACKAGE,
    invoke_every: int = 1,
    *,
    runs_calls: bool = False,
) -> Proof:
    """Generates packages of ``a_package`` tools each, imports every module, and checks calls of all tools with mypy and pyright.

    With ``runs_calls`` every tool is also called through every entry point.
    """
    proof = Proof(tools)
    programs: dict[Path, list[str]] = {}
    for number, start in enumerate(range(0, len(tools), a_package)):
        project = SharedProject(root, f"part_{number:03}", tools[start : start + a_package])
        with proof.timed("generate"):
            project.generate()
        wires = {tool.key: tool.wire for tool in project.tools}
        proof.refused |= {wires[key]: reason for key, reason in project.refused.items()}
        _check_allow_list(project)
        with proof.timed("import"):
            proof.not_imported |= import_models(project)
        if runs_calls:
            with proof.timed("call"):
                proof.disagreements |= disagreements(project)
        text, about = calls(project.rows(), project.package, invoke_every)
        program = root / f"calls_{number:03}.py"
        program.write_text(text, encoding="utf-8")
        programs[program] = about
    for checker in JUDGES:
        with proof.timed(checker):
            proof.errors[checker] = run_checker(root, programs, checker)
    return proof


def run_checker(root: Path, programs: dict[Path, list[str]], checker: str) -> list[tuple[str, str]]:
    """The errors a checker finds in the programs and in all packages; ``programs`` maps each line to its tool."""
    packages = sorted(root.glob("part_*/generated"))
    files = [*programs, *(file for package in packages for file in sorted(package.rglob("*.py")))]
    return _errors_by_tool(JUDGES[checker](files, root), programs)


def _check_allow_list(project: SharedProject) -> None:
    """Checks the files on disk, not only the plan: they hold no code that runs."""
    for file in sorted((project.output / "models").glob("*.py")):
        check_module(file.read_text(encoding="utf-8"), file.name)


_IMPORT = """
import importlib, json, sys
package, tools = sys.argv[1], json.load(open(sys.argv[2]))
importlib.import_module(package)
early = [name for name in sys.modules if name.startswith(package + ".models.")]
assert not early, f"importing the package imported {early[:5]}"
facade = importlib.import_module(package + ".facade")
early = [name for name in sys.modules if name.startswith(package + ".models.")]
assert not early, f"importing the facade imported {early[:5]}"
failed = {}
for name, module, prefix, instances in tools:
    try:
        model = getattr(importlib.import_module(module), prefix + "Input")
        for arguments in instances:
            model.model_validate(arguments)
        getattr(importlib.import_module(package), prefix + "Output")
    except Exception as error:
        failed[name] = repr(error)[:400]
print(json.dumps(failed))
"""


def import_models(project: SharedProject) -> dict[str, str]:
    """Imports every model module in a separate process, after checking that the package itself imports none.

    Also validates the arguments that the checked programs use. Returns the failures by tool name.
    """
    tools = [(row["name"], row["module"], row["prefix"], _instances(row["inputSchema"])) for row in project.rows()]
    listed = project.root / f"{project.name}.json"
    listed.write_text(json.dumps(tools), encoding="utf-8")
    done = run([sys.executable, "-c", _IMPORT, project.package, str(listed)], project.root)
    failed: dict[str, str] = json.loads(done.stdout)
    return failed


def _instances(schema: dict[str, object]) -> list[dict[str, object]]:
    try:
        made = valid_arguments(schema)
    except NoInstance:
        return []
    return [made.minimal, made.full]


def _errors_by_tool(report: Report, programs: dict[Path, list[str]]) -> list[tuple[str, str]]:
    """Each error with the tool it is about, if its line belongs to a program."""
    about = {program.name: names for program, names in programs.items()}
    return [
        (about[file][line - 1] if file in about else file, f"{text} ({file}:{line})")
        for (file, line), texts in sorted(report.errors.items())
        for text in texts
    ]
