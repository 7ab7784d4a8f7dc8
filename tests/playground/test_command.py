"""The command: what it prints, what it refuses, and that its end leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.builtin.commands import OPEN_LINE, line_in, needs_a_sandbox
from tests.cli.run_main import run_main
from tests.cli.test_screens import read_screen, start_on_screen
from tests.playground.running import playground
from tests.projects import run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_end_of_the_playground_ends_its_calls(tmp_path: Path, number: int) -> None:
    needs_a_sandbox()
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    log = tmp_path / "audit.jsonl"
    with (
        line_in(workspace) as line,
        playground(workspace, "--audit", str(log)) as running,
        running.call("bash", command=f"{OPEN_LINE} echo x >&9; sleep 31536000") as events,
    ):
        next(events)
        line.wait_for_words()
        assert running.stop(number) == 0
        line.wait_until_nobody_holds_it()
        assert list(events)[-1]["error"] == "TOOL_CANCELLED: the playground was stopped"
    records = [json.loads(record) for record in log.read_text().splitlines()]
    assert [record["event"] for record in records] == ["start", "end"]


def test_the_end_of_the_playground_ends_what_waits_for_approval(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('default = "ask"\n')
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with (
        playground(workspace, allowing=("--policy", str(tmp_path / "policy.toml"))) as running,
        running.call("write_file", path="a", content="b") as events,
    ):
        assert next(event for event in events if event["event"] == "approval")
        assert running.stop() == 0
        assert list(events)[-1]["error"] == (
            "TOOL_CANCELLED: the playground was stopped, while it waited for an approval; nothing was run"
        )
    assert list(workspace.iterdir()) == []


REFUSED = {
    "nothing chosen": ([], "nothing is allowed yet: choose --preset read-only, edit or full, or give --policy FILE"),
    "both chosen": (["--preset", "edit", "--policy", "p.toml"], "choose one of --preset and --policy"),
    "no such preset": (["--preset", "all"], "is not one of 'read-only', 'edit', 'full'"),
    "no such workspace": (["--preset", "edit", "--workspace", "gone"], "is not a folder"),
    "no such policy": (["--policy", "gone.toml"], "gone.toml"),
    "a log in the workspace": (["--preset", "edit", "--audit", "log"], "where tools can reach it"),
    "no such package": (["--preset", "edit", "--package", "no.such"], "is not a generated package"),
    "no port": (["--preset", "edit", "--port", "70000"], "65535"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_start_is_refused_in_a_sentence(tmp_path: Path, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, words = REFUSED[case]
    ended = run_main(tmp_path, ["playground", *arguments], capsys)
    assert ended.code == 2 and words in ended.err and ended.out == ""


def test_a_port_that_is_taken_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = run_main(tmp_path, ["playground", "--preset", "edit", "--port", port], capsys)
    assert ended.code == 2 and f"127.0.0.1:{port} cannot be listened on" in ended.err


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_without_the_extra_the_error_says_what_to_install(tmp_path: Path, missing: str) -> None:
    # How Python is told that a module is not there.
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules[{missing!r}] = None\n")
    done = run([sys.executable, "-m", "toolkit", "playground", "--preset", "edit"], tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr == f"the playground needs {missing}, which is not installed: pip install 'typed-toolkit[mcp]'\n"


def test_it_listens_on_this_machine_only(tmp_path: Path) -> None:
    with playground(tmp_path) as running:
        opened = set()
        for fd in Path(f"/proc/{running.process.pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                opened.add(os.readlink(fd))
        sockets = {name.removeprefix("socket:[").rstrip("]") for name in opened if name.startswith("socket:[")}
        listening = [
            row[1] for table in ("tcp", "tcp6")
            for row in map(str.split, Path(f"/proc/net/{table}").read_text().splitlines()[1:])
            if row[3] == "0A" and row[9] in sockets
        ]  # fmt: skip
        assert listening == [f"0100007F:{running.port:04X}"]


def test_a_package_of_the_project_is_served(tmp_path: Path) -> None:
    with playground(tmp_path, "--package", "acme.generated") as running:
        names = {tool["name"] for tool in running.get("/api/tools")}
        assert {"add", "quote", "read_file"} <= names
        assert running.run("add", a=2**60, b=1)["typed"].startswith(f"AddOutput(sum={2**60 + 1}")


def test_the_browser_is_opened_without_showing_the_token_to_other_users(tmp_path: Path) -> None:
    workspace, browser, opened = tmp_path / "workspace", tmp_path / "browser", tmp_path / "opened"
    workspace.mkdir()
    os.mkfifo(opened)
    # Its arguments, then the file that it was given.
    browser.write_text(f'#!/bin/sh\n{{ echo "$@"; stat -c %a "${{1#file://}}"; cat "${{1#file://}}"; }} >{opened}\n')
    browser.chmod(0o755)
    arguments = ["playground", "--preset", "read-only", "--workspace", str(workspace)]
    with start_on_screen(arguments, tmp_path, 120, BROWSER=f"{browser} %s") as (process, ours):
        shown = read_screen(ours, b"Ctrl-C ends it").decode()
        given, mode, page = opened.read_text().splitlines()
        process.terminate()
        read_screen(ours)
    url = re.search(r"http://127[^\s]+#token=[\w-]+", shown)
    assert url is not None and url[0] in page and mode == "600"
    assert given.startswith("file:///") and url[0].partition("token=")[2] not in given
    assert not Path(given.removeprefix("file://")).exists() and process.returncode == 0
