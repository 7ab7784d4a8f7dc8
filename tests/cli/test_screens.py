"""What a person sees on a terminal, what a script sees in a pipe, and what both see when something breaks."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import get_args
from unittest.mock import ANY

import pytest

from tests import command_line
from tests.cli.run_main import run_main
from tests.projects import REPOSITORY, Project, tool
from toolkit import SecurityPolicy, ToolkitContext, ToolkitError, ToolName, create_agent_toolkit


@contextmanager
def start_on_screen(
    arguments: list[str], folder: Path, columns: int, **variables: str
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The command, and our end of a terminal of this width on which it runs."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    environment = {**kept, "TERM": "xterm-256color", "PYTHONPATH": f"{folder}:{REPOSITORY}", **variables}
    command = [sys.executable, "-m", "toolkit", *arguments]
    with subprocess.Popen(command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        try:
            yield process, ours
        except BaseException:
            process.kill()  # what fails here must not wait for it
            raise
    os.close(ours)


def read_screen(ours: int, until: bytes | None = None) -> bytes:
    """What the terminal gets, until these bytes or the end."""
    shown = b""
    with suppress(OSError):  # how Linux reports that nobody has the terminal open any more
        while (until is None or until not in shown) and (piece := os.read(ours, 65536)):
            shown += piece
    return shown


def on_screen(arguments: list[str], folder: Path, columns: int, **variables: str) -> tuple[int, str]:
    """The exit code, and what a terminal of this width gets."""
    with start_on_screen(arguments, folder, columns, **variables) as (process, ours):
        shown = read_screen(ours)
    return process.returncode, shown.decode().replace("\r\n", "\n")


@pytest.mark.slow
def test_tools_on_a_terminal_are_one_line_each_in_groups(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("alpha"), tool("beta")], include=["toolkit.generated"])
    project.generate()
    code, shown = on_screen(["tools"], tmp_path, 60, NO_COLOR="1")
    lines = shown.splitlines()
    assert code == 0 and "\x1b" not in shown
    assert max(map(len, lines)) <= 60
    assert [line for line in lines if not line.startswith("  ")] == [
        "acme.generated (2)",
        f"built-in ({len(get_args(ToolName))})",
        f"{len(get_args(ToolName)) + 2} tools; `toolkit describe NAME` shows one of them",
    ]
    assert next(line for line in lines if "read_file" in line).rstrip().endswith("…")
    code, shown = on_screen(["tools", "todo", "list"], tmp_path, 120)
    assert f"2 of {len(get_args(ToolName)) + 2} tools" in shown and "\x1b[36mtodoread" in shown
    piped = command_line.toolkit(tmp_path, "tools", "todo", "list", check=True).stdout
    assert [line.split()[0] for line in piped.splitlines()] == ["todoread", "todowrite"]


@pytest.mark.slow
def test_many_tools_fit_the_width_and_take_one_line_each(tmp_path: Path) -> None:
    long = "Looks for things in places that nobody has thought of before, and returns what it has found there. Slow."
    names = [f"tool_{index}" for index in range(135)]
    project = Project(
        tmp_path, [{"name": name, "description": long, "inputSchema": {"type": "object"}} for name in names]
    )
    imported = {
        "origin": {"kind": "tools", "name": "legacy"},
        "tools": [{"name": "find", "description": long, "inputSchema": {"type": "object"}}],
    }
    settings = '[tool.toolkit.imports.legacy]\ntools = "legacy.json"\n'
    project.write("pyproject.toml", (tmp_path / "pyproject.toml").read_text() + settings)
    project.write("acme/tools/legacy.json", json.dumps(imported))
    project.generate()
    for columns in (50, 100):
        code, shown = on_screen(["tools"], tmp_path, columns, NO_COLOR="1")
        *lines, last = shown.splitlines()
        assert code == 0 and max(map(len, lines)) <= columns
        assert [line for line in lines if not line.startswith("  ")] == [
            "imported from legacy (1)",
            "acme.generated (135)",
        ]
        assert sorted(line.split()[0] for line in lines if line.startswith("  ")) == sorted([*names, "find"])
        assert all("Slow" not in line and line.rstrip().endswith("…") for line in lines if line.startswith("  "))
        assert last == "136 tools; `toolkit describe NAME` shows one of them"


@pytest.mark.slow
def test_help_and_errors_have_colours_on_a_terminal_only(tmp_path: Path) -> None:
    code, shown = on_screen(["--help"], tmp_path, 80)
    assert code == 0 and "\x1b[1mCommands:\x1b[0m" in shown and "\x1b[36mgenerate\x1b[0m" in shown
    code, shown = on_screen(["genrate"], tmp_path, 80)
    assert code == 2
    assert shown.startswith("\x1b[1;31mError:\x1b[0m No such command 'genrate'. Did you mean 'generate'?\n")
    _, plain = on_screen(["genrate"], tmp_path, 80, NO_COLOR="1")
    assert plain.startswith("Error: No such command")
    _, dumb = on_screen(["genrate"], tmp_path, 80, TERM="dumb")
    assert "\x1b" not in dumb


SLOW = """
from toolkit import tool

