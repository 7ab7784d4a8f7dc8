"""Handlers that misbehave: the caller always gets an answer, and no other answer is lost."""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import os
import pickle
import sys
import threading
import uuid
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from acme.generated import (
    AcmeToolkit,
    SecurityPolicy,
    ShoutOutput,
    ToolkitContext,
    create_agent_toolkit,
    create_async_agent_toolkit,
)
from acme.tools import gates
from tests.runtime.conftest import MakeDoor
from toolkit import Pack, SetupError, ToolCall, ToolCancelled, ToolContext, ToolFailed, ToolkitError, ToolTimeout

ADD = ToolCall("1", "add", {"a": 1, "b": 2})
SHOUT = ToolCall("2", "shout", {"text": "x"})


def add(args: Any, ctx: ToolContext) -> dict[str, int]:
    return {"sum": args.a + args.b}


def ending(error: BaseException) -> Any:
    async def shout(args: Any, ctx: ToolContext) -> Any:
        raise error

    return shout


def ending_in_sync(error: BaseException) -> Any:
    def shout(args: Any, ctx: ToolContext) -> Any:
        raise error

    return shout


class Odd(BaseException):
    """An error of a library that thinks it is special."""


ERRORS = [
    SystemExit(3),
    GeneratorExit(),
    StopIteration(1),
    StopAsyncIteration(1),
    asyncio.CancelledError(),
    Odd("x"),
    RuntimeError("x"),
]


@pytest.mark.sample
@pytest.mark.parametrize("deadline", [None, 60])
@pytest.mark.parametrize("make", [ending, ending_in_sync])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_no_error_of_a_handler_loses_another_calls_result(
    make_door: MakeDoor, error: BaseException, make: Any, deadline: Any
) -> None:
    door = make_door(packs=[Pack({"add": add, "shout": make(error)})], deadline=deadline)
    results = door.call_all([ADD, SHOUT, ADD])
    assert [result.kind for result in results] == ["data", "error", "data"]
    assert str(results[1].value).startswith("INTERNAL: ")
    assert door.call(ADD).value == {"sum": 3}


@pytest.mark.parametrize("deadline", [None, 60])
def test_an_async_handler_that_raises_keyboard_interrupt_fails_like_any_other(tmp_path: Path, deadline: Any) -> None:
    """It runs in the loop of a sync toolkit, where Ctrl-C never arrives. The loop and its other handlers go on."""
    context = ToolkitContext(tmp_path, SecurityPolicy(default="allow"), deadline=deadline)
    packs = [Pack({"add": add, "shout": ending(KeyboardInterrupt())})]
    with create_agent_toolkit(context, packs=packs) as toolkit:
        for _ in range(2):
            assert str(toolkit.call(SHOUT).value).startswith("INTERNAL: ")
        assert toolkit.call(ADD).value == {"sum": 3}


def test_a_handler_in_a_thread_that_raises_keyboard_interrupt_fails_like_any_other(make_door: MakeDoor) -> None:
    door = make_door(packs=[Pack({"add": add, "shout": ending_in_sync(KeyboardInterrupt())})], deadline=60)
    assert str(door.call(SHOUT).value).startswith("INTERNAL: ")
    assert door.call(ADD).value == {"sum": 3}


def test_a_handler_cancelled_by_itself_is_no_cancelled_caller(make_door: MakeDoor) -> None:
    async def shout(args: Any, ctx: ToolContext) -> Any:
        task = asyncio.ensure_future(asyncio.Event().wait())
        task.cancel()
        await task

    results = make_door(packs=[Pack({"add": add, "shout": shout})]).call_all([ADD, SHOUT, ADD])
    assert [result.kind for result in results] == ["data", "error", "data"]


def test_a_plain_function_around_an_async_handler_is_awaited(make_door: MakeDoor) -> None:
    async def real(args: Any, ctx: ToolContext) -> ShoutOutput:
        return ShoutOutput(text="heard")

    def shout(args: Any, ctx: ToolContext) -> Awaitable[ShoutOutput]:
        return real(args, ctx)

    for options in ({}, {"deadline": 60}):
        door = make_door(packs=[Pack({"shout": shout})], **options)
        assert door.invoke("shout", {"text": "x"}).content.text == "heard"


