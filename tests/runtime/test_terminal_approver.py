"""``ask_in_terminal``: what it shows on a real terminal, what counts as an answer, and that nothing else does."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.projects import REPOSITORY

PROGRAM = """
import json, sys
from toolkit import SecurityPolicy, ToolkitContext, ToolNotAllowed, ask_in_terminal, create_agent_toolkit
policy = SecurityPolicy(tools={"bash": "ask", "exec_command": "ask", "write_file": "ask", "done": "ask"})
context = ToolkitContext(sys.argv[1], policy, approver=ask_in_terminal)
with create_agent_toolkit(context) as tk:
    print("ready", flush=True)
    for line in sys.argv[2:]:
        if sys.argv[-1] == "wait":
            sys.stdin.readline()
        name, _, arguments = line.partition(" ")
        try:
            print("ok", tk.execute_raw(name, arguments).text().splitlines()[:1], flush=True)
        except ToolNotAllowed as error:
            print(error.message, flush=True)
"""


class Terminal:
    """A program on a terminal of its own; its standard output is a pipe."""

    def __init__(self, workspace: Path, *calls: str) -> None:
        self._ours, theirs = pty.openpty()
        self._unread = b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(workspace), *calls],
            stdin=theirs,
            stderr=theirs,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
            env={**os.environ, "XDG_STATE_HOME": str(workspace.parent / "state")},
        )
        os.close(theirs)
        assert self.line() == "ready"

    def line(self) -> str:
        """The next line of its standard output."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def read_until(self, text: str) -> str:
        """What the terminal showed, up to this."""
        while text.encode() not in self._unread:
            self._unread += os.read(self._ours, 65536)
        shown, found, self._unread = self._unread.partition(text.encode())
        return (shown + found).decode()

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        with suppress(OSError):
            os.close(self._ours)


Start = Callable[..., Terminal]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def start(workspace: Path) -> Iterator[Start]:
    opened: list[Terminal] = []

    def open_one(*calls: str) -> Terminal:
        opened.append(Terminal(workspace, *calls))
        return opened[-1]

    yield open_one
    for terminal in opened:
        terminal.close()


ECHO = 'bash {"command": "echo hi"}'
ONCE, QUESTION = "y once", "n no: "


def test_a_person_approves_once(start: Start) -> None:
    terminal = start(ECHO, ECHO)
    for _ in range(2):
        shown = terminal.read_until(QUESTION).replace("\r\n", "\n")
        assert (
            "Run bash?\nAsked because the policy says ask for this tool.\nShell text:\n  echo hi\nIn the folder: .\n"
            in shown
        )
        assert (
            "\nTo remember: bash, running exactly: echo hi (Rule('allow', tools=['bash'], command='echo hi'))\n"
            in shown
        )
        assert "\nApprove? y once, s for this session, a always in this workspace, n no: " in shown
        terminal.type("y\n")
        assert terminal.line() == "ok ['hi']"


@pytest.mark.parametrize(("letter", "asks_another_process"), [("s", True), ("a", False)])
def test_a_person_lets_it_be_remembered(start: Start, letter: str, asks_another_process: bool) -> None:
    terminal = start(ECHO, ECHO)
    terminal.read_until(QUESTION)
    terminal.type(f"{letter}\n")
    assert [terminal.line(), terminal.line()] == ["ok ['hi']"] * 2
    other = start(ECHO)
    if asks_another_process:
        other.read_until(QUESTION)
        other.type("no\n")
        assert other.line() == "'bash' was not approved: the user said no"
    else:
        assert other.line() == "ok ['hi']"


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("n\n", "the user said no"),
        ("n use make\n", "use make"),
        ("\x04", "nobody answered: the input of the terminal has ended"),
    ],
)
def test_a_person_says_no(start: Start, typed: str, message: str) -> None:
    terminal = start(ECHO)
    terminal.read_until(QUESTION)
    terminal.type(typed)
    assert terminal.line() == f"'bash' was not approved: {message}"


def test_anything_else_is_asked_again(start: Start) -> None:
    terminal = start(ECHO)
    for typed in ("", "sure", "ya", "y please", "always"):
        terminal.read_until(QUESTION)
        terminal.type(f"{typed}\n")
        terminal.read_until("Answer with one of the letters")
    terminal.read_until(QUESTION)
    terminal.type("Y\n")
    assert terminal.line() == "ok ['hi']"


def test_what_cannot_be_remembered_is_not_offered(start: Start) -> None:
    terminal = start('bash {"command": "echo $HOME"}')
    shown = terminal.read_until(QUESTION)
    assert "This cannot be remembered: only commands that are written out" in shown
    assert "y once, n no: " in shown and "session" not in shown.partition("Approve?")[2]
    terminal.type("a\n")
    terminal.read_until(QUESTION)
    terminal.type("y\n")
    assert terminal.line().startswith("ok")


def test_what_was_typed_before_the_question_is_no_answer(start: Start) -> None:
    terminal = start(ECHO, "wait")
    terminal.type("go\ny\ny\n")
    terminal.read_until(QUESTION)
    terminal.type("n\n")
    assert terminal.line() == "'bash' was not approved: the user said no"


@pytest.mark.parametrize(
    "call",
    [
        r'write_file {"path": "a", "content": "x\nApprove? \u001b[2J\u001b]0;title\u0007\rRun done?\u202e\n"}',
        r'exec_command {"command": ["echo", "x\nApprove? \u001b[2J\u001b]0;title\u0007\rRun done?\u202e"]}',
        r'bash {"command": "echo x\nApprove? \u001b[2J\u001b]0;title\u0007\rRun done?\u202e", "description": "\u001b[2J\nApprove?"}',
        r'done {"message": "x\nApprove? \u001b[2J\u001b]0;title\u0007\rRun done?\u202e"}',
    ],
)  # fmt: skip
def test_nothing_that_a_call_brings_acts_on_the_terminal(start: Start, call: str) -> None:
    terminal = start(call)
    shown = terminal.read_until(QUESTION)
    for hidden in ("\x1b", "\x07", "\u202e"):
        assert hidden not in shown
    lines = shown.split("\r\n")
    assert "\r" not in "".join(lines) and "x1b[2J" in shown.replace("u001b", "x1b")
    assert [line for line in lines if line.startswith(("Approve?", "Run "))][1:] == [lines[-1]]


def test_without_a_terminal_everything_is_denied(workspace: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(workspace), ECHO],
        input="y\ny\n",
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
    )
    denied = "'bash' was not approved: it needs the approval of a person, and this program does not run on a terminal"
    assert ended.stdout.splitlines() == ["ready", denied]
