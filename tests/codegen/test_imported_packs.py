"""What is generated for imported specs: packs that know how to reach servers and services, and nothing that runs by itself."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import command_line
from tests.findings import short_forms
from tests.projects import Project, run, tool
from toolkit.errors import SpecError

SERVER = {"command": ["npx", "-y", 'it\'s "a" server'], "env": ["TOKEN"], "prefix": "fs_", "timeout": 5}
SERVICE = {"openapi": "shop.yaml", "headers": {"Authorization": "Bearer ${TOKEN}"}}
REQUEST = {"method": "get", "path": "/pets", "parameters": [{"name": "it's", "in": "query", "required": True}]}


def project(root: Path, imports: dict[str, dict[str, Any]], files: dict[str, dict[str, Any]]) -> Project:
    made = Project(root, [tool("own")])
    lines = [""]
    for name, table in imports.items():
        lines.append(f"[tool.toolkit.imports.{name}]")
        lines += [f"{key} = {_toml(value)}" for key, value in table.items()]
    made.write("pyproject.toml", (root / "pyproject.toml").read_text() + "\n".join(lines) + "\n")
    for name, file in files.items():
        made.write(f"acme/tools/{name}.json", json.dumps(file))
    return made


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {json.dumps(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def mcp(*names: str, prefix: str = "fs_", permissions: tuple[str, ...] = ("execute",), **keys: Any) -> dict[str, Any]:
    tools = [tool(name, permissions=list(permissions), **keys) for name in names]
    return {"origin": {"kind": "mcp", "name": "files"}, "prefix": prefix, "tools": tools}


def api(*names: str, **origin: Any) -> dict[str, Any]:
    tools = [tool(name, permissions=["network"], request=REQUEST) for name in names]
    return {"origin": {"kind": "openapi", "name": "shop", **origin}, "tools": tools}


def calls(
    project: Project,
) -> dict[str, tuple[str, str, dict[str, Any], dict[str, tuple[str, list[Any], dict[str, Any]]]]]:
    """Each pack of ``imported.py``: its function, its peer's class and keywords, and its tools; every value a literal."""
    module = ast.parse(project.files()["imported.py"])
    found = {}
    for node in module.body:
        if isinstance(node, ast.AnnAssign):
            assert isinstance(node.target, ast.Name) and isinstance(node.value, ast.Call)
            peer, tools = node.value.args
            assert isinstance(peer, ast.Call) and isinstance(tools, ast.Dict) and not peer.args
            entries = {
                ast.literal_eval(key): _call(value)
                for key, value in zip(tools.keys, tools.values, strict=True)
                if key is not None and isinstance(value, ast.Call)
            }
            found[node.target.id] = (ast.unparse(node.value.func), *_call(peer)[::2], entries)
        else:
            assert isinstance(node, ast.ImportFrom | ast.Expr)
    return found


def _call(node: ast.Call) -> tuple[str, list[Any], dict[str, Any]]:
    keywords = {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}
    return ast.unparse(node.func), [ast.literal_eval(value) for value in node.args], keywords


def toolkit(project: Project, *words: str) -> subprocess.CompletedProcess[str]:
    return command_line.toolkit(project.root, *words)


def test_packs_say_how_to_reach_what_runs_the_tools(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        {"files": SERVER, "shop": {**SERVICE, "url": "https://shop.example.org/v1"}},
        {"files": mcp("read", wrapsResult=True), "shop": api("list_pets")},
    )
    made.generate()
    server = {"command": ("npx", "-y", 'it\'s "a" server'), "env": ("TOKEN",), "sandbox": True, "network": False}
    service = {"url": "https://shop.example.org/v1", "headers": {"Authorization": "Bearer ${TOKEN}"}, "timeout": 60.0}
    output = "acme.generated.models"
    assert calls(made) == {
        "FILES": (
            "mcp_pack",
            "McpServer",
            {"name": "files", **server, "timeout": 5.0},
            {"fs_read": ("McpTool", ["read", f"{output}.fs_read:FsReadOutput"], {"wraps_result": True})},
        ),
        "SHOP": (
            "api_pack",
            "ApiService",
            {"name": "shop", **service},
            {"list_pets": ("ApiOperation", [], {**REQUEST, "output": f"{output}.list_pets:ListPetsOutput"})},
        ),
    }
    facade = made.files()["facade.py"].decode()
    assert 'PACKS: tuple[str, ...] = ("acme.generated.imported:FILES", "acme.generated.imported:SHOP")' in facade
    assert "fs_read" not in made.files()["bind.py"].decode()
    rows = {row["name"]: row for row in json.loads(made.files()["manifest.json"])["tools"]}
    assert rows["fs_read"]["origin"] == {"kind": "mcp", "name": "files"}
    assert (rows["fs_read"]["originalName"], rows["fs_read"]["wrapsResult"]) == ("read", True)
    assert rows["list_pets"]["request"] == REQUEST
    assert made.generate() == []