def test_an_async_handler_may_call_its_own_sync_toolkit(tmp_path: Path) -> None:
    async def shout(args: Any, ctx: ToolContext) -> dict[str, str]:
        if args.times == 1:
            return {"text": args.text}
        return {"text": toolkit.invoke("shout", {"text": args.text + "!", "times": args.times - 1}).content.text}

    context = ToolkitContext(tmp_path, SecurityPolicy(default="allow"))
    with create_agent_toolkit(context, packs=[Pack({"shout": shout})]) as toolkit:
        assert toolkit.invoke("shout", {"text": "x", "times": 3}).content.text == "x!!"


@pytest.mark.slow
def test_closing_ends_a_call_whose_handler_will_not(tmp_path: Path) -> None:
    inside, release = threading.Event(), threading.Event()
    errors: list[ToolkitError] = []

    async def shout(args: Any, ctx: ToolContext) -> Any:
        inside.set()
        while not release.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    toolkit = create_agent_toolkit(
        ToolkitContext(tmp_path, SecurityPolicy(default="allow")), packs=[Pack({"shout": shout})]
    )

    def call() -> None:
        try:
            toolkit.invoke("shout", {"text": "x"})
        except ToolkitError as error:
            errors.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    assert inside.wait(30)
    toolkit.close()
    caller.join(30)
    release.set()
    assert not caller.is_alive()
    assert isinstance(errors[0], ToolCancelled)
    assert errors[0].details["abandoned"] is True


def test_calls_after_close_fail_and_start_nothing(make_door: MakeDoor) -> None:
    door = make_door()
    door.invoke("shout", {"text": "x"})
    door.close()
    before = threading.active_count()
    for call in (ADD, SHOUT):
        assert str(door.call(call).value) == "TOOL_CANCELLED: this toolkit has been closed"
    assert threading.active_count() == before


def test_a_result_that_comes_after_the_deadline_is_a_timeout(make_door: MakeDoor) -> None:
    key = uuid.uuid4().hex

    def hold(args: Any, ctx: ToolContext) -> dict[str, str]:
        # Goes on until it is told to stop, and then answers as if nothing had happened.
        while not ctx.signal.cancelled:
            gates.opened[key].wait(0.001)
        return {"thread": "late"}

    door = make_door(packs=[Pack({"hold": hold})], deadline=0.02)
    with pytest.raises(ToolTimeout):
        door.invoke("hold", {"key": key})


@pytest.mark.parametrize("deadline", ["5", True, float("inf"), 10**400, 0, -1, float("nan")])
def test_deadlines_that_are_none(make_door: MakeDoor, deadline: Any) -> None:
    with pytest.raises(SetupError, match="a deadline must be a number of seconds greater than 0"):
        make_door(deadline=deadline)


def test_a_deadline_of_centuries_is_fine(make_door: MakeDoor) -> None:
    assert make_door(deadline=1e12).invoke("add", {"a": 1, "b": 2}).content.sum == 3


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
@pytest.mark.slow
def test_a_toolkit_that_is_dropped_gives_back_its_threads_and_descriptors(tmp_path: Path) -> None:
    def use() -> None:
        context = ToolkitContext(tmp_path, SecurityPolicy(default="allow"), deadline=60)
        toolkit: AcmeToolkit = create_agent_toolkit(context)
        toolkit.invoke("shout", {"text": "x"})
        toolkit.invoke("add", {"a": 1, "b": 2})

    use()
    gc.collect()
    threads, descriptors = {thread.ident for thread in threading.enumerate()}, open_descriptors()
    for _ in range(5):
        use()
    gc.collect()
    for thread in threading.enumerate():
        if thread.ident not in threads and thread.name.startswith("toolkit-"):
            thread.join(30)
    assert {thread.ident for thread in threading.enumerate()} <= threads
    assert open_descriptors() <= descriptors


