"""How calls and servers end: cancelled, out of time, killed in the middle, started again, closed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from tests.guard.process.test_ends import wait_for
from tests.packs.conftest import SERVERS, Doors, servers_in
from tests.runtime.conftest import Door
from toolkit import CancelSignal, JsonObject, Pack, ToolCall
from toolkit.errors import ToolCancelled, ToolFailed, ToolTimeout
from toolkit.packs import McpCallbacks, McpServer, McpTool, mcp_pack


def odd(
    habit: str,
    *,
    timeout: float = 60.0,
    startup_timeout: float | None = None,
    env: tuple[str, ...] = (),
    sandbox: bool = True,
    read_roots: Sequence[str] = (),
) -> Pack:
    """A pack whose server has that habit."""
    # What is let out must not be what tools could have changed.
    program = "odd.py" if sandbox else str(SERVERS / "odd.py")
    command = ("python", program, habit)
    server = McpServer(
        name="odd",
        command=command,
        timeout=timeout,
        startup_timeout=startup_timeout,
        env=env,
        sandbox=sandbox,
        read_roots=tuple(read_roots),
    )
    models = "served.generated.models"
    return mcp_pack(
        server,
        {
            "odd": McpTool("ask", f"{models}.odd:OddOutput"),
            "odd_text": McpTool("ask", f"{models}.odd_text:OddTextOutput"),
        },
    )


def told(door: Door, text: str) -> str:
    """What the obedient server answers."""
    answer: str = door.tool("odd_text", text=text).text
    return answer


def beside(work: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    """Runs ``work`` in a thread; what it raises is kept."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, raised


def kill_servers(workspace: Path) -> None:
    for pid in servers_in(workspace):
        with suppress(ProcessLookupError):  # the end of one may be the end of the others
            os.kill(pid, signal.SIGKILL)


def test_a_cancelled_call_is_cancelled_at_the_server_too(make_door: Doors, workspace: Path) -> None:
    signal = CancelSignal()
    door = make_door(odd("obeys"))
    thread, raised = beside(lambda: told(door.with_options(signal=signal), "wait x"))
    wait_for((workspace / "x.began").exists, "the call never began")
    signal.cancel("the user pressed stop")
    thread.join()
    assert isinstance(raised[0], ToolCancelled) and "pressed stop" in str(raised[0])
    wait_for((workspace / "x.cancelled").exists, "the server never heard of it")
    assert told(door, "count") == "1"  # the same session goes on


def test_a_call_past_its_deadline_is_cancelled_at_the_server_too(make_door: Doors, workspace: Path) -> None:
    door = make_door(odd("obeys"))
    assert told(door, "count") == "1"
    deadline = 0.5
    while not (workspace / "x.began").exists():  # on a busy machine a deadline may pass before the request is sent
        with pytest.raises(ToolTimeout, match="deadline"):
            told(door.with_options(deadline=deadline), "wait x")
        told(door, "count")  # the server reads in order
        deadline *= 2
    wait_for((workspace / "x.cancelled").exists, "the server never heard of it")


def test_whenever_a_deadline_passes_the_server_hears_of_it_and_goes_on(make_door: Doors, workspace: Path) -> None:
    """The deadline of the call and the one of its request pass at nearly the same time, and both give it up."""
    door = make_door(odd("obeys"))
    assert told(door, "count") == "1"
    first = servers_in(workspace)
    for number in range(100):
        with pytest.raises(ToolTimeout):
            told(door.with_options(deadline=0.0003 * (number % 20 + 1)), f"wait {number}")
    told(door, "count")
    began = {path.stem for path in workspace.glob("*.began")}
    wait_for(lambda: began <= {path.stem for path in workspace.glob("*.cancelled")}, "the server did not hear of all")
    assert servers_in(workspace) == first


def test_the_timeout_of_the_pack_ends_a_call_that_is_never_answered(make_door: Doors, workspace: Path) -> None:
    door = make_door(odd("silent", timeout=2, startup_timeout=60))
    with pytest.raises(ToolTimeout, match="the MCP server 'odd' did not answer in time"):
        door.tool("odd")
    assert (workspace / "asked").exists()
    wait_for((workspace / "heard.cancelled").exists, "the server never heard of it")


