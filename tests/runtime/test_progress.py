"""Progress of running tools: through a callback, and by streaming one call."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from acme.generated import AcmeToolkit, AsyncToolkit
from tests.runtime.conftest import Door, MakeDoor
from toolkit import CancelSignal, Pack, Progress, ToolCall, ToolContext, ToolFailed, ToolMessage, ToolResult

CALL = ToolCall("7", "add", {"a": 1, "b": 2})


def add(args: Any, ctx: ToolContext) -> Any:
    ctx.metadata(title="adding", done=0)
    ctx.progress(text="half way")
    ctx.metadata(done=1)
    return {"sum": args.a + args.b}


async def add_later(args: Any, ctx: ToolContext) -> Any:
    ctx.metadata(title="adding", done=0)
    await asyncio.sleep(0)
    ctx.progress(text="half way")
    ctx.metadata(done=1)
    return {"sum": args.a + args.b}


HEARD = [
    Progress("add", "7", "adding", {"done": 0}),
    Progress("add", "7", None, {"text": "half way"}),
    Progress("add", "7", None, {"done": 1}),
]


def listened(door: Door, call: ToolCall = CALL) -> list[Progress | ToolResult]:
    """All a stream gives, of either toolkit."""
    if isinstance(door.toolkit, AsyncToolkit):

        async def collect(stream: AsyncIterator[Progress | ToolResult]) -> list[Progress | ToolResult]:
            return [event async for event in stream]

        assert door.loop is not None
        return door.loop.run_until_complete(collect(door.toolkit.stream(call)))
    assert isinstance(door.toolkit, AcmeToolkit)
    return list(door.toolkit.stream(call))


@pytest.mark.parametrize("handler", [add, add_later])
def test_a_stream_gives_what_is_told_then_the_result(make_door: MakeDoor, handler: Any) -> None:
    assert listened(make_door(packs=[Pack({"add": handler})])) == [*HEARD, ToolResult("7", "add", "data", {"sum": 3})]


@pytest.mark.parametrize("handler", [add, add_later])
def test_a_callback_hears_every_call(make_door: MakeDoor, handler: Any) -> None:
    heard: list[Progress] = []
    door = make_door(packs=[Pack({"add": handler})], on_progress=heard.append)

    door.call(CALL)
    assert heard == HEARD
    assert listened(door)[:-1] == HEARD
    assert heard == HEARD * 2


def test_progress_leaves_no_trace_in_the_message_and_metadata_does(make_door: MakeDoor) -> None:
    message = make_door(packs=[Pack({"add": add})]).invoke("add", {"a": 1, "b": 2})

    assert (message.title, message.metadata) == ("adding", {"done": 1})


def test_a_handler_knows_whether_anybody_listens(make_door: MakeDoor) -> None:
    watched: list[bool] = []

    def note(args: Any, ctx: ToolContext) -> Any:
        watched.append(ctx._watched)
        return {"sum": 0}

    door = make_door(packs=[Pack({"add": note})])
    door.call(CALL)
    listened(door)
    assert watched == [False, True]


def test_listeners_that_fail_do_no_harm(make_door: MakeDoor, caplog: pytest.LogCaptureFixture) -> None:
    def fail(event: object) -> None:
        raise RuntimeError("deaf")

    door = make_door(packs=[Pack({"add": add})], on_progress=fail, on_result=fail)

    assert door.invoke("add", {"a": 1, "b": 2}).content.sum == 3
    assert [record.message for record in caplog.records] == ["on_progress failed"] * 3 + ["on_result failed"]


def test_a_stream_ends_with_the_error_of_a_call_that_fails(make_door: MakeDoor) -> None:
    def fail(args: Any, ctx: ToolContext) -> Any:
        ctx.metadata(title="trying")
        raise ToolFailed("IO", "no luck")

    assert listened(make_door(packs=[Pack({"add": fail})])) == [
        Progress("add", "7", "trying"),
        ToolResult("7", "add", "error", "TOOL_FAILED: IO: no luck"),
    ]


def test_a_stream_hears_of_the_callers_signal(make_door: MakeDoor) -> None:
    signal = CancelSignal()

    def wait(args: Any, ctx: ToolContext) -> Any:
        signal.cancel("enough")
        ctx.signal.check()

    door = make_door(packs=[Pack({"add": wait})]).with_options(signal=signal)
    assert listened(door) == [ToolResult("7", "add", "error", "TOOL_CANCELLED: enough")]


def test_who_stops_listening_ends_the_call(make_door: MakeDoor) -> None:
    stopped, forever = threading.Event(), threading.Event()

    def wait(args: Any, ctx: ToolContext) -> Any:
        ctx.metadata(title="waiting")
        while not ctx.signal.cancelled:
            forever.wait(0.001)
        stopped.set()
        ctx.signal.check()

    door = make_door(packs=[Pack({"add": wait})])
    if isinstance(door.toolkit, AsyncToolkit):

        async def first(stream: Any) -> Progress | ToolResult:
            event: Progress | ToolResult = await anext(stream)
            await stream.aclose()
            return event

        assert door.loop is not None
        event = door.loop.run_until_complete(first(door.toolkit.stream(CALL)))
    else:
        events: Iterator[Progress | ToolResult] = door.toolkit.stream(CALL)
        event = next(events)
        del events

    assert event == Progress("add", "7", "waiting")
    assert stopped.wait(30)


def test_results_are_shown_to_who_asked_for_them(make_door: MakeDoor) -> None:
    seen: list[ToolMessage[Any, Any]] = []
    door = make_door(on_result=seen.append)

    message = door.invoke("add", {"a": 1, "b": 2})
    door.call(ToolCall("8", "fail", {"reason": "IO"}))

    assert seen == [message]
