"""Stdio servers that are installed in an environment of their own: what of it they see in the sandbox, and what else they
do not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guard.ways import Way, needs
from tests.packs.conftest import SERVERS, Doors
from tests.packs.test_mcp_endings import told
from toolkit import Pack
from toolkit.codegen.imports.mcp import import_mcp
from toolkit.codegen.imports.settings import ImportSettings
from toolkit.errors import SetupError, ToolFailed, ToolkitError
from toolkit.packs import McpServer, McpTool, mcp_pack

TEXT = "served.generated.models.odd_text:OddTextOutput"


def pack(*command: str, **server: object) -> Pack:
    made = McpServer(name="own", command=(*command, "obeys"), **server)  # type: ignore[arg-type]
    return mcp_pack(made, {"odd_text": McpTool("ask", TEXT)})


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program as pipx and ``uv tool`` install it: a script in a venv of its own, with a module, and a link to the script."""
    home = tmp_path_factory.mktemp("tools")
    venv = home / "share" / "venvs" / "odd"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    packages = next((venv / "lib").glob("python*")) / "site-packages"
    (packages / "odd_server.py").write_text((SERVERS / "odd.py").read_text())
    script = venv / "bin" / "odd-server"
    script.write_text(f"#!{venv}/bin/python\nimport odd_server\n")
    script.chmod(0o755)
    (home / "bin").mkdir()
    (home / "bin" / "odd-server").symlink_to(script)
    (home / "secret").write_text("of the host")
    (home / "share" / "secret").write_text("of the host")
    return home


@pytest.mark.parametrize("way", ["full", "reduced"])
def test_a_program_in_a_venv_of_its_own_runs_and_sees_no_more_than_that(
    make_sync: Doors, installed: Path, way: Way
) -> None:
    needs(way)
    door = make_sync(pack(str(installed / "bin" / "odd-server")), sandbox=way)
    assert told(door, "count") == "1"
    for secret in (installed / "secret", installed / "share" / "secret"):
        with pytest.raises(ToolkitError, match=r"FileNotFoundError|PermissionError"):
            told(door, f"read {secret}")


def test_commands_of_other_tools_do_not_see_the_environment_of_a_server(make_sync: Doors, installed: Path) -> None:
    needs("full")
    door = make_sync(pack(str(installed / "bin" / "odd-server")), sandbox="full")
    script = installed / "share" / "venvs" / "odd" / "bin" / "odd-server"
    assert "import odd_server" in told(door, f"read {script}")
    other = make_sync(pack("python", "odd.py"), sandbox="full")
    with pytest.raises(ToolkitError, match="FileNotFoundError"):
        told(other, f"read {script}")


@pytest.mark.parametrize("mode", ["workspace-write", "read-only"])
def test_a_link_in_the_workspace_is_not_followed(make_sync: Doors, workspace: Path, installed: Path, mode: str) -> None:
    """A tool could have made it, to read what it leads to; in a read-only context an earlier one could have."""
    needs("full")
    (workspace / "server").symlink_to(installed / "bin" / "odd-server")
    with pytest.raises(ToolFailed, match="the program does not exist, or cannot be seen from inside the sandbox"):
        told(make_sync(pack(str(workspace / "server")), mode=mode, sandbox="full"), "count")


def test_read_roots_show_what_is_not_found(make_sync: Doors, tmp_path: Path) -> None:
    needs("full")
    data = tmp_path / "data"
    data.mkdir()
    (data / "table").write_text("of the server")
    assert told(make_sync(pack("python", "odd.py", read_roots=(str(data),))), f"read {data}/table") == "of the server"


def test_read_roots_take_no_directory_that_would_break_the_sandbox(make_sync: Doors) -> None:
    for root in ("/", "/proc", "/no/such/place"):
        with pytest.raises(
            ToolFailed, match=r"MCP server 'own': the read root .* (does not exist; create it|cannot be given)"
        ) as caught:
            told(make_sync(pack("python", "odd.py", read_roots=(root,))), "count")
        assert caught.value.reason == "NOT_CONFIGURED"


def test_a_prefix_of_node_is_found_by_its_layout(make_sync: Doors, tmp_path: Path) -> None:
    """As nvm installs: ``bin/server`` is a link into ``lib/node_modules``, run by the ``node`` next to it."""
    needs("full")
    prefix = tmp_path / "versions" / "v22"
    module = prefix / "lib" / "node_modules" / "odd"
    module.mkdir(parents=True)
    (prefix / "bin").mkdir()
    (prefix / "secret").write_text("of the host")
    (module / "index.js").write_text("#!/usr/bin/env node\n" + (SERVERS / "odd.py").read_text())
    (module / "index.js").chmod(0o755)
    (prefix / "bin" / "odd-server").symlink_to("../lib/node_modules/odd/index.js")
    # What this test calls node is Python: the layout is what counts.
    (prefix / "bin" / "node").write_text(f'#!/bin/sh\nexec {os.path.realpath(sys.executable)} "$@"\n')
    (prefix / "bin" / "node").chmod(0o755)
    door = make_sync(pack(str(prefix / "bin" / "odd-server")), sandbox="full")
    assert told(door, "count") == "1"
    assert told(door, "env").count(f"{prefix}/bin") == 1
    with pytest.raises(ToolkitError, match="FileNotFoundError"):
        told(door, f"read {prefix}/secret")


def test_variables_have_values_of_their_own(make_sync: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "t0ken")
    env = {"LEVEL": "debug", "KEY": "Bearer ${TOKEN}"}
    assert '"LEVEL": "debug"' in told(make_sync(pack("python", "odd.py", env=env)), "env")
    assert '"KEY": "Bearer t0ken"' in told(make_sync(pack("python", "odd.py", env=env)), "env")


def test_a_server_starts_in_the_folder_that_is_named(make_sync: Doors, workspace: Path) -> None:
    (workspace / "below").mkdir()
    (workspace / "below" / "here").write_text("of the folder")
    assert told(make_sync(pack("python", "../odd.py", cwd="below")), "read here") == "of the folder"


def test_the_import_names_the_line_that_is_missing(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{installed / 'bin'}:{os.environ['PATH']}")
    with pytest.raises(
        SetupError, match="does not exist, or cannot be seen from inside the sandbox; in the settings:"
    ) as caught:
        import_mcp(ImportSettings("own", command=("odd-server", "loop")), tmp_path)
    assert f'command = ["{installed}/bin/odd-server", "loop"] (/tool/toolkit/imports/own)' in str(caught.value)
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "server").write_text("#!/bin/sh\n")
    (hidden / "server").chmod(0o755)
    project = tmp_path / "project"
    project.mkdir()
    with pytest.raises(SetupError, match="in the settings: read_roots = ") as caught:
        import_mcp(ImportSettings("own", command=(str(hidden / "server"),)), project)
    assert f'read_roots = ["{hidden}"]' in str(caught.value)
