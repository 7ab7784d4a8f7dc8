"""Many tools, some with names that hide builtins: clean under all four checkers, and no quadratic time under mypy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.projects import REPOSITORY, Project, many_tools
from tests.typing.checkers import CHECKERS, MYPY_AND_REST, Report, mypy
from toolkit.codegen.package.python_names import name_tools
from toolkit.schema.problems import SpecPlace

CALLED = 40
PYREFLY_WIDENS_ABOVE = 256
"""Pyrefly 1.4 widens a Literal with more names to str (measured: it distinguishes 256 names, but not 257)."""


def using(count: int) -> str:
    """A program that calls tools through both entry points and uses the unions."""
    tools = name_tools([spec["name"] for spec in many_tools(count)], [SpecPlace("")] * count)
    lines = [
        "from typing import assert_type, reveal_type",
        "",
        "import acme.generated",
        "from acme.generated import AcmeToolkit, AnyToolCall, AnyToolMessage, AsyncAcmeToolkit, SecurityPolicy, parse_call",
        "from toolkit import ToolCall",
        "",
        "",
        "def uses(toolkit: AcmeToolkit, call: ToolCall) -> None:",
        "    message: AnyToolMessage = toolkit.invoke(call.name, call.arguments)",
        "    called: AnyToolCall = parse_call(call)",
        "    print(message, called)",
        "    assert_type(call.name, str)",
        "    reveal_type(call.id)  # revealed: str",
        "    print(acme.generated.CATALOG)",
    ]
    for tool in tools[:CALLED]:
        model = f"acme.generated.{tool.prefix}Output"
        lines += [
            f"    assert_type(toolkit.invoke({tool.wire!r}, {{'query': 'x', 'filter': {{'type': 'a'}}}}).content, {model})",
            f"    assert_type(toolkit.tools.{tool.attribute}(query='x', tags=['a'], mode='exact').rows[0].score, float | None)",
        ]
    if tools:
        last = tools[-1]
        lines += [
            f"    if message.name == {last.wire!r}:",
            f"        reveal_type(message.content)  # revealed: {last.prefix}Output",
            f"    if called.name == {last.wire!r}:",
            f"        reveal_type(called.arguments)  # revealed: {last.prefix}Input",
            f"    SecurityPolicy(tools={{{last.wire!r}: 'allow'}})",
            f"    toolkit.invoke({last.wire!r}, {{'qeury': 'x'}})  # error",
            f"    toolkit.tools.{last.attribute}(qeury='x')  # error",
        ]
    lines += [
        "    toolkit.invoke('no tool', {'query': 'x'})  # error",
        "    toolkit.tools.no_tool(query='x')  # error",
        f"    SecurityPolicy(tools={{'no tool': 'allow'}})  # error{' except for pyrefly' * (count > PYREFLY_WIDENS_ABOVE)}",
        "",
        "",
        "async def awaits(toolkit: AsyncAcmeToolkit, call: ToolCall) -> None:",
        "    message: AnyToolMessage = await toolkit.invoke(call.name, call.arguments)",
        "    print(message)",
    ]
    return "\n".join([*lines, ""])


def problems(report: Report, file: Path, checker: str) -> list[str]:
    found = []
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        place = (file.name, number)
        wanted = re.search(r"# revealed: (.+)$", line)
        if wanted and report.revealed.get(place) != wanted[1]:
            found.append(f"{line}: revealed {report.revealed.get(place)}")
        wrong = line.endswith("# error") or line.endswith("# error except for pyrefly") and checker != "pyrefly"
        if wrong != bool(report.errors.get(place)):
            found.append(f"{line}: {report.errors.get(place)}")
    elsewhere = {place: errors for place, errors in report.errors.items() if place[0] != file.name}
    return [*found, *map(str, elsewhere.items())]


MANY = 1000
"""Takes the checkers minutes."""


@pytest.fixture(scope="session")
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Project:
    count: int = request.param
    made = Project(tmp_path_factory.mktemp(f"tools{count}"), many_tools(count))
    made.generate()
    made.write("using.py", using(count))
    return made


@pytest.mark.parametrize(
    "project",
    [0, 1, pytest.param(18, marks=pytest.mark.whole), pytest.param(MANY, marks=pytest.mark.whole)],
    indirect=True,
    ids=["no tools", "1 tool", "18 tools", "many tools"],
)
@pytest.mark.parametrize("checker", MYPY_AND_REST)
@pytest.mark.xdist_group("scale")
def test_many_tools_are_clean(project: Project, checker: str) -> None:
    file = project.root / "using.py"
    assert problems(CHECKERS[checker]([file], project.root), file, checker) == []


@pytest.mark.whole
@pytest.mark.parametrize("project", [MANY], indirect=True, ids=["many tools"])
@pytest.mark.xdist_group("scale")
def test_facades_of_many_tools_are_clean_without_the_ignore_line(project: Project) -> None:
    assert_clean_without_ignore(project.root, project.output)


def test_facades_of_the_built_ins_are_clean_without_the_ignore_line(tmp_path: Path) -> None:
    import shutil

    shutil.copytree(REPOSITORY / "toolkit", tmp_path / "toolkit", ignore=shutil.ignore_patterns("__pycache__"))
    assert_clean_without_ignore(tmp_path, tmp_path / "toolkit" / "generated")


def without_ignore_line(facade: Path) -> None:
    first, rest = facade.read_text().split("\n", 1)
    assert first == "# mypy: ignore-errors"
    facade.write_text(rest)


OVERLAP_OF_THE_DYNAMIC_OVERLOAD = re.compile(
    r"Overloaded function signatures 2 and \d+ overlap with incompatible return types"
)
"""It comes before the tools for the sake of pyright's messages. What it returns includes what theirs return."""


