"""The command line as a person or a script uses it: processes, what they print, exit codes 0, 1 and 2."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests import command_line
from tests.cli.run_main import run_main
from tests.guard.ways import needs
from tests.projects import REPOSITORY, Project, run, tool
from toolkit import __version__
from toolkit.wire import alias


def toolkit(folder: Path, *arguments: str) -> CompletedProcess[str]:
    done = command_line.toolkit(folder, *arguments)
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, [tool("alpha"), tool("beta", permissions=["read"])])


@pytest.mark.slow
def test_generate_then_check_then_a_stale_package(project: Project) -> None:
    first = toolkit(project.root, "generate")
    assert (first.returncode, first.stdout) == (0, "acme/generated: 15 files changed\n")
    assert toolkit(project.root, "generate").stdout == "acme/generated: nothing to do\n"
    fine = toolkit(project.root, "check")
    assert (fine.returncode, fine.stdout) == (0, "acme/generated: up to date\n")
    (project.output / "names.py").write_text("")
    stale = toolkit(project.root, "check")
    assert stale.returncode == 1
    assert "+ToolName: TypeAlias = Literal[" in stale.stdout
    assert "acme/generated differs from its specs: run `toolkit generate`" in stale.stdout
    told = json.loads(toolkit(project.root, "check", "--json").stdout)
    assert (told["package"], told["current"]) == ("acme.generated", False)
    again = run([sys.executable, "-m", "toolkit.codegen", "generate", "--json"], project.root)
    assert json.loads(again.stdout) == {"package": "acme.generated", "changed": ["names.py"], "notImported": []}


@pytest.mark.slow
def test_version_and_help(tmp_path: Path) -> None:
    assert toolkit(tmp_path, "--version").stdout == f"{__version__}\n"
    listed = toolkit(tmp_path, "--help").stdout
    commands = re.findall(r"(?m)^  ([a-z]+) {2,}\S", listed.partition("Commands:")[2])
    assert commands == [
        "init", "import", "generate", "check", "lint", "tools", "describe", "invoke", "serve", "playground",
        "policy", "audit",
    ]  # fmt: skip
    for command in commands:
        done = toolkit(tmp_path, command, "--help")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"Usage: python -m toolkit {command} ")
    assert "[tool.toolkit]" in toolkit(tmp_path, "generate", "--help").stdout
    generator = run([sys.executable, "-m", "toolkit.codegen", "--help"], tmp_path).stdout
    assert generator.replace("toolkit.codegen", "toolkit") == listed


@pytest.mark.slow
def test_looking_at_tools_does_not_load_the_generator(project: Project) -> None:
    project.generate()
    code = """
