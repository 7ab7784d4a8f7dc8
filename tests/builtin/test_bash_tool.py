from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.builtin.commands import OPEN_LINE, WATCHDOG_MS, Line, line_in, needs_a_sandbox, offline
from tests.builtin.snapshots import Snapshots
from toolkit import ApprovalRequest, Approve, CancelSignal, CommandSettings, Rule
from toolkit.errors import (
    InvalidArguments,
    SandboxViolation,
    ToolCancelled,
    ToolFailed,
    ToolkitError,
    ToolNotAllowed,
    ToolTimeout,
)
from toolkit.generated import BashArgs, SecurityPolicy, Toolkit
from toolkit.guard import CommandLimits
from toolkit.guard.process import tier


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


def test_the_model_reads_what_was_put_back(tmp_path: Path, toolkit: Toolkit) -> None:
    message = toolkit.invoke("bash", {"command": "git init -q && echo x > .git/commondir && seq 100000 >&2"})
    assert message.content.exit_code == 0 and not (tmp_path / ".git/commondir").exists()
    for text in (message.text(), message.content.stderr):
        assert "[put back: .git/commondir was added by the command. Git would run it" in text


@pytest.mark.parametrize("command", ["git config a.b c", "git branch --force --track b", "git remote add o x"])
def test_the_text_says_why_git_cannot_write_its_settings(tmp_path: Path, toolkit: Toolkit, command: str) -> None:
    """Git calls the file busy, and some of its commands succeed all the same."""
    commit = "git -c user.name=x -c user.email=x@x.invalid commit -q --allow-empty -m x"
    made = toolkit.tools.bash(command=f"git init -q && {commit}")
    assert (made.exit_code, made.stderr) == (0, "")
    if made.sandbox != "full":
        pytest.skip("in the reduced sandbox the settings are put back instead")
    hint = "[sandbox: this part of .git is read-only for commands; the setting is ToolkitContext(git=...)]"
    assert toolkit.invoke("bash", {"command": command}).text().endswith(hint)
    assert hint not in toolkit.invoke("bash", {"command": "git status; git branch other"}).text()
    with offline(tmp_path, git="write") as free:
        assert free.tools.bash(command=command).stderr == ""


def test_a_limit_that_ended_the_command_is_in_the_text(tmp_path: Path) -> None:
    with offline(tmp_path, commands=CommandSettings(limits=CommandLimits(processes=4))) as toolkit:
        text = toolkit.invoke("bash", {"command": "for i in 1 2 3 4 5 6; do sleep 10000 & done; wait"}).text()
    assert text.splitlines()[0] == "[ended by SIGKILL]"
    assert (
        "[killed: the command had more than 4 processes at once, or far more threads; the limit is CommandLimits.processes]"
        in text
    )


def test_says_everything_about_text_that_succeeds(tmp_path: Path, toolkit: Toolkit) -> None:
    (tmp_path / "sub").mkdir()
    text = "echo out | cat; echo err >&2"

    message = toolkit.invoke("bash", {"command": text, "cwd": "sub", "description": "Say something"})

    output = message.content
    assert (output.command, output.cwd, output.exit_code, output.signal) == (text, "sub", 0, None)
    assert (output.stdout, output.stderr, output.timed_out) == ("out\n", "err\n", False)
    assert not output.stdout_truncated and not output.stderr_truncated
    assert (output.sandbox, output.network) == (tier.pick_tier("auto").name, False)
    assert message.title == "Say something"
    assert toolkit.invoke("bash", {"command": "true &&\n  true"}).title == "true && true"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("exit 7", (7, None, "", "")),
        ("kill -TERM $$", (None, "SIGTERM", "", "")),
        ("cat", (0, None, "", "")),
        ("for i in 1 2 3; do echo $i; done | tac", (0, None, "3\n2\n1\n", "")),
        ("cat <<E\nhere $((1 + 1))\nE", (0, None, "here 2\n", "")),
        ("cat <(echo a) <(echo b)", (0, None, "a\nb\n", "")),
        ("shopt -q login_shell; echo $? $0 $-", (0, None, "1 bash hBc\n", "")),
        ("ls *.txt > list; cat list", (0, None, "a.txt\nb.txt\n", "")),
        ("# nothing", (0, None, "", "")),
        ("-x", (127, None, "", "bash: line 1: -x: command not found\n")),
        ("echo 'é'; printf '\\033[1m\\r\\n'", (0, None, "é\n\\x1b[1m\n", "")),
    ],
)
def test_gives_back_how_it_ended_and_what_it_wrote(
    tmp_path: Path, toolkit: Toolkit, command: str, expected: tuple[object, ...]
) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).touch()

    output = toolkit.tools.bash(command=command)

    assert (output.exit_code, output.signal, output.stdout, output.stderr) == expected


