"""Handlers of built-in tools are imported at the first use of their tool; what is wrong is still refused at once."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Annotated, Any, get_args

import pytest

from tests.projects import REPOSITORY, run
from tests.runtime.conftest import MakeDoor
from toolkit import DependencyKey, Depends, Pack, PolicyError, Rule, SecurityPolicy, SetupError, ToolContext, ToolName
from toolkit.builtin import BUILTIN
from toolkit.runtime.packs import LazyHandler

MINE = DependencyKey("todo_store", lambda: 1)
SOURCE = REPOSITORY / "toolkit/builtin/__init__.py"


def lazy(handler: Any) -> LazyHandler:
    assert isinstance(handler, LazyHandler)
    return handler


def test_a_checker_sees_the_modules_that_are_imported_later() -> None:
    seen: dict[str, str] = {}
    bound: dict[str | None, str] = {}
    for node in ast.walk(ast.parse(SOURCE.read_text())):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("toolkit.builtin."):
            seen |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "bind":
            bound = {word.arg: ast.unparse(word.value).removesuffix(".run") for word in node.keywords}

    assert bound.keys() == set(get_args(ToolName))
    assert {name: lazy(handler).module for name, handler in BUILTIN.handlers.items()} == {
        name: seen[module] for name, module in bound.items()
    }


@pytest.mark.parametrize("name", BUILTIN.handlers)
def test_a_handler_is_what_it_was_bound_as(name: str) -> None:
    handler = lazy(BUILTIN.handlers[name])
    parts = handler.load()

    assert parts.run.__module__ == handler.module
    assert parts.sandboxed
    assert (parts.preview is not None) == handler.has_preview


def test_a_handler_with_a_preview_that_nobody_announced_is_refused() -> None:
    with pytest.raises(SetupError, match="has a preview, but is bound otherwise"):
        LazyHandler("toolkit.builtin.files.edit", has_preview=False).load()


def test_a_rule_that_cannot_apply_is_refused_when_the_toolkit_is_built(make_door: MakeDoor) -> None:
    rules = [Rule("deny", tools=["todoread"], path="secret*")]
    with pytest.raises(PolicyError, match="'todoread' declares no path"):
        make_door(SecurityPolicy(default="allow", rules=rules))


def test_rules_are_checked_and_tools_offered_without_their_handlers(tmp_path: Path) -> None:
    code = """
import sys
from toolkit import Rule, SecurityPolicy, ToolkitContext, create_agent_toolkit
rules = [Rule("deny", path="secret*"), Rule("ask", tools=["edit", "apply_patch"], path="*.lock")]
toolkit = create_agent_toolkit(ToolkitContext(".", SecurityPolicy(default="allow", rules=rules)))
offered = [tool.name for tool in toolkit.get_allowed_tools()]
assert "read_file" in offered and "todoread" in offered, offered
print(*sorted(name for name in sys.modules if name.startswith("toolkit.builtin.")))
"""
    assert run([sys.executable, "-c", code], tmp_path).stdout.split() == []


def test_a_key_that_clashes_with_one_of_a_built_in_is_refused_when_the_toolkit_is_built(make_door: MakeDoor) -> None:
    def shout(args: Any, ctx: ToolContext, number: Annotated[int, Depends(MINE)]) -> Any: ...

    with pytest.raises(SetupError, match="two dependency keys are named 'todo_store'"):
        make_door(packs=[Pack({"shout": shout}), BUILTIN])


def test_an_override_that_a_built_in_cannot_use_is_refused_when_the_toolkit_is_built(make_door: MakeDoor) -> None:
    def make_store(missing: int) -> Any: ...

    with pytest.raises(SetupError, match=r"the parameter 'missing' of .*make_store has no value"):
        make_door(overrides={"todo_store": make_store})


def test_dependencies_of_tools_that_nobody_has_called_are_known_by_id(make_door: MakeDoor) -> None:
    found: list[str] = []

    def shout(args: Any, ctx: ToolContext) -> Any:
        found.extend(ctx.deps)
        return {"text": ""}

    make_door(packs=[Pack({"shout": shout}), BUILTIN]).invoke("shout", {"text": ""})

    assert {"output_cache", "subagent_runner", "todo_store"} <= set(found)


@pytest.mark.slow
def test_a_checker_refuses_a_built_in_without_its_handler(tmp_path: Path) -> None:
    text = SOURCE.read_text()
    wrong = text.replace("    glob=glob.run,\n", "    glob=grep.run,\n").replace("    done=done.run,\n", "")
    (tmp_path / "right.py").write_text(text)
    (tmp_path / "wrong.py").write_text(wrong)
    mypy = [sys.executable, "-m", "mypy", "--strict", "right.py", "wrong.py"]
    found = run(mypy, tmp_path, check=False).stdout.splitlines()

    assert [line.partition(": error: ")[2] for line in found if "right.py" in line] == []
    assert 'Missing named argument "done" for "bind"' in "\n".join(found)
    assert 'Argument "glob" to "bind" has incompatible type' in "\n".join(found)
