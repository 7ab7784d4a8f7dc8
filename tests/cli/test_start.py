"""`toolkit generate` without options: the same answers as with options, without importing what reads those.

What generates code is imported only if it has something to write.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import command_line
from tests.projects import REPOSITORY, Project, run, tool

COMMAND = """
import sys
from toolkit.cli.app import main
sys.argv = ["toolkit", *sys.argv[1:]]
try:
    main()
finally:
    print([name for name in ("typer", "pydantic", "datamodel_code_generator", "yaml") if name in sys.modules])
"""


def start(project: Project, *options: str) -> tuple[str, str]:
    """What the command printed, and what it imported."""
    answer, imported = run([sys.executable, "-c", COMMAND, "generate", *options], project.root).stdout.splitlines()
    return answer, imported


@pytest.mark.slow
def test_nothing_to_do_is_said_at_once(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("alpha")])
    project.generate()
    assert start(project) == ("acme/generated: nothing to do", "[]")
    answer, imported = start(project, "--project", ".")
    assert answer == "acme/generated: nothing to do" and "typer" in imported


def add_spec(project: Project) -> None:
    project.write("acme/tools/beta.json", json.dumps(tool("beta")))


def change_description_file(project: Project) -> None:
    project.write("acme/tools/long.md", "Another text.")


def edit_output(project: Project) -> None:
    project.write("acme/generated/names.py", (project.output / "names.py").read_text() + "x = 1\n")


def remove_output(project: Project) -> None:
    (project.output / "models/alpha.py").unlink()


def replace_output(project: Project) -> None:
    remove_output(project)
    (project.output / "models/alpha.py").mkdir()
    shutil.rmtree(project.output)


def add_surplus(project: Project) -> None:
    shutil.copy(project.output / "models/alpha.py", project.output / "models/stray.py")


def leave_staging(project: Project) -> None:
    project.write("acme/generated/.toolkit-staging/x", "")


def change_settings(project: Project) -> None:
    project.write(
        "pyproject.toml", (project.root / "pyproject.toml").read_text().replace("AcmeToolkit", "OtherToolkit")
    )


# How many files each of them changes. A new tool: its model, and the modules that list all tools.
CHANGES: dict[Callable[[Project], None], str] = {
    add_spec: "10 files", change_description_file: "1 file", edit_output: "1 file", remove_output: "1 file",
    replace_output: "14 files", add_surplus: "1 file", leave_staging: "1 file", change_settings: "6 files",
}  # fmt: skip


@pytest.mark.sample
@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_change_is_seen(tmp_path: Path, change: Callable[[Project], None]) -> None:
    project = Project(tmp_path, [tool("alpha", descriptionFile="long.md")])
    project.write("acme/tools/long.md", "A long text.")
    project.generate()
    change(project)
    assert command_line.toolkit(project.root, "generate").stdout == f"acme/generated: {CHANGES[change]} changed\n"
    assert start(project) == ("acme/generated: nothing to do", "[]")


@pytest.mark.slow
def test_an_import_that_is_missing_is_still_told(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("alpha")])
    settings = (project.root / "pyproject.toml").read_text()
    project.write("pyproject.toml", f'{settings}[tool.toolkit.imports.time]\ncommand = ["server"]\n')
    for _ in range(2):
        done = command_line.toolkit(project.root, "generate", check=True)
        assert done.stderr == "not imported yet: time; run `toolkit import time`\n"


@pytest.mark.slow
def test_mistakes_are_reported_by_the_command(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("alpha")])
    project.generate()
    project.write("acme/tools/tools.json", "{")
    done = command_line.toolkit(project.root, "generate")
    told = "acme/tools/tools.json:1:2: not JSON: Expecting property name enclosed in double quotes\n"
    assert (done.returncode, done.stderr) == (1, told)
    project.write("pyproject.toml", "[tool.toolkit]\nspec = 1\n")
    done = command_line.toolkit(project.root, "generate")
    told = (
        "pyproject.toml:2:1: unknown key 'spec'. Did you mean 'specs'? (/tool/toolkit/spec)\n"
        "pyproject.toml:1:1: 'package' is missing; add, for example, package = \"acme.generated\" (/tool/toolkit)\n"
    )
    assert (done.returncode, done.stderr) == (2, told)


@pytest.mark.slow
def test_a_changed_description_is_written_without_pydantic(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("alpha")])
    project.generate()
    project.write("acme/tools/tools.json", json.dumps({"tools": [tool("alpha", description="Another text.")]}))
    answer, imported = start(project)
    assert (answer, imported) == ("acme/generated: 4 files changed", "[]")


@pytest.mark.slow
@pytest.mark.parametrize("mistake", ["a wrong spec", "a wrong setting"])
def test_mistakes_are_told_as_with_options(tmp_path: Path, mistake: str) -> None:
    project = Project(tmp_path, [tool("alpha")])
    if mistake == "a wrong spec":
        project.write("acme/tools/tools.json", json.dumps({"tools": [tool("alpha", inputSchema=7)]}))
    else:
        project.write("pyproject.toml", "[tool.toolkit]\nspecs = 7\n")
    plain, optioned = (command_line.toolkit(project.root, "generate", *options) for options in ([], ["--project", "."]))
    assert plain.returncode == {"a wrong spec": 1, "a wrong setting": 2}[mistake]
    assert plain.stderr and plain.stdout == ""
    assert (plain.returncode, plain.stderr) == (optioned.returncode, optioned.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("command", [["generate"], ["generate", "--project", "."], ["tools"], ["tools", "--json"]])
def test_a_reader_that_went_away_is_no_traceback(tmp_path: Path, command: list[str]) -> None:
    """As in ``toolkit tools | head -1``."""
    project = Project(tmp_path, [tool("alpha")])
    if command[0] == "tools":
        project.generate()
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "toolkit", *command],
        cwd=project.root,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=writing,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


INTERRUPTED = """
import os, signal, sys

def interrupt(event, arguments):
    if event == "os.rename" and str(arguments[1]).endswith("facade.py"):
        os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(interrupt)
"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--project", "."]], ids=["without options", "with options"])
def test_after_ctrl_c_the_package_works_and_the_next_run_finishes(tmp_path: Path, options: list[str]) -> None:
    project = Project(tmp_path, [tool("alpha")])
    project.generate()
    project.write("acme/tools/beta.json", json.dumps(tool("beta")))
    done = command_line.toolkit(project.root, "generate", *options, first=INTERRUPTED)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
    assert not (project.output / ".toolkit-staging").exists()
    project.python(
        "import acme.generated as g; g.create_agent_toolkit(g.ToolkitContext(workspace='.', policy=g.SecurityPolicy(default='deny')), packs=[])"
    )
    again = [command_line.toolkit(project.root, "generate", check=True).stdout for _ in range(2)]
    assert again[0] == "acme/generated: 4 files changed\n"  # those that were not renamed yet
    assert again[1] == "acme/generated: nothing to do\n"
    assert command_line.toolkit(project.root, "check", check=True).stdout == "acme/generated: up to date\n"
