"""What the workers of the tests import: factories, and tools that a test can meet while they run."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Sequence
from pathlib import Path

from toolkit import (
    CallSettings,
    ChatMessage,
    Concurrency,
    QueryOptions,
    QueryResult,
    SecurityPolicy,
    TextMessage,
    ToolCall,
    ToolContext,
    Toolkit,
    ToolkitContext,
    create_agent_toolkit,
    tool,
)

PACKS = ["toolkit.builtin:BUILTIN", "tests.fleet.agents:*"]
FREE = {"num_cpus": 0}
"""For fleets beside the shared one, which has the two CPUs of the cluster."""
WATCHDOG = 120.0
"""Seconds until a test that waits for something fails. Nothing is expected to take that long."""


class Meeting:
    """Two pipes by which a test learns that a tool runs, and lets it go on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("started", "go"):
            os.mkfifo(folder / name)
        # Both ways, so that nobody waits for the other end to be opened.
        self._started = os.open(folder / "started", os.O_RDWR)
        self._go = os.open(folder / "go", os.O_RDWR)

    def wait(self) -> int:
        """The process in which the next tool has started."""
        ready, _, _ = select.select([self._started], [], [], WATCHDOG)
        assert ready, "no tool has started"
        line = b""
        while not line.endswith(b"\n"):
            line += os.read(self._started, 1)
        return int(line)

    def release(self, number: int = 1) -> None:
        os.write(self._go, b"." * number)

    def close(self) -> None:
        os.close(self._started)
        os.close(self._go)


def _meet(folder: str) -> None:
    with open(f"{folder}/started", "w") as started:
        started.write(f"{os.getpid()}\n")
    with open(f"{folder}/go", "rb", buffering=0) as go:
        go.read(1)


@tool(permissions=["read"])
def look(folder: str) -> str:
    """Only look: report the process, wait, and answer."""
    _meet(folder)
    return "seen"


@tool(permissions=["write"])
def change(folder: str) -> str:
    """Change something: leave a mark, report the process, wait, and answer."""
    with open(f"{folder}/marks", "a") as marks:
        marks.write("x")
    _meet(folder)
    return "changed"


@tool(permissions=["read"])
def end_worker(unless: str) -> str:
    """End the process that runs this, unless a file exists."""
    if not os.path.exists(unless):
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


@tool()
def echo(text: str) -> str:
    """Return the text."""
    return text


@tool()
def repeat(text: str, times: int) -> str:
    """Return a long text."""
    return text * times


@tool()
def many(count: int) -> list[int]:
    """Return many numbers."""
    return list(range(count))


@tool()
def where(ctx: ToolkitContext) -> str:
    """Return the workspace."""
    return ctx.workspace


@tool()
def count_aloud(count: int, ctx: ToolContext) -> int:
    """Report progress."""
    for number in range(count):
        ctx.progress(number=number)
    return count


@tool()
def report_a_function(ctx: ToolContext) -> str:
    """Report something that no other process can read."""
    ctx.progress(secret=lambda: None)
    return "reported"


def make_toolkit(setup: object) -> Toolkit:
    """A setup is a workspace, or a workspace and the settings of its context."""
    assert isinstance(setup, tuple)
    workspace, settings = setup
    context = ToolkitContext(workspace, SecurityPolicy(default="allow"), **settings)
    return create_agent_toolkit(context, packs=PACKS)


def make_toolkit_for_one(setup: object) -> Toolkit:
    """Every call but one is refused at once: there is one turn, and no room to wait for it."""
    context = ToolkitContext(
        str(setup), SecurityPolicy(default="allow"), calls=CallSettings(concurrency=Concurrency(calls=1, waiting=0))
    )
    return create_agent_toolkit(context, packs=PACKS)


class Scripted:
    """A model that writes a file that is named after its prompt, and is done."""

    def __init__(self) -> None:
        self.turn = 0

    def query(self, prompt: str | Sequence[ChatMessage], options: QueryOptions) -> QueryResult:
        self.turn += 1
        text = next(str(message.content) for message in prompt if isinstance(message, TextMessage))
        if text.startswith("meet "):
            call = ToolCall("1", "change", {"folder": text.removeprefix("meet ")})
        elif self.turn == 1:
            call = ToolCall("1", "write_file", {"path": "answer.txt", "content": text})
        else:
            call = ToolCall("2", "done", {"message": f"wrote {text}"})
        return QueryResult("", [call], "tool_calls")


def make_driver(setup: object) -> Scripted:
    return Scripted()


not_a_function = 1
