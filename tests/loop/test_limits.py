"""How far a run may go, and how it is ended from outside: also during a query or a call."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from acme.generated import SecurityPolicy, ToolkitContext, create_async_agent_toolkit
from acme.tools import gates
from tests.loop.conftest import Loop, MakeLoop
from tests.loop.scripted import add, calls, says, values
from toolkit import (
    CancelSignal,
    DynamicPolicy,
    QueryResult,
    RunCancelled,
    RunLimitReached,
    RunLimits,
    SetupError,
    ToolCall,
    ToolContext,
    ToolResult,
    Usage,
    run_async,
    tool,
    validate_history,
)
from toolkit.testing import AsyncScriptedModel, ModelRequest


@pytest.fixture
def key() -> Iterator[str]:
    """A gate of this test's own; opened behind it, so that no thread stays at it."""
    name = uuid.uuid4().hex
    yield name
    gates.opened[name].set()
    if gates.entered[name].is_set():
        assert gates.left[name].wait(30)


@pytest.mark.parametrize("limits", [{"turns": 0}, {"tokens": -1}, {"seconds": 0}, {"seconds": float("nan")}])
def test_limits_are_above_zero(limits: dict[str, Any]) -> None:
    with pytest.raises(SetupError, match="must be greater than 0"):
        RunLimits(**limits)


def test_turns(loop: Loop) -> None:
    loop.script(calls(add("1", 1, 2)), calls(add("2", 3, 4)), says("late"))
    with pytest.raises(RunLimitReached, match=r"limit of 2 turns; run the conversation of this error again") as failure:
        loop.run("Add.", limits=RunLimits(turns=2))
    assert failure.value.limit == "turns"
    assert validate_history(failure.value.conversation.messages) == []
    assert loop.run(failure.value.conversation, limits=RunLimits(turns=1)).answer == "late"


def test_turns_are_limited_by_default(loop: Loop) -> None:
    loop.script(*(calls(add(str(number), 1, 2)) for number in range(51)))
    with pytest.raises(RunLimitReached, match="50 turns"):
        loop.run("Add.")
    assert loop.driver.turns_left == 1


def test_an_answer_in_the_last_turn_is_an_answer(loop: Loop) -> None:
    loop.script(calls(add("1", 1, 2)), says("3"))
    assert loop.run("Add.", limits=RunLimits(turns=2, tokens=1)).answer == "3"


def test_tokens(loop: Loop) -> None:
    loop.script(*(replace(calls(add(str(number), 1, 2)), usage=Usage(30, 10)) for number in range(9)))
    with pytest.raises(RunLimitReached, match="100 tokens") as failure:
        loop.run("Add.", limits=RunLimits(tokens=100))
    assert failure.value.limit == "tokens"
    assert failure.value.conversation.usage == Usage(90, 30)


def test_seconds_end_a_query(loop: Loop) -> None:
    released = threading.Event()

    def answer(request: ModelRequest) -> QueryResult:
        released.wait(60)
        return says("late")

    async def answer_async(request: ModelRequest) -> QueryResult:
        await asyncio.Event().wait()
        return says("late")

    loop.script(answer_async if loop.is_async else answer)
    try:
        with pytest.raises(RunLimitReached, match=r"limit of 0\.05 seconds") as failure:
            loop.run("Add.", limits=RunLimits(seconds=0.05))
    finally:
        released.set()
    assert failure.value.limit == "seconds"
    assert failure.value.conversation.turns == 0


def test_seconds_are_the_deadline_of_calls(make_loop: MakeLoop) -> None:
    @tool
    def seconds_left(ctx: ToolContext) -> float:
        """The seconds until the deadline of the call."""
        return ctx.signal.remaining or 0.0

    loop = make_loop(DynamicPolicy(default="allow"), packs=[seconds_left])
    loop.script(calls(ToolCall("1", "seconds_left", {})), says("ok"))
    [left] = values(loop.run("Wait.", limits=RunLimits(seconds=600)))
    assert isinstance(left, float) and 0 < left <= 600


def test_an_earlier_deadline_of_the_toolkit_stays(make_loop: MakeLoop, key: str) -> None:
    loop = make_loop(deadline=0.02)
    loop.script(calls(ToolCall("1", "hold", {"key": key})), says("ok"))
    conversation = loop.run("Wait.", limits=RunLimits(seconds=600))
    assert conversation.answer == "ok"
    [value] = values(conversation)
    assert "deadline of 0.02 s" in str(value)