import sys
from toolkit.cli.commands import app
app([*sys.argv[1:]], standalone_mode=False)
print(sorted(name for name in sys.modules if name.startswith(("toolkit.codegen", "datamodel_code_generator", "yaml"))))
"""
    settings = [
        "",
        ".imports",
        ".imports.settings",
        ".package",
        ".package.inputs",
        ".package.literals",
        ".package.manifest",
        ".package.python_names",
        ".settings",
    ]
    expected = str([f"toolkit.codegen{name}" for name in settings])
    for command in (["tools"], ["describe", "beta"]):
        done = run([sys.executable, "-c", code, *command], project.root)
        assert done.stdout.splitlines()[-1] == expected


@pytest.mark.slow
def test_looking_at_tools_warns_of_specs_that_changed_since(project: Project) -> None:
    specs = project.root / "acme" / "tools" / "tools.json"
    first = specs.read_text()
    warning = "acme/generated is older than its specs: run `toolkit generate`\n"
    assert toolkit(project.root, "generate").returncode == 0
    assert toolkit(project.root, "tools").stderr == ""
    specs.write_text(first.replace("Tool beta.", "Another text."))
    for command in (["tools"], ["describe", "beta"], ["tools", "--json"]):
        done = toolkit(project.root, *command)
        assert (done.returncode, done.stderr) == (0, warning)
        assert "Tool beta." in done.stdout
    assert toolkit(project.root, "invoke", "beta", "--query", "x").stderr.startswith(warning)
    specs.write_text(first)
    assert toolkit(project.root, "tools").stderr == ""
    added = project.write("acme/tools/gamma.json", json.dumps(tool("gamma")))
    assert toolkit(project.root, "tools").stderr == warning
    assert toolkit(project.root, "generate").returncode == 0
    assert toolkit(project.root, "tools").stderr == ""
    added.unlink()
    assert toolkit(project.root, "tools").stderr == warning


@pytest.mark.slow
def test_a_module_of_functions_is_not_a_spec_file_whatever_its_name(tmp_path: Path) -> None:
    project = Project(tmp_path, (), functions=["acme.json"])
    project.write("acme/json.py", 'from toolkit import tool\n\n@tool\ndef one() -> int:\n    "One."\n    return 1\n')
    project.generate()
    assert toolkit(tmp_path, "tools").stderr == ""


@pytest.mark.slow
def test_mistakes_in_specs_are_findings(project: Project) -> None:
    project.write("acme/tools/bad.yaml", "name: ../x\ninputSchema: {type: array}\npermissions: [fly]\nmore: 1\n")
    for command in ("generate", "check", "lint"):
        done = toolkit(project.root, command)
        assert done.returncode == 1, command
        found = re.findall(r"(?m)^acme/tools/bad\.yaml:(\d+:\d+): .* \((/.*)\)$", done.stderr)
        assert found == [("4:1", "/more"), ("1:1", "/name"), ("2:1", "/inputSchema"), ("3:15", "/permissions/0")]


@pytest.mark.slow
def test_a_folder_without_settings_is_wrong_usage(tmp_path: Path) -> None:
    done = toolkit(tmp_path, "generate")
    assert done.returncode == 2
    assert "[tool.toolkit]" in done.stderr
    assert toolkit(tmp_path, "no-such-command").returncode == 2
    assert toolkit(tmp_path, "invoke").returncode == 2


@pytest.mark.slow
def test_lint_measures_descriptions(project: Project) -> None:
    found = toolkit(project.root, "lint")
    assert found.returncode == 1
    column = (project.root / "acme/tools/tools.json").read_text().index('"limit"') + 1
    assert found.stdout.splitlines()[0] == (
        f"acme/tools/tools.json:1:{column}: the property 'limit' has no description (/tools/0/inputSchema/properties/limit)"
    )
    rows = json.loads(toolkit(project.root, "lint", "--json").stdout)
    assert {"file", "line", "column", "message", "pointer"} == set(rows[0])
    project.write("tokens.py", "def count(text): return 1000\n")
    counted = toolkit(project.root, "lint", "--tokenizer", "tokens:count")
    assert "1000 tokens" in counted.stdout
    assert toolkit(project.root, "lint", "--tokenizer", "tokens:nothing").returncode == 2
    clean = project.write("clean.json", json.dumps({**tool("x"), "inputSchema": {"type": "object"}}))
    assert toolkit(project.root, "lint", str(clean)).returncode == 0


@pytest.mark.slow
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
    assert shown.startswith("tk.tools.beta(\n    *,\n    query: str,\n    limit: int = 10,\n")
    assert re.search(r"(?m)^  query\* +string +What to look for\.$", shown)
    assert re.search(r"(?m)^  limit +integer = 10$", shown)
    assert re.search(r"(?m)^  rows\[\]\.score +number or null$", shown)
    assert shown.endswith("\n  tk.tools.beta(query='text')\n  $ toolkit invoke beta --query text\n")
    assert json.loads(toolkit(project.root, "describe", "beta", "--json").stdout)["prefix"] == "Beta"
    wrong = toolkit(project.root, "describe", "bta")
    assert (wrong.returncode, wrong.stderr) == (2, "unknown tool 'bta'. Did you mean 'beta'?\n")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert "read_file" in toolkit(elsewhere, "tools").stdout
    assert "read_file" in toolkit(project.root, "tools", "--package", "toolkit.generated").stdout


@pytest.mark.slow
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
    }.items():
        failed = toolkit(tmp_path, "invoke", "read_file", arguments)
        assert failed.returncode == 1
        assert failed.stderr.startswith(words)
    told = json.loads(toolkit(tmp_path, "invoke", "read_file", '{"path": "b.txt"}', "--json").stdout)
    assert told["code"] == "TOOL_FAILED"
    assert toolkit(tmp_path, "invoke", "raed_file", "{}").returncode == 2
    assert toolkit(tmp_path, "invoke", "list", "--workspace", "nowhere").returncode == 2


def told(done: CompletedProcess[str]) -> tuple[int, Any]:
    """A script's view: the exit code and the JSON; nothing else is said."""
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


