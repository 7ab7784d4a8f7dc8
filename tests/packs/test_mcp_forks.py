"""A program forks while its threads are in calls: the child calls every kind of tool and ends, and the parent goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packs.conftest import servers_in
from tests.projects import REPOSITORY, Project

WATCHDOG = 600

PROGRAM = """
import json, os, sys, threading
from served.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit import JsonObject, ToolCall, ToolkitContext as BuiltinContext
import toolkit

policy = SecurityPolicy(default="allow")
shop = create_agent_toolkit(ToolkitContext("ws", policy, state_dir="state"))
files = toolkit.create_agent_toolkit(BuiltinContext("ws", toolkit.SecurityPolicy(default="allow"), state_dir="state"))
with open("ws/a.txt", "w") as file:
    file.write("text\\n")

def use_all():
    return [
        files.tools.read_file(path="a.txt").content,
        files.tools.exec_command(command=["echo", "it runs"]).stdout,
        shop.tools.shop_add(a=1, b=2).root,
        [result.kind for result in files.call_all(
            [ToolCall(str(n), "read_file", JsonObject({"path": "a.txt"})) for n in range(20)])],
        [result.kind for result in shop.call_all(
            [ToolCall(str(n), "shop_add", JsonObject({"a": n})) for n in range(20)])],
        shop.tools.shop_count().root,
    ]

expected = use_all()
stop, failed, turns = threading.Event(), [], [0] * 4

def keep_busy(number):
    while not stop.is_set():
        try:
            answers = use_all()[:-1]
        except BaseException as error:
            failed.append(repr(error))
            return
        if answers != expected[:-1]:
            failed.append(answers)
        turns[number] += 1

def wait_at_gate():
    command = ["sh", "-c", "touch begun; read line < gate; echo $line"]
    slow.append(files.tools.exec_command(command=command).stdout)

slow, long = [], threading.Thread(target=wait_at_gate)
os.mkfifo("ws/gate")
long.start()
while not os.path.exists("ws/begun"):
    long.join(0.01)
busy = [threading.Thread(target=keep_busy, args=(number,)) for number in range(4)]
for thread in busy:
    thread.start()
codes = []
for number in range(int(sys.argv[1])):
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        answers = use_all()
        os.write(sink, json.dumps(answers).encode())
        sys.exit(0)  # with all that Python does at the end
    os.close(sink)
    with os.fdopen(source) as file:
        answers = json.loads(file.read() or "null")
    _, status = os.waitpid(child, 0)
    codes.append([status, answers[:-1] == expected[:-1] if answers else None, answers and answers[-1]])
stop.set()
for thread in busy:
    thread.join()
with open("ws/gate", "w") as file:
    file.write("go on\\n")
long.join()
count = shop.tools.shop_count().root
shop.close()
files.close()
print(json.dumps({"children": codes, "failed": failed, "slow": slow, "count": count, "turns": sum(turns)}))
"""


@pytest.fixture
def workspace(tmp_path: Path, project: Project) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "shop.py").write_bytes((project.root / "shop.py").read_bytes())
    return folder


def test_children_call_every_kind_of_tool_and_the_parent_goes_on(
    project: Project, workspace: Path, everything: bool
) -> None:
    children = 4 if everything else 2
    command = [sys.executable, "-c", PROGRAM, str(children)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (project.root, REPOSITORY)))}
    done = subprocess.run(
        command, cwd=workspace.parent, env=environment, capture_output=True, text=True, timeout=WATCHDOG
    )
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    # A child's server has counted one call: it is not the parent's.
    assert answer["children"] == [[0, True, 1]] * children
    assert answer["failed"] == []
    assert answer["slow"] == ["go on\n"]
    # The parent's server lived through it all.
    assert answer["count"] == answer["turns"] + 2
    assert servers_in(workspace) == []
