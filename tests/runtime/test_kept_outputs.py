"""Long answers are kept whole, shown by head and tail, and can be read by their ref."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.conftest import Door, MakeDoor
from toolkit import OUTPUT_CACHE, ContentBlock, FileOutputCache, Pack, ToolCall, ToolContext, ToolFailed
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