@pytest.mark.slow
def test_scripts_read_every_failure_as_json(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    nowhere = tmp_path_factory.mktemp("nowhere")
    for command in ("generate", "check", "lint"):
        code, said = told(toolkit(nowhere, command, "--json"))
        assert code == 2 and "[tool.toolkit]" in said["error"]
    project.write("acme/tools/bad.yaml", "name: ../x\ninputSchema: {type: array}\nmore: 1\n")
    for command in ("generate", "check", "lint"):
        code, said = told(toolkit(project.root, command, "--json"))
        assert code == 1 and len(said["problems"]) == 3
        assert {(row["file"], row["line"]) for row in said["problems"]} == {
            ("acme/tools/bad.yaml", n) for n in (1, 2, 3)
        }
    unknown = {"error": "unknown tool 'dnoe'. Did you mean 'done'?"}
    for arguments in (["invoke", "dnoe"], ["describe", "dnoe"]):
        assert told(toolkit(nowhere, *arguments, "--json")) == (2, unknown)
    code, said = told(toolkit(nowhere, "tools", "--package", "no.such", "--json"))
    assert code == 2 and "'no.such' is not a generated package" in said["error"]


def test_scripts_read_wrong_usage_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        (["tools", "--json", "--package"], "Option '--package' requires an argument."),
        (["describe", "--json"], "Missing argument 'TOOL'."),
        (
            ["lint", "--json", "--target", "nobody"],
            "Invalid value for '--target': 'nobody' is not one of 'openai', 'anthropic', 'gemini', 'ollama'.",
        ),
        (["tools", "--json", "--jsn"], "No such option '--jsn'. Did you mean '--json'?"),
        (["invoke", "read_file", "--json"], "Missing option '--path'."),
        (["genrate", "--json"], "No such command 'genrate'. Did you mean 'generate'?"),
    ):
        ended = run_main(tmp_path, arguments, capsys)
        assert (ended.code, ended.err, json.loads(ended.out)) == (2, "", {"error": message})


@pytest.mark.slow
def test_only_a_missing_table_falls_back_to_the_built_ins(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    for text, words in {
        "[tool.toolkit]\npackage = 'x'\n": "'specs' must name at least one file or folder",
        "tool = 'x'": "pyproject.toml:1:1: 'tool' and 'tool.toolkit' must be tables",
        "[tool]\ntoolkit = 3": "'tool' and 'tool.toolkit' must be tables",
        "[tool": "not valid TOML",
    }.items():
        file.write_text(text)
        for command in ("tools", "generate"):
            done = toolkit(tmp_path, command)
            assert (done.returncode, done.stdout) == (2, "")
            assert words in done.stderr
    file.write_text("[tool.other]\n")
    assert "read_file" in toolkit(tmp_path, "tools").stdout


@pytest.mark.parametrize("package", ["", ".x", "..", "json", "a..b"])
@pytest.mark.slow
def test_a_package_that_is_none_is_wrong_usage(tmp_path: Path, package: str) -> None:
    done = toolkit(tmp_path, "tools", "--package", package)
    assert done.returncode == 2
    assert f"{package!r} is not a generated package that can be imported" in done.stderr


@pytest.mark.parametrize("tokenizer", ["math:pi", "json:dumps", "math", "", "tokens:fails", "broken:x"])
@pytest.mark.slow
def test_a_tokenizer_that_counts_nothing_is_wrong_usage(project: Project, tokenizer: str) -> None:
    project.write("tokens.py", "def fails(text): raise KeyError(text)\n")
    project.write("broken.py", "1 / 0\n")
    done = toolkit(project.root, "lint", "--tokenizer", tokenizer)
    assert done.returncode == 2
    assert f"the tokenizer {tokenizer!r}" in done.stderr


@pytest.mark.slow
def test_arguments_that_are_no_text_are_wrong_usage(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "toolkit", "invoke", "done", "-"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    for given, code in {b'{"message": "\xff"}': 2, '{"message": "é"}'.encode(): 0}.items():
        done = subprocess.run(command, cwd=tmp_path, env=environment, input=given, capture_output=True)
        assert done.returncode == code
        assert (b"not UTF-8 text" in done.stderr) == bool(code) and b"Traceback" not in done.stderr


@pytest.mark.slow
def test_describe_tells_outputs_that_are_no_objects(tmp_path: Path) -> None:
    outputs: dict[str, tuple[Any, str]] = {
        "rows": ({"type": "array", "items": {"type": "string"}}, "array of string"),
        "word": ({"type": "string"}, "string"),
        "map": ({"type": "object", "additionalProperties": {"type": ["integer", "null"]}}, "object of integer or null"),
        "some": ({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}, "one of a, b or null"),
        "free": ({}, "any value"),
        "both": ({"allOf": [{"type": "string"}, {"type": "string", "minLength": 1}]}, "string"),
        "untyped rows": ({"items": {"type": "string"}}, "array of string"),
        "untyped map": ({"additionalProperties": {"type": "integer"}}, "object of integer"),
        "far": ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "boolean"}}}, "boolean"),
        "empty": ({"type": "object", "additionalProperties": False}, "nothing"),
        "named": (
            {"$ref": "#/$defs/p", "$defs": {"p": {"type": "object", "properties": {"x": {"type": "integer"}}}}},
            "x  integer",
        ),
    }
    tools = [
        {"name": name, "inputSchema": {"type": "object"}, "outputSchema": out} for name, (out, _) in outputs.items()
    ]
    project = Project(tmp_path, tools)
    project.generate()
    for name, (_, words) in outputs.items():
        assert f"\noutput:\n  {words}\n\nexample:\n" in toolkit(project.root, "describe", name).stdout


