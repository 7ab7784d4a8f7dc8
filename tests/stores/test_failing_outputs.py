"""A store that fails never changes a result: the call has run, and a model must not be led to repeat it."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.conftest import Door, MakeDoor
from toolkit import OUTPUT_CACHE, FileOutputCache, OutputWriter, Pack, ToolCall, ToolContext
from toolkit.builtin import BUILTIN

WATCHDOG = 60.0
LINES = "".join(f"line {number}\n" for number in range(1, 20_001))


def shout(args: Any, ctx: ToolContext) -> Any:
    return {"text": LINES}


def stream(args: Any, ctx: ToolContext) -> Any:
    for number in range(1, 10_001):
        ctx.output.write(b"line %d\n" % number)
    return {"text": "line 1 … line 10000"}


async def stream_async(args: Any, ctx: ToolContext) -> Any:
    return stream(args, ctx)


class RefusesToPut(FileOutputCache):
    def put(self, *args: Any, **options: Any) -> str | None:
        raise RuntimeError("broken")


class RefusesToStream(FileOutputCache):
    def writer(self, *args: Any, **options: Any) -> OutputWriter:
        raise RuntimeError("broken")


class BreaksWhileStreaming(FileOutputCache):
    part = "write"

    def writer(self, *args: Any, **options: Any) -> OutputWriter:
        writer = super().writer(*args, **options)

        def fail(*given: Any) -> Any:
            raise RuntimeError("broken")

        setattr(writer, self.part, fail)
        return writer


class BreaksAtTheEnd(BreaksWhileStreaming):
    part = "finish"


def cannot_be_made(folder: str) -> FileOutputCache:
    raise ConnectionError("no server")


HANDLERS = {"a long text": shout, "a stream": stream, "an async stream": stream_async}
STORES: dict[str, Callable[[str], FileOutputCache]] = {
    "refuses to put": RefusesToPut,
    "refuses to stream": RefusesToStream,
    "breaks while streaming": BreaksWhileStreaming,
    "breaks at the end": BreaksAtTheEnd,
    "cannot be made": cannot_be_made,
}
CASES = [("a long text", "refuses to put"), ("a long text", "cannot be made")] + [
    (handler, store)
    for handler in ("a stream", "an async stream")
    for store in ("refuses to stream", "breaks while streaming", "breaks at the end", "cannot be made")
]


@pytest.mark.parametrize(("handler", "store"), CASES)
def test_the_call_succeeds_and_says_that_the_rest_could_not_be_kept(
    make_door: MakeDoor, tmp_path: Path, caplog: pytest.LogCaptureFixture, handler: str, store: str
) -> None:
    door = make_door(
        packs=[Pack({"shout": HANDLERS[handler]}), BUILTIN],
        overrides={OUTPUT_CACHE.id: lambda: STORES[store](str(tmp_path / "outputs"))},
    )
    result = door.call(ToolCall("1", "shout", {"text": "x"}))
    assert result.kind in ("text", "data")
    assert "line 1" in str(result.value)
    assert "could not be stored; the call has run, so repeat it only if that is harmless" in str(result.value)
    assert result.output_ref is None
    assert "an output of 'shout' could not be stored" in caplog.text

    message = door.invoke("shout", {"text": "x"})
    assert "could not be stored" in message.text()
    assert "output_not_kept" in message.metadata
    assert (message.output_ref, message.content.text[:6]) == (None, "line 1")


def kept_in(make_door: MakeDoor, state: Path, handler: Callable[..., Any] = shout) -> Door:
    return make_door(packs=[Pack({"shout": handler}), BUILTIN], state_dir=state, session_id="s")


def test_a_state_directory_that_was_removed_is_made_again(make_door: MakeDoor, tmp_path: Path) -> None:
    state = tmp_path / "state"
    door = kept_in(make_door, state)
    assert door.invoke("shout", {"text": "x"}).output_ref is not None
    shutil.rmtree(state)
    ref = door.invoke("shout", {"text": "x"}).output_ref
    assert "line 2" in door.tool("tool_output_cache", ref_id=ref, offset=1, limit=1).content


def test_a_state_directory_that_cannot_be_made_again_costs_the_ref(make_door: MakeDoor, tmp_path: Path) -> None:
    state = tmp_path / "state"
    door = kept_in(make_door, state)
    assert door.invoke("shout", {"text": "x"}).output_ref is not None
    shutil.rmtree(state)
    state.touch()
    message = door.invoke("shout", {"text": "x"})
    assert "could not be stored" in message.text()
    assert message.metadata["output_not_kept"]


def test_a_directory_that_is_removed_while_it_is_prepared_ends_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a thread that goes on for ever, as nothing can be written in a directory that is gone."""
    folder, refs = tmp_path / "outputs", []
    monkeypatch.setattr(os, "fsync", lambda descriptor: shutil.rmtree(folder))
    cache = FileOutputCache(str(folder))
    thread = threading.Thread(target=lambda: refs.append(cache.put("s", "text", tool="shout")), daemon=True)
    thread.start()
    thread.join(WATCHDOG)
    assert refs == [None]
    monkeypatch.undo()
    assert cache.put("s", "text", tool="shout") is not None


def test_an_output_that_was_kept_has_nothing_to_report(make_door: MakeDoor, tmp_path: Path) -> None:
    for handler in (shout, stream):
        message = kept_in(make_door, tmp_path / "state", handler).invoke("shout", {"text": "x"})
        assert message.output_ref in message.text()
        assert message.metadata == {}