@pytest.mark.parametrize("options", [{}, {"coerce": True}])
def test_calls_that_fail_do_not_keep_a_dropped_toolkit_open(tmp_path: Path, options: dict[str, Any]) -> None:
    toolkit: Any = create_agent_toolkit(ToolkitContext(tmp_path, SecurityPolicy(default="allow"), **options))
    resources = toolkit._core.resources
    gc.disable()  # it would find cycles, too late
    try:
        results = [toolkit.call(ToolCall("1", "fail", {"how": how})) for how in ("expected", "no such way")]
        del toolkit
        assert resources.is_closed
    finally:
        gc.enable()
    assert [result.kind for result in results] == ["error", "error"]


def test_invalid_calls_do_not_keep_a_dropped_async_toolkit_open(tmp_path: Path) -> None:
    async def main() -> Any:
        toolkit: Any = create_async_agent_toolkit(ToolkitContext(tmp_path, SecurityPolicy(default="allow")))
        assert (await toolkit.call(ToolCall("1", "fail", {"how": "no such way"}))).kind == "error"
        return toolkit._core.resources

    gc.disable()
    try:
        assert asyncio.run(main()).is_closed
    finally:
        gc.enable()


def test_an_async_call_all_keeps_its_threads_few(tmp_path: Path) -> None:
    at_once, most, lock = 0, 0, threading.Lock()

    def count_words(args: Any, ctx: ToolContext) -> dict[str, str]:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        threading.Event().wait(0.001)
        with lock:
            at_once -= 1
        return {"text": "x"}

    async def main() -> None:
        context = ToolkitContext(tmp_path, SecurityPolicy(default="allow"))
        async with create_async_agent_toolkit(context, packs=[Pack({"count-words": count_words})]) as toolkit:
            calls = [ToolCall(str(n), "count-words", {"text": "x"}) for n in range(120)]
            assert len(await toolkit.call_all(calls)) == 120

    asyncio.run(main())
    assert most <= 16


def test_values_can_be_copied_and_stored(make_door: MakeDoor) -> None:
    door = make_door()
    error = ToolFailed("NOT_FOUND", "no file", path="a")
    error.tool_name = "x"
    for twin in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert (str(twin), twin.reason, twin.tool_name, twin.details) == (str(error), "NOT_FOUND", "x", error.details)
    message = door.invoke("add", {"a": 1, "b": 2})
    assert copy.deepcopy(message).content == message.content
    assert json.dumps(message.metadata) == "{}"


def test_definitions_belong_to_whoever_asked(make_door: MakeDoor) -> None:
    door = make_door()
    tools = {tool.name: tool for tool in door.get_allowed_tools()}
    tools["add"].parameters["properties"] = {}
    assert {tool.name: tool for tool in door.get_allowed_tools()}["add"].parameters["properties"] != {}


def test_one_error_object_raised_by_two_tools_names_each(make_door: MakeDoor) -> None:
    shared = ToolFailed("CONFLICT", "again")
    door = make_door(packs=[Pack({"add": ending_in_sync(shared), "shout": ending_in_sync(shared)})])
    for call in (ADD, SHOUT):
        with pytest.raises(ToolFailed) as failure:
            door.invoke(call.name, call.arguments)
        assert failure.value.tool_name == call.name


def test_calls_with_names_that_are_no_text(make_door: MakeDoor) -> None:
    odd: Any = ["x"]
    results = make_door().call_all([ADD, ToolCall("2", odd, {}), ADD])
    assert [result.kind for result in results] == ["data", "error", "data"]


def test_packs_policies_and_contexts_of_the_wrong_kind_are_told(make_door: MakeDoor, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="packs must be a list"):
        make_door(packs="toolkit.builtin:BUILTIN")
    odd: Any = {3: "allow"}
    with pytest.raises(SetupError, match="3 is not a name"):
        SecurityPolicy(tools=odd)
    with pytest.raises(SetupError, match="'rules' must be Rule"):
        SecurityPolicy(rules=[odd])
    with pytest.raises(SetupError, match="needs a SecurityPolicy, not NoneType"):
        ToolkitContext(tmp_path, odd.get(0))
    with pytest.raises(SetupError, match=r"not str; write SecurityPolicy.load\('policy.toml'\)"):
        ToolkitContext(tmp_path, odd.get(0, "policy.toml"))
    with pytest.raises(SetupError, match=r"not dict; write SecurityPolicy\(tools=\{...\}\)"):
        ToolkitContext(tmp_path, odd)
