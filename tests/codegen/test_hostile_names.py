"""Names no Python programmer would choose: each has one stable form in Python, and the wire sees the original."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import command_line
from tests.modules import input_model
from tests.projects import Project
from tests.typing.checkers import mypy
from toolkit.codegen.package.python_names import field_names, name_tools
from toolkit.schema.problems import SpecPlace

PROPERTIES: dict[str, dict[str, str]] = {
    "keywords": {
        "class": "class_", "from": "from_", "None": "None_", "async": "async_", "match": "match", "type": "type", "print": "print",
    },
    "pydantic": {
        "schema": "schema_", "json": "json_", "copy": "copy_", "validate": "validate_", "model_config": "model_config_",
        "model_dump": "model_dump_", "root": "root", "dict": "dict_", "str": "str_", "Field": "Field_", "Any": "Any_",
        "Literal": "Literal_", "__init__": "init_", "__enforced__": "enforced_", "ClassVar": "ClassVar_",
    },
    "marks": {
        "_id": "id_", "__v": "v_", "$meta": "meta", "@type": "type", "#": "field_334359", "": "field_e3b0c4", "a.b": "a_b",
        "a/b": "a_b_c14cdd", "x-y": "x_y", "filter[name]": "filter_name_", "3d": "field_3d", "_": "field_d2e2ad", "日本": "日本",
        "quote\"'\\": "quote___", "new\nline": "new_line", "{brace}": "brace", "%s": "s",
    },
    "own": {
        "self": "self_", "cls": "cls_", "name": "name", "args": "args", "context": "context", "call_id": "call_id",
        "kwargs": "kwargs", "tool": "tool", "tools": "tools", "call": "call", "invoke": "invoke", "OMIT": "OMIT",
        "Omit": "Omit", "builtins": "builtins", "_call": "call_", "_content": "content_", "deadline": "deadline",
    },
    "meeting": {
        "a-b": "a_b_d44362d", "a_b": "a_b", "a_b_d44362": "a_b_d44362", "ID": "ID", "id": "id", "Id": "Id", "_id": "id__b6f746",
        "id_": "id_", "class": "class__088911", "class_": "class_",
    },
    "confusable": {
        "scope": "scope", "ѕcope": "ѕcope", "ﬁle": "field_e187bb", "file": "file", "ｆｕｌｌ": "field_ceae50", "full": "full",
        "\u00e9": "\u00e9", "e\u0301": "e_", "ſ": "field_3a421d", "s": "s",
    },
}  # fmt: skip
"""What each property is called in Python, one tool a row: these names are what people's code is written against."""

TOOLS = {
    "class": "class_", "self": "self", "invoke": "invoke", "name": "name", "call_id": "call_id", "context": "context",
    "math.factorial": "math_factorial", "hubspot-list-objects": "hubspot_list_objects", "_hidden": "tool_hidden", "3d": "tool_3d",
    "Foo": "Foo", "foo": "foo", "fOO": "fOO", "a b:c/d": "a_b_c_d", "list": "list", "builtins": "builtins", "Tools": "Tools",
}  # fmt: skip


def spec(name: str, properties: list[str]) -> dict[str, Any]:
    """Half of the properties are required; what comes in goes out, as an open and as a nested object."""
    fields = {wire: {"type": "string", "description": f"What {wire!r} is."} for wire in properties}
    inner = {"type": "object", "properties": fields, "required": properties[::2]}
    outer = {"type": "object", "properties": {**fields, "nested\n": inner}, "required": properties[::2]}
    return {"name": name, "description": "Says it again.", "inputSchema": inner, "outputSchema": outer}