def test_time_that_has_run_out_between_two_steps(loop: Loop) -> None:
    def use_up(call: ToolCall) -> ToolResult | None:
        time.sleep(0.2)
        return None

    loop.script(calls(add("1", 1, 2)), says("late"))
    with pytest.raises(RunLimitReached, match=r"0\.2 seconds"):
        loop.run("Add.", limits=RunLimits(seconds=0.2), before_call=use_up)


@pytest.mark.parametrize("place", ["run", "toolkit"])
def test_a_signal_ends_a_call(loop: Loop, key: str, place: str) -> None:
    signal = CancelSignal()

    def press_stop() -> None:
        assert gates.entered[key].wait(60)
        signal.cancel("the user pressed stop")

    threading.Thread(target=press_stop).start()
    loop.script(calls(ToolCall("1", "hold", {"key": key}), add("2", 1, 2)), says("late"))
    of_run, of_toolkit = ({"signal": signal}, {}) if place == "run" else ({}, {"signal": signal})
    with pytest.raises(RunCancelled, match="the run was cancelled: the user pressed stop") as failure:
        loop.view(**of_toolkit).run("Wait.", **of_run)
    assert loop.driver.turns_left == 1
    assert validate_history(failure.value.conversation.messages) == []
    assert [str(value)[:15] for value in values(failure.value.conversation)] == ["TOOL_CANCELLED:"] * 2


def test_a_signal_ends_a_query(loop: Loop) -> None:
    signal, released = CancelSignal(), threading.Event()

    def answer(request: ModelRequest) -> QueryResult:
        signal.cancel("stop")
        released.wait(60)
        return says("late")

    async def answer_async(request: ModelRequest) -> QueryResult:
        signal.cancel("stop")
        await asyncio.Event().wait()
        return says("late")

    loop.script(answer_async if loop.is_async else answer)
    try:
        with pytest.raises(RunCancelled, match="stop"):
            loop.run("Add.", signal=signal)
    finally:
        released.set()


def test_calls_of_an_answer_that_came_too_late_run_when_the_run_goes_on(loop: Loop) -> None:
    signal = CancelSignal()
    loop.script(calls(add("1", 1, 2)), says("3"))
    with pytest.raises(RunCancelled) as failure:
        loop.run("Add.", signal=signal, save=lambda conversation: signal.cancel())
    assert len(failure.value.conversation.messages) == 2
    conversation = loop.run(failure.value.conversation)
    assert conversation.answer == "3"
    assert validate_history(conversation.messages) == []


def test_a_cancelled_task_ends_a_run_during_a_query(tmp_path: Path) -> None:
    async def main() -> bool:
        asked, ended = asyncio.Event(), asyncio.Event()

        async def answer(request: ModelRequest) -> QueryResult:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return says("late")

        context = ToolkitContext(tmp_path, SecurityPolicy(default="allow"), state_dir=tmp_path.parent / "state")
        async with create_async_agent_toolkit(context) as toolkit:
            task = asyncio.ensure_future(run_async(AsyncScriptedModel(answer), toolkit, "Add."))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await ended.wait()
        return True

    assert asyncio.run(main())


def test_async_hooks_are_awaited(tmp_path: Path) -> None:
    async def main() -> list[str]:
        seen: list[str] = []

        async def before(call: ToolCall) -> ToolResult | None:
            seen.append("before")
            return None

        async def after(call: ToolCall, result: ToolResult) -> ToolResult | None:
            seen.append("after")
            return replace(result, kind="text", value="hidden")

        async def save(conversation: object) -> None:
            seen.append("save")

        context = ToolkitContext(tmp_path, SecurityPolicy(default="allow"), state_dir=tmp_path.parent / "state")
        async with create_async_agent_toolkit(context) as toolkit:
            driver = AsyncScriptedModel(calls(add("1", 1, 2)), says("ok"))
            conversation = await run_async(driver, toolkit, "Add.", before_call=before, after_call=after, save=save)
        return [*seen, *map(str, values(conversation))]

    assert asyncio.run(main()) == ["save", "before", "after", "save", "save", "hidden"]
