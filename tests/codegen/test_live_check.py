"""``toolkit check --live``: committed imports against what their origins tell now, with an exit code for CI."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests import command_line
from tests.projects import Project

MATHS = '''
from toolkit import tool

@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
'''
SETTINGS = '[tool.toolkit.imports.maths]\nfunctions = ["acme.maths"]\nprefix = "m_"\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write("pyproject.toml", (tmp_path / "pyproject.toml").read_text() + SETTINGS)
    made.write("acme/maths.py", MATHS)
    assert toolkit(made, "import", "--trust").returncode == 0
    return made


def toolkit(project: Project, *words: str) -> subprocess.CompletedProcess[str]:
    return command_line.toolkit(project.root, *words)


@pytest.mark.slow
def test_nothing_changed(project: Project) -> None:
    ran = toolkit(project, "check", "--live")
    assert (ran.returncode, ran.stdout) == (0, "nothing changed\n")


@pytest.mark.parametrize(
    ("before", "after", "told", "codes"),
    [
        ("Add two numbers.", "Add them.", "maths: add: compatible: 'description' changed (/description)\n1 compatible, 0 widening, 0 breaking\n", (1, 0, 0)),
        ("b: int)", "b: int = 0)", "maths: add: widening: 'b' is no longer required (/inputSchema/required)\n0 compatible, 1 widening, 0 breaking\n", (1, 1, 0)),
        ("b: int)", "b: str)", "maths: add: breaking: the type was integer, is now string (/inputSchema/properties/b/type)\n0 compatible, 0 widening, 1 breaking\n", (1, 1, 1)),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_each_class_has_its_exit_code(
    project: Project, before: str, after: str, told: str, codes: tuple[int, ...]
) -> None:
    project.write("acme/maths.py", MATHS.replace(before, after))
    file = project.root / "acme/tools/maths.json"
    committed = file.read_bytes()
    ran = [
        toolkit(project, "check", "--live", *words)
        for words in ((), ("--allow", "compatible"), ("maths", "--allow", "widening"))
    ]
    assert {run.stdout for run in ran} == {told}
    assert tuple(run.returncode for run in ran) == codes
    way_out = "to accept the changes: `toolkit import maths`, then `toolkit generate`\n"
    progress = "maths: reading acme.maths\nmaths: 1 tool\n"
    assert [run.stderr for run in ran] == [progress + (way_out if code else "") for code in codes]
    assert file.read_bytes() == committed


@pytest.mark.slow
def test_a_tool_that_is_gone_has_no_place(project: Project) -> None:
    project.write("acme/maths.py", MATHS.replace("def add", "def plus"))
    told = toolkit(project, "check", "--live").stdout.splitlines()
    assert told[:2] == ["maths: add: breaking: the tool was removed", "maths: plus: widening: the tool was added"]


@pytest.mark.slow
def test_json_for_scripts(project: Project) -> None:
    project.write("acme/maths.py", MATHS.replace("def add", "def plus"))
    ran = toolkit(project, "check", "--live", "--json")
    assert ran.returncode == 1
    assert json.loads(ran.stdout) == {
        "changes": [
            {"import": "maths", "tool": "add", "kind": "breaking", "pointer": "", "sentence": "the tool was removed"},
            {"import": "maths", "tool": "plus", "kind": "widening", "pointer": "", "sentence": "the tool was added"},
        ],
        "allowed": False,
    }


@pytest.mark.slow
def test_a_rename_of_ones_own_is_no_change(project: Project) -> None:
    file = project.root / "acme/tools/maths.json"
    document = json.loads(file.read_text())
    document["tools"][0]["rename"] = "sum"
    file.write_text(json.dumps(document))
    assert toolkit(project, "check", "--live").returncode == 0


@pytest.mark.parametrize(
    ("module", "words", "told"),
    [
        ("raise RuntimeError('gone')", ["--live"], "maths: reading acme.maths\nmaths: failed\npyproject.toml:6:1: 'acme.maths' cannot be imported: RuntimeError: gone (acme/maths.py, line 1) (/tool/toolkit/imports/maths/functions)\n"),
        (MATHS, ["--live", "math"], "there is no import named 'math'. Did you mean 'maths'?\n"),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_what_cannot_be_asked_is_no_finding(project: Project, module: str, words: list[str], told: str) -> None:
    project.write("acme/maths.py", module)
    ran = toolkit(project, "check", *words)
    assert (ran.returncode, ran.stderr) == (2, told)


@pytest.mark.slow
def test_what_was_never_imported_cannot_have_changed(project: Project) -> None:
    (project.root / "acme/tools/maths.json").unlink()
    ran = toolkit(project, "check", "--live")
    assert (ran.returncode, ran.stderr) == (2, "not imported yet: maths; run `toolkit import maths`\n")


@pytest.mark.slow
def test_names_belong_to_live(project: Project) -> None:
    assert toolkit(project, "check", "maths").returncode == 2
    assert toolkit(project, "check", "--allow", "widening").returncode == 2