def assert_clean_without_ignore(root: Path, package: Path) -> None:
    facades = [package / "facade.py", package / "async_facade.py"]
    for facade in facades:
        without_ignore_line(facade)
    assert unexpected(mypy(facades, root, "--explicit-package-bases")) == []


def unexpected(report: Report) -> list[str]:
    messages = [message for errors in report.errors.values() for message in errors]
    return [message for message in messages if not OVERLAP_OF_THE_DYNAMIC_OVERLOAD.match(message)]


HOSTILE_NAMES = (
    "content", "_content", "call", "self", "builtins", "name", "args", "output", "HostileOutput", "HostileArgs", "Any", "Omit",
    "OMIT", "str", "list", "ToolMessage", "class",
)  # fmt: skip


def hostile_tools() -> list[dict[str, Any]]:
    """Arguments that hide names used by generated code, nested names that collide across tools, defaults with models."""
    point = {"type": "object", "properties": {"x": {"type": "integer"}, "list": {"type": "array"}}}
    properties: dict[str, Any] = {name: {"type": "string"} for name in HOSTILE_NAMES}
    properties |= {
        "points": {"type": "array", "items": point, "default": [{"x": 1.0}]},
        "maybe": {"anyOf": [point, {"type": "null"}], "default": {"x": 1}},
        "by_name": {"type": "object", "additionalProperties": point, "default": {"a": {"x": 2}}},
        "whole": {"type": "integer", "default": 2.0},
        "limited": {"type": ["number", "null"], "minimum": -(2**63), "maximum": 2**63 - 1},
    }
    return [
        {"name": "hostile", "inputSchema": {"type": "object", "properties": properties}},
        {"name": "get", "inputSchema": {"type": "object", "properties": {"args": point, "input": point}}},
        {"name": "get_args", "inputSchema": {"type": "object", "properties": {"y": {"type": "string"}}}},
        {"name": "nullable", "inputSchema": {"type": "object"}, "outputSchema": {**point, "type": ["object", "null"]}},
        {"name": "anything", "inputSchema": {"type": "object"}, "outputSchema": {}},
    ]


@pytest.mark.parametrize("checker", ["mypy", pytest.param("pyright", marks=pytest.mark.whole)])
def test_every_file_of_a_package_of_hostile_names_is_clean(tmp_path: Path, checker: str) -> None:
    project = Project(tmp_path, [*many_tools(32), *hostile_tools()])
    project.generate()
    for facade in ("facade.py", "async_facade.py"):
        without_ignore_line(project.output / facade)
    files = sorted(project.output.rglob("*.py"))
    assert unexpected(CHECKERS[checker](files, project.root)) == []