@pytest.mark.parametrize(
    "callbacks",
    [None, pytest.param(McpCallbacks(elicit=lambda request: None), marks=pytest.mark.whole)],
    ids=["nobody", "somebody"],
)
def test_a_server_that_reads_nothing_does_not_hold_its_callers(
    make_sync: Doors, workspace: Path, callbacks: McpCallbacks | None
) -> None:
    door = make_sync(odd("deaf", timeout=1, startup_timeout=60), mcp=callbacks)
    with pytest.raises(ToolTimeout, match="the MCP server 'odd' did not answer in time"):
        door.tool("odd")  # the last one that it reads
    first = servers_in(workspace)
    with pytest.raises(ToolTimeout, match="the MCP server 'odd' does not read its input"):
        door.tool("odd", text="x" * 1_000_000)
    with pytest.raises(ToolTimeout, match="did not answer in time"):
        door.tool("odd")  # a new one was given a try
    assert first and not set(first) & set(servers_in(workspace))


def test_it_is_ended_also_if_the_deadlines_of_the_calls_come_first(make_sync: Doors, workspace: Path) -> None:
    door, signal = make_sync(odd("deaf")), CancelSignal()
    thread, _ = beside(lambda: door.with_options(signal=signal).tool("odd"))
    wait_for((workspace / "asked").exists, "the call never began")
    signal.cancel()
    thread.join()
    first = servers_in(workspace)

    def is_ended() -> bool:
        with pytest.raises(ToolTimeout):
            door.with_options(deadline=0.5).tool("odd", text="x" * 1_000_000)
        return not set(first) & set(servers_in(workspace))

    assert first
    wait_for(is_ended, "it was not ended")


def test_a_server_that_dies_in_a_call_fails_it_once_and_is_started_again(make_door: Doors, workspace: Path) -> None:
    door = make_door(odd("obeys"))
    assert [told(door, "count") for _ in range(2)] == ["1", "2"]
    with pytest.raises(ToolFailed) as caught:
        told(door, "die 3")
    assert caught.value.reason == "SERVER_DIED"
    assert "the MCP server 'odd' ended during the call" in caught.value.message
    assert "exit code 3" in caught.value.message and "I am going" in caught.value.message
    assert (workspace / "died").read_text() == "x"  # not tried again
    assert told(door, "count") == "1"


def test_a_server_killed_from_outside_fails_all_calls_under_way(make_sync: Doors, workspace: Path) -> None:
    door = make_sync(odd("obeys"))
    assert told(door, "count") == "1"
    calls = [beside(partial(told, door, f"wait {name}")) for name in ("x", "y")]
    for name in ("x", "y"):
        wait_for((workspace / f"{name}.began").exists, "the call never began")
    kill_servers(workspace)
    for thread, raised in calls:
        thread.join()
        assert isinstance(raised[0], ToolFailed) and raised[0].reason == "SERVER_DIED"
    assert calls[0][1][0] is not calls[1][1][0]
    assert told(door, "count") == "1"


def test_one_that_died_between_calls_is_started_again_without_a_word(make_sync: Doors, workspace: Path) -> None:
    door = make_sync(odd("obeys"))
    assert told(door, "count") == "1"
    kill_servers(workspace)
    wait_for(lambda: not servers_in(workspace), "it did not die")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:  # the end of its output has to be read first
        result = door.call(ToolCall("1", "odd_text", JsonObject({"text": "count"})))
        if result.kind == "text":
            break
    assert result.value == "1"


def test_closing_the_toolkit_ends_calls_under_way(make_door: Doors, workspace: Path) -> None:
    door = make_door(odd("silent"))
    if door.loop is None:
        thread, raised = beside(lambda: door.tool("odd"))
        wait_for((workspace / "asked").exists, "the call never began")
        door.close()
        thread.join()
        assert isinstance(raised[0], ToolCancelled) and "the toolkit was closed" in str(raised[0])
    else:
        task = door.loop.create_task(door.toolkit.tools.odd())
        while not (workspace / "asked").exists():
            door.loop.run_until_complete(_moment())
        door.close()
        with pytest.raises(ToolCancelled, match="the toolkit was closed"):
            door.loop.run_until_complete(task)
    assert servers_in(workspace) == []


async def _moment() -> None:
    import asyncio

    await asyncio.sleep(0.01)
