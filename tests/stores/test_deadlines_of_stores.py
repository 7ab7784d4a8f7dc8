"""The deadline of a call also covers the stores: one that does not answer costs the ref, or ends the call in time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.conftest import MakeDoor
from tests.stores.test_failing_outputs import LINES, shout
from toolkit import OUTPUT_CACHE, FileOutputCache, OutputWriter, Pack, ToolCall, ToolContext
from toolkit.builtin import BUILTIN
from toolkit.stores import TODO_STORE, FileTodoStore

pytestmark = pytest.mark.slow

SECONDS = 3.0
"""Long enough for a handler that does next to nothing, on any machine."""
WATCHDOG = 25.0
"""Longer than the deadline, shorter than what a store has without one: a call that waits for it fails the test."""


def stream(args: Any, ctx: ToolContext) -> Any:
    ctx.output.write(LINES.encode())
    return {"text": "line 1 …"}


HANDLERS = {"a long text": shout, "a stream": stream}


@pytest.fixture
def hanging() -> Iterator[threading.Event]:
    """What stores wait for; set when the test is over, so that no thread stays."""
    event = threading.Event()
    yield event
    event.set()


class NeverKeeps(FileOutputCache):
    def __init__(self, folder: str, hanging: threading.Event) -> None:
        super().__init__(folder)
        self.hanging = hanging
        self.ended: list[bool] = []

    def wait(self) -> None:
        self.ended.append(self.hanging.wait(WATCHDOG))

    def put(self, *args: Any, **options: Any) -> str | None:
        self.wait()
        return super().put(*args, **options)

    def writer(self, *args: Any, **options: Any) -> OutputWriter:
        writer = super().writer(*args, **options)
        finish = writer.finish

        def wait_and_finish() -> str | None:
            self.wait()
            return finish()

        setattr(writer, "finish", wait_and_finish)  # noqa: B010
        return writer


class NeverWrites(FileTodoStore):
    hanging: threading.Event
    ended: list[bool]

    def swap(self, *args: Any, **options: Any) -> bool:
        self.ended.append(self.hanging.wait(WATCHDOG))
        return super().swap(*args, **options)

    write = swap  # type: ignore[assignment]


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_finished_call_does_not_wait_for_the_output_cache_beyond_its_deadline(
    make_door: MakeDoor, tmp_path: Path, hanging: threading.Event, handler: str
) -> None:
    cache = NeverKeeps(str(tmp_path / "outputs"), hanging)
    door = make_door(packs=[Pack({"shout": HANDLERS[handler]}), BUILTIN], overrides={OUTPUT_CACHE.id: lambda: cache})
    result = door.with_options(deadline=SECONDS).call(ToolCall("1", "shout", {"text": "x"}))
    assert cache.ended == [], "it waited until the store gave up"
    assert result.kind in ("text", "data") and "line 1" in str(result.value)
    assert "could not be stored; the call has run" in str(result.value)
    hanging.set()


def test_a_tool_that_waits_for_its_store_ends_at_its_deadline(
    make_door: MakeDoor, tmp_path: Path, hanging: threading.Event
) -> None:
    store = NeverWrites(str(tmp_path / "todos"))
    store.hanging, store.ended = hanging, []
    door = make_door(packs=[BUILTIN], overrides={TODO_STORE.id: lambda: store})
    todos = [{"id": "1", "content": "call Ada", "status": "pending", "priority": 1}]
    result = door.with_options(deadline=SECONDS).call(ToolCall("1", "todowrite", {"todos": todos}))
    assert store.ended == [], "it waited until the store gave up"
    assert str(result.value).startswith("TOOL_TIMEOUT")
    hanging.set()
