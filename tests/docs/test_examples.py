"""Every example runs: the programs of the README and the docstrings of all modules."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

import toolkit
from tests.projects import REPOSITORY, Project, run

README = (REPOSITORY / "README.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
ABOUT_THE_LOOP = re.findall(r"```python\n(.*?)```", (REPOSITORY / "docs/loop.md").read_text(), re.DOTALL)
ABOUT_SERVERS = re.findall(r"```python\n(.*?)```", (REPOSITORY / "docs/mcp.md").read_text(), re.DOTALL)
ABOUT_TRACING = re.findall(r"```python\n(.*?)```", (REPOSITORY / "docs/tracing.md").read_text(), re.DOTALL)


def modules() -> list[str]:
    return [
        found.name
        for found in pkgutil.walk_packages(toolkit.__path__, "toolkit.")
        if not found.name.endswith("__main__")
    ]


@pytest.mark.parametrize("name", ["toolkit", *modules()])
@pytest.mark.slow
def test_docstrings_run(name: str) -> None:
    module: ModuleType = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    assert result.failed == 0


@pytest.mark.parametrize(
    "program", [program for program in PROGRAMS + ABOUT_SERVERS + ABOUT_TRACING if "acme" not in program]
)
def test_readme_programs_run(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    exec(compile(program, "README.md", "exec"), {"__name__": "readme"})


def test_the_programs_of_the_page_about_the_loop_run_one_after_the_other_in_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(ABOUT_THE_LOOP) == 10
    exec(compile("\n".join(ABOUT_THE_LOOP), "docs/loop.md", "exec"), {"__name__": "loop"})


@pytest.mark.slow
def test_the_programs_of_the_pages_are_clean_under_mypy(tmp_path: Path) -> None:
    pages = [
        *(program for program in PROGRAMS + ABOUT_SERVERS + ABOUT_TRACING if "acme" not in program),
        "\n".join(ABOUT_THE_LOOP),
    ]
    files = [tmp_path / f"program_{number}.py" for number in range(len(pages))]
    for file, program in zip(files, pages, strict=True):
        file.write_text(program)
    checked = run([str(Path(sys.executable).parent / "mypy"), "--strict", *map(str, files)], tmp_path)
    assert f"no issues found in {len(files)} source files" in checked.stdout


@pytest.mark.slow
def test_readme_project_with_own_tools(tmp_path: Path) -> None:
    """The YAML, the settings and the handler in the README form a project that works and is clean under mypy."""
    spec = re.search(r"```yaml\n(.*?)```", README, re.DOTALL)
    settings = re.search(r"```toml\n(.*?)```", README, re.DOTALL)
    [handlers] = [program for program in PROGRAMS if "ACME = bind(add=add)" in program]
    assert spec and settings
    project = Project(tmp_path)
    shutil.rmtree(tmp_path / "acme" / "tools")
    project.write("acme/tools/add.yaml", spec[1])
    project.write("pyproject.toml", settings[1])
    project.write("acme/tools/__init__.py", handlers)
    project.generate()
    project.write(
        "use.py",
        "from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit\n"
        "policy = SecurityPolicy(tools={'add': 'allow', 'list': 'allow'})\n"
        "with create_agent_toolkit(ToolkitContext('.', policy)) as toolkit:\n"
        "    print(toolkit.invoke('add', {'a': 2, 'b': 3}).content.sum, len(toolkit.tools.list().entries))\n",
    )
    run([str(Path(sys.executable).parent / "mypy"), "--strict", "acme", "use.py"], tmp_path)
    assert project.python("import use").stdout.split() == ["5", "3"]


def test_the_two_commands_of_the_readme_are_targets() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    for target in re.findall(r"^make ([a-z-]+)", README, re.MULTILINE):
        assert f"\n{target}:" in makefile


def test_make_help_lists_every_target() -> None:
    shown = run(["make", "-s", "help"], REPOSITORY).stdout
    wanted = [
        "setup",
        "run",
        "quick",
        "test",
        "test-all",
        "corpus",
        "generate",
        "check-generated",
        "typecheck",
        "lint",
        "bench",
        "bench-check",
        "bench-keep",
        "docs",
    ]
    assert [line.split()[1] for line in shown.splitlines()][1 : len(wanted) + 1] == wanted
