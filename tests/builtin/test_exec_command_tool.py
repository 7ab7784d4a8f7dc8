from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builtin.commands import NO_NETWORK, OPEN_LINE, WATCHDOG_MS, Line, line_in, needs_a_sandbox, offline
from tests.builtin.snapshots import Snapshots
from toolkit import ApprovalRequest, Approve, CancelSignal, Rule
from toolkit.errors import (
    InvalidArguments,
    SandboxViolation,
    ToolCancelled,
    ToolFailed,
    ToolkitError,
    ToolNotAllowed,
    ToolTimeout,
)
from toolkit.generated import ExecCommandArgs, SecurityPolicy, Toolkit
from toolkit.guard.process import tier

PYTHON = sys.executable


@pytest.fixture(autouse=True)
def _sandbox() -> None:
    needs_a_sandbox()


@pytest.fixture
def toolkit(tmp_path: Path) -> Iterator[Toolkit]:
    with offline(tmp_path) as toolkit:
        yield toolkit


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    with line_in(tmp_path) as line:
        yield line


# What comes back


def test_says_everything_about_a_program_that_succeeds(tmp_path: Path, toolkit: Toolkit) -> None:
    (tmp_path / "sub").mkdir()

    message = toolkit.invoke("exec_command", {"command": ["sh", "-c", "echo out; echo err >&2"], "cwd": "sub/."})

    output = message.content
    assert (output.command, output.cwd) == (["sh", "-c", "echo out; echo err >&2"], "sub")
    assert (output.exit_code, output.signal, output.timed_out) == (0, None, False)
    assert (output.stdout, output.stderr) == ("out\n", "err\n")
    assert not output.stdout_truncated and not output.stderr_truncated
    assert (output.sandbox, output.network) == (tier.pick_tier("auto").name, False)
    assert output.duration_ms >= 0
    assert message.title == "sh -c 'echo out; echo err >&2'"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"command": ["sh", "-c", "exit 7"]}, (7, None, "", "")),
        ({"command": ["sh", "-c", "kill -SEGV $$"]}, (None, "SIGSEGV", "", "")),
        ({"command": ["sh", "-c", "echo before; kill -9 $$"]}, (None, "SIGKILL", "before\n", "")),
        ({"command": ["cat"]}, (0, None, "", "")),
        ({"command": ["cat"], "stdin": ""}, (0, None, "", "")),
        ({"command": ["cat"], "stdin": "é\n"}, (0, None, "é\n", "")),
        ({"command": ["wc", "-c"], "stdin": "\x00\r\n"}, (0, None, "3\n", "")),
        ({"command": ["true"], "stdin": "x" * 1_000_000}, (0, None, "", "")),
        ({"command": ["sh", "-c", 'echo "$A-$B"'], "env": {"A": "1", "B": "two words"}}, (0, None, "1-two words\n", "")),
        ({"command": ["pwd"], "cwd": "link"}, (0, None, "{root}/sub\n", "")),
        ({"command": ["pwd"], "cwd": "{root}/sub"}, (0, None, "{root}/sub\n", "")),
        ({"command": ["./script", "x"], "cwd": "sub"}, (0, None, "script x\n", "")),
        ({"command": ["sub/script", "y"]}, (0, None, "script y\n", "")),
        ({"command": ["printf", "no line end"]}, (0, None, "no line end", "")),
        ({"command": ["sh", "-c", "printf 'a\\r\\nb\\rc\\033[1m\\377'"]}, (0, None, "a\nb\nc\\x1b[1m\\xff", "")),
    ],
)  # fmt: skip
def test_gives_back_how_it_ended_and_what_it_wrote(
    tmp_path: Path, toolkit: Toolkit, arguments: ExecCommandArgs, expected: tuple[object, ...]
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("sub")
    (tmp_path / "sub/script").write_text("#!/bin/sh\necho script $1\n")
    (tmp_path / "sub/script").chmod(0o755)
    if "cwd" in arguments:
        arguments = {**arguments, "cwd": arguments["cwd"].format(root=tmp_path)}

    output = toolkit.invoke("exec_command", arguments).content

    found = (output.exit_code, output.signal, output.stdout.replace(str(tmp_path), "{root}"), output.stderr)
    assert found == expected


@pytest.mark.parametrize(
    ("limit", "stdout", "truncated"),
    [
        (18, "1\n2\n3\n4\n5\n6\n7\n8\n9\n", False),
        (17, "1\n2\n3\n4\n5…\n[... 1 bytes left out ...]\n6\n7\n8\n9\n", True),
        (7, "1\n2\n[... 11 bytes left out ...]\n…\n9\n", True),
        (4, "1\n[... 14 bytes left out ...]\n9\n", True),
        (1, "1…\n[... 17 bytes left out ...]\n", True),
    ],
)
def test_keeps_beginning_and_end(toolkit: Toolkit, limit: int, stdout: str, truncated: bool) -> None:
    output = toolkit.tools.exec_command(command=["seq", "9"], max_output_bytes=limit)

    assert (output.stdout, output.stdout_truncated, output.stderr_truncated) == (stdout, truncated, False)


def test_cuts_between_characters_and_each_stream_for_itself(toolkit: Toolkit) -> None:
    code = "import sys; sys.stdout.write('é' * 100); sys.stderr.write('short')"

    output = toolkit.tools.exec_command(command=[PYTHON, "-c", code], max_output_bytes=25)

    assert output.stdout == "é" * 6 + "…\n[... 176 bytes left out ...]\n…" + "é" * 6
    assert (output.stderr, output.stdout_truncated, output.stderr_truncated) == ("short", True, False)


def test_a_cwd_with_odd_letters_is_shown_escaped(tmp_path: Path, toolkit: Toolkit) -> None:
    (tmp_path / "esc\x1b[31m").mkdir()

    assert toolkit.tools.exec_command(command=["true"], cwd="esc\x1b[31m").cwd == "esc\\x1b[31m"


def test_the_title_is_short_and_on_one_line(toolkit: Toolkit) -> None:
    title = toolkit.invoke("exec_command", {"command": ["echo", "a\nb\x1b", "x" * 200]}).title

    assert title is not None
    assert title.startswith("echo 'a b\\x1b' xxx") and len(title) == 100 and title.endswith("…")


# What fails


@pytest.mark.parametrize(
    ("arguments", "reason", "words"),
    [
        ({"command": ["pyhton3"]}, "COMMAND_NOT_FOUND", "'pyhton3' does not exist, or cannot be seen from inside the sandbox. Did you mean 'python3'"),
        ({"command": ["ls -la"]}, "COMMAND_NOT_FOUND", "'ls -la' does not exist, or cannot be seen from inside the sandbox; give the program and each argument as a separate item, or use bash for shell text"),
        ({"command": ["cd", "sub"]}, "COMMAND_NOT_FOUND", "'cd' does not exist, or cannot be seen from inside the sandbox; cd is a shell builtin: set cwd or env, or use bash for shell text"),
        ({"command": ["./none"]}, "COMMAND_NOT_FOUND", "'./none' does not exist"),
        ({"command": ["none/none"]}, "COMMAND_NOT_FOUND", "'none/none' does not exist in the workspace"),
        ({"command": ["/nonexistent/secret"]}, "COMMAND_NOT_FOUND", "the program does not exist"),
        ({"command": ["./notes.txt"]}, "NOT_EXECUTABLE", "'./notes.txt' cannot be run: permission denied"),
        ({"command": ["./sub"]}, "NOT_EXECUTABLE", "'./sub' cannot be run: permission denied"),
        ({"command": ["ls"], "cwd": "sbu"}, "NOT_FOUND", "the working directory 'sbu' does not exist. Did you mean 'sub'?"),
        ({"command": ["ls"], "cwd": "notes.txt"}, "NOT_DIRECTORY", "the working directory 'notes.txt' is not a directory"),
    ],
)  # fmt: skip
def test_99_says_why_it_cannot_run(
    tmp_path: Path, toolkit: Toolkit, arguments: ExecCommandArgs, reason: str, words: str
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "notes.txt").write_text("hello")

    with pytest.raises(ToolFailed) as caught:
        toolkit.invoke("exec_command", arguments)

    assert caught.value.reason == reason
    assert caught.value.message.startswith(words)
    assert str(tmp_path) not in str(caught.value) and "secret" not in str(caught.value)


@pytest.mark.sample
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, InvalidArguments),
        ({"command": []}, InvalidArguments),
        ({"command": [""]}, InvalidArguments),
        ({"command": "ls"}, InvalidArguments),
        ({"command": ["ls", 1]}, InvalidArguments),
        ({"command": ["ls", "\0"]}, InvalidArguments),
        ({"command": ["ls", "\ud800"]}, InvalidArguments),
        ({"command": ["true", "x" * 5_000_000]}, InvalidArguments),
        ({"command": ["ls"], "cwd": ""}, InvalidArguments),
        ({"command": ["ls"], "cwd": "\0"}, InvalidArguments),
        ({"command": ["ls"], "stdin": 1}, InvalidArguments),
        ({"command": ["ls"], "stdin": None}, InvalidArguments),
        ({"command": ["ls"], "stdin": "\ud800"}, InvalidArguments),
        ({"command": ["ls"], "timeout_ms": 0}, InvalidArguments),
        ({"command": ["ls"], "timeout_ms": 600_001}, InvalidArguments),
        ({"command": ["ls"], "max_output_bytes": 0}, InvalidArguments),
        ({"command": ["ls"], "max_output_bytes": 16 * 1024 * 1024 + 1}, InvalidArguments),
        ({"command": ["ls"], "env": {"A": 1}}, InvalidArguments),
        ({"command": ["ls"], "env": {"A=B": "x"}}, InvalidArguments),
        ({"command": ["ls"], "env": {"A": "\0"}}, InvalidArguments),
        ({"command": ["ls"], "shell": True}, InvalidArguments),
        ({"command": ["ls"], "cwd": ".."}, SandboxViolation),
        ({"command": ["ls"], "cwd": "/"}, SandboxViolation),
        ({"command": ["ls"], "cwd": "away"}, SandboxViolation),
        ({"command": ["ls"], "env": {"LD_PRELOAD": "x"}}, SandboxViolation),
        ({"command": ["ls"], "env": {"pythonpath": "x"}}, SandboxViolation),
        ({"command": ["../outside"]}, SandboxViolation),
    ],
    ids=str,
)  # fmt: skip
def test_refuses_bad_arguments(
    tmp_path: Path, toolkit: Toolkit, arguments: ExecCommandArgs, error: type[ToolkitError]
) -> None:
    (tmp_path / "away").symlink_to("/")

    with pytest.raises(error) as caught:
        toolkit.invoke("exec_command", arguments)

    assert str(tmp_path) not in str(caught.value)