HANDLERS = """
import json
from acme.generated import {models}, bind
from toolkit import ToolContext

{handlers}
PACK = bind({bound})
"""
HANDLER = """
def {attribute}(args: {prefix}Input, ctx: ToolContext) -> {prefix}Output:
    wire = args.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {prefix}Output.model_validate({{**wire, "nested\\n": wire}})
"""
CALLS = """
import json
from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit
from acme.handlers import PACK
from toolkit import ToolCall

toolkit = create_agent_toolkit(ToolkitContext(workspace=".", policy=SecurityPolicy(default="allow")), packs=[PACK])
"""
CALL = """
def check_{index}() -> None:
    sent = {arguments}
    invoked = toolkit.invoke({name!r}, {arguments})
    assert invoked.name == {name!r}
    assert json.loads(invoked.text()) == {{**sent, "nested\\n": sent}}, invoked.text()
    said = toolkit.tools.{attribute}({keywords})
    assert said == invoked.content, said
{attributes}
    assert toolkit.call(ToolCall("1", {name!r}, sent)).kind == "data"
    part = toolkit.tools.{attribute}({required})
    seen = json.loads(part.model_dump_json(by_alias=True, exclude_unset=True))
    assert seen.keys() == {{*{required_names!r}, "nested\\n"}}, seen

check_{index}()
"""


def whole_project(folder: Path) -> Project:
    """A package of tools with hostile properties and tools with hostile names, their handlers, and calls of them all."""
    own = list(PROPERTIES["own"])[:6]
    rows = {f"say_{row}": list(names) for row, names in PROPERTIES.items()} | dict.fromkeys(TOOLS, own)
    project = Project(folder, [spec(name, properties) for name, properties in rows.items()])
    project.generate()
    names = name_tools(list(rows), [SpecPlace(row) for row in rows])
    project.write(
        "acme/handlers.py",
        HANDLERS.format(
            models=", ".join(f"{tool.prefix}Input, {tool.prefix}Output" for tool in names),
            handlers="\n".join(HANDLER.format(attribute=f"run_{tool.attribute}", prefix=tool.prefix) for tool in names),
            bound=", ".join(f"{tool.attribute}=run_{tool.attribute}" for tool in names),
        ),
    )
    calls = [call(name, rows[name], TOOLS.get(name, name), index) for index, name in enumerate(rows)]
    project.write("calls.py", CALLS + "\n".join(calls))
    return project


def call(name: str, properties: list[str], attribute: str, index: int) -> str:
    python = next(names for names in PROPERTIES.values() if set(properties) <= set(names))
    arguments = {wire: f"{wire} of {index}" for wire in properties}

    def keywords(wires: list[str]) -> str:
        return ", ".join(f"{python[wire]}={arguments[wire]!r}" for wire in wires)

    return CALL.format(
        index=index,
        arguments=repr(arguments),
        name=name,
        attribute=attribute,
        keywords=keywords(properties),
        required=keywords(properties[::2]),
        required_names=properties[::2],
        attributes="\n".join(f"    assert said.{python[wire]} == {arguments[wire]!r}" for wire in properties),
    )


@pytest.mark.slow
def test_hostile_names_can_be_called_and_the_wire_sees_the_originals(tmp_path: Path) -> None:
    project = whole_project(tmp_path)
    command_line.python(project.root, "import calls")
    checked = mypy([tmp_path / "calls.py", tmp_path / "acme" / "handlers.py"], tmp_path)
    assert not checked.errors


@pytest.mark.parametrize("row", PROPERTIES)
def test_names_of_properties_are_stable(row: str) -> None:
    assert field_names(PROPERTIES[row]) == PROPERTIES[row]


def test_names_of_tools_are_stable() -> None:
    assert {
        names.wire: names.attribute for names in name_tools(list(TOOLS), [SpecPlace(tool) for tool in TOOLS])
    } == TOOLS
    assert len({names.prefix for names in name_tools(list(TOOLS), [SpecPlace(tool) for tool in TOOLS])}) == len(TOOLS)


@pytest.mark.parametrize("row", PROPERTIES)
def test_no_property_is_lost_and_none_is_taken_for_another(row: str) -> None:
    properties: dict[str, Any] = {wire: {"const": wire} for wire in PROPERTIES[row]}
    model = input_model({"type": "object", "properties": properties, "additionalProperties": False})
    value = {wire: wire for wire in properties}
    assert model.model_validate(value, by_name=False).model_dump(by_alias=True) == value