@pytest.mark.slow
def test_policy_explain_says_what_decides(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    policy = tmp_path / "policy.toml"
    policy.write_text(
        'default = "deny"\n[tools]\ndone = "ask"\n[[rules]]\ndecision = "allow"\ntools = ["read_file"]\npath = "src/**"\n'
        '[[rules]]\ndecision = "deny"\npath = "src/secret/**"\njustification = "keys"\n'
    )

    def explain(*arguments: str) -> CompletedProcess[str]:
        return toolkit(workspace, "policy", "explain", *arguments, "--policy", str(policy))

    allowed = explain("read_file", '{"path": "src/a.py"}')
    assert (allowed.returncode, allowed.stdout.partition(":")[0]) == (0, "allow")
    secret = explain("read_file", '{"path": "src/secret/key"}')
    assert (secret.returncode, secret.stdout.partition(":")[0]) == (1, "deny")
    assert "(keys)" in secret.stdout
    denied = explain("read_file", '{"path": "b.py"}')
    assert (denied.returncode, denied.stdout.splitlines()) == (
        1,
        [
            "deny: the policy's default is deny",
            "considered, in this order:",
            f"  does not match  deny   {policy}:8:1  Rule('deny', path='src/secret/**')",
            f"  does not match  allow  {policy}:4:1  Rule('allow', tools=['read_file'], path='src/**')",
            f"  decides         deny   {policy}:1:1  default",
        ],
    )
    code, asked = told(explain("done", "--message", "x", "--json"))
    assert (code, asked["decision"], asked["because"]) == (1, "ask", "the policy says ask for this tool")
    assert asked["place"] == f"{policy}:3:1"
    assert [one["outcome"] for one in asked["considered"]] == ["does not match", "decides"]
    for arguments in (["raed_file", "{}"], ["read_file", "{"], ["read_file", "[]"], ["read_file", '{"paht": 1}']):
        assert explain(*arguments).returncode == 2
    assert toolkit(workspace, "policy", "explain", "done", "{}", "--policy", "nowhere.toml").returncode == 2
    assert toolkit(workspace, "policy", "explain", "done", "{}").returncode == 2


@pytest.mark.slow
def test_policy_show_prints_rule_by_door(tmp_path: Path) -> None:
    needs("full")
    policy = tmp_path / "policy.toml"
    policy.write_text(
        """default = "deny"
rules = [
  { decision = "allow", permission = "read" },
  { decision = "allow", tools = ["edit", "write_file", "apply_patch"], path = "src/**" },
  { decision = "allow", tools = ["bash"], command = "pytest" },
  { decision = "deny", path = ".env" },
]
"""
    )
    shown = toolkit(tmp_path, "policy", "show", "policy.toml")
    assert (shown.returncode, shown.stdout.splitlines()) == (
        0,
        [
            "file tools  commands  programs  fetches  rule",
            "checked     kernel    kernel    -        files outside the roots",
            "checked     checked   checked   -        ask_before_writing",
            "-           kernel    kernel    checked  network=Network()",
            "checked     -         checked   -        Rule('allow', permission='read')",
            "checked     -         checked   -        "
            "Rule('allow', tools=['edit', 'write_file', 'apply_patch'], path='src/**')",
            "-           checked   checked   -        Rule('allow', tools=['bash'], command='pytest')",
            "checked     kernel    checked   -        Rule('deny', path='.env')",
        ],
    )
    code, data = told(toolkit(tmp_path, "policy", "show", "policy.toml", "--json"))
    assert (code, data["unbound"]) == (0, [])
    assert data["rules"][-1] == {
        "place": "policy.toml:6:3",
        "rule": "Rule('deny', path='.env')",
        "file tools": "checked",
        "commands": "kernel",
        "programs": "checked",
        "fetches": "-",
    }
    assert toolkit(tmp_path, "policy", "show", "nowhere.toml").returncode == 2


@pytest.mark.slow
def test_audit_verifies_and_prints_its_head(tmp_path: Path) -> None:
    workspace, log = tmp_path / "workspace", tmp_path / "audit.jsonl"
    workspace.mkdir()
    code = f"""
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit
context = ToolkitContext({str(workspace)!r}, SecurityPolicy(default="allow"), audit={str(log)!r})
create_agent_toolkit(context).tools.done(message="ok")
"""
    run([sys.executable, "-c", code], tmp_path)

    fine = toolkit(tmp_path, "audit", "verify", "audit.jsonl")
    assert (fine.returncode, fine.stdout) == (0, "audit.jsonl: 2 records, the chain is intact\n")
    head = toolkit(tmp_path, "audit", "head", "audit.jsonl").stdout.strip()
    assert head.startswith("2:")
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])
    assert toolkit(tmp_path, "audit", "verify", "audit.jsonl").stdout.endswith(
        "intact, calls without an end record: 1\n"
    )
    cut = toolkit(tmp_path, "audit", "verify", "audit.jsonl", "--head", head, "--json")
    assert (cut.returncode, json.loads(cut.stdout)["records"]) == (1, 1)
    assert "the tail was cut off" in json.loads(cut.stdout)["problems"][0]
    assert toolkit(tmp_path, "audit", "verify", "nowhere").returncode == 2
    assert toolkit(tmp_path, "audit", "verify", "audit.jsonl", "--head", "x").returncode == 2


