"""Long answers are kept whole, shown by head and tail, and can be read by their ref."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.conftest import Door, MakeDoor
from toolkit import (
    OUTPUT_CACHE,
    ContentBlock,
    Conversation,
    FileOutputCache,
    Pack,
    ToolCall,
    ToolContext,
    ToolFailed,
    ToolResult,
    ToolResultMessage,
)
from toolkit.builtin import BUILTIN

LINES = "".join(f"line {number}\n" for number in range(1, 20_001))
"""About 200 KB."""


def shouting(text: str, block: ContentBlock | None = None) -> Callable[..., Any]:
    def shout(args: Any, ctx: ToolContext) -> Any:
        if block is not None:
            ctx.attach(block)
        return {"text": text}

    return shout


def streaming(args: Any, ctx: ToolContext) -> Any:
    for number in range(1, 50_001):
        ctx.output.write(b"line %d\n" % number)
    return {"text": "line 1 … line 50000"}


def door_with(make_door: MakeDoor, handler: Callable[..., Any], **context: Any) -> Door:
    return make_door(packs=[Pack({"shout": handler}), BUILTIN], **context)


def read(door: Door, ref: str | None, offset: int) -> str:
    content: str = door.tool("tool_output_cache", ref_id=ref, offset=offset, limit=1).content
    return content


def test_a_short_answer_is_not_kept(make_door: MakeDoor, tmp_path: Path) -> None:
    door = door_with(make_door, shouting("hello"), state_dir=tmp_path / "state")
    message = door.invoke("shout", {"text": "x"})

    assert (message.text(), message.output_ref) == ('{"text":"hello"}', None)
    assert not (tmp_path / "state").exists()


def test_an_answer_of_some_length_is_kept_and_shown_whole(make_door: MakeDoor) -> None:
    door = door_with(make_door, shouting("word " * 200))
    message = door.invoke("shout", {"text": "x"})
    result = message.to_result("1")

    assert "word word" in message.text()
    assert result.kind == "data"
    assert result.output_ref == message.output_ref
    assert "word word" in read(door, message.output_ref, 1)


WHOLE = "word " * 200
"""Long enough to be kept, short enough to be shown whole."""


def test_an_answer_that_is_shown_whole_is_kept_when_its_ref_is_read(make_door: MakeDoor, tmp_path: Path) -> None:
    door = door_with(make_door, shouting(WHOLE), state_dir=tmp_path / "state")
    message, result = door.invoke("shout", {"text": "x"}), door.call(ToolCall("1", "shout", {"text": "x"}))
    assert WHOLE in message.text() and message.to_result("1").value == result.value == {"text": WHOLE}
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and b"word word" in path.read_bytes()]
    assert kept == []

    assert "word word" in read(door, result.output_ref, 1)
    assert "word word" in read(door, message.output_ref, 1)
    assert message.output_ref == message.to_result("2").output_ref != result.output_ref


WAYS_TO_PASS_ON: dict[str, Callable[[ToolResult], ToolResult]] = {
    "as it is": lambda result: result,
    "copied": copy.copy,
    "copied deeply": copy.deepcopy,
    "pickled": lambda result: pickle.loads(pickle.dumps(result)),
    "changed": lambda result: replace(result, value="another"),
    "as fields": lambda result: ToolResult(**{each.name: getattr(result, each.name) for each in fields(result)}),
    "stored": lambda result: _stored(result),
}


def _stored(result: ToolResult) -> ToolResult:
    message = ToolResultMessage(result)
    again = Conversation.from_json(Conversation([message]).to_json()).messages[0]
    assert isinstance(again, ToolResultMessage)
    return again.result


def test_showing_a_result_stores_nothing(make_door: MakeDoor) -> None:
    door = door_with(make_door, shouting(WHOLE), session_id="shown")
    result = door.call(ToolCall("1", "shout", {"text": "x"}))
    assert "output_ref" not in repr(result)
    assert result.output_ref is not None
    assert f"output_ref={result.output_ref!r}" in repr(result)


@pytest.mark.parametrize("way", WAYS_TO_PASS_ON)
def test_the_ref_of_a_result_that_was_passed_on_is_valid(make_door: MakeDoor, way: str) -> None:
    door = door_with(make_door, shouting(WHOLE), session_id="on")
    result = door.call(ToolCall("1", "shout", {"text": "x"}))
    passed = WAYS_TO_PASS_ON[way](result)
    door.close()

    assert passed.output_ref == result.output_ref
    assert repr(result.output_ref) in repr(passed)
    assert "word word" in read(door_with(make_door, shouting(""), session_id="on"), passed.output_ref, 1)


def test_a_result_can_still_be_compared_and_is_frozen(make_door: MakeDoor) -> None:
    result = door_with(make_door, shouting(WHOLE)).call(ToolCall("1", "shout", {"text": "x"}))
    assert result == replace(result) != replace(result, output_ref=None)
    with pytest.raises(FrozenInstanceError):
        result.output_ref = "another"


class Broken(FileOutputCache):
    def put(self, *args: Any, **options: Any) -> str | None:
        raise RuntimeError("broken")


def test_a_cache_that_fails_costs_the_ref_and_not_the_answer(
    make_door: MakeDoor, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    door = door_with(make_door, shouting(WHOLE), overrides={OUTPUT_CACHE.id: lambda: Broken(str(tmp_path))})
    result = door.call(ToolCall("1", "shout", {"text": "x"}))
    assert (result.kind, result.output_ref) == ("data", None)
    assert "an output of 'shout' could not be stored" in caplog.text


def test_a_long_answer_is_cut_and_what_is_missing_can_be_read(make_door: MakeDoor) -> None:
    door = door_with(make_door, shouting(LINES))
    message = door.invoke("shout", {"text": "x"})

    assert message.content.text == LINES, "content is never cut"
    assert len(message.text()) < 51 * 1024
    assert message.output_ref is not None
    assert re.search(r"\[\d+ of \d+ bytes omitted here.*ref_id \"", message.text())
    assert message.output_ref in message.text()
    result = door.call(ToolCall("1", "shout", {"text": "x"}))
    assert (result.kind, len(result.value) < 51 * 1024) == ("text", True), "data that had to be cut is text"


@pytest.mark.slow
def test_what_is_streamed_is_all_there(make_door: MakeDoor) -> None:
    door = door_with(make_door, streaming)
    message = door.invoke("shout", {"text": "x"})

    assert message.text().endswith(
        f"[the full output has 538894 bytes in 50000 lines; read it with tool_output_cache or search it with "
        f'tool_output_cache_grep, ref_id "{message.output_ref}"]'
    )
    assert "line 49999" in read(door, message.output_ref, 49_999)
    found = door.tool("tool_output_cache_grep", ref_id=message.output_ref, pattern="line 4999[0-9]$", regex=True)
    assert found.total == 10


def test_media_is_kept_whole(make_door: MakeDoor) -> None:
    image = ContentBlock("image", media_type="image/png", data="iVBORw0KGgo=")
    door = door_with(make_door, shouting("a picture", image))
    message = door.invoke("shout", {"text": "x"})

    again = door.invoke("tool_output_cache", {"ref_id": message.output_ref})
    assert again.attachments == (image,)
    assert message.to_result("1").output_ref == message.output_ref


def test_other_sessions_know_nothing_of_a_ref(make_door: MakeDoor) -> None:
    mine = door_with(make_door, shouting(LINES), session_id="mine")
    ref = mine.invoke("shout", {"text": "x"}).output_ref
    yours = door_with(make_door, shouting(LINES), session_id="yours")

    with pytest.raises(ToolFailed) as foreign:
        read(yours, ref, 1)
    with pytest.raises(ToolFailed) as unknown:
        read(yours, "A" * len(ref), 1)
    assert str(foreign.value) == str(unknown.value)


def test_what_is_kept_survives_a_restart(make_door: MakeDoor, tmp_path: Path) -> None:
    first = door_with(make_door, shouting(LINES), session_id="s", state_dir=tmp_path / "state")
    ref = first.invoke("shout", {"text": "x"}).output_ref
    first.close()

    assert "line 1" in read(door_with(make_door, shouting(""), session_id="s", state_dir=tmp_path / "state"), ref, 1)


def test_a_message_can_be_told_after_its_toolkit_is_closed(make_door: MakeDoor) -> None:
    door = door_with(make_door, shouting(LINES), session_id="late")
    message = door.invoke("shout", {"text": "x"})
    door.close()

    assert message.output_ref in message.text()
    assert "line 1" in read(door_with(make_door, shouting(""), session_id="late"), message.output_ref, 1)


def test_no_place_to_keep_anything_costs_the_ref_and_not_the_answer(
    make_door: MakeDoor, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    for handler in (shouting(LINES), streaming):
        message = door_with(make_door, handler, state_dir=tmp_path / "file" / "state").invoke("shout", {"text": "x"})

        assert message.output_ref is None
        assert "could not be stored" in message.text()
    assert "outputs cannot be stored" in caplog.text


def test_the_cache_and_its_limit_can_be_others(make_door: MakeDoor, tmp_path: Path) -> None:
    def small() -> FileOutputCache:
        return FileOutputCache(str(tmp_path / "elsewhere"), text_limit=1000)

    (tmp_path / "elsewhere").mkdir()
    door = door_with(make_door, shouting(LINES), overrides={OUTPUT_CACHE.id: small})
    message = door.invoke("shout", {"text": "x"})

    assert len(message.text()) < 1300
    assert "line 1" in read(door, message.output_ref, 1)


def test_a_failed_call_leaves_nothing_behind(make_door: MakeDoor, tmp_path: Path) -> None:
    def shout(args: Any, ctx: ToolContext) -> Any:
        ctx.output.write(b"x" * 1_000_000)
        raise ToolFailed("IO", "no luck")

    door = door_with(make_door, shout, state_dir=tmp_path / "state")
    with pytest.raises(ToolFailed):
        door.invoke("shout", {"text": "x"})
    assert sum(file.stat().st_size for file in (tmp_path / "state").rglob("*") if file.is_file()) < 10_000
