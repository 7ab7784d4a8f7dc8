"""Deadlines and cancellation: cooperative, truthful about what still runs, never losing another call's result."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from acme.generated import (
    AcmeToolkit,
    AsyncAcmeToolkit,
    SecurityPolicy,
    ToolkitContext,
    create_agent_toolkit,
    create_async_agent_toolkit,
)
from acme.tools import gates
from tests.runtime.conftest import Door, MakeDoor
from toolkit import CancelSignal, Pack, SetupError, ToolCall, ToolCancelled, ToolContext, ToolTimeout


@pytest.fixture
def key() -> Iterator[str]:
    """A gate of this test's own; opened behind it, so that no thread stays at it."""
    name = uuid.uuid4().hex
    yield name
    gates.opened[name].set()
    if gates.entered[name].is_set():
        assert gates.left[name].wait(30)


@pytest.fixture
def toolkit(tmp_path: Path) -> Iterator[AcmeToolkit]:
    with create_agent_toolkit(ToolkitContext(tmp_path, SecurityPolicy(default="allow"))) as made:
        yield made


def test_deadline_ends_a_handler_that_listens(door: Door, key: str) -> None:
    with pytest.raises(ToolTimeout, match=r"deadline of 0\.02 s") as failure:
        door.with_options(deadline=0.02).invoke("hold", {"key": key})
    assert failure.value.tool_name == "hold"
    assert failure.value.retriable


@pytest.mark.slow
def test_deadline_abandons_a_handler_that_does_not_listen(door: Door, key: str) -> None:
    deadline = 0.02
    while not gates.entered[key].is_set():  # on a busy machine a deadline may pass before the handler begins
        with pytest.raises(ToolTimeout) as failure:
            door.with_options(deadline=deadline).invoke("hold", {"key": key, "listen": False})
        deadline *= 2
    assert failure.value.details["abandoned"] is True
    assert not gates.left[key].is_set()


def test_deadline_ends_an_async_handler(door: Door, key: str) -> None:
    with pytest.raises(ToolTimeout) as failure:
        door.with_options(deadline=0.02).invoke("shout", {"text": "x", "key": key})
    assert failure.value.details["abandoned"] is False
    assert not gates.entered[key].is_set() or gates.left[key].wait(30)


