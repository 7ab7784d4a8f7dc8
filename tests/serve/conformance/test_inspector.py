"""The MCP Inspector, the protocol's own client for developers, lists and calls our tools in its command line mode."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.node_programs import NodePackage, NodeProgram, find_program
from tests.serve.conformance.server import SECONDS, serve_http

pytestmark = [pytest.mark.slow, pytest.mark.whole, pytest.mark.xdist_group("serve-conformance")]

PACKAGE = NodePackage("@modelcontextprotocol/inspector", "2.12.0", "clients/launcher/build/index.js")
TOKEN = "a-token-of-this-test"


class Inspector:
    """The installed program, with a home of its own."""

    def __init__(self, program: NodeProgram, home: Path) -> None:
        self._program = program
        self._home = home

    def run(self, *arguments: str) -> tuple[int, Any]:
        """The exit code, and what was printed as JSON."""
        done = subprocess.run(
            self._program.command("--cli", *arguments),
            cwd=self._home,
            env={**os.environ, "HOME": str(self._home), "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)


@pytest.fixture
def inspector(request: pytest.FixtureRequest, tmp_path: Path) -> Inspector:
    home = tmp_path / "home"
    home.mkdir()
    return Inspector(find_program(PACKAGE, request), home)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\n")
    return folder


def test_it_lists_and_calls_over_stdio(inspector: Inspector, workspace: Path) -> None:
    server = [sys.executable, "-m", "toolkit", "serve", "--workspace", str(workspace), "--preset", "edit"]

    # With --strict it also fails on schemas that other clients cannot read.
    code, listed = inspector.run("--method", "tools/list", "--strict", "--", *server)
    assert code == 0
    tools = {tool["name"]: tool for tool in listed["tools"]}
    assert {"read_file", "edit", "grep"} <= tools.keys()
    assert "exec_command" not in tools
    assert tools["read_file"]["annotations"]["readOnlyHint"] is True
    assert tools["read_file"]["outputSchema"]["type"] == "object"

    call = ["--method", "tools/call", "--tool-name", "read_file", "--tool-arg", "path=a.txt", "--", *server]
    code, answer = inspector.run(*call)
    assert code == 0
    assert answer["structuredContent"]["content"] == "one\ntwo\n"


def test_it_calls_over_http_with_a_token(inspector: Inspector, workspace: Path, tmp_path: Path) -> None:
    with serve_http(tmp_path, "--workspace", str(workspace), "--preset", "edit", token=TOKEN) as url:
        call = [
            url,
            "--header",
            f"Authorization: Bearer {TOKEN}",
            "--method",
            "tools/call",
            "--tool-name",
            "write_file",
        ]
        code, answer = inspector.run(*call, "--tool-arg", "path=b.txt", "content=three")
        assert (code, answer["isError"]) == (0, False)
        assert (workspace / "b.txt").read_text() == "three"

        code, answer = inspector.run(*call, "--tool-arg", "path=../b.txt", "content=three")
        assert answer["isError"] is True
        assert code != 0
        assert answer["content"][0]["text"].startswith("SANDBOX_VIOLATION")
    assert not (tmp_path / "b.txt").exists()