@pytest.mark.slow
def test_lint_says_what_becomes_of_a_tool_at_a_provider(project: Project) -> None:
    project.write(
        "acme/tools/math.yaml",
        'name: math.add\ndescription: Adds.\ninputSchema: {type: object, properties: {"a\\u001b/b": {type: object}, n: {type: integer, default: 1}}}\n',
    )
    found = toolkit(project.root, "lint", "acme/tools/math.yaml", "--target", "openai")
    assert (found.returncode, found.stdout.splitlines()) == (
        1,
        [
            f"acme/tools/math.yaml:1:1: math.add: renamed: sent as {alias('math.add')!r} (/name)",
            "acme/tools/math.yaml:3:42: math.add: not strict: properties of any name and any value are allowed, and strict mode"
            " supports only named ones (/inputSchema/properties/a\\x1b~1b)",
            "1 spec, 2 findings",
        ],
    )
    rows = json.loads(toolkit(project.root, "lint", "acme/tools/math.yaml", "--target", "ollama", "--json").stdout)
    assert rows == [
        {
            "tool": "math.add",
            "effect": "lost",
            "file": "acme/tools/math.yaml",
            "line": 3,
            "column": 90,
            "message": "Ollama's client drops 'default'",
            "pointer": "/inputSchema/properties/n/default",
        }
    ]
    clean = toolkit(project.root, "lint", "acme/tools/math.yaml", "--target", "gemini")
    assert (clean.returncode, clean.stdout) == (0, "1 spec, 0 findings\n")
    assert toolkit(project.root, "lint", "--target", "nobody").returncode == 2
    first = toolkit(project.root, "lint", "--target", "anthropic").stdout.splitlines()[0]
    assert first.startswith("acme/tools/math.yaml:1:1: math.add: renamed: ")


@pytest.mark.slow
def test_tools_show_what_they_say_of_themselves_and_where_they_come_from(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("own", annotations={"readOnlyHint": True, "openWorldHint": False}), tool("mute")])
    settings = '[tool.toolkit.imports.legacy]\ntools = "legacy.json"\nprefix = "old_"\n'
    project.write("pyproject.toml", (tmp_path / "pyproject.toml").read_text() + settings)
    imported = {"origin": {"kind": "tools", "name": "legacy"}, "prefix": "old_", "tools": [tool("find")]}
    project.write("acme/tools/legacy.json", json.dumps(imported))
    project.generate()
    mute, old, own = toolkit(project.root, "tools").stdout.splitlines()
    assert (old.split()[0], own.endswith("[read-only, not open-world]"), "[" in mute) == ("old_find", True, False)
    assert "hints: read-only, not open-world\n" in toolkit(project.root, "describe", "own").stdout
    assert "imported: 'find' from 'legacy' (tools)\n" in toolkit(project.root, "describe", "old_find").stdout
    listed = json.loads(toolkit(project.root, "tools", "--json").stdout)
    assert [row["annotations"] for row in listed] == [{}, {}, {"readOnlyHint": True, "openWorldHint": False}]