def test_the_largest_limits_are_taken(toolkit: Toolkit) -> None:
    output = toolkit.tools.exec_command(command=["true"], timeout_ms=600_000, max_output_bytes=16 * 1024 * 1024)

    assert output.exit_code == 0


# How it ends


def test_82_a_time_limit_is_a_result_and_nothing_survives_it(toolkit: Toolkit, line: Line) -> None:
    text = OPEN_LINE + "echo before; setsid sleep 1000 & trap '' TERM; echo ready >&9; sleep 1000"

    output = toolkit.tools.exec_command(command=["bash", "-c", text], timeout_ms=3000)

    assert (output.timed_out, output.exit_code, output.signal, output.stdout) == (True, None, "SIGKILL", "before\n")
    assert line.heard() == b"ready\n"
    assert not line.is_held()


def test_the_deadline_of_a_call_ends_its_command(toolkit: Toolkit, line: Line) -> None:
    text = OPEN_LINE + "echo ready >&9; setsid sleep 1000 & sleep 1000"

    with pytest.raises(ToolTimeout):
        toolkit.with_options(deadline=3).invoke("exec_command", {"command": ["bash", "-c", text]})

    assert line.heard() == b"ready\n"
    line.wait_until_nobody_holds_it()


def test_a_time_limit_within_the_deadline_is_still_a_result(toolkit: Toolkit) -> None:
    message = toolkit.with_options(deadline=60).invoke("exec_command", {"command": ["sleep", "1000"], "timeout_ms": 1})

    assert message.content.timed_out


