"""What is heard of a command while it runs: by a callback and by a stream, under both toolkits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.builtin.commands import NO_NETWORK, OPEN_LINE, WATCHDOG_MS, line_in, needs_a_sandbox
from toolkit import Progress, ToolCall, ToolResult
from toolkit.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit, create_async_agent_toolkit

OnEvent: TypeAlias = Callable[[Progress], None]
Heard: TypeAlias = tuple[list[Progress], ToolResult]


@pytest.fixture(autouse=True)
def _sandbox() -> None:
    needs_a_sandbox()


def context(root: Path, on_progress: OnEvent | None = None) -> ToolkitContext:
    return ToolkitContext(root, SecurityPolicy(default="allow"), permissions=NO_NETWORK, on_progress=on_progress)


def by_callback(root: Path, call: ToolCall, on_event: OnEvent) -> Heard:
    events: list[Progress] = []

    def hear(event: Progress) -> None:
        events.append(event)
        on_event(event)

    with create_agent_toolkit(context(root, hear)) as toolkit:
        return events, toolkit.call(call)


def by_async_callback(root: Path, call: ToolCall, on_event: OnEvent) -> Heard:
    events: list[Progress] = []

    def hear(event: Progress) -> None:
        events.append(event)
        on_event(event)

    async def run() -> ToolResult:
        async with create_async_agent_toolkit(context(root, hear)) as toolkit:
            return await toolkit.call(call)

    return events, asyncio.run(run())


def by_stream(root: Path, call: ToolCall, on_event: OnEvent) -> Heard:
    with create_agent_toolkit(context(root)) as toolkit:
        return split([event for event in toolkit.stream(call) if told(event, on_event)])


def by_async_stream(root: Path, call: ToolCall, on_event: OnEvent) -> Heard:
    async def run() -> list[Progress | ToolResult]:
        async with create_async_agent_toolkit(context(root)) as toolkit:
            events: AsyncIterator[Progress | ToolResult] = toolkit.stream(call)
            return [event async for event in events if told(event, on_event)]

    return split(asyncio.run(run()))


def told(event: Progress | ToolResult, on_event: OnEvent) -> bool:
    if isinstance(event, Progress):
        on_event(event)
    return True


def split(events: list[Progress | ToolResult]) -> Heard:
    """The result comes last and once."""
    progress = [event for event in events if isinstance(event, Progress)]
    result = events[-1]
    assert isinstance(result, ToolResult) and len(progress) == len(events) - 1
    return progress, result


WAYS = [by_callback, by_async_callback, by_stream, by_async_stream]
Way: TypeAlias = Callable[[Path, ToolCall, OnEvent], Heard]


def ignore(event: Progress) -> None:
    return None


def bash(command: str, **arguments: object) -> ToolCall:
    return ToolCall("7", "bash", {"command": command, "timeout_ms": WATCHDOG_MS, **arguments})


def text_of(events: list[Progress], stream: str) -> str:
    return "".join(str(event.data["text"]) for event in events if event.data.get("stream") == stream)


@pytest.mark.parametrize("way", WAYS)
def test_tells_the_title_first_and_then_all_that_is_written(tmp_path: Path, way: Way) -> None:
    command = "for i in 1 2 3; do echo line $i; done; echo wrong >&2; printf '\\033[1mé\\r\\nend'"

    events, result = way(tmp_path, bash(command, description="Count"), ignore)

    assert events[0] == Progress("bash", "7", "Count", {})
    assert {(event.tool_name, event.call_id, event.title) for event in events[1:]} == {("bash", "7", None)}
    assert text_of(events, "stdout") == "line 1\nline 2\nline 3\n\\x1b[1mé\nend"
    assert text_of(events, "stderr") == "wrong\n"
    assert result.value == "line 1\nline 2\nline 3\n\\x1b[1mé\nend\n[stderr]\nwrong"


@pytest.mark.parametrize("way", WAYS)
def test_tells_it_while_the_command_runs_and_in_order(tmp_path: Path, way: Way) -> None:
    """Every line but the last is followed by a wait that only who hears it can end.

    A wait is for the end of what comes through the gate: the next one must not find this one's writer still there.
    """
    (tmp_path / "answer.sh").write_text(
        "mkfifo gate; for i in 1 2 3; do echo $i >&$((i % 2 + 1)); cat gate > left; done; echo end"
    )

    def answer(event: Progress) -> None:
        if event.data.get("text") in ("1\n", "2\n", "3\n"):
            (tmp_path / "gate").write_text("go on\n")

    events, result = way(tmp_path, ToolCall("7", "exec_command", {"command": ["bash", "answer.sh"]}), answer)

    assert [(event.data["stream"], event.data["text"]) for event in events[1:]] == [
        ("stderr", "1\n"),
        ("stdout", "2\n"),
        ("stderr", "3\n"),
        ("stdout", "end\n"),
    ]
    assert result.value == "2\nend\n[stderr]\n1\n3"


@pytest.mark.parametrize("way", WAYS)
def test_never_splits_a_character_or_a_line_end(tmp_path: Path, way: Way) -> None:
    (tmp_path / "parts.py").write_text(
        "import os\n"
        "os.mkfifo('gate')\n"
        "for part in (b'a\\n\\xe2\\x82', b'\\xac\\n\\r', b'\\n\\r', b'b\\n'):\n"
        "    os.write(1, part)\n"
        "    if part != b'b\\n': open('gate').read()\n"
    )

    def answer(event: Progress) -> None:
        if event.data.get("text") in ("a\n", "€\n", "\n"):
            (tmp_path / "gate").write_text("go on")

    events, _ = way(tmp_path, ToolCall("7", "exec_command", {"command": ["python3", "parts.py"]}), answer)

    assert [event.data["text"] for event in events[1:]] == ["a\n", "€\n", "\n", "\nb\n"]


def test_a_program_that_writes_letter_by_letter_makes_few_events(tmp_path: Path) -> None:
    code = "import os\nfor _ in range(10_000): os.write(1, b'x'); os.write(2, b'y\\n')"
    call = ToolCall("7", "exec_command", {"command": ["python3", "-c", code], "timeout_ms": WATCHDOG_MS})

    events, _ = by_callback(tmp_path, call, ignore)

    assert (text_of(events, "stdout"), text_of(events, "stderr")) == ("x" * 10_000, "y\n" * 10_000)
    # 64 pieces until there is as much again, from the first 64 characters on; and those one by one.
    assert len(events) < 2 * (64 + 64 * 6)


def test_past_a_limit_only_the_number_of_characters_is_told(tmp_path: Path) -> None:
    megabytes = 20
    command = f"head -c {megabytes}M /dev/zero | tr '\\0' x"

    events, _ = by_callback(tmp_path, bash(command), ignore)

    texts = [event for event in events if "text" in event.data]
    counts = [int(str(event.data["characters"])) for event in events if "characters" in event.data]
    assert set("".join(str(event.data["text"]) for event in texts)) == {"x"}
    assert 16 << 20 <= len(text_of(texts, "stdout")) < 17 << 20
    assert 3 <= len(counts) <= 4 and counts == sorted(counts) and counts[0] >= 17 << 20


def test_who_stops_listening_ends_the_command(tmp_path: Path) -> None:
    command = OPEN_LINE + "setsid sleep 1000 & echo ready >&9; echo now; sleep 1000"
    with line_in(tmp_path) as line, create_agent_toolkit(context(tmp_path)) as toolkit:
        for event in toolkit.stream(bash(command)):
            if isinstance(event, Progress) and event.data.get("text") == "now\n":
                break
        assert line.heard() == b"ready\n"
        line.wait_until_nobody_holds_it()


def test_who_stops_awaiting_ends_the_command(tmp_path: Path) -> None:
    command = OPEN_LINE + "setsid sleep 1000 & echo ready >&9; echo now; sleep 1000"

    async def run() -> None:
        heard = asyncio.Event()
        loop = asyncio.get_running_loop()

        def hear(event: Progress) -> None:
            if event.data.get("text") == "now\n":
                loop.call_soon_threadsafe(heard.set)

        async with create_async_agent_toolkit(context(tmp_path, hear)) as toolkit:
            running = asyncio.ensure_future(toolkit.tools.bash(command=command))
            await heard.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert line.heard() == b"ready\n"
            line.wait_until_nobody_holds_it()

    with line_in(tmp_path) as line:
        asyncio.run(run())
