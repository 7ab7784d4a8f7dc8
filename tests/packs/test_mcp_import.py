"""``toolkit import`` of live servers: what is committed, what is refused, and that the project made of it is typed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.packs.conftest import SERVERS
from tests.projects import Project, run
from toolkit.codegen.imports.mcp import convert_tool, import_mcp
from toolkit.codegen.imports.settings import ImportSettings
from toolkit.errors import SetupError

CALLS = """
from typing_extensions import assert_type

from served.generated import AcmeToolkit
from served.generated.models.shop_item import ShopItemOutput
from served.generated.models.web_greet import WebGreetOutput

def check(toolkit: AcmeToolkit) -> None:
    item = toolkit.invoke("shop_item", {"name": "pen"}).content
    assert_type(item, ShopItemOutput)
    assert_type(item.price, float)
    assert_type(toolkit.tools.shop_add(a=1).root, int)
    assert_type(toolkit.tools.web_items(count=1).root[0].name, str)
    assert_type(toolkit.invoke("web_greet", {"name": "Ann"}).content, WebGreetOutput)
"""
WRONG = """
def wrong(toolkit: AcmeToolkit) -> None:
    toolkit.tools.shop_add(a="one")
    toolkit.invoke("shop_item", {"nam": "pen"})
    toolkit.tools.shop_add(a=1).root.upper()
"""


def imported(project: Project, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.root / "served" / "tools" / f"{name}.json").read_text())
    return found


def test_the_committed_file_says_where_it_came_from_and_nothing_secret(project: Project) -> None:
    stdio, web = imported(project, "shop"), imported(project, "web")
    identity = {"name": "shop", "version": "1.2.3"}
    assert stdio["origin"] == {"kind": "mcp", "name": "shop", "server": identity}
    assert web["origin"] == {"kind": "mcp", "name": "web", "server": identity}
    assert [tool["name"] for tool in stdio["tools"]] == [tool["name"] for tool in web["tools"]]
    assert "s3cret" not in json.dumps(web) and "SHOP_TOKEN" not in json.dumps(web)
    assert {tuple(tool["permissions"]) for tool in stdio["tools"]} == {("execute",)}
    assert {tuple(tool["permissions"]) for tool in web["tools"]} == {("network",)}


def test_wrappers_and_annotations_are_noted(project: Project) -> None:
    tools = {tool["name"]: tool for tool in imported(project, "shop")["tools"]}
    assert tools["add"]["wrapsResult"] is True and tools["add"]["outputSchema"]["type"] == "integer"
    assert "wrapsResult" not in tools["item"] and tools["item"]["outputSchema"]["required"] == ["name", "price"]
    assert tools["items"]["outputSchema"]["items"] == {"$ref": "#/$defs/Item"}
    assert "Item" in tools["items"]["outputSchema"]["$defs"]
    assert "outputSchema" not in tools["greet"]
    assert tools["add"]["annotations"] == {"readOnlyHint": True}
    assert tools["work"]["annotations"] == {"destructiveHint": True}


def test_the_project_made_of_it_is_typed(project: Project) -> None:
    project.write("right.py", CALLS)
    project.write("wrong.py", CALLS + WRONG)
    check = [sys.executable, "-m", "mypy", "--strict"]
    run([*check, "right.py"], project.root)
    done = run([*check, "wrong.py"], project.root, check=False)
    wrong = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(wrong) >= 3 and all("wrong.py" in line for line in wrong)


def from_odd(habit: str, **settings: Any) -> ImportSettings:
    return ImportSettings("odd", command=("python", "odd.py", habit), **settings)


def test_all_pages_are_read_in_order() -> None:
    found = import_mcp(from_odd("pages", network=True), SERVERS)
    assert [tool["name"] for tool in found.tools] == ["tool_0", "tool_1", "tool_2", "tool_3", "last"]
    assert found.tools[0]["permissions"] == ["execute", "network"]
    assert found.origin == {"server": {"name": "odd", "version": "0"}}


@pytest.mark.parametrize(
    ("habit", "words"),
    [
        ("loop", "sends the same page of its tools again and again"),
        ("crowd", "lists more than 10000 tools, or 64 MiB of them"),
        ("endless", "has more than 1000 pages of tools"),
        (
            "dies at once",
            "ended before it was ready (exit code 1; the end of its stderr: cannot find my configuration)",
        ),
    ],
)
def test_a_list_that_cannot_be_had_is_told(habit: str, words: str) -> None:
    with pytest.raises(SetupError) as caught:
        import_mcp(from_odd(habit), SERVERS)
    assert words in str(caught.value)
    assert str(caught.value).endswith(
        "; it ran in the project's folder, in the sandbox: read-only, without the network (/tool/toolkit/imports/odd)"
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            ImportSettings("gone", command=("no-such-server",)),
            "'no-such-server' does not exist, or cannot be seen from inside the sandbox; install it next to this"
            " Python (`pip install ...`), for the whole system or in the project's folder",
        ),
        (ImportSettings("gone", command=("pyhton3",)), "or in the project's folder. Did you mean 'python3'?"),
        (
            ImportSettings("gone", command=("python", "-c", "import time; time.sleep(60)"), timeout=1),
            "the MCP server 'gone' was not ready within 1 s; raise its 'startup_timeout' if it needs longer; it ran in the"
            " project's folder, in the sandbox: read-only,"
            " without the network",
        ),
    ],
)
def test_what_keeps_a_server_from_starting_is_told_with_the_way_out(
    settings: ImportSettings, words: str, tmp_path: Path
) -> None:
    with pytest.raises(SetupError) as caught:
        import_mcp(settings, tmp_path)
    assert str(caught.value).endswith(f"{words} (/tool/toolkit/imports/gone)")


def test_being_asked_for_a_list_changes_nothing(tmp_path: Path) -> None:
    script = "open('written', 'w')"
    for sandbox, there in ((True, False), (False, True)):  # without a sandbox, the same succeeds
        settings = ImportSettings("bad", command=("python", "-c", script), sandbox=sandbox)
        with pytest.raises(SetupError, match="ended before it was ready"):
            import_mcp(settings, tmp_path)
        assert (tmp_path / "written").exists() is there


RESULT = {"type": "object", "properties": {"result": {"$ref": "#/$defs/A"}}, "required": ["result"]}


@pytest.mark.parametrize(
    ("schema", "inner"),
    [
        ({**RESULT, "$defs": {"A": {"type": "integer"}}}, {"$ref": "#/$defs/A", "$defs": {"A": {"type": "integer"}}}),
        ({**RESULT, "title": "addOutput", "x-fastmcp-wrap-result": True}, {"$ref": "#/$defs/A"}),
        ({**RESULT, "required": []}, None),
        ({**RESULT, "minProperties": 1}, None),
        ({**RESULT, "properties": {**RESULT["properties"], "more": {}}}, None),  # type: ignore[dict-item]
        ({**RESULT, "properties": {"result": {"items": {"$ref": "#/properties/result"}}}}, None),
        ({"type": "array", "items": RESULT}, None),
    ],
)
def test_only_what_is_nothing_but_a_wrapper_is_taken_off(schema: dict[str, Any], inner: dict[str, Any] | None) -> None:
    spec = convert_tool({"name": "x", "inputSchema": {}, "outputSchema": schema, "icons": []}, ("network",))
    assert spec.get("wrapsResult", False) is (inner is not None)
    assert spec["outputSchema"] == (inner or schema)
    assert "icons" not in spec