def test_cancelling_a_call_kills_all_it_started(tmp_path: Path, line: Line) -> None:
    signal = CancelSignal()
    command = ["bash", "-c", OPEN_LINE + "setsid sleep 1000 & echo ready >&9; echo now; sleep 1000"]
    with (
        offline(tmp_path, on_progress=lambda event: signal.cancel() if event.data.get("text") else None) as toolkit,
        pytest.raises(ToolCancelled),
    ):
        toolkit.with_options(signal=signal).tools.exec_command(command=command, timeout_ms=WATCHDOG_MS)

    assert line.heard() == b"ready\n"
    line.wait_until_nobody_holds_it()


def test_without_a_sandbox_it_runs_and_says_so(tmp_path: Path, line: Line) -> None:
    text = OPEN_LINE + "read pid < <(setsid bash -c 'echo $$; exec sleep 1000 > /dev/null'); echo $pid"
    with offline(tmp_path, sandbox="unsafe-none") as toolkit:
        message = toolkit.invoke("exec_command", {"command": ["bash", "-c", text]})

    assert (message.content.sandbox, message.content.network) == ("none", True)
    assert message.text().endswith("\n[ran without a sandbox]")
    # The control of every row on survivors: without a sandbox there is one.
    assert line.is_held()
    os.kill(int(message.content.stdout), 9)
    line.wait_until_nobody_holds_it()


