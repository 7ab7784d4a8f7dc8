"""A program forks after it has used a toolkit: the child's calls work, and the parent's go on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.projects import REPOSITORY

PROGRAM = """
import asyncio, os, sys, threading
sys.path.insert(0, "tests/downstream")
from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit, create_async_agent_toolkit
from toolkit import Pack, ToolCall

flavour, workspace = sys.argv[1:]
context = ToolkitContext(workspace, SecurityPolicy(default="allow"))
calls = [ToolCall(str(number), "count-words", {"text": "x"}) for number in range(20)]
busy, go_on = threading.Event(), threading.Event()
parent = os.getpid()

def count_words(args, ctx):
    if args.text == "busy":
        busy.set()
        go_on.wait()
    return {"text": str(os.getpid() == parent)}

async def shout(args, ctx):
    await asyncio.sleep(0)
    return {"text": str(os.getpid() == parent)}

packs = [Pack({"count-words": count_words, "shout": shout})]

def use(toolkit):
    assert [result.kind for result in toolkit.call_all(calls)] == ["text"] * 20
    limited = toolkit.with_options(deadline=60)
    told = {limited.invoke("count-words", {"text": "x"}).content.text, toolkit.invoke("shout", {"text": "x"}).content.text}
    assert told == {str(os.getpid() == parent)}, told

async def use_async():
    async with create_async_agent_toolkit(context, packs=packs) as toolkit:
        assert [result.kind for result in await toolkit.call_all(calls)] == ["text"] * 20

if flavour == "sync":
    toolkit = create_agent_toolkit(context, packs=packs)
    use(toolkit)
    running = threading.Thread(target=toolkit.with_options(deadline=60).invoke, args=("count-words", {"text": "busy"}))
    running.start()
    busy.wait()
else:
    asyncio.run(use_async())
child = os.fork()
if flavour == "sync":
    use(toolkit)
else:
    asyncio.run(use_async())
if child:
    _, status = os.waitpid(child, 0)
    go_on.set()
    if flavour == "sync":
        running.join()
        use(toolkit)
        toolkit.close()
    print("child", os.waitstatus_to_exitcode(status), flush=True)
elif flavour == "sync":
    toolkit.close()
"""


@pytest.mark.parametrize("flavour", ["sync", "async"])
def test_parent_and_child_both_go_on(tmp_path: Path, flavour: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, flavour, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "child 0\n"), done.stderr