def test_keeps_beginning_and_end_of_each_stream(toolkit: Toolkit) -> None:
    output = toolkit.tools.bash(command="seq 100 999; seq 2000 2999 >&2", max_output_bytes=20)

    assert output.stdout == "100\n101\n10…\n[... 3580 bytes left out ...]\n…7\n998\n999\n"
    assert output.stderr == "2000\n2001\n[... 4980 bytes left out ...]\n2998\n2999\n"
    assert output.stdout_truncated and output.stderr_truncated


def test_75_nothing_but_files_lasts_from_one_call_to_the_next(tmp_path: Path, toolkit: Toolkit) -> None:
    poison = "export LATER=1; alias ls=evil; ls() { echo evil; }; export -f ls; umask 0; ulimit -n 9; touch file"

    toolkit.tools.bash(command=f"{poison}; echo ls=evil > ~/.bashrc; touch $TMPDIR/left; cd /")
    output = toolkit.tools.bash(command="echo [$LATER]; type -t ls; pwd; ls; umask; ls $TMPDIR/left")

    assert output.stdout.splitlines()[:5] == ["[]", "file", str(tmp_path), "file", "0022"]
    assert output.sandbox != "full" or output.exit_code == 2, "the full sandbox forgets temporary files, too"


# What fails


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({}, InvalidArguments, "command: required argument is missing"),
        ({"command": ""}, InvalidArguments, "command"),
        ({"command": ["ls"]}, InvalidArguments, "command"),
        ({"command": "ls\0"}, InvalidArguments, "NUL"),
        ({"command": "ls \ud800"}, InvalidArguments, "unicode"),
        ({"command": ": " + "x" * 200_000}, InvalidArguments, "write long data to a file"),
        ({"command": "ls", "timeout_ms": 0}, InvalidArguments, "timeout_ms"),
        ({"command": "ls", "timeout_ms": 600_001}, InvalidArguments, "timeout_ms"),
        ({"command": "ls", "max_output_bytes": 0}, InvalidArguments, "max_output_bytes"),
        ({"command": "ls", "stdin": "x"}, InvalidArguments, "stdin"),
        ({"command": "ls", "cwd": ".."}, SandboxViolation, "outside the workspace"),
        ({"command": "ls", "cwd": "away"}, SandboxViolation, "outside the workspace"),
        ({"command": "ls", "cwd": "none"}, ToolFailed, "the working directory 'none' does not exist"),
    ],
    ids=str,
)
def test_refuses_bad_arguments(
    tmp_path: Path, toolkit: Toolkit, arguments: BashArgs, error: type[ToolkitError], words: str
) -> None:
    (tmp_path / "away").symlink_to("/")

    with pytest.raises(error, match=words) as caught:
        toolkit.invoke("bash", arguments)

    assert str(tmp_path) not in str(caught.value)


# How it ends