def test_a_server_may_have_a_login_and_an_environment_of_its_own(tmp_path: Path) -> None:
    own = {"read_roots": ["~/models"], "cwd": "below", "startup_timeout": 90, "env": {"LEVEL": "debug"}}
    login = {"url": "https://x.org/mcp", "oauth": {"client_id": "it's me", "scope": "read"}}
    web = {**mcp("look", prefix="", permissions=("network",)), "origin": {"kind": "mcp", "name": "web"}}
    made = project(tmp_path, {"files": {**SERVER, **own}, "web": login}, {"files": mcp("read"), "web": web})
    made.generate()
    text = made.files()["imported.py"].decode()
    assert "from toolkit.generated_support import McpOAuth, McpServer, McpTool, mcp_pack\n" in text
    assert """oauth=McpOAuth(client_id="it's me", scope="read"),\n""" in text
    for line in ('read_roots=("~/models",),', 'cwd="below",', "startup_timeout=90.0,", 'env={"LEVEL": "debug"},'):
        assert f"        {line}\n" in text
    loaded = run([sys.executable, "-c", "from acme.generated.imported import WEB; print(WEB.server.oauth)"], tmp_path)
    assert loaded.stdout.startswith('McpOAuth(client_id="it\'s me"')


def test_a_server_may_have_the_guarded_network(tmp_path: Path) -> None:
    tools = mcp("read", permissions=("execute", "network"))
    made = project(tmp_path, {"files": {**SERVER, "network": "guarded"}}, {"files": tools})
    made.generate()
    assert calls(made)["FILES"][2]["network"] == "guarded"


@pytest.mark.slow
def test_a_server_without_a_sandbox_is_shown_as_one(tmp_path: Path) -> None:
    made = project(tmp_path, {"files": SERVER}, {"files": mcp("a")})
    made.generate()
    assert "without a sandbox" not in toolkit(made, "describe", "fs_a").stdout + toolkit(made, "tools").stdout
    made = project(tmp_path, {"files": {**SERVER, "sandbox": False}}, {"files": mcp("a")})
    made.generate()
    assert "imported: 'a' from 'files' (mcp, without a sandbox)\n" in toolkit(made, "describe", "fs_a").stdout
    own, imported = sorted(toolkit(made, "tools").stdout.splitlines(), key=lambda line: line.startswith("fs_a"))
    assert imported.endswith("[without a sandbox]") and "sandbox" not in own


def test_a_server_over_http(tmp_path: Path) -> None:
    table = {"url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": "${KEY}"}}
    made = project(tmp_path, {"files": table}, {"files": mcp("read", prefix="", permissions=("network",))})
    made.generate()
    _, kind, keywords, _ = calls(made)["FILES"]
    assert (kind, keywords) == ("McpServer", {"name": "files", **table, "timeout": 60.0})


def test_the_address_of_a_service_may_come_from_its_document(tmp_path: Path) -> None:
    made = project(tmp_path, {"shop": SERVICE}, {"shop": api("a", url="https://shop.example.org")})
    made.generate()
    assert calls(made)["SHOP"][2]["url"] == "https://shop.example.org"


def test_changed_settings_are_generated_anew(tmp_path: Path) -> None:
    made = project(tmp_path, {"files": SERVER}, {"files": mcp("read")})
    made.generate()
    settings = tmp_path / "pyproject.toml"
    settings.write_text(settings.read_text().replace("timeout = 5", "timeout = 7"))
    assert made.generate() == ["imported.py"]