@pytest.mark.slow
def test_an_async_handler_that_never_starts_leaves_nothing_behind(toolkit: AcmeToolkit, key: str) -> None:
    async def occupy() -> None:
        gates.entered[key].set()
        gates.opened[key].wait()
        gates.left[key].set()

    busy, _ = toolkit._core.loop.submit(occupy())
    assert gates.entered[key].wait(30)
    with pytest.raises(ToolTimeout):  # its task is made, and cancelled, when the loop has time
        toolkit.with_options(deadline=0.001).invoke("shout", {"text": "x"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gates.opened[key].set()
        busy.result(30)
        assert toolkit.invoke("shout", {"text": "after"}).content.text == "AFTER"
        gc.collect()
    assert [str(warning.message) for warning in caught] == []


def test_deadline_of_the_context_holds_for_every_call(make_door: MakeDoor, key: str) -> None:
    door = make_door(deadline=0.02)
    result = door.call(ToolCall("1", "hold", {"key": key}))
    assert str(result.value).startswith("TOOL_TIMEOUT: ")
    assert door.with_options(deadline=60).invoke("add", {"a": 1, "b": 2}).content.sum == 3


@pytest.mark.parametrize("deadline", [0, -1, float("nan")])
def test_deadlines_are_above_zero(door: Door, deadline: float) -> None:
    with pytest.raises(SetupError, match="greater than 0"):
        door.with_options(deadline=deadline)


@pytest.mark.parametrize(
    ("tool", "listen"), [("hold", {"listen": True}), ("hold", {"listen": False}), ("shout", {"text": "x"})]
)
@pytest.mark.slow
def test_signal_ends_a_running_call(door: Door, key: str, tool: str, listen: dict[str, object]) -> None:
    signal = CancelSignal()

    def cancel_once_inside() -> None:
        assert gates.entered[key].wait(30)
        signal.cancel("the user pressed stop")

    canceller = threading.Thread(target=cancel_once_inside)
    canceller.start()
    with pytest.raises(ToolCancelled, match="the user pressed stop") as failure:
        door.with_options(signal=signal).invoke(tool, {"key": key, **listen})
    canceller.join()
    assert failure.value.tool_name == tool
    if listen.get("listen") is False:
        assert failure.value.details["abandoned"] is True


def test_cancelled_signal_refuses_before_the_handler_runs(door: Door, key: str) -> None:
    signal = CancelSignal()
    signal.cancel()
    view = door.with_options(signal=signal)
    with pytest.raises(ToolCancelled):
        view.invoke("hold", {"key": key})
    assert not gates.entered[key].is_set()
    assert door.invoke("add", {"a": 1, "b": 2}).content.sum == 3


def test_call_all_keeps_order_and_loses_nothing(door: Door) -> None:
    calls = [
        ToolCall("1", "add", {"a": 1, "b": 1}),
        ToolCall("2", "nope", {}),
        ToolCall("3", "fail", {"how": "unexpected"}),
        ToolCall("4", "add", {"a": "x", "b": 1}),
        ToolCall("5", "shout", {"text": "hi"}),
        ToolCall("6", "add", {}, raw_arguments="{"),
        *(ToolCall(f"p{n}", "add", {"a": n, "b": 0}) for n in range(50)),
    ]
    results = door.call_all(calls)
    assert [result.tool_call_id for result in results] == [call.id for call in calls]
    assert [result.kind for result in results[:6]] == ["data", "error", "error", "error", "data", "error"]
    assert [result.value for result in results[6:]] == [{"sum": n} for n in range(50)]


def test_parallel_tools_run_together(door: Door) -> None:
    # Each waits until the other is inside: one after the other they would never end.
    first, second = uuid.uuid4().hex, uuid.uuid4().hex
    for mine, other in ((first, second), (second, first)):
        gates.opened[mine] = gates.entered[other]
    results = door.with_options(deadline=60).call_all(
        [ToolCall("1", "hold", {"key": first}), ToolCall("2", "hold", {"key": second})]
    )
    assert [result.kind for result in results] == ["data", "data"]


def test_cancelled_call_all_keeps_what_was_done(door: Door, key: str) -> None:
    signal = CancelSignal()

    def cancel_once_inside() -> None:
        assert gates.entered[key].wait(30)
        signal.cancel()

    canceller = threading.Thread(target=cancel_once_inside)
    canceller.start()
    # `add` is not parallel: the first is done before `hold` starts, the last would start when it has ended.
    add = {"a": 1, "b": 2}
    calls = [ToolCall("1", "add", add), ToolCall("2", "hold", {"key": key}), ToolCall("3", "add", add)]
    results = door.with_options(signal=signal).call_all(calls)
    canceller.join()
    assert results[0].value == {"sum": 3}
    assert [str(result.value).partition(":")[0] for result in results[1:]] == ["TOOL_CANCELLED", "TOOL_CANCELLED"]


def test_cancelling_the_task_stops_a_call_all_and_its_handlers(tmp_path: Path, key: str) -> None:
    async def main() -> None:
        async with create_async_agent_toolkit(ToolkitContext(tmp_path, SecurityPolicy(default="allow"))) as toolkit:
            calls = [ToolCall("1", "hold", {"key": key}), ToolCall("2", "hold", {"key": key})]
            task = asyncio.create_task(toolkit.call_all(calls))
            await asyncio.to_thread(gates.entered[key].wait, 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            # The gate stays shut: only the cancellation can have let the handler go.
            assert await asyncio.to_thread(gates.left[key].wait, 30)

    asyncio.run(main())


def test_async_handler_under_the_sync_toolkit_inside_a_running_loop(toolkit: AcmeToolkit) -> None:
    async def main() -> str:
        return toolkit.invoke("shout", {"text": "inside"}).content.text

    assert asyncio.run(main()) == "INSIDE"
    assert toolkit.tools.shout(text="outside") == toolkit.invoke("shout", {"text": "outside"}).content


def test_async_handlers_of_the_sync_toolkit_share_one_loop(tmp_path: Path) -> None:
    loops = set()

    async def shout(args: object, ctx: ToolContext) -> dict[str, str]:
        loops.add(id(asyncio.get_running_loop()))
        return {"text": "x"}

    context = ToolkitContext(tmp_path, SecurityPolicy(default="allow"))
    with create_agent_toolkit(context, packs=[Pack({"shout": shout})]) as toolkit:
        for _ in range(3):
            toolkit.invoke("shout", {"text": "x"})
    assert len(loops) == 1


def test_sync_handlers_leave_the_loops_thread_unless_their_spec_says_they_do_not_block(tmp_path: Path) -> None:
    threads: dict[str, int] = {}

    def note(args: object, ctx: ToolContext) -> dict[str, object]:
        threads[ctx.tool_name] = threading.get_ident()
        return {"sum": 1} if ctx.tool_name == "add" else {"text": "x"}

    async def main(toolkit: AsyncAcmeToolkit) -> None:
        await toolkit.invoke("add", {"a": 1, "b": 1})
        await toolkit.invoke("count-words", {"text": "x"})

    context = ToolkitContext(tmp_path, SecurityPolicy(default="allow"))
    asyncio.run(main(create_async_agent_toolkit(context, packs=[Pack({"add": note, "count-words": note})])))
    assert threads["add"] == threading.get_ident() != threads["count-words"]


def test_context_variables_reach_handlers_wherever_they_run(tmp_path: Path) -> None:
    request = contextvars.ContextVar("request", default="none")

    def add(args: object, ctx: ToolContext) -> dict[str, object]:
        return {"sum": 0, "note": request.get()}

    async def shout(args: object, ctx: ToolContext) -> dict[str, object]:
        return {"text": request.get()}

    request.set("r-1")
    context = ToolkitContext(tmp_path, SecurityPolicy(default="allow"), deadline=60)
    with create_agent_toolkit(context, packs=[Pack({"add": add, "shout": shout})]) as toolkit:
        assert toolkit.invoke("add", {"a": 1, "b": 1}).content.note == "r-1"
        assert toolkit.invoke("shout", {"text": "x"}).content.text == "r-1"


def test_file_operations_stop_at_the_deadline(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")

    def fail(args: object, ctx: ToolContext) -> dict[str, int]:
        while True:
            # Nothing but the file system looks at the signal here.
            ctx.fs.open_file("a.txt").close()

    context = ToolkitContext(tmp_path, SecurityPolicy(default="allow"), deadline=0.05)
    with create_agent_toolkit(context, packs=[Pack({"fail": fail})]) as toolkit, pytest.raises(ToolTimeout) as failure:
        toolkit.invoke("fail", {"how": "no_file"})
    assert failure.value.details["abandoned"] is False