@pytest.mark.parametrize(
    "text",
    [
        "sleep 1000 &",
        "setsid sleep 1000 &",
        "( ( sleep 1000 & ) & )",
        "setsid setsid bash -c 'trap \"\" TERM HUP INT; sleep 1000 & sleep 1000' &",
        "for i in 1 2 3 4 5 6 7 8; do setsid sleep 1000 & done",
        "coproc sleep 1000; disown -a",
    ],
)
def test_83_84_85_nothing_survives_the_end(toolkit: Toolkit, line: Line, text: str) -> None:
    output = toolkit.tools.bash(command=f"{OPEN_LINE}{text}\necho ready >&9; echo end", timeout_ms=WATCHDOG_MS)

    assert (output.stdout, output.exit_code, output.timed_out) == ("end\n", 0, False)
    assert line.heard() == b"ready\n"
    assert not line.is_held()


def test_82_a_time_limit_is_a_result_and_nothing_survives_it(toolkit: Toolkit, line: Line) -> None:
    text = OPEN_LINE + "echo before; trap '' TERM; setsid sleep 1000 & echo ready >&9; sleep 1000"

    output = toolkit.tools.bash(command=text, timeout_ms=3000)

    assert (output.timed_out, output.exit_code, output.signal, output.stdout) == (True, None, "SIGKILL", "before\n")
    assert line.heard() == b"ready\n"
    assert not line.is_held()


def test_the_deadline_and_the_caller_end_a_call(tmp_path: Path, line: Line) -> None:
    text = OPEN_LINE + "setsid sleep 1000 & echo ready >&9; echo now; sleep 1000"
    signal = CancelSignal()
    with offline(
        tmp_path, on_progress=lambda event: signal.cancel("enough") if event.data.get("text") else None
    ) as toolkit:
        with pytest.raises(ToolCancelled, match="enough"):
            toolkit.with_options(signal=signal).tools.bash(command=text)
        assert line.heard() == b"ready\n"
        line.wait_until_nobody_holds_it()
        with pytest.raises(ToolTimeout):
            toolkit.with_options(deadline=3).tools.bash(command=text)
        assert line.heard() == b"ready\n"
        line.wait_until_nobody_holds_it()


def test_closing_the_toolkit_ends_what_runs(tmp_path: Path, line: Line) -> None:
    closing: list[Toolkit] = []
    toolkit = offline(tmp_path, on_progress=lambda event: closing[0].close() if event.data.get("text") else None)
    closing.append(toolkit)

    with suppress(ToolFailed):  # or a result that says SIGKILL: who tells of it first depends on the sandbox
        toolkit.tools.bash(command=OPEN_LINE + "setsid sleep 1000 & echo ready >&9; echo now; sleep 1000")

    assert line.heard() == b"ready\n"
    line.wait_until_nobody_holds_it()


