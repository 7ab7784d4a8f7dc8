"""``[tool.toolkit.profiles.<name>]``: what is generated, what is stale, and what is refused with its place."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from tests.findings import short_forms
from tests.projects import Project, tool
from toolkit.codegen import check
from toolkit.errors import SetupError, SpecError

PLACE = "pyproject.toml:/tool/toolkit/profiles"


def make_project(folder: Path, settings: str, policy: str | None = None) -> Project:
    project = Project(folder, [tool("read_file"), tool("grep"), tool("bash")])
    file = folder / "pyproject.toml"
    file.write_text(f"{file.read_text()}\n{settings}\n")
    if policy is not None:
        project.write("policies/reviewer.toml", policy)
    return project


REVIEWER = '[tool.toolkit.profiles.reviewer]\ntools = ["read_file", "grep"]'
BY_POLICY = '[tool.toolkit.profiles.reviewer]\npolicy = "policies/reviewer.toml"'


def methods_of(project: Project, file: str, name: str) -> set[str]:
    tree = ast.parse((project.output / file).read_text())
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    return {node.name for node in found.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)} - {"__init__"}


@pytest.mark.parametrize(("file", "name"), [("facade", "ReviewerTools"), ("async_facade", "AsyncReviewerTools")])
def test_only_its_tools_have_methods(tmp_path: Path, file: str, name: str) -> None:
    project = make_project(tmp_path, REVIEWER)
    project.generate()
    assert methods_of(project, f"profile_reviewer_{file}.py", name) == {"read_file", "grep"}


def test_the_rest_of_the_package_stays_as_it_is(tmp_path: Path) -> None:
    without, project = make_project(tmp_path / "a", ""), make_project(tmp_path / "b", REVIEWER)
    without.generate()
    project.generate()
    before, after = without.files(), project.files()
    assert {path for path in after if before.get(path) != after[path]} == {
        "__init__.py", "_exports.py", "signatures.py", "profile_reviewer.py", "profile_reviewer_async_facade.py", "profile_reviewer_facade.py",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "names"),
    [
        pytest.param('[tools]\ngrep = "allow"', ["grep"], id="allowed"),
        pytest.param('[tools]\ngrep = "ask"', ["grep"], id="asked"),
        pytest.param('default = "allow"\n[tools]\nbash = "deny"', ["grep", "read_file"], id="not denied"),
        pytest.param(
            'default = "allow"\n[[rules]]\ndecision = "deny"\ntools = ["bash", "grep"]', ["read_file"], id="deny rule"
        ),
        pytest.param('[[rules]]\ndecision = "allow"\ntools = ["grep"]\npath = "src/**"', ["grep"], id="some calls"),
    ],
)
def test_a_policy_gives_the_tools_of_which_a_call_may_pass(tmp_path: Path, policy: str, names: list[str]) -> None:
    project = make_project(tmp_path, BY_POLICY, policy)
    project.generate()
    assert sorted(methods_of(project, "profile_reviewer_facade.py", "ReviewerTools")) == names


def test_a_tool_that_must_be_named_is_not_in_a_profile_that_allows_the_rest(tmp_path: Path) -> None:
    project = make_project(tmp_path, BY_POLICY, 'default = "allow"')
    project.write("acme/tools/launch.json", json.dumps(tool("launch", mustBeNamed=True)))
    project.generate()
    assert "launch" not in methods_of(project, "profile_reviewer_facade.py", "ReviewerTools")


def test_a_changed_policy_file_makes_the_package_stale(tmp_path: Path) -> None:
    project = make_project(tmp_path, BY_POLICY, '[tools]\ngrep = "allow"')
    project.generate()
    assert check(project.settings) == ""
    assert project.generate() == []
    project.write("policies/reviewer.toml", '[tools]\nread_file = "allow"')
    assert "profile_reviewer" in check(project.settings)
    assert "profile_reviewer.py" in project.generate()
    assert check(project.settings) == ""


def test_a_removed_profile_is_removed(tmp_path: Path) -> None:
    project = make_project(tmp_path, REVIEWER)
    project.generate()
    file = tmp_path / "pyproject.toml"
    file.write_text(file.read_text().replace(REVIEWER, ""))
    assert "profile_reviewer" in check(project.settings)
    project.generate()
    assert not [path for path in project.files() if "profile" in path]


@pytest.mark.parametrize(
    ("settings", "policy", "words"),
    [
        pytest.param(
            '[tool.toolkit.profiles.reviewer]\ntools = ["read_flie"]', None,
            f"'read_flie' is not a tool. Did you mean 'read_file'? @ {PLACE}/reviewer/tools", id="unknown tool",
        ),
        pytest.param(
            "[tool.toolkit.profiles.reviewer]\ntools = []", None,
            f"'tools' names no tool; name at least one, or remove the profile @ {PLACE}/reviewer/tools", id="empty",
        ),
        pytest.param(
            "[tool.toolkit.profiles.reviewer]\ntools = [1]", None,
            f"'tools' must be a list of tool names, each one once @ {PLACE}/reviewer/tools", id="no names",
        ),
        pytest.param(
            '[tool.toolkit.profiles.reviewer]\ntools = ["grep", "grep"]', None,
            f"'tools' must be a list of tool names, each one once @ {PLACE}/reviewer/tools", id="twice",
        ),
        pytest.param(
            "[tool.toolkit.profiles.reviewer]", None,
            f"a profile needs either 'tools', a list of names, or 'policy', a policy file @ {PLACE}/reviewer", id="neither",
        ),
        pytest.param(
            f'{BY_POLICY}\ntools = ["grep"]', "",
            f"a profile needs either 'tools', a list of names, or 'policy', a policy file @ {PLACE}/reviewer", id="both",
        ),
        pytest.param(
            f'{REVIEWER}\ntool = "grep"', None,
            f"unknown key 'tool'. Did you mean 'tools'? @ {PLACE}/reviewer/tool", id="unknown key",
        ),
        pytest.param(
            '[tool.toolkit.profiles."Code-Reviewer"]\ntools = ["grep"]', None,
            "a profile's name is lower-case words joined by underscores, such as code_reviewer, not 'Code-Reviewer'"
            f" @ {PLACE}/Code-Reviewer", id="invalid name",
        ),
        pytest.param(
            '[tool.toolkit.profiles.acme]\ntools = ["grep"]', None,
            f"the profile 'acme' makes 'AcmeToolkit', a name that 'class' has; choose another name @ {PLACE}/acme",
            id="the class of the package",
        ),
        pytest.param(
            '[tool.toolkit.profiles.agent]\ntools = ["grep"]', None,
            "the profile 'agent' makes 'create_agent_toolkit', a name that generated code has; choose another name"
            f" @ {PLACE}/agent", id="a name of every package",
        ),
        pytest.param(
            '[tool.toolkit.profiles]\nreviewer = "grep"', None,
            f"'profiles' must be tables: write [tool.toolkit.profiles.reviewer] @ {PLACE}", id="no table",
        ),
        pytest.param(
            BY_POLICY, None,
            f"'policy' names 'policies/reviewer.toml', which is not a file of the project @ {PLACE}/reviewer/policy",
            id="missing policy",
        ),
        pytest.param(
            BY_POLICY, '# later\ndefualt = "deny"',
            "unknown key 'defualt'. Did you mean 'default'? @ policies/reviewer.toml:2:1", id="invalid policy",
        ),
        pytest.param(
            BY_POLICY, '[tools]\nread_flie = "allow"',
            "'read_flie' is not a tool. Did you mean 'read_file'? @ policies/reviewer.toml:", id="unknown tool in a policy",
        ),
        pytest.param(
            BY_POLICY, 'default = "deny"',
            f"the policy allows no tool, so the profile would be empty @ {PLACE}/reviewer/policy", id="a policy of nothing",
        ),
    ],
)  # fmt: skip
def test_mistakes_are_reported_with_their_place(tmp_path: Path, settings: str, policy: str | None, words: str) -> None:
    with pytest.raises((SetupError, SpecError)) as refused:
        make_project(tmp_path, settings, policy).generate()
    assert "\n".join(short_forms(refused.value)) == words
