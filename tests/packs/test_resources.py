"""Rules and the tools of remote servers: what cannot bind is said, and a marked argument is judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import command_line
from tests.projects import Project
from toolkit.errors import ToolNotAllowed

SETTINGS = """
[tool.toolkit.imports.web]
url = "{url}"
prefix = "web_"
headers = {{ X-Token = "Bearer ${{SHOP_TOKEN}}" }}
{resources}
"""
RULE = 'default = "allow"\nrules = [{ decision = "deny", path = "secret/**" }]\n'


@pytest.fixture
def made(tmp_path: Path, shop_url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("SHOP_TOKEN", "s3cret")

    def make(resources: str, package: str) -> Project:
        project = Project(tmp_path / package, package=f"{package}.generated", specs=f"{package}/tools")
        project.write(f"{package}/__init__.py", "")
        settings = (project.root / "pyproject.toml").read_text()
        project.write("pyproject.toml", settings + SETTINGS.format(url=shop_url, resources=resources))
        project.write("../policy.toml", RULE)
        return project

    return make


def test_what_cannot_bind_is_said_and_a_mark_is_the_way_out(made: Any, tmp_path: Path) -> None:
    plain: Project = made("", "plain")
    command_line.toolkit(plain.root, "import", "--trust", check=True)
    command_line.toolkit(plain.root, "generate", check=True)
    said = (
        "cannot bind: Rule('deny', path='secret/**') cannot bind 'web_greet': the server works on files of its own;"
        " deny the tool, or mark the argument that names a path ('resources' of its import)"
    )
    for command in (["check"], ["show"]):
        shown = command_line.toolkit(plain.root, "policy", *command, "../policy.toml", "--package", "plain.generated")
        assert shown.returncode == 0
        assert said in shown.stdout
    explained = command_line.toolkit(
        plain.root, "policy", "explain", "web_greet", "--name", "x", "--policy", "../policy.toml",
        "--package", "plain.generated",
    )  # fmt: skip
    assert said in explained.stdout

    marked: Project = made('resources = { greet = { name = "read-path" } }', "marked")
    command_line.toolkit(marked.root, "import", "--trust", check=True)
    command_line.toolkit(marked.root, "generate", check=True)
    shown = command_line.toolkit(marked.root, "policy", "check", "../policy.toml", "--package", "marked.generated")
    assert "'web_greet'" not in shown.stdout
    assert "'web_add'" in shown.stdout, "its arguments have no mark"


def test_a_marked_argument_is_judged(made: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from importlib import import_module

    project: Project = made('resources = { greet = { name = "read-path" } }', "judged")
    command_line.toolkit(project.root, "import", "--trust", check=True)
    command_line.toolkit(project.root, "generate", check=True)
    monkeypatch.syspath_prepend(str(project.root))
    package: Any = import_module("judged.generated")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    policy = package.SecurityPolicy.load(tmp_path / "policy.toml")
    with package.create_agent_toolkit(package.ToolkitContext(workspace, policy)) as tk:
        assert "Ada" in tk.invoke("web_greet", {"name": "Ada"}).text()
        for name in ("secret/k", "./secret/k", "SECRET/k"):
            with pytest.raises(ToolNotAllowed, match="decided by Rule"):
                tk.invoke("web_greet", {"name": name})


def test_marks_that_are_not_imported_yet_stop_generation(made: Any) -> None:
    project: Project = made("", "stale")
    command_line.toolkit(project.root, "import", "--trust", check=True)
    text = (project.root / "pyproject.toml").read_text()
    project.write("pyproject.toml", f'{text}resources = {{ greet = {{ name = "read-path" }} }}\n')
    refused = command_line.toolkit(project.root, "generate")
    assert refused.returncode == 1
    assert "now marks 'name' of 'greet' as 'read-path'; run `toolkit import web` again" in refused.stderr


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ('resources = "x"', "'resources' must hold a table for each tool: write read_file = "),
        ('resources = { greet = { name = "file" } }', "a resource is one of read-path, write-path, argv, shell, url"),
        ('resources = { greet = { nam = "url" } }', "names the argument 'nam', which 'greet' does not have"),
        (
            'resources = { gret = { name = "url" } }',
            "names the tool 'gret', which does not exist. Did you mean 'greet'?",
        ),
    ],
)
def test_a_mistake_in_a_mark_is_named(made: Any, resources: str, words: str) -> None:
    project: Project = made(resources, "wrong")
    told = command_line.toolkit(project.root, "import", "--trust")
    assert words in told.stderr + told.stdout
