"""What commands say about imported tools: advice for their authors, and programs that download a server."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests import command_line
from tests.projects import Project, tool

LEGACY = '[tool.toolkit.imports.legacy]\ntools = "legacy.json"\n'
OWN = tool("own")
OWN["inputSchema"] = {"type": "object"}


def toolkit(project: Project, *arguments: str) -> CompletedProcess[str]:
    return command_line.toolkit(project.root, *arguments)


def make_project(folder: Path, imports: str) -> Project:
    project = Project(folder, [OWN])
    project.write("pyproject.toml", (folder / "pyproject.toml").read_text() + imports)
    return project


@pytest.mark.slow
def test_lint_counts_what_authors_of_imported_tools_can_improve_and_lists_it_if_asked(tmp_path: Path) -> None:
    project = make_project(tmp_path, LEGACY)
    imported = {
        "origin": {"kind": "tools", "name": "legacy"},
        "tools": [{"name": "find", "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}}}],
    }
    project.write("acme/tools/legacy.json", json.dumps(imported, indent=1))
    counted = toolkit(project, "lint")
    assert (counted.returncode, counted.stdout) == (
        0,
        "2 specs, 0 findings\nimported from 'legacy': 2 findings for its author; --imported lists them\n",
    )
    listed = toolkit(project, "lint", "--imported")
    assert (listed.returncode, listed.stdout) == (
        1,
        "acme/tools/legacy.json:7:3: the tool has no description (/tools/0)\n"
        "acme/tools/legacy.json:12:6: the property 'q' has no description (/tools/0/inputSchema/properties/q)\n"
        "2 specs, 2 findings\n",
    )
    rows = json.loads(toolkit(project, "lint", "--imported", "--json").stdout)
    assert [(row["line"], row["pointer"]) for row in rows] == [
        (7, "/tools/0"),
        (12, "/tools/0/inputSchema/properties/q"),
    ]
    assert json.loads(toolkit(project, "lint", "--json").stdout) == []


@pytest.mark.parametrize(
    ("command", "network", "said"),
    [
        (
            '["bin/npx", "-y", "a-server"]',
            "",
            "starting bin/npx -y a-server; if npx has to download it, set network = true",
        ),
        ('["bin/uvx", "a-server"]', "", "starting bin/uvx a-server; if uvx has to download it, set network = true"),
        ('["bin/uvx", "a-server"]', "network = true\n", "starting bin/uvx a-server"),
        ('["a-server"]', "", "starting a-server"),
    ],
)
@pytest.mark.slow
def test_a_program_that_downloads_a_server_may_need_the_network(
    tmp_path: Path, command: str, network: str, said: str
) -> None:
    # None of these programs exists, so nothing is downloaded: what counts is the line before the start.
    project = make_project(tmp_path, f"[tool.toolkit.imports.far]\ncommand = {command}\n{network}")
    ran = toolkit(project, "import", "--trust")
    assert ran.returncode == 1 and ran.stderr.splitlines()[0] == f"far: {said}"
