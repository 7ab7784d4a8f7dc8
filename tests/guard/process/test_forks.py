"""A fork of the process that runs commands: it has a sandbox of its own, and ends nothing that belongs to the parent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guard.ways import ALL, Way, needs
from tests.projects import REPOSITORY

WATCHDOG = 600

PROGRAM = """
import json, os, sys
from toolkit.errors import ToolkitError
from toolkit.guard import ProcessGuard

def echo(program):
    program.write(b"x\\n")
    while (text := program.read()) is None:
        os.sched_yield()
    return text.decode()

def in_child(work):
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        os.write(sink, json.dumps(work()).encode())
        sys.exit(0)
    os.close(sink)
    with os.fdopen(source) as file:
        answer = json.loads(file.read() or "null")
    return [os.waitpid(child, 0)[1], answer]

def use():
    found = [guard.run(["echo", "it runs"]).stdout.decode()]
    server = guard._sandbox._server
    try:
        found.append(program.outcome().exit_code)
    except ToolkitError as error:
        found.append(error.message)
    program.close()
    own = guard.start(["cat"])
    found.append(echo(own))
    guard.close()
    return [*found, server and server.pid]

def from_callback(name, data):
    # The child goes on with the call of the parent, which is not its own.
    inside.append(in_child(lambda: None))

workspace, state, sandbox, carrier = sys.argv[1:]
inside = []
with ProcessGuard(workspace, sandbox=sandbox, carrier=carrier, state_dir=state) as guard:
    program = guard.start(["sh", "-c", "echo kept >$HOME/file; while read line; do cat $HOME/file >/dev/null && echo $line; done"])
    before = echo(program)
    server = guard._sandbox._server and guard._sandbox._server.pid
    child = in_child(use)
    after = [echo(program), guard.run(["echo", "it runs"]).stdout.decode()]
    same = server == (guard._sandbox._server and guard._sandbox._server.pid)
    called = guard.run(["sh", "-c", "echo one; read line; echo two"], stdin=b"x", on_output=from_callback).stdout.decode()
    program.close()
    print(json.dumps([before, child, server, after, same, called, inside, program.outcome().exit_code]))
"""
CHOICES: dict[Way, tuple[str, str]] = {
    "full": ("full", "own"),
    "bubblewrap": ("full", "bubblewrap"),
    "reduced": ("reduced", "auto"),
    "unsafe-none": ("unsafe-none", "auto"),
}


@pytest.mark.parametrize("way", ALL)
def test_a_child_runs_commands_of_its_own_and_ends_none_of_the_parent(tmp_path: Path, way: Way) -> None:
    needs(way)
    (tmp_path / "ws").mkdir()
    done = subprocess.run(
        # From 3.12 on, Python warns of a fork beside threads, which is what is tried here.
        [
            sys.executable,
            "-W",
            "ignore::DeprecationWarning",
            "-c",
            PROGRAM,
            str(tmp_path / "ws"),
            str(tmp_path / "state"),
            *CHOICES[way],
        ],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=WATCHDOG,
    )
    assert (done.returncode, done.stderr) == (0, "")
    before, (status, found), server, after, same, called, inside, exit_code = json.loads(done.stdout)
    assert (before, after, same) == ("x\n", ["x\n", "it runs\n"], True)
    assert status == 0
    assert found[:3] == ["it runs\n", "the program belongs to the process that this one was forked from", "x\n"]
    assert way == "unsafe-none" or found[3] not in (None, server)
    assert called == "one\ntwo\n"
    assert inside and all(one == [0, None] for one in inside)
    assert exit_code == 0  # it saw the end of its input: no child kept the other end
