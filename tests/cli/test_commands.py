"""The command line as a person or a script uses it: real processes, exit codes 0, 1 and 2."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.projects import Project, run, tool


def toolkit(folder: Path, *arguments: str) -> CompletedProcess[str]:
    return run([sys.executable, "-m", "toolkit", *arguments], folder, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, [tool("alpha"), tool("beta", permissions=["read"])])


def test_generate_then_check_then_a_stale_package(project: Project) -> None:
    first = toolkit(project.root, "generate")
    assert (first.returncode, first.stdout) == (0, "acme/generated: 13 files changed\n")
    assert toolkit(project.root, "generate").stdout == "acme/generated: nothing to do\n"
    fine = toolkit(project.root, "check")
    assert (fine.returncode, fine.stdout) == (0, "acme/generated: up to date\n")
    (project.output / "names.py").write_text("")
    stale = toolkit(project.root, "check")
    assert stale.returncode == 1
    assert "+ToolName: TypeAlias = Literal[" in stale.stdout
    assert "acme/generated is not what its specs give: run `toolkit generate`" in stale.stdout
    told = json.loads(toolkit(project.root, "check", "--json").stdout)
    assert (told["package"], told["current"]) == ("acme.generated", False)
    again = run([sys.executable, "-m", "codegen", "generate", "--json"], project.root)
    assert json.loads(again.stdout) == {"package": "acme.generated", "changed": ["names.py"]}


def test_mistakes_in_specs_are_findings(project: Project) -> None:
    project.write("acme/tools/bad.yaml", "name: ../x\ninputSchema: {type: array}\npermissions: [fly]\nmore: 1\n")
    for command in ("generate", "check", "lint"):
        done = toolkit(project.root, command)
        assert done.returncode == 1, command
        assert done.stderr.count(" @ acme/tools/bad.yaml:") == 4


def test_a_folder_without_settings_is_wrong_usage(tmp_path: Path) -> None:
    done = toolkit(tmp_path, "generate")
    assert done.returncode == 2
    assert "[tool.toolkit]" in done.stderr
    assert toolkit(tmp_path, "no-such-command").returncode == 2
    assert toolkit(tmp_path, "invoke").returncode == 2


def test_lint_measures_descriptions(project: Project) -> None:
    found = toolkit(project.root, "lint")
    assert found.returncode == 1
    assert "acme/tools/tools.json:/tools/0/inputSchema/properties/limit" in found.stdout
    rows = json.loads(toolkit(project.root, "lint", "--json").stdout)
    assert {"message", "source", "pointer"} == set(rows[0])
    project.write("tokens.py", "def count(text): return 1000\n")
    counted = toolkit(project.root, "lint", "--tokenizer", "tokens:count")
    assert "1000 tokens" in counted.stdout
    assert toolkit(project.root, "lint", "--tokenizer", "tokens:nothing").returncode == 2
    clean = project.write("clean.json", json.dumps({**tool("x"), "inputSchema": {"type": "object"}}))
    assert toolkit(project.root, "lint", str(clean)).returncode == 0


def test_tools_and_describe_show_this_projects_package(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    missing = toolkit(project.root, "tools")
    assert missing.returncode == 2
    assert "run `toolkit generate`" in missing.stderr
    project.generate()
    assert [line.split()[:2] for line in toolkit(project.root, "tools").stdout.splitlines()] == [
        ["alpha", "-"],
        ["beta", "read"],
    ]
    listed = json.loads(toolkit(project.root, "tools", "--json").stdout)
    assert [row["name"] for row in listed] == ["alpha", "beta"]
    shown = toolkit(project.root, "describe", "beta").stdout
    assert "query* (string)  What to look for." in shown
    assert "limit  (integer = 10)" in shown
    assert json.loads(toolkit(project.root, "describe", "beta", "--json").stdout)["prefix"] == "Beta"
    wrong = toolkit(project.root, "describe", "bta")
    assert (wrong.returncode, wrong.stderr) == (2, "no tool is called 'bta'. Did you mean 'beta'?\n")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert "read_file" in toolkit(elsewhere, "tools").stdout
    assert "read_file" in toolkit(project.root, "tools", "--package", "generated").stdout


def test_invoke_runs_one_tool_in_a_workspace(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    done = toolkit(tmp_path, "invoke", "read_file", '{"path": "a.txt"}')
    assert (done.returncode, done.stderr) == (0, "")
    assert "one" in done.stdout
    data = json.loads(toolkit(tmp_path, "invoke", "read_file", '{"path": "a.txt"}', "--json").stdout)
    assert data["content"]["content"] == "one\ntwo\n"
    for arguments, words in {
        '{"path": "b.txt"}': "TOOL_FAILED: NOT_FOUND",
        '{"path": "../x"}': "SANDBOX_VIOLATION",
        '{"paht": "a.txt"}': "INVALID_TOOL_ARGUMENTS",
        "[]": "INVALID_TOOL_ARGUMENTS_TYPE",
        "{": "INVALID_TOOL_ARGUMENTS",
    }.items():
        failed = toolkit(tmp_path, "invoke", "read_file", arguments)
        assert failed.returncode == 1
        assert failed.stderr.startswith(words)
    told = json.loads(toolkit(tmp_path, "invoke", "read_file", '{"path": "b.txt"}', "--json").stdout)
    assert told["code"] == "TOOL_FAILED"
    assert toolkit(tmp_path, "invoke", "raed_file", "{}").returncode == 2
    assert toolkit(tmp_path, "invoke", "list", "--workspace", "nowhere").returncode == 2
