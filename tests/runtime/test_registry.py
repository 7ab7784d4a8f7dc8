"""The registry of code-first tools: names, permissions, description files, results, and tools ready to run."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from toolkit import (
    DynamicContext,
    DynamicPolicy,
    FunctionTool,
    Permissions,
    SetupError,
    ToolContext,
    ToolRegistry,
    ToolResult,
    define_tool,
    tool,
)


@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool(permissions=["read"])
def look(ctx: ToolContext) -> list[str]:
    """Tell what is granted."""
    return sorted(ctx.granted)


@tool(permissions=Permissions(("write",), ("network",)))
async def change() -> str:
    """Change something."""
    return "changed"


def another_add(a: int) -> int:
    return a


@pytest.fixture
def registry() -> ToolRegistry:
    made = ToolRegistry()
    for one in (add, look, change):
        made.register(one)
    return made


@pytest.fixture
def context(tmp_path: Path) -> DynamicContext:
    return DynamicContext(tmp_path, DynamicPolicy(default="allow"))


@pytest.fixture
def ctx(context: DynamicContext) -> Iterator[ToolContext]:
    with ToolContext.standalone(context, call_id="1") as made:
        yield made


# -- names and permissions ---------------------------------------------------------------------------------------------


def test_tools_are_found_by_name(registry: ToolRegistry) -> None:
    assert registry.get("add") is add
    assert registry.get("nothing") is None
    registry.unregister("add")
    assert registry.get("add") is None
    with pytest.raises(SetupError, match="no tool named 'add' is registered"):
        registry.unregister("add")


def test_a_name_that_is_taken_names_both_owners(registry: ToolRegistry) -> None:
    words = rf"two tools are named 'add': {__name__}\.add and {__name__}\.another_add; rename one with define_tool"
    with pytest.raises(SetupError, match=words):
        registry.register(define_tool(another_add, name="add"))
    with pytest.raises(SetupError, match="two tools are named 'add'"):
        registry.register(add)
    assert registry.get("add") is add
    registry.unregister("add")
    registry.register(define_tool(another_add, name="add"))


def test_only_tools_can_be_registered(registry: ToolRegistry) -> None:
    with pytest.raises(SetupError, match=r"function is not a tool: make one from it with define_tool"):
        registry.register(another_add)  # type: ignore[arg-type]


ENABLED: dict[tuple[str, ...], list[str]] = {
    (): ["add"],
    ("read",): ["add", "look"],
    ("write",): ["add", "change"],
    ("read", "write", "execute"): ["add", "look", "change"],
    ("network",): ["add"],
}


@pytest.mark.parametrize("permissions", ENABLED)
def test_enabled_are_those_whose_required_permissions_are_all_there(registry: ToolRegistry, permissions: Any) -> None:
    assert [tool.name for tool in registry.enabled(permissions)] == ENABLED[permissions]


def test_permissions_are_words_that_exist(registry: ToolRegistry) -> None:
    with pytest.raises(SetupError, match="unknown permission 'fly'"):
        registry.enabled(["fly"])  # type: ignore[list-item]
    with pytest.raises(SetupError, match="'fly' is not a permission"):
        ToolRegistry().register(add, permissions=["fly"])  # type: ignore[list-item]


def test_permissions_are_set_where_a_tool_is_registered(ctx: ToolContext) -> None:
    registry = ToolRegistry()
    registry.register(look, permissions=Permissions(("read", "write")))
    assert registry.enabled(["read"]) == []
    assert registry.execute("look", {}, ctx).value == ["read", "write"]
    registered = registry.get("look")
    assert isinstance(registered, FunctionTool)
    assert (registered.parallel, look.parallel, look.permissions) == (False, True, Permissions(("read",)))


# -- running by name ---------------------------------------------------------------------------------------------------


def test_tools_run_by_name_and_results_are_kept(registry: ToolRegistry, ctx: ToolContext) -> None:
    assert registry.last_result is None
    assert registry.execute("add", {"a": 1}, ctx) == ToolResult("1", "add", "data", 2)
    assert registry.execute("add", '{"a": 1, "b": 2}', ctx).value == 3
    assert registry.execute("change", {}, ctx).value == "changed"
    refused = registry.execute("add", {"a": "1"}, ctx)
    assert (refused.kind, refused.value) == ("error", "INVALID_TOOL_ARGUMENTS: a: Input should be a valid integer")
    assert registry.last_result == refused
    assert {name: result.value for name, result in registry.last_results.items()} == {
        "add": refused.value,
        "change": "changed",
    }


def test_tools_run_by_name_in_a_loop(registry: ToolRegistry, context: DynamicContext) -> None:
    async def run() -> list[object]:
        async with ToolContext.standalone(context) as ctx:
            done = [await registry.execute_async(name, {}, ctx) for name in ("change", "look", "nothing")]
            # Inside a running loop, too, without awaiting.
            return [*(result.value for result in done), registry.execute("change", {}, ctx).value]

    assert asyncio.run(run()) == ["changed", ["read"], "TOOL_NOT_FOUND: unknown tool 'nothing'.", "changed"]


@pytest.mark.parametrize("name", ["ad", "", "ADD", None, 7])
def test_unknown_names_never_raise(registry: ToolRegistry, ctx: ToolContext, name: Any) -> None:
    result = registry.execute(name, {}, ctx)
    assert (result.kind, str(result.value).partition(":")[0]) == ("error", "TOOL_NOT_FOUND")


def test_arguments_that_are_none_never_raise(registry: ToolRegistry, ctx: ToolContext) -> None:
    for arguments in (None, 7, [1]):
        result = registry.execute("add", arguments, ctx)  # type: ignore[arg-type]
        assert str(result.value).startswith("INVALID_TOOL_ARGUMENTS: the arguments must be JSON text or an object"), (
            arguments
        )


def test_what_is_no_context_never_raises(registry: ToolRegistry) -> None:
    for name in ("add", "nothing"):
        result = registry.execute(name, {"a": 1}, None)  # type: ignore[arg-type]
        assert (result.kind, result.tool_call_id != "") == ("error", True)


# -- ready to run ------------------------------------------------------------------------------------------------------


def test_tools_are_ready_to_run(registry: ToolRegistry, context: DynamicContext) -> None:
    results: list[ToolResult] = []
    with registry.tools(context, on_result=results.append) as tools:
        assert [tool.name for tool in tools] == ["add", "look", "change"]
        assert tools[0].definition == add.definition
        assert (tools[1].description, tools[1].permissions) == ("Tell what is granted.", Permissions(("read",)))
        assert tools[0].execute({"a": 1}, "7") == ToolResult("7", "add", "data", 2)
        assert tools[0].execute('{"a": "1"}').kind == "error"
        assert tools[2].execute({}).value == "changed"
        assert asyncio.run(tools[2].execute_async("{}", "8")) == ToolResult("8", "change", "text", "changed")
    assert [(result.name, result.kind) for result in results] == [
        ("add", "data"),
        ("add", "error"),
        ("change", "text"),
        ("change", "text"),
    ]
    assert registry.last_result == results[-1]
    assert str(tools[0].execute({"a": 1}).value).startswith("TOOL_CANCELLED: ")


def test_tools_no_call_of_which_could_pass_are_left_out(registry: ToolRegistry, tmp_path: Path) -> None:
    policy = DynamicPolicy(default="allow", tools={"add": "deny"})
    with registry.tools(DynamicContext(tmp_path, policy, permissions=["read"])) as tools:
        assert [tool.name for tool in tools] == ["look"]


def test_contexts_are_made_for_each_call(registry: ToolRegistry, context: DynamicContext) -> None:
    asked: list[tuple[str, str]] = []
    with ToolContext.standalone(context, call_id="mine") as ctx:

        def create_context(name: str, call_id: str) -> ToolContext:
            asked.append((name, call_id))
            return ctx

        with registry.tools(context, create_context) as tools:
            assert tools[0].execute({"a": 1}, "7").tool_call_id == "mine"
    assert asked == [("add", "7")]


def test_neither_a_failing_context_nor_a_failing_listener_raises(
    registry: ToolRegistry, context: DynamicContext
) -> None:
    def fails(*_: object) -> Any:
        raise RuntimeError("broken")

    with registry.tools(context, on_result=fails) as tools:
        assert tools[0].execute({"a": 1}).value == 2
    with registry.tools(context, fails) as tools:
        assert str(tools[0].execute({"a": 1}, "7").value).startswith("INTERNAL: ")
        assert asyncio.run(tools[0].execute_async({"a": 1})).kind == "error"


def test_unregistered_while_it_runs(context: DynamicContext) -> None:
    entered, go = threading.Event(), threading.Event()

    def hold() -> str:
        entered.set()
        go.wait()
        return "ended"

    registry = ToolRegistry()
    registry.register(define_tool(hold))
    results: list[object] = []
    with registry.tools(context) as tools, ToolContext.standalone(context) as ctx:
        thread = threading.Thread(target=lambda: results.append(tools[0].execute({}).value))
        thread.start()
        entered.wait()
        registry.unregister("hold")
        assert tools[0].execute({}).value == "TOOL_NOT_FOUND: 'hold' has been unregistered"
        assert registry.execute("hold", {}, ctx).value == "TOOL_NOT_FOUND: unknown tool 'hold'."
        go.set()
        thread.join()
    assert results == ["ended"]


def test_many_threads_register_and_run(context: DynamicContext) -> None:
    registry, start = ToolRegistry(), threading.Barrier(8)
    failures: list[object] = []

    def work(number: int) -> None:
        own = define_tool(add, name=f"add_{number}")
        start.wait()
        for _ in range(5):
            registry.register(own)
            with ToolContext.standalone(context) as ctx:
                if registry.execute(own.name, {"a": number}, ctx).value != number + 1:
                    failures.append(own)
            registry.unregister(own.name)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (failures, registry.enabled([])) == ([], [])


# -- description files -------------------------------------------------------------------------------------------------


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module with a tool, a lazy one, and files beside it."""
    folder = tmp_path / "package"
    (folder / "texts").mkdir(parents=True)
    (folder / "described.py").write_text(
        "from toolkit import define_tool, tool\n"
        "@tool\n"
        "def short() -> str:\n"
        "    'A short text.'\n"
        "    return ''\n"
        "def make():\n"
        "    return lambda: 'made'\n"
        "lazy = define_tool(name='lazy', factory=make)\n"
    )
    (folder / "long.md").write_text("Works in ${workspace}, ${directory} or ${cwd}; not in $HOME or ${unclosed.\n")
    (folder / "texts" / "inner.md").write_text("Inside.")
    (folder / "other.md").write_text("The home is ${HOME}.")
    (folder / "binary.md").write_bytes(b"\xff\xfe")
    (folder / "huge.md").write_text("x" * (256 * 1024 + 1))
    (folder / "link.md").symlink_to(folder / "long.md")
    (folder / "linked").symlink_to(folder / "texts")
    os.mkfifo(folder / "pipe.md")
    (tmp_path / "outside.md").write_text("Outside.")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "described", raising=False)
    import described  # type: ignore[import-not-found]

    made: ModuleType = described
    return made


