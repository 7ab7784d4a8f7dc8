"""``tools.<name>(...)``: Python methods with the signatures of the specs, that send only what they are given."""

from __future__ import annotations

import inspect
import pydoc
from pathlib import Path
from typing import Any

import pytest

from tests.examples import TWINS
from tests.runtime.conftest import Door
from toolkit import OMIT, AsyncToolkit, SecurityPolicy, Toolkit, ToolkitContext
from toolkit.errors import InvalidArguments
from toolkit.generated import create_agent_toolkit, create_async_agent_toolkit


@pytest.fixture(params=TWINS)
def tools(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    create: Any = create_agent_toolkit if request.param == "sync" else create_async_agent_toolkit
    return create(ToolkitContext(tmp_path, SecurityPolicy(default="allow"))).tools


def test_the_signature_shows_the_defaults_of_the_spec(tools: Any) -> None:
    signature = inspect.signature(tools.read_file)
    assert {name: parameter.default for name, parameter in signature.parameters.items()} == {
        "path": inspect.Parameter.empty,
        "start_line": 1,
        "max_lines": 2000,
        "max_bytes": 262144,
    }
    assert str(signature).endswith("-> 'ReadFileOutput'")
    assert inspect.signature(tools.todoread).parameters["status"].default is OMIT


def test_help_shows_signature_and_text(tools: Any) -> None:
    text = pydoc.plain(pydoc.render_doc(tools.read_file))
    assert "start_line: 'int' = 1" in text
    assert ":param max_lines: Maximum number of lines to read." in text
    assert "start_line: 'int' = 1" in pydoc.plain(pydoc.render_doc(type(tools)))
    assert tools.read_file.__doc__.startswith("Read lines of a text file")
    assert tools.read_file.__name__ == "read_file"
    assert tools.read_file.__qualname__ == f"{type(tools).__name__}.read_file"
    assert tools.read_file.__module__.startswith("toolkit.generated.")


def test_only_tools_are_listed(tools: Any) -> None:
    listed = [name for name in dir(tools) if not name.startswith("_")]
    assert "read_file" in listed and "list" in listed
    assert all(callable(getattr(tools, name)) for name in listed)


def test_methods_of_an_async_toolkit_are_coroutine_functions(tools: Any) -> None:
    assert inspect.iscoroutinefunction(tools.read_file) == type(tools).__name__.startswith("Async")


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"paht": "x"}, "unexpected keyword argument 'paht'"),
        ({}, "missing 1 required keyword-only argument: 'path'"),
        ({"path": "x", "Start_Line": 1}, "unexpected keyword argument 'Start_Line'"),
    ],
)
def test_a_wrong_keyword_is_the_error_of_any_python_method(tools: Any, keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        tools.read_file(**keywords)
    with pytest.raises(TypeError, match="positional argument"):
        tools.read_file("x")


def test_a_wrong_value_is_the_error_of_the_tool(door: Door) -> None:
    for wrong in ("2", None, OMIT):
        with pytest.raises(InvalidArguments, match=r"^INVALID_TOOL_ARGUMENTS: b: "):
            door.tool("add", a=1, b=wrong)


def test_a_users_own_subclass_keeps_its_defaults(tmp_path: Path) -> None:
    toolkit = create_agent_toolkit(ToolkitContext(tmp_path, SecurityPolicy(default="allow")))
    (tmp_path / "a.txt").write_text("one\ntwo\n")

    class MyTools(type(toolkit.tools)):  # type: ignore[misc]
        def head(self, *, path: str, lines: int = 1) -> str:
            """The first lines."""
            return str(self.read_file(path=path, max_lines=lines).content)

    assert "two" not in MyTools(toolkit._call_tool).head(path="a.txt")


def test_both_toolkits_have_the_same_methods() -> None:
    def signatures(toolkit: type) -> dict[str, str]:
        made: Any = inspect.signature(toolkit.tools.fget).return_annotation  # type: ignore[attr-defined]
        tools = vars(inspect.getmodule(toolkit))[made]
        return {
            name: str(inspect.signature(method)) for name, method in vars(tools).items() if not name.startswith("_")
        }

    assert signatures(Toolkit) == signatures(AsyncToolkit)
