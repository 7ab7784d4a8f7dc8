"""Options made from the schema of a tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import command_line
from tests.cli.run_main import run_main
from tests.projects import Project
from toolkit.cli.tool_options import tool_options


def row(**properties: Any) -> dict[str, Any]:
    return {"name": "x", "inputSchema": {"type": "object", "properties": properties}}


def names(**properties: Any) -> dict[str, str]:
    return {option.wire: option.declaration for option in tool_options(row(**properties))}


TEXT = {"type": "string"}


def test_names_are_kebab_case_and_never_ours() -> None:
    assert names(startLine=TEXT, max_HTTPSize=TEXT, **{"a b": TEXT}) == {
        "startLine": "--start-line", "max_HTTPSize": "--max-http-size", "a b": "--a-b",
    }  # fmt: skip
    assert names(json=TEXT, workspace=TEXT, help=TEXT) == {
        "json": "--tool-json", "workspace": "--tool-workspace", "help": "--tool-help",
    }  # fmt: skip
    assert names(startLine=TEXT, start_line=TEXT) == {"startLine": "--startLine", "start_line": "--start_line"}
    assert names(json=TEXT, tool_json=TEXT) == {"tool_json": "--tool-json"}  # `json` only in the JSON argument
    assert names(**{"": TEXT, "\N{SNOWMAN}": TEXT}) == {}


def test_flags_have_a_negative_unless_it_is_another_option() -> None:
    flag = {"type": "boolean"}
    assert names(deep=flag) == {"deep": "--deep/--no-deep"}
    assert names(deep=flag, no_deep=flag) == {"deep": "--deep", "no_deep": "--no-deep/--no-no-deep"}


@pytest.mark.parametrize(
    ("schema", "given", "expected"),
    [
        ({"type": "string"}, "3", "3"),
        ({"type": ["string", "null"]}, "null", "null"),
        ({"type": "integer"}, "-3", -3),
        ({"type": "integer"}, "3.0", 3.0),  # an integer in JSON Schema
        ({"type": "number"}, "1.5", 1.5),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "3", 3),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "x", "x"),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": "array"}, "[1]", [1]),
        ({"type": "array", "items": {"type": "string"}}, ["a", "1"], ["a", "1"]),
        ({"type": "array", "items": {"type": "object"}}, ['{"a": 1}'], [{"a": 1}]),
        ({"enum": ["a", "b"]}, "a", "a"),
        ({"enum": [1, 2]}, "2", 2),
        ({}, "x", "x"),
        ({}, "[true]", [True]),
    ],
)
def test_values(schema: Any, given: Any, expected: Any) -> None:
    [option] = tool_options(row(a=schema))
    assert option.read(given) == expected


@pytest.mark.parametrize(
    ("schema", "given"),
    [
        ({"type": "integer"}, "1.5"),
        ({"type": "integer"}, "true"),
        ({"type": "number"}, "NaN"),
        ({"type": "object"}, "[]"),
        ({"type": "object"}, '{"a": 1, "a": 2}'),
        ({"enum": ["a"]}, "b"),
    ],
)
def test_values_of_another_type_are_refused(schema: Any, given: str) -> None:
    [option] = tool_options(row(a=schema))
    with pytest.raises(ValueError, match=r"is not"):
        option.read(given)


def test_invoke_takes_options_json_or_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")

    def content(*arguments: str) -> str:
        ended = run_main(tmp_path, ["invoke", "read_file", *arguments, "--json"], capsys)
        assert ended.code == 0, ended
        text: str = json.loads(ended.out)["content"]["content"]
        return text

    assert content("--path", "a.txt", "--start-line", "3") == "three\n"
    assert content("--path=a.txt", "--max-lines=1") == "one\n"
    assert content('{"path": "a.txt", "start_line": 3}', "--start-line", "2", "--max-lines", "1") == "two\n"
    (tmp_path / ".hidden.txt").write_text("")
    for flag, count in (("--include-hidden", 2), ("--no-include-hidden", 1)):
        ended = run_main(tmp_path, ["invoke", "glob", "--pattern", "*.txt", flag, "--json"], capsys)
        assert len(json.loads(ended.out)["content"]["paths"]) == count


@pytest.mark.parametrize("options", [[], ["--start-line", "1"]], ids=["alone", "with options"])
@pytest.mark.parametrize("text", ["{", "[]", "{} {}", '{"path": "b.txt", "path": "a.txt"}', '{"max_lines": NaN}'])
def test_text_that_is_not_one_json_object_is_wrong_usage(
    tmp_path: Path, text: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    ended = run_main(tmp_path, ["invoke", "read_file", text, *options], capsys)
    assert (ended.code, ended.out) == (2, "") and ended.err.startswith(
        "Error: Invalid value for 'JSON': the arguments "
    )


@pytest.mark.parametrize("options", [[], ["--start-line", "1"]], ids=["alone", "with options"])
def test_a_word_that_is_not_json_is_answered_with_its_option(
    tmp_path: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    ended = run_main(tmp_path, ["invoke", "read_file", "a.txt", *options], capsys)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("Error: 'a.txt' is not a JSON object; write --path a.txt.")


def test_help_of_a_tool_lists_its_options_and_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = run_main(tmp_path, ["invoke", "read_file", "--help"], capsys)
    assert shown.code == 0
    assert shown.out.startswith("Usage: toolkit invoke read_file [OPTIONS] [JSON]\n")
    for line in (
        "--path PATH ",
        "--start-line INTEGER ",
        "--workspace DIR ",
        "--json ",
        "[required]",
        "[default: 2000]",
    ):
        assert line in shown.out
    assert "<bool>" not in shown.out and "<str>" not in shown.out
    own = run_main(tmp_path, ["invoke", "--help"], capsys)
    assert own.code == 0 and "toolkit invoke read_file --help" in own.out


@pytest.mark.slow
def test_lists_are_repeated_and_objects_are_json(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {
            "tags": {"type": "array", "items": {"type": "string"}},
            "filter": {"type": "object"},
            "json": {"type": "boolean"},
        },
    }
    project = Project(tmp_path, [{"name": "show", "description": "D.", "inputSchema": schema}], packs=["acme.pack:P"])
    project.write(
        "acme/pack.py",
        "from acme.generated import ShowInput, ShowOutput, bind\nfrom toolkit import ToolContext\n"
        "def show(args: ShowInput, ctx: ToolContext) -> ShowOutput:\n    return ShowOutput(text=args.model_dump_json())\n"
        "P = bind(show=show)\n",
    )
    project.generate()
    options = ["--tags", "a", "--tags", "b c", "--filter", '{"k": 1}', "--no-tool-json"]
    done = command_line.toolkit(tmp_path, "invoke", "show", *options, check=True)
    assert json.loads(done.stdout) == {"tags": ["a", "b c"], "filter": {"k": 1}, "json": False}


OWN_TYPES = """
from dataclasses import dataclass
from pydantic import BaseModel, Field
from toolkit import tool

class Order(BaseModel):
    item_name: str = Field(alias="itemName")

@dataclass
class Pair:
    left: Order

@tool
def orders(number: int) -> list[Order]:
    "List orders."
    return [Order(itemName="a")] * number

@tool
def pair() -> Pair:
    "Return a pair."
    return Pair(Order(itemName="b"))
"""


@pytest.mark.slow
def test_outputs_of_the_projects_own_types_are_printed(tmp_path: Path) -> None:
    project = Project(tmp_path, (), functions=["acme.orders"])
    project.write("acme/orders.py", OWN_TYPES)
    project.generate()
    for arguments, content in (
        (["orders", "--number", "2"], [{"itemName": "a"}, {"itemName": "a"}]),
        (["pair"], {"left": {"itemName": "b"}}),
    ):
        shown, told = (
            command_line.toolkit(tmp_path, "invoke", *arguments, *form, check=True).stdout for form in ([], ["--json"])
        )
        assert json.loads(shown) == content
        assert json.loads(told)["content"] == content