def test_97_without_a_sandbox_nobody_asked_for_it_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that gives no sandbox at all."""
    monkeypatch.setattr(tier, "probe", lambda name, program="": f"no {name} one here")
    with offline(tmp_path) as toolkit:
        with pytest.raises(ToolNotAllowed, match="'exec_command' cannot run here: full: no full one here"):
            toolkit.tools.exec_command(command=["touch", "ran"])
        assert "exec_command" not in [tool.name for tool in toolkit.get_allowed_tools()]
    assert list(tmp_path.iterdir()) == []


# Policy


def test_rules_on_commands_compare_word_by_word(tmp_path: Path) -> None:
    policy = SecurityPolicy(default="deny", rules=[Rule("allow", command="echo ok *"), Rule("deny", command="rm")])
    with offline(tmp_path, policy) as toolkit:
        assert toolkit.tools.exec_command(command=["echo", "ok", ";", "touch", "pwned"]).stdout == "ok ; touch pwned\n"
        for command in (
            ["echo", "no"],
            ["echo ok"],
            ["echo", "ok; touch pwned"],
            ["env", "echo", "ok"],
            ["./echo", "ok"],
        ):
            with pytest.raises(ToolNotAllowed, match="default is deny"):
                toolkit.tools.exec_command(command=command)
    allowing = SecurityPolicy(default="allow", rules=[Rule("deny", command="touch", justification="keep it clean")])
    with offline(tmp_path, allowing) as toolkit:
        for command in (
            ["touch", "pwned"],
            ["/usr/bin/touch", "pwned"],
            ["env", "touch", "pwned"],
            ["nice", "touch", "pwned"],
        ):
            with pytest.raises(ToolNotAllowed, match="keep it clean"):
                toolkit.tools.exec_command(command=command)
        assert toolkit.tools.exec_command(command=["ls"]).stdout == ""


def test_who_approves_sees_the_command_and_what_is_denied_stays_hidden(tmp_path: Path) -> None:
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> Approve:
        asked.append(request)
        return Approve()

    policy = SecurityPolicy(default="allow", rules=[Rule("ask", command="touch"), Rule("deny", path="secrets/**")])
    (tmp_path / "secrets").mkdir()
    with offline(tmp_path, policy, approver=approve) as toolkit:
        with pytest.raises(SandboxViolation, match=r"'secrets' is hidden from commands by Rule\('deny'"):
            toolkit.tools.exec_command(command=["touch", "a b"], cwd="secrets")
        toolkit.tools.exec_command(command=["touch", "a b"])
        toolkit.tools.exec_command(command=["true"])

    assert [(request.preview.argv, request.preview.paths) for request in asked] == [(("touch", "a b"), ())] * 2
    assert (tmp_path / "a b").exists() and not any((tmp_path / "secrets").iterdir())


# Network


@pytest.mark.parametrize(
    ("permissions", "rules", "network"),
    [
        (NO_NETWORK | {"network"}, [], True),
        (NO_NETWORK, [], False),
        (NO_NETWORK | {"network"}, [Rule("deny", permission="network")], False),
        (NO_NETWORK | {"network"}, [Rule("ask", permission="network")], False),
        (NO_NETWORK | {"network"}, [Rule("deny", tools=["bash"], permission="network")], True),
    ],
)
def test_94_the_network_is_there_only_if_it_is_granted(
    tmp_path: Path, permissions: frozenset[str], rules: list[Rule], network: bool
) -> None:
    code = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 10); print('through')"
    policy = SecurityPolicy(default="allow", rules=rules)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        offline(tmp_path, policy, permissions=permissions, command_network="host") as toolkit,
    ):
        port = str(server.getsockname()[1])
        output = toolkit.tools.exec_command(command=[PYTHON, "-c", code, port])

    assert (output.network, output.stdout) == (network, "through\n" if network else "")


# The text a model reads


@pytest.mark.parametrize(
    ("name", "arguments", "budget"),
    [
        ("success", {"command": ["seq", "3"]}, 10),
        ("failure", {"command": ["sh", "-c", "echo 1 failed; echo warning >&2; exit 1"]}, 60),
        ("no_output", {"command": ["true"]}, 15),
        ("failure_without_output", {"command": ["false"]}, 30),
        ("errors_only", {"command": ["ls", "missing"]}, 100),
        ("signal", {"command": ["sh", "-c", "echo working; kill -SEGV $$"]}, 40),
        ("timed_out", {"command": ["sh", "-c", "echo working; sleep 1000"], "timeout_ms": 3000}, 80),
        ("cut", {"command": ["seq", "1000"], "max_output_bytes": 40}, 210),
        ("escapes", {"command": ["printf", r"\033[31mred\033[0m\r\n50%%\r100%%\n\000\377\n"]}, 60),
        ("outside", {"command": ["touch", "/usr/x"]}, 200),
        ("no_network", {"command": ["bash", "-c", "echo > /dev/tcp/127.0.0.1/9"]}, 280),
    ],
)
def test_text(toolkit: Toolkit, snapshots: Snapshots, name: str, arguments: ExecCommandArgs, budget: int) -> None:
    message = toolkit.invoke("exec_command", arguments)

    if name == "outside" and message.content.sandbox != "full":
        pytest.skip("the reduced sandbox refuses in other words")
    text = message.text().replace(message.output_ref or "no ref", "REF")
    snapshots.check(f"exec_command/{name}", text, budget=budget)