def test_97_without_a_sandbox_it_is_refused_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that gives no sandbox at all."""
    monkeypatch.setattr(tier, "probe", lambda name, program="": f"no {name} one here")
    with (
        offline(tmp_path) as toolkit,
        pytest.raises(ToolNotAllowed, match="'bash' cannot run here: full: no full one here"),
    ):
        toolkit.tools.bash(command="touch ran")
    assert list(tmp_path.iterdir()) == []


# Policy: what would do harm is not run, whatever it hides behind

ALLOWED = ["git log *", "echo *", "find .", "rg x", "sed p *", "sed -n 1p", "tar xf a.tar"]
HARM = {
    66: ["echo a; touch pwned", "echo a && touch pwned", "echo a || touch pwned", "echo a | tee pwned", "echo a & touch pwned"],
    67: ["echo a\ntouch pwned", "echo a\rtouch pwned"],
    68: ["echo $(touch pwned)", "echo `touch pwned`", "echo <(touch pwned)", "echo >(touch pwned)", "echo ${x@P}"],
    69: ["echo a > pwned", "echo a >> pwned", "sed p < secret", "sed p > pwned", "sed p << E", "sed p <<< x"],
    70: ["echoes a", "gitk", "git-log"],
    71: ["X=1 echo a", "env touch pwned", "xargs touch pwned", "nohup touch pwned", "timeout 5 touch pwned", "sudo touch pwned", "sh -c 'touch pwned'"],
    72: ["git -c core.pager=pwned log", "find . -exec touch pwned", "find . -delete", "rg --pre pwned x",
         "sed '1e touch pwned' secret", "sed 'w pwned' secret", "tar xf a.tar --to-command=pwned"],
    73: ["e'ch'o a", "ec\\ho a", "echo$IFS a", "{echo,a}", "echo() { touch pwned; }; echo a"],
    74: ["./git log", "bin/git log"],
    76: [" && ".join(["echo a"] * 60 + ["touch pwned"])],
}  # fmt: skip


@pytest.mark.parametrize("row", HARM)
def test_rules_let_only_commands_through_that_they_spell(tmp_path: Path, row: int) -> None:
    (tmp_path / "secret").write_text("secret\n")
    policy = SecurityPolicy(default="deny", rules=[Rule("allow", command=words) for words in ALLOWED])
    with offline(tmp_path, policy) as toolkit:
        for text in HARM[row]:
            with pytest.raises(ToolNotAllowed, match="default is deny"):
                toolkit.tools.bash(command=text)
        assert toolkit.tools.bash(command="echo a && echo 'b c' | sed -n 1p").stdout == "a\nb c\n"
        assert toolkit.tools.bash(command='echo "$(echo a)" *t 2>/dev/null').stdout == "a secret\n"
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_deny_rules_refuse_text_that_cannot_be_read(tmp_path: Path) -> None:
    policy = SecurityPolicy(default="allow", rules=[Rule("deny", command="touch", justification="keep it clean")])
    with offline(tmp_path, policy) as toolkit:
        for text in ("touch pwned", "ls; /bin/touch pwned", "env touch pwned", "$(echo touch) pwned", "ls > $pwned"):
            with pytest.raises(ToolNotAllowed, match="keep it clean"):
                toolkit.tools.bash(command=text)
        assert toolkit.tools.bash(command="ls | wc -l").stdout == "0\n"


def test_who_approves_sees_the_text(tmp_path: Path) -> None:
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> Approve:
        asked.append(request)
        return Approve()

    with offline(tmp_path, SecurityPolicy(default="ask"), approver=approve) as toolkit:
        toolkit.tools.bash(command="echo $(id -u) > who", description="harmless, really")

    assert [(request.preview.shell, request.preview.argv) for request in asked] == [("echo $(id -u) > who", None)]
    assert (tmp_path / "who").exists()


# Work that must go on


def test_git_works_in_the_sandbox(tmp_path: Path, toolkit: Toolkit) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    who = "-c user.name=n -c user.email=e@example.org"

    output = toolkit.tools.bash(command=f"echo a > a && git add a && git {who} commit -qm first && git log --format=%s")

    assert (output.exit_code, output.stdout, output.stderr) == (0, "first\n", "")


# The text a model reads


@pytest.mark.parametrize(
    ("name", "arguments", "budget"),
    [
        ("success", {"command": "seq 3 | tac"}, 10),
        ("both_streams", {"command": "echo out; echo err >&2"}, 25),
        ("failure", {"command": "echo compiling; nosuchcommand"}, 90),
        ("no_output", {"command": "true"}, 15),
        ("timed_out", {"command": "echo working; sleep 1000", "timeout_ms": 3000}, 80),
        ("cut", {"command": "seq 1000; seq 1000 >&2", "max_output_bytes": 40}, 310),
        ("outside", {"command": "echo x > /usr/x"}, 200),
    ],
)
def test_text(toolkit: Toolkit, snapshots: Snapshots, name: str, arguments: BashArgs, budget: int) -> None:
    message = toolkit.invoke("bash", arguments)

    if name == "outside" and message.content.sandbox != "full":
        pytest.skip("the reduced sandbox refuses in other words")
    text = message.text().replace(message.output_ref or "no ref", "REF")
    snapshots.check(f"bash/{name}", text, budget=budget)
