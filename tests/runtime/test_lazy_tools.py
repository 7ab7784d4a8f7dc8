"""Tools made by factories: at their first use, and only once, also under concurrent use."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolkit import (
    DynamicContext,
    DynamicPolicy,
    FunctionTool,
    Permissions,
    SetupError,
    ToolCall,
    ToolContext,
    ToolRegistry,
    create_agent_toolkit,
    create_async_agent_toolkit,
    define_tool,
)
from toolkit.runtime.functions import LazyTool

AT_ONCE = 8


def where(context: DynamicContext) -> FunctionTool[[], str]:
    return define_tool(lambda: context.workspace, name="where", description="Tell the workspace.")


def allowing(workspace: Path, **options: Any) -> DynamicContext:
    return DynamicContext(workspace, DynamicPolicy(default="allow"), **options)


class Maker:
    """A factory that counts its calls and can be held up."""

    def __init__(self) -> None:
        self.calls = 0
        self.go = threading.Event()
        self.threads: set[str] = set()

    def make(self) -> Callable[..., Any]:
        self.calls += 1
        self.go.wait()
        return self.answer

    async def make_async(self, context: DynamicContext) -> Callable[..., Any]:
        self.calls += 1
        while not self.go.is_set():
            await asyncio.sleep(0.001)
        self.threads.add(threading.current_thread().name)
        return self.answer_async

    def answer(self, number: int = 1) -> int:
        """Give a number back."""
        return number

    async def answer_async(self) -> str:
        """Tell the thread."""
        self.threads.add(threading.current_thread().name)
        return "answered"


def together(work: Callable[[], Any], go: threading.Event | None = None) -> list[Any]:
    """Runs something in several threads that start at the same moment; the last to start sets ``go``."""
    start = threading.Barrier(AT_ONCE, action=go.set if go is not None else None)
    results: list[Any] = []

    def run() -> None:
        start.wait()
        results.append(work())

    threads = [threading.Thread(target=run) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_nothing_is_made_before_it_is_needed() -> None:
    maker = Maker()
    lazy = define_tool(name="answer", factory=maker.make, permissions=["read"])
    registry = ToolRegistry()
    registry.register(lazy)
    assert (lazy.name, lazy.permissions, registry.enabled(["read"])) == ("answer", Permissions(("read",)), [lazy])
    assert maker.calls == 0
    maker.go.set()
    assert (lazy.description, lazy.definition.name, maker.calls) == ("Give a number back.", "answer", 1)


def test_one_call_of_the_factory_for_many_threads(tmp_path: Path) -> None:
    maker = Maker()
    lazy = define_tool(name="answer", factory=maker.make)
    with ToolContext.standalone(tmp_path) as ctx:
        results = together(lambda: lazy.execute_raw('{"number": 7}', ctx).value, maker.go)
    assert (results, maker.calls) == ([7] * AT_ONCE, 1)


def test_one_call_of_an_async_factory_for_many_threads(tmp_path: Path) -> None:
    maker = Maker()
    lazy = define_tool(name="answer", factory=maker.make_async)
    with ToolContext.standalone(allowing(tmp_path)) as ctx:
        results = together(lambda: lazy.execute_raw("{}", ctx).value, maker.go)
    assert (results, maker.calls) == (["answered"] * AT_ONCE, 1)
    assert maker.threads == {"toolkit-loop"}


def test_one_call_of_an_async_factory_for_many_tasks(tmp_path: Path) -> None:
    maker = Maker()
    lazy = define_tool(name="answer", factory=maker.make_async)

    async def let_go() -> None:
        # The last of the tasks: all others are waiting for the factory by now.
        maker.go.set()

    async def run() -> list[object]:
        async with ToolContext.standalone(allowing(tmp_path)) as ctx:
            calls = [asyncio.ensure_future(lazy.execute_raw_async("{}", ctx)) for _ in range(AT_ONCE)]
            await asyncio.gather(*calls, let_go())
            return [call.result().value for call in calls]

    assert asyncio.run(run()) == ["answered"] * AT_ONCE
    assert (maker.calls, maker.threads) == (1, {threading.current_thread().name})


def test_many_toolkits_at_once_make_a_tool_for_one_context_once(tmp_path: Path) -> None:
    calls: list[str] = []

    def make(context: DynamicContext) -> FunctionTool[[], str]:
        calls.append(context.workspace)
        return where(context)

    lazy, context = define_tool(name="where", factory=make), allowing(tmp_path)

    def use() -> object:
        with create_agent_toolkit(context, packs=[lazy]) as toolkit:
            return toolkit.call(ToolCall("1", "where", {})).value

    assert together(use) == [str(tmp_path)] * AT_ONCE
    assert calls == [str(tmp_path)]


def test_what_needs_a_context_is_made_once_for_each(tmp_path: Path) -> None:
    lazy = define_tool(name="where", factory=where)
    for name in ("a", "b", "a"):
        (tmp_path / name).mkdir(exist_ok=True)
        with ToolContext.standalone(allowing(tmp_path / name)) as ctx:
            assert lazy.execute_raw("{}", ctx).value == str(tmp_path / name)
    with pytest.raises(SetupError, match="'where' is made per context by"):
        _ = lazy.definition


@pytest.mark.slow
def test_what_was_made_for_a_context_goes_with_it(tmp_path: Path) -> None:
    lazy = define_tool(name="where", factory=where)
    context = allowing(tmp_path)
    made = weakref.ref(lazy.load(context))
    assert made() is not None
    del context
    gc.collect()
    assert made() is None


def test_after_a_failure_the_next_one_tries_again(tmp_path: Path) -> None:
    failures = [RuntimeError("not yet")]

    def make() -> Callable[..., Any]:
        if failures:
            raise failures.pop()
        return Maker().answer

    lazy = define_tool(name="answer", factory=make)
    with ToolContext.standalone(tmp_path) as ctx:
        assert str(lazy.execute_raw("{}", ctx).value).startswith("INTERNAL: ")
        assert lazy.execute_raw("{}", ctx).value == 1


def test_a_sync_toolkit_makes_it_in_the_loop_its_handlers_run_in(tmp_path: Path) -> None:
    maker = Maker()
    maker.go.set()
    lazy = define_tool(name="answer", factory=maker.make_async)
    with create_agent_toolkit(allowing(tmp_path), packs=[lazy]) as toolkit:
        assert [tool.description for tool in toolkit.get_allowed_tools()] == ["Tell the thread."]
        assert toolkit.call(ToolCall("1", "answer", {})).value == "answered"
    assert (maker.calls, maker.threads) == (1, {"toolkit-loop"})


def test_an_async_toolkit_needs_it_made_in_its_own_loop(tmp_path: Path) -> None:
    maker = Maker()
    maker.go.set()
    registry = ToolRegistry()
    registry.register(define_tool(name="answer", factory=maker.make_async))
    context = allowing(tmp_path)

    async def run() -> object:
        with pytest.raises(SetupError, match=r"which must be awaited: `await registry\.tools_async"):
            create_async_agent_toolkit(context, packs=[registry])
        async with await registry.tools_async(context):
            pass
        async with create_async_agent_toolkit(context, packs=[registry]) as toolkit:
            return (await toolkit.call(ToolCall("1", "answer", {}))).value

    assert asyncio.run(run()) == "answered"
    assert (maker.calls, maker.threads) == (1, {threading.current_thread().name})


def test_a_handler_may_need_a_lazy_tool_itself(tmp_path: Path) -> None:
    maker = Maker()
    maker.go.set()
    lazy = define_tool(name="answer", factory=maker.make_async)

    async def outer(ctx: ToolContext) -> str:
        # Blocks the loop that its own toolkit would await the factory in.
        return str(lazy.execute_raw("{}", ctx).value)

    with ToolContext.standalone(allowing(tmp_path)) as ctx:
        assert define_tool(outer).execute_raw("{}", ctx).value == "answered"


def gives_something_else() -> Any:
    return 7


def gives_another_name() -> FunctionTool[[], str]:
    return define_tool(lambda: "", name="other")


def gives_a_needy_tool() -> FunctionTool[[], str]:
    return define_tool(lambda: "", name="lazy", permissions=["write"])


def gives_a_coroutine() -> Any:
    return Maker().answer_async()


def needs_itself() -> Any:
    return ROUND.definition


ROUND: LazyTool = define_tool(name="lazy", factory=needs_itself)

WRONG: dict[Callable[[], Any], str] = {
    gives_something_else: "returned int; it must return a function or a tool",
    gives_another_name: "must make 'lazy', but made 'other'",
    gives_a_needy_tool: "with permissions that were not declared",
    gives_a_coroutine: "returned a coroutine: write `async def`",
}


@pytest.mark.parametrize("factory", WRONG, ids=lambda factory: factory.__name__)
def test_what_a_factory_gives_is_what_was_said_of_it(factory: Callable[[], Any]) -> None:
    with pytest.raises(SetupError, match=WRONG[factory]):
        _ = define_tool(name="lazy", factory=factory).definition


def test_a_factory_that_needs_its_own_tool() -> None:
    with pytest.raises(SetupError, match="circular dependency: lazy -> lazy"):
        _ = ROUND.definition


def generates() -> Any:
    yield 1


def takes_two(a: Any, b: Any) -> Any:
    return a


@pytest.mark.parametrize(
    ("factory", "words"), [(generates, "is a generator"), (takes_two, "takes more parameters than the ToolkitContext")]
)
def test_what_can_be_no_factory_is_refused_at_once(factory: Callable[..., Any], words: str) -> None:
    with pytest.raises(SetupError, match=words):
        define_tool(name="lazy", factory=factory)


def test_the_permissions_of_a_made_tool_are_those_declared(tmp_path: Path) -> None:
    lazy = define_tool(name="lazy", factory=gives_a_needy_tool, permissions=["read", "write"])
    assert lazy.load().permissions == Permissions(("read", "write"))
    with ToolContext.standalone(allowing(tmp_path, permissions=["read"])) as ctx:
        assert str(lazy.execute_raw("{}", ctx).value).startswith(
            "TOOL_NOT_ALLOWED: 'lazy' needs the permission 'write'"
        )
