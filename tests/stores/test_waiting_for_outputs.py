"""The event loop of an async toolkit goes on while a store is slow; messages that outlive a toolkit hold nothing open."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit, create_async_agent_toolkit
from tests.stores.test_failing_outputs import LINES, shout, stream, stream_async
from toolkit import OUTPUT_CACHE, FileOutputCache, OutputWriter, Pack, ToolCall, ToolContext, run_async
from toolkit.testing import AsyncScriptedModel, call

WATCHDOG = 60


class Gate(FileOutputCache):
    """Keeps nothing until it is opened, and fails if it is used in the thread of the loop."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self.opened = threading.Event()
        self.users: list[int] = []

    def pass_through(self) -> None:
        self.users.append(threading.get_ident())
        assert self.opened.wait(WATCHDOG), "nobody opened the gate: the event loop stands still"

    def put(self, *args: Any, **options: Any) -> str | None:
        self.pass_through()
        return super().put(*args, **options)

    def writer(self, *args: Any, **options: Any) -> OutputWriter:
        writer = super().writer(*args, **options)
        for name in ("write", "finish"):
            setattr(writer, name, self.gated(getattr(writer, name)))
        return writer

    def gated(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            self.pass_through()
            return method(*given)

        return call


async def while_the_gate_is_closed(gate: Gate, work: Any) -> Any:
    """The result of the work. The gate opens only if the loop goes on after the store was asked."""
    running = asyncio.ensure_future(work)
    while not gate.users and not running.done():
        await asyncio.sleep(0.001)
    assert not running.done()
    gate.opened.set()
    return await running


@pytest.mark.parametrize("handler", [shout, stream, stream_async])
def test_the_loop_goes_on_while_an_output_is_kept(tmp_path: Path, handler: Callable[..., Any]) -> None:
    gate = Gate(str(tmp_path / "outputs"))

    async def use() -> None:
        (tmp_path / "workspace").mkdir()
        context = ToolkitContext(
            tmp_path / "workspace", SecurityPolicy(default="allow"), overrides={OUTPUT_CACHE.id: lambda: gate}
        )
        async with create_async_agent_toolkit(context, packs=[Pack({"shout": handler})]) as toolkit:
            called = toolkit.call(ToolCall("1", "shout", {"text": "x"}))
            result = await while_the_gate_is_closed(gate, called)
            assert result.output_ref is not None
            assert result.output_ref in result.value
        assert threading.get_ident() not in gate.users

    asyncio.run(asyncio.wait_for(use(), WATCHDOG))


def test_the_text_of_a_message_can_be_awaited(tmp_path: Path) -> None:
    gate = Gate(str(tmp_path / "outputs"))

    async def use() -> None:
        (tmp_path / "workspace").mkdir()
        context = ToolkitContext(
            tmp_path / "workspace", SecurityPolicy(default="allow"), overrides={OUTPUT_CACHE.id: lambda: gate}
        )
        async with create_async_agent_toolkit(context, packs=[Pack({"shout": shout})]) as toolkit:
            message = await toolkit.invoke("shout", {"text": "x"})
            text = await while_the_gate_is_closed(gate, message.text_async())
            assert message.output_ref in text == message.text()
        assert threading.get_ident() not in gate.users

    asyncio.run(asyncio.wait_for(use(), WATCHDOG))


def test_the_loop_goes_on_while_old_outputs_of_a_run_are_kept(tmp_path: Path) -> None:
    """With a window, outputs that were shown whole are kept before the next request."""
    gate = Gate(str(tmp_path / "outputs"))

    async def use() -> None:
        (tmp_path / "workspace").mkdir()
        context = ToolkitContext(
            tmp_path / "workspace", SecurityPolicy(default="allow"), overrides={OUTPUT_CACHE.id: lambda: gate}
        )
        pack = Pack({"shout": lambda args, ctx: {"text": "word " * 200}})
        async with create_async_agent_toolkit(context, packs=[pack]) as toolkit:
            model = AsyncScriptedModel(call("shout", text="x"), "done")
            run = run_async(model, toolkit, "Shout.", window=1_000)
            assert (await while_the_gate_is_closed(gate, run)).answer == "done"
        assert threading.get_ident() not in gate.users

    asyncio.run(asyncio.wait_for(use(), WATCHDOG))


def open_files() -> set[str]:
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:  # the one that listed them
            continue
    return found


@pytest.mark.parametrize("when", ["text before the end", "text after the end", "ref after the end"])
def test_messages_that_outlive_their_toolkit_hold_nothing_open(tmp_path: Path, when: str) -> None:
    def answer(args: Any, ctx: ToolContext) -> Any:
        return {"text": LINES if when != "ref after the end" else "word " * 200}

    (tmp_path / "workspace").mkdir()
    context = ToolkitContext(
        tmp_path / "workspace", SecurityPolicy(default="allow"), state_dir=tmp_path / "state", session_id="s"
    )
    toolkit = create_agent_toolkit(context, packs=[Pack({"shout": answer})])
    message = toolkit.invoke("shout", {"text": "x"})
    if when == "text before the end":
        message.text()
    toolkit.close()
    assert message.text()
    assert message.output_ref is not None
    gc.collect()
    assert [name for name in open_files() if name.startswith(str(tmp_path))] == []