def test_a_description_file_is_filled_from_the_context(
    module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("workspace", "/from/the/environment")
    registry = ToolRegistry()
    registry.register(module.short, description_file="long.md")
    registry.register(module.lazy, description_file="texts/inner.md")
    (tmp_path / "work").mkdir()
    place = str(tmp_path / "work")
    with registry.tools(DynamicContext(place, DynamicPolicy(default="allow"))) as tools:
        assert [tool.description for tool in tools] == [
            f"Works in {place}, {place} or {place}; not in $HOME or ${{unclosed.\n",
            "Inside.",
        ]
        assert tools[1].execute({}).value == "made"
    assert module.short.definition.description == "A short text."


ESCAPES = {
    "../outside.md": "is not a relative file name without '..'",
    "texts/../../outside.md": "is not a relative file name without '..'",
    "/etc/hostname": "is not a relative file name without '..'",
    "": "is not a relative file name without '..'",
    "a\0b": "is not a relative file name without '..'",
    "link.md": "a symbolic link: only regular files are read",
    "linked/inner.md": "a part of the path is a symbolic link or not a directory",
    "texts": "not a regular file",
    "pipe.md": "not a regular file",
    "missing.md": "no such file",
    "huge.md": "more than 262144 bytes",
    "binary.md": "not UTF-8",
    "other.md": r"'\$\{HOME\}' is not a placeholder; \$\{workspace\}, \$\{directory\} and \$\{cwd\} are",
}


@pytest.mark.parametrize("name", ESCAPES)
def test_a_description_file_lies_beside_the_module_and_is_no_link(
    module: ModuleType, tmp_path: Path, name: str
) -> None:
    registry = ToolRegistry()
    with pytest.raises(SetupError, match=ESCAPES[name]) as refused:
        registry.register(module.short, description_file=name)
    assert "of described.short" in str(refused.value)
    assert str(tmp_path) not in str(refused.value)
    assert registry.get("short") is None


def test_a_tool_that_was_defined_in_no_file_has_no_description_file() -> None:
    space: dict[str, Any] = {"__name__": "typed_in"}
    exec("def typed() -> str: return ''", space)
    with pytest.raises(SetupError, match=r"typed_in\.typed was not defined in a file"):
        ToolRegistry().register(define_tool(space["typed"]), description_file="long.md")
