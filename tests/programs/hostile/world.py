"""Runs code inside the sandbox of programs as a program that got around the gate would, and looks at what it left.

The gate is not what is tested here: the settings let programs import ``builtins``, so that they can run any text. The text
has ``done`` and ``read_file``, which the program names, and every other thing of its interpreter.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from toolkit import (
    CancelSignal,
    Pack,
    ProgramResult,
    ProgramSettings,
    SecurityPolicy,
    Toolkit,
    ToolkitContext,
    create_agent_toolkit,
)
from toolkit.builtin import BUILTIN
from toolkit.generated import DoneInput, DoneOutput
from toolkit.guard import SandboxChoice

WATCHDOG: Final = 120.0
ALLOWED: Final = SecurityPolicy(
    default="deny",
    tools={"done": "allow", "read_file": "allow", "list": "allow", "glob": "allow", "todowrite": "allow"},
)
SECONDS: Final = 60.0
"""Longer than any row needs: those that never end cancel themselves."""

SOURCE: Final = """
import builtins
names = {"__name__": "hostile", "done": tools.done, "read_file": tools.read_file, "inputs": inputs}
builtins.exec(inputs.prelude + inputs.code, names)
names.get("answer")
"""
PRELUDE: Final = """
import ctypes, errno, gc, json, os, resource, signal, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(15, inputs.mark.encode(), 0, 0, 0)  # PR_SET_NAME: by this name the test finds it, and what it forks
connection = done.__self__._connection
sink, source = connection._sink, connection._source

def frame(head, body=b""):
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return struct.pack("!II", len(text), len(body)) + text + body

def call(number, tool="done", arguments={"message": "forged"}, **more):
    body = arguments if isinstance(arguments, bytes) else json.dumps(arguments).encode()
    return frame({"call": number, "tool": tool, "line": 1, "waits": True, **more}, body)

def put(*frames):
    data = b"".join(frames)
    while data:
        data = data[os.write(sink, data):]

def forever():
    while True:
        time.sleep(1000)

def child(act, *arguments):
    pid = os.fork()
    if pid == 0:
        try:
            act(*arguments)
        finally:
            os._exit(0)
    return pid

def refused(act, *arguments):
    try:
        act(*arguments)
    except OSError as error:
        return error.errno
    return None
"""


class World:
    """A toolkit over a workspace, and what its tools were asked."""

    def __init__(self, base: Path, sandbox: SandboxChoice = "full", settings: ProgramSettings | None = None) -> None:
        self.base = base
        self.workspace = base / "workspace"
        self.workspace.mkdir(parents=True)
        (self.workspace / "a.txt").write_text("one\n")
        (self.workspace / "large.txt").write_text(f"{'x' * 1000}\n" * 200)
        self.audit = base / "audit.jsonl"
        self.mark = f"hostile-{secrets.token_hex(3)}"
        self.said: list[str] = []
        self.on_done: Callable[[str], None] = self.said.append
        self.context = ToolkitContext(
            self.workspace,
            ALLOWED,
            sandbox=sandbox,
            state_dir=base / "state",
            audit=self.audit,
            programs=settings or ProgramSettings(imports=["builtins"], seconds=SECONDS, memory=300 << 20),
        )
        self.packs = [BUILTIN.without("done"), Pack({"done": self._done})]
        self.toolkit: Toolkit = create_agent_toolkit(self.context, packs=self.packs)

    def _done(self, args: DoneInput, ctx: object) -> DoneOutput:
        self.on_done(args.message)
        return DoneOutput(message=args.message)

    def inputs(self, code: str) -> dict[str, object]:
        return {"prelude": PRELUDE, "code": code, "mark": self.mark}

    def run(self, code: str, deadline: float | None = None) -> ProgramResult:
        """Runs hostile code. ``done(message="stop")`` in it cancels the program."""
        signal = CancelSignal()

        def listen(message: str) -> None:
            self.said.append(message)
            if message == "stop":
                signal.cancel("it was stopped")

        self.on_done = listen
        view = self.toolkit.with_options(signal=signal, deadline=deadline)
        return view.run_program(SOURCE, inputs=self.inputs(code), checker="off")

    def calls(self) -> list[tuple[str, str, Any]]:
        """Event, tool and outcome of every line about a call in the audit log."""
        lines = [json.loads(line) for line in self.audit.read_text().splitlines()]
        return [(line["event"], line["tool"], line.get("outcome")) for line in lines if line["event"] != "program"]

    def survivors(self, mark: str = "") -> list[int]:
        """Every process of this machine with the name of this world's programs; a pid namespace hides nothing from
        outside."""
        wanted = mark or self.mark
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if wanted in _names(pid)]

    @contextlib.contextmanager
    def untouched(self) -> Iterator[None]:
        """Whatever happens inside: the workspace is the same, and nothing is alive. That the next program works is shown by
        the next row of a table, and at last by ``close``."""
        before = self._files()
        yield
        assert self.survivors() == []
        assert self._files() == before

    @contextlib.contextmanager
    def unharmed(self) -> Iterator[None]:
        """The same, and the next program works."""
        with self.untouched():
            yield
        self.check_next()

    def check_next(self) -> None:
        self.on_done = self.said.append
        after = self.toolkit.run_program("tools.done(message='next').message", checker="off")
        assert (after.value, after.errors) == ("next", ())

    def _files(self) -> dict[str, str]:
        return {str(path): path.read_text() for path in sorted(self.workspace.rglob("*"))}

    def close(self) -> None:
        self.check_next()
        self.toolkit.close()
        assert self.survivors() == []


def _names(pid: int) -> set[str]:
    """What the threads of a process are called."""
    found = set()
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            found.add(Path(f"/proc/{pid}/task/{task}/comm").read_text().strip())
    return found


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + WATCHDOG
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
