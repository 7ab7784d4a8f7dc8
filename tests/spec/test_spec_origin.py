"""Imported files: where they came from, what their tools are called here, and what only an origin knows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.findings import short_forms
from toolkit.errors import SpecError
from toolkit.schema.spec import Origin, ToolSpec
from toolkit.schema.spec_files import load_spec_text

SCHEMA = {"type": "object"}


def load(tools: list[dict[str, Any]], **keys: Any) -> list[ToolSpec]:
    return load_spec_text(json.dumps({**keys, "tools": tools}), "files.json", None)


def tool(name: str, **keys: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": SCHEMA, **keys}


def origin(kind: str = "mcp", **keys: Any) -> dict[str, Any]:
    return {"kind": kind, "name": "files", **keys}


def problem(tools: list[dict[str, Any]], **keys: Any) -> str:
    with pytest.raises(SpecError) as caught:
        load(tools, **keys)
    (found,) = short_forms(caught.value)
    return found


def test_the_origin_and_the_prefix_reach_every_tool() -> None:
    specs = load(
        [tool("read", wrapsResult=True), tool("write", rename="put")], origin=origin(server={"a": 1}), prefix="fs_"
    )
    assert [(spec.name, spec.wire_name, spec.wraps_result) for spec in specs] == [
        ("read", "fs_read", True),
        ("write", "put", False),
    ]
    assert {spec.origin == Origin("mcp", "files", {"server": {"a": 1}}) for spec in specs} == {True}
    assert specs[0].origin is not None and specs[0].origin.as_json() == origin(server={"a": 1})


def test_a_file_of_ones_own_may_have_a_prefix_too() -> None:
    (spec,) = load([tool("read")], prefix="fs_")
    assert (spec.wire_name, spec.origin) == ("fs_read", None)


def test_requests_and_functions_are_kept() -> None:
    (spec,) = load([tool("a", request={"method": "get", "path": "/pets"})], origin=origin("openapi"))
    assert spec.request == {"method": "get", "path": "/pets"}
    (spec,) = load([tool("a", function="acme.math:add")], origin=origin("functions"))
    assert spec.function == "acme.math:add"


def test_a_name_nobody_could_use_needs_a_rename() -> None:
    (spec,) = load([tool("größe?", rename="size")], origin=origin())
    assert (spec.name, spec.wire_name) == ("größe?", "size")
    assert "; give it a 'rename' @ files.json:/tools/0/name" in problem([tool("größe?")], origin=origin())
    assert "rename" not in problem([tool("größe?", rename="size")]).partition("spaces")[2]


def test_two_tools_meet_behind_their_prefix() -> None:
    text = problem([tool("fs_read"), tool("read", rename="fs_fs_read")], origin=origin(), prefix="fs_")
    way_out = "add a 'rename' to one of the two, or a 'prefix' to its import"
    assert text == f"the name 'fs_fs_read' is taken by files.json:1:74; {way_out} @ files.json:/tools/1/rename"


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"prefix": "../"}, "'../' cannot start a tool name: "),
        ({"prefix": 3}, "'prefix' must be a string, not a number @ files.json:/prefix"),
        ({"origin": 3}, "'origin' must be an object, not a number @ files.json:/origin"),
        (
            {"origin": {"kind": "mcp"}},
            "'name' is missing: it names the import that wrote the file @ files.json:/origin",
        ),
        (
            {"origin": origin("soap")},
            "'soap' is not a kind of import; the kinds are mcp, openapi, tools, functions, models",
        ),
        ({"origins": {}}, "unknown key 'origins'. Did you mean 'origin'? @ files.json:/origins"),
    ],
)
def test_mistakes_of_the_file(keys: dict[str, Any], told: str) -> None:
    assert problem([tool("a")], **keys).startswith(told)


@pytest.mark.parametrize(
    ("kind", "keys", "told"),
    [
        ("mcp", {"request": {}}, "'request' is only allowed in a file whose 'origin' has the kind 'openapi'"),
        ("openapi", {"wrapsResult": True}, "'wrapsResult' is only allowed in a file whose 'origin' has the kind 'mcp'"),
        ("models", {"function": "a:b"}, "'function' is only allowed in a file whose 'origin' has the kind 'functions'"),
        ("mcp", {"wrapsResult": 1}, "'wrapsResult' must be true or false, not a number"),
        ("openapi", {"request": []}, "'request' must be an object, not a list"),
        (
            "openapi",
            {"request": {"a=1); import os": 1}},
            "'a=1); import os' is not a key of 'request'; the keys are method, path",
        ),
        ("openapi", {"request": {"class": 1}}, "'class' is not a key of 'request'"),
        ("openapi", {"request": {"output": 1}}, "'output' is not a key of 'request'"),
        ("functions", {"function": "acme.math"}, "'function' must have the form 'module:function', not 'acme.math'"),
        ("functions", {"function": "a.b:c d"}, "'function' must have the form 'module:function', not 'a.b:c d'"),
    ],
)
def test_mistakes_of_a_tool(kind: str, keys: dict[str, Any], told: str) -> None:
    assert problem([tool("a", **keys)], origin=origin(kind)).startswith(told)