@tool
def wait() -> str:
    "Wait until somebody writes to the pipe."
    with open("pipe") as pipe:
        return pipe.read()
"""


@pytest.mark.slow
def test_a_call_that_takes_longer_counts_the_seconds_on_a_terminal(tmp_path: Path) -> None:
    project = Project(tmp_path, (), functions=["acme.slow"])
    project.write("acme/slow.py", SLOW)
    project.generate()
    os.mkfifo(tmp_path / "pipe")
    with start_on_screen(["invoke", "wait"], tmp_path, 80) as (process, ours):
        assert re.fullmatch(rb"\rrunning wait: \d+ s", read_screen(ours, b" s"))
        (tmp_path / "pipe").write_text("done")
        rest = read_screen(ours).decode()
    # The line is gone before the output appears.
    assert (process.returncode, rest.rpartition(" s")[2].replace(" ", "")) == (0, "\r\rdone\r\n")


@pytest.mark.slow
def test_a_log_that_takes_longer_to_read_can_be_interrupted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "audit.jsonl")  # nobody writes to it
    for command in ("verify", "head", "show"):
        with start_on_screen(["audit", command, "audit.jsonl"], tmp_path, 20) as (process, ours):
            assert re.fullmatch(rb"\rreading audit.: \d+ s", read_screen(ours, b" s"))
            process.send_signal(signal.SIGINT)
            rest = read_screen(ours)
        assert (process.returncode, rest.rpartition(b" ")[2]) == (130, b"\r\r\ninterrupted\r\n")


COMMANDS: tuple[list[str], ...] = (
    [], ["init"], ["import"], ["generate"], ["check"], ["lint"], ["tools"], ["describe"], ["invoke"], ["policy"],
    ["policy", "check"], ["policy", "explain"], ["policy", "remembered"], ["policy", "learn"], ["audit"], ["audit", "verify"], ["audit", "head"], ["audit", "show"],
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_help_is_short_and_has_an_example(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = run_main(tmp_path, [*command, "--help"], capsys)
    assert (shown.code, shown.err) == (0, "")
    lines = shown.out.splitlines()
    assert lines[0].startswith(f"Usage: {' '.join(['toolkit', *command])} ")
    assert max(map(len, lines)) <= 100 and len(lines) <= 45
    assert "<bool>" not in shown.out and "<str>" not in shown.out and "..." not in shown.out.partition("Commands:")[2]
    assert "Examples:\n  toolkit " in shown.out or command in (["policy"], ["audit"])


def test_the_help_of_policy_shows_a_file_that_can_be_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = run_main(tmp_path, ["policy", "--help"], capsys).out
    text = shown.partition("A policy file (TOML):\n")[2]
    (tmp_path / "policy.toml").write_text(text)
    checked = run_main(tmp_path, ["policy", "check", "policy.toml"], capsys)
    assert checked.out == "policy.toml: no mistakes; 2 tools, 1 rule, default deny\n"


CRASHING = """
import sys

def crash(event, arguments):
    if event == "open" and str(arguments[0]).endswith("policy.toml"):
        raise {error}

