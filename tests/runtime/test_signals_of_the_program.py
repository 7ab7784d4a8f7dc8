"""A program that is told to end ends, also in the middle of a call, and the call's own cleanup has run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.projects import REPOSITORY

PROGRAM = """
import asyncio, os, signal, sys, threading
sys.path.insert(0, "tests/downstream")
from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit, create_async_agent_toolkit
from toolkit import Pack, ToolCall

flavour, deadline, end, workspace = sys.argv[1], float(sys.argv[2]) or None, sys.argv[3], sys.argv[4]

class Shutdown(BaseException):
    pass

def leave(number, frame):
    if end == "exit":
        sys.exit(7)
    raise Shutdown

class Leaver:
    def leave(self, *details):
        leave(*details)

signal.signal(signal.SIGTERM, Leaver().leave if end == "method" else leave)
if end == "method":
    end = "exit"

def add(args, ctx):
    try:
        os.write(1, b"inside\\n")
        while not ctx.signal.cancelled:
            threading.Event().wait(0.01)
    finally:
        os.write(1, b"cleaned up\\n")
    return {"sum": 0}

context = ToolkitContext(workspace, SecurityPolicy(default="allow"), deadline=deadline)
call = ToolCall("1", "add", {"a": 1, "b": 2})
try:
    if flavour == "sync":
        with create_agent_toolkit(context, packs=[Pack({"add": add})]) as toolkit:
            print(toolkit.call(call), flush=True)
    else:
        async def tick():
            # asyncio sleeps without a time limit if nothing is due. A signal that comes as it falls asleep would be handled
            # when something else wakes it.
            while True:
                await asyncio.sleep(0.05)

        async def main():
            ticking = asyncio.create_task(tick())
            async with create_async_agent_toolkit(context, packs=[Pack({"add": add})]) as toolkit:
                print(await toolkit.call(call), flush=True)
        asyncio.run(main())
except Shutdown:
    os.write(1, b"shutdown\\n")
    os._exit(8)
"""


def end_program(tmp_path: Path, flavour: str, deadline: int, end: str) -> tuple[int, list[str]]:
    command = [sys.executable, "-c", PROGRAM, flavour, str(deadline), end, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, env=environment) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "inside\n"
            process.send_signal(signal.SIGTERM)
            rest = process.stdout.read()
            return process.wait(), rest.splitlines()
        finally:
            process.kill()


@pytest.mark.parametrize("end", ["exit", "method", "raise"])
@pytest.mark.parametrize("deadline", [0, 1000], ids=["inline", "in a thread"])
def test_what_a_signal_handler_raises_ends_the_program(tmp_path: Path, deadline: int, end: str) -> None:
    code, printed = end_program(tmp_path, "sync", deadline, end)
    assert (code, printed) == ((8, ["cleaned up", "shutdown"]) if end == "raise" else (7, ["cleaned up"]))


@pytest.mark.parametrize("deadline", [0, 1000], ids=["inline", "in a thread"])
def test_the_same_in_an_event_loop(tmp_path: Path, deadline: int) -> None:
    """Nobody waits there for a handler in a thread: whether its cleanup comes in time is not promised."""
    code, printed = end_program(tmp_path, "async", deadline, "exit")
    assert code == 7 and set(printed) <= {"cleaned up"}