@pytest.mark.slow
def test_what_is_not_imported_yet_is_told_and_leaves_no_trace(tmp_path: Path) -> None:
    made = project(tmp_path, {"files": SERVER}, {})
    ran = toolkit(made, "generate")
    assert ran.returncode == 0
    assert ran.stderr == "not imported yet: files; run `toolkit import files`\n"
    assert "imported.py" not in made.files() and "PACKS: tuple[str, ...] = ()" in made.files()["facade.py"].decode()
    assert json.loads(toolkit(made, "generate", "--json").stdout)["notImported"] == ["files"]
    checked = toolkit(made, "check")
    assert (checked.returncode, checked.stderr) == (1, ran.stderr)
    assert json.loads(toolkit(made, "check", "--json").stdout)["notImported"] == ["files"]


@pytest.mark.slow
def test_the_folder_of_imports_need_not_be_there_before_the_first(tmp_path: Path) -> None:
    made = project(tmp_path, {"files": SERVER}, {})
    shutil.rmtree(tmp_path / "acme/tools")
    ran = toolkit(made, "generate")
    assert (ran.returncode, ran.stderr) == (0, "not imported yet: files; run `toolkit import files`\n")


@pytest.mark.parametrize(
    ("imports", "files", "told"),
    [
        ({}, {"files": mcp("a", "b")}, "this file was imported as 'files', but the settings no longer have [tool.toolkit.imports.files]; restore the table, or delete the file @ acme/tools/files.json:/origin/name"),
        ({"renamed": SERVER}, {"files": mcp("a"), "renamed": {**mcp("a"), "origin": {"kind": "mcp", "name": "renamed"}}}, "this file was imported as 'files', but the settings no longer have [tool.toolkit.imports.files]; restore the table, or delete the file @ acme/tools/files.json:/origin/name"),
        ({"files": {**SERVER, "without": ["b"]}}, {"files": mcp("a", "b")}, "[tool.toolkit.imports.files] now leaves out 'b'; run `toolkit import files` again @ acme/tools/files.json:/tools/1"),
        ({"files": {"tools": "x.json"}}, {"files": mcp("a")}, "[tool.toolkit.imports.files] is now of the kind 'tools', not 'mcp'; run `toolkit import files` again @ acme/tools/files.json:/origin/kind"),
        ({"files": {**SERVER, "network": True}}, {"files": mcp("a")}, "'fs_a' must require the permission 'network'; run `toolkit import files` again @ acme/tools/files.json:/tools"),
        ({"files": SERVER}, {"files": mcp("a", permissions=())}, "'fs_a' must require the permission 'execute'; run `toolkit import files` again @ acme/tools/files.json:/tools"),
        ({"files": SERVER}, {"files": mcp("a", prefix="x_")}, "[tool.toolkit.imports.files] now has the prefix 'fs_'; run `toolkit import files` again @ acme/tools/files.json:/prefix"),
        ({"shop": SERVICE}, {"shop": api("a", "b")}, "the document names no server that can be called; set 'url' to the address of the service @ pyproject.toml:/tool/toolkit/imports/shop/url"),
        ({"shop": SERVICE}, {"shop": api("a", url="file:///etc")}, "the document names no server that can be called; set 'url' to the address of the service @ pyproject.toml:/tool/toolkit/imports/shop/url"),
        *(
            ({"shop": SERVICE}, {"shop": api("a", url=url)}, f"the document names the server {url!r}, which is not a public address; if it is the right one, set it as 'url' @ pyproject.toml:/tool/toolkit/imports/shop/url")
            for url in ("http://169.254.169.254/", "http://127.0.0.1:8080", "https://[::1]", "http://localhost/v1", "http://2130706433/")
        ),
    ],
)  # fmt: skip
def test_files_and_settings_must_agree(
    tmp_path: Path, imports: dict[str, dict[str, Any]], files: dict[str, dict[str, Any]], told: str
) -> None:
    with pytest.raises(SpecError) as caught:
        project(tmp_path, imports, files).generate()
    assert short_forms(caught.value) == (told,)
