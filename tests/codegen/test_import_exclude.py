"""One tool that a project cannot have, or does not want, must not cost it all the others of its origin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.codegen.test_imports import imported, project, toolkit
from tests.projects import REPOSITORY, Project

PLAIN = {"type": "object", "properties": {"q": {"type": "string"}}}
REFUSED = {"type": "object", "properties": {"q": {"$ref": "https://example.org/elsewhere.json"}}}
AT = "/tool/toolkit/imports/legacy"


def legacy(root: Path, settings: str = "", **schemas: Any) -> Project:
    made = project(root, f'[tool.toolkit.imports.legacy]\ntools = "tools.json"\nprefix = "l_"\n{settings}')
    tools = [{"name": name, "description": "Does.", "input_schema": schema} for name, schema in schemas.items()]
    made.write("tools.json", json.dumps(tools))
    return made


def set_without(made: Project, names: str) -> None:
    made.write("pyproject.toml", (made.root / "pyproject.toml").read_text() + f"without = {names}\n")


@pytest.mark.slow
def test_what_generation_would_refuse_is_told_at_import_with_the_way_out(tmp_path: Path) -> None:
    made = legacy(tmp_path, good=PLAIN, bad=REFUSED)
    ran = toolkit(made, "import", "--trust")
    first, second = ran.stderr.splitlines()[2:]
    assert ran.returncode == 0
    told = 'some tools cannot be generated: leave them out with without = ["bad"]'
    assert first == f"  note: pyproject.toml:5:1: {told} ({AT})"
    assert second == (
        "  note: acme/tools/legacy.json:30:13: `toolkit generate` will refuse 'bad': only references inside this schema are"
        " supported, such as '#/$defs/<name>'; nothing is read from elsewhere (/tools/1/inputSchema/properties/q/$ref)"
    )
    assert toolkit(made, "generate").returncode == 1
    set_without(made, '["bad"]')
    ran = toolkit(made, "import", "--trust")
    assert (ran.returncode, "note" in ran.stderr) == (0, False)
    assert [tool["name"] for tool in imported(made, "legacy")["tools"]] == ["good"]
    assert toolkit(made, "generate").returncode == 0
    ran = toolkit(made, "check", "--live")
    assert (ran.returncode, ran.stdout) == (0, "nothing changed\n")


@pytest.mark.slow
def test_what_no_file_can_hold_is_told_with_the_way_out(tmp_path: Path) -> None:
    made = legacy(tmp_path, good=PLAIN, bad={"type": "array"}, worse={"type": "string"})
    ran = toolkit(made, "import", "--trust")
    assert ran.returncode == 1
    mistake = '\'inputSchema\' must describe an object: its "type" must be "object" (at /inputSchema)'
    assert ran.stderr.splitlines()[-3:] == [
        f"pyproject.toml:5:1: the tool 'bad': {mistake} ({AT})",
        f"pyproject.toml:5:1: the tool 'worse': {mistake} ({AT})",
        f'pyproject.toml:5:1: nothing was imported: leave them out with without = ["bad", "worse"] ({AT})',
    ]
    set_without(made, '["bad", "worse"]')
    assert toolkit(made, "import", "--trust").returncode == 0


@pytest.mark.slow
def test_a_name_that_is_not_there_is_a_note(tmp_path: Path) -> None:
    made = legacy(tmp_path, 'without = ["goof", "nothing like it"]\n', good=PLAIN)
    ran = toolkit(made, "import", "--trust")
    assert ran.returncode == 0
    line = (tmp_path / "pyproject.toml").read_text().splitlines().index('without = ["goof", "nothing like it"]') + 1
    start, end = f"  note: pyproject.toml:{line}:1: 'without' names the tool", f"({AT}/without)"
    assert ran.stderr.splitlines()[2:] == [
        f"{start} 'goof', which does not exist. Did you mean 'good'? {end}",
        f"{start} 'nothing like it', which does not exist {end}",
    ]


@pytest.mark.slow
def test_what_is_left_out_later_is_imported_again_first(tmp_path: Path) -> None:
    made = legacy(tmp_path, good=PLAIN, bad=REFUSED)
    assert toolkit(made, "import", "--trust").returncode == 0
    set_without(made, '["bad"]')
    ran = toolkit(made, "generate")
    told = "[tool.toolkit.imports.legacy] now leaves out 'bad'; run `toolkit import legacy` again"
    assert ran.stderr == f"acme/tools/legacy.json:23:5: {told} (/tools/1)\n"


@pytest.mark.slow
def test_a_server_with_two_tools_of_one_name(tmp_path: Path) -> None:
    command = json.dumps(["python", "odd.py", "twins"])
    made = project(tmp_path, f"[tool.toolkit.imports.odd]\ncommand = {command}\n")
    made.write("odd.py", (REPOSITORY / "tests/packs/servers/odd.py").read_text())
    ran = toolkit(made, "import", "--trust")
    assert ran.returncode == 1
    assert ran.stderr.endswith(
        ": the server lists more than one tool named 'ask': they cannot be told apart; leave them out with"
        ' without = ["ask"] (/tool/toolkit/imports/odd)\n'
    )
    set_without(made, '["ask"]')
    assert toolkit(made, "import", "--trust").returncode == 0
    assert [tool["name"] for tool in imported(made, "odd")["tools"]] == ["other"]