sys.addaudithook(crash)
"""


@pytest.mark.slow
def test_an_unexpected_error_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, crash = ("policy", "check", "policy.toml"), CRASHING.format(error='RuntimeError("boom")')
    done = command_line.toolkit(tmp_path, *command, first=crash)
    assert (done.returncode, done.stdout) == (70, "")
    assert done.stderr == (
        "Error: unexpected RuntimeError: boom; this is a bug in typed-toolkit: set TOOLKIT_DEBUG=1 to see where, and"
        " report it with what is printed then\n"
    )
    monkeypatch.setenv("TOOLKIT_DEBUG", "1")
    done = command_line.toolkit(tmp_path, *command, first=crash)
    assert done.returncode == 70 and done.stderr.startswith("Traceback (most recent call last):\n")


AS_INSTALLED = "import sys; sys.argv[0], sys.modules['__main__'].__package__ = 'toolkit', None"
"""What starts the command names what asks for completions."""


@pytest.mark.slow
def test_completion_knows_commands_tools_and_options_without_running_the_project(tmp_path: Path) -> None:
    project = Project(tmp_path, [tool("alpha")], include=["toolkit.generated"])
    project.generate()
    project.write("acme/__init__.py", "raise SystemExit('imported')\n")
    settings = (tmp_path / "pyproject.toml").read_text()
    project.write("pyproject.toml", f'{settings}[tool.toolkit.imports.time]\ncommand = ["server"]\n')

    def complete(words: str) -> list[str]:
        variables = {
            "_TOOLKIT_COMPLETE": "complete_bash",
            "COMP_WORDS": f"toolkit {words}",
            "COMP_CWORD": str(words.count(" ") + 1),
        }
        with pytest.MonkeyPatch.context() as patch:
            for key, value in variables.items():
                patch.setenv(key, value)
            return command_line.toolkit(tmp_path, check=True, first=AS_INSTALLED).stdout.split()

    assert complete("gen") == ["generate"]
    assert complete("describe al") == ["alpha"]
    assert complete("invoke read") == ["read_file"]
    assert complete("invoke read_file --st") == ["--start-line"]
    assert complete("import t") == ["time"]


@pytest.mark.sandbox
def test_audit_show_lists_programs_and_the_lines_of_their_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "desk").mkdir()
    policy = SecurityPolicy(default="deny", tools={"done": "allow"})
    context = ToolkitContext(tmp_path / "desk", policy, audit=str(tmp_path / "audit.jsonl"))
    with create_agent_toolkit(context) as toolkit:
        toolkit.run_program("x = 1\ntools.done(message='x')", checker="off")
        toolkit.run_program("tools.bash(command='ls')", checker="off")
    shown = run_main(tmp_path, ["audit", "show", "audit.jsonl"], capsys)
    assert [line.split()[2:] for line in shown.out.splitlines()[1:]] == [
        ["program", "-", "-", "started"],
        ["done", "(line", "2)", "allow", ANY, "ms", "ok"],
        ["program", "-", "-", "refused"],
    ]


def test_audit_show_lists_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "desk").mkdir()
    policy = SecurityPolicy(default="deny", tools={"done": "allow", "read_file": "allow"})
    context = ToolkitContext(tmp_path / "desk", policy, audit=str(tmp_path / "audit.jsonl"))
    with create_agent_toolkit(context) as toolkit:
        toolkit.tools.done(message="x")
        for name, arguments in (("read_file", {"path": "a.txt"}), ("bash", {"command": "ls"})):
            with pytest.raises(ToolkitError):
                toolkit.execute_raw(name, json.dumps(arguments))
    shown = run_main(tmp_path, ["audit", "show", "audit.jsonl"], capsys)
    lines = [line.split() for line in shown.out.splitlines()]
    assert lines[0] == ["time", "tool", "decision", "duration", "outcome"]
    assert [line[2:4] + line[6:] for line in lines[1:]] == [
        ["done", "allow", "ok"],
        ["read_file", "allow", "TOOL_FAILED:", "NOT_FOUND"],
        ["bash", "deny", "TOOL_NOT_ALLOWED"],
    ]
    told = run_main(tmp_path, ["audit", "show", "audit.jsonl", "--tool", "done", "--json"], capsys)
    assert [record["event"] for record in json.loads(told.out)] == ["start", "end"]
    cut = (tmp_path / "audit.jsonl").read_bytes().splitlines(keepends=True)[0]
    (tmp_path / "audit.jsonl").write_bytes(cut[:40])  # its writer was interrupted
    verified = run_main(tmp_path, ["audit", "verify", "audit.jsonl"], capsys)
    assert (verified.code, "is not a complete record" in verified.out) == (1, True)
