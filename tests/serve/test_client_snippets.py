"""The page about serving: the settings that it shows for each client start a server, and its tables say what is so."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

import toolkit.generated
from tests.docs.blocks import Block, read_blocks
from tests.docs.pages import PAGES
from tests.projects import DOWNSTREAM
from tests.serve.conformance.server import SECONDS, serve_http
from toolkit.serve.setup import ALLOWS, PRESETS, Preset, allowed_tools

PAGE = PAGES["docs/serving.md"]
TEXT = PAGE.read_text()
FOLDER = "/home/me/project"
TOKEN = "a-token-of-this-test"
KEYS = {
    "Claude Code": "mcpServers",
    "Claude Desktop": "mcpServers",
    "Cursor": "mcpServers",
    "VS Code": "servers",
    "Codex": "mcp_servers",
    "Zed": "context_servers",
    "Gemini CLI": "mcpServers",
}
"""The clients of the page, and where the settings of each name their servers, as its documentation says."""


def heading_of(block: Block) -> str:
    before = "\n".join(TEXT.splitlines()[: block.line - 1])
    return str(re.findall(r"^#+ (.*)$", before, re.MULTILINE)[-1])


def servers_in(block: Block) -> Iterator[dict[str, Any]]:
    """The settings of servers in a block: JSON, TOML, or a command line that adds one."""
    if block.language == "sh":
        for words in map(shlex.split, block.text.splitlines()):
            if "serve" in words:
                command = words[words.index("--") + 1 :] if "--" in words else words
                yield {"command": command[0], "args": command[1:]}
    elif block.language in ("json", "toml"):
        data = json.loads(block.text) if block.language == "json" else tomllib.loads(block.text)
        for servers in data.values():
            if isinstance(servers, dict):
                yield from (server for server in servers.values() if isinstance(server, dict))


BLOCKS = read_blocks(PAGE)
SNIPPETS = [(heading_of(block), server) for block in BLOCKS for server in servers_in(block)]
STARTED = [(name, server) for name, server in SNIPPETS if "command" in server and "--http" not in server["args"]]
REACHED = [(name, server) for name, server in SNIPPETS if "url" in server]


def names_of(preset: str, module: Any = toolkit.generated) -> list[str]:
    known: dict[str, Preset] = {name: name for name in PRESETS}
    return sorted(allowed_tools(known[preset], module.CATALOG))


def test_every_client_has_a_snippet_with_its_key() -> None:
    for name, key in KEYS.items():
        blocks = [block for block in BLOCKS if heading_of(block) == name and block.language in ("json", "toml")]
        assert blocks
        for block in blocks:
            data = json.loads(block.text) if block.language == "json" else tomllib.loads(block.text)
            assert list(data) == [key]
    assert {name for name, _ in STARTED} == {*KEYS, "Tools of your own"}
    assert len(REACHED) == 2


def put_here(words: list[str], workspace: Path) -> list[str]:
    """A command of the page, with a workspace and a policy of this machine."""
    policy = workspace.parent / "policy.toml"
    policy.write_text('default = "deny"\n[tools]\nadd = "allow"\nread_file = "allow"\n')
    places = {FOLDER: workspace, ".": workspace, "${workspaceFolder}": workspace, "/home/me/policy.toml": policy}
    return [str(places.get(word, word)) for word in words]


@pytest.mark.sample
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "server"), STARTED, ids=[f"{name}-{place}" for place, (name, _) in enumerate(STARTED)]
)
def test_the_command_of_a_snippet_serves_the_tools(name: str, server: dict[str, Any], tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    assert server["command"] == "toolkit"
    # The page says `cd` into the project of one's own tools; the other commands work from any folder.
    folder = DOWNSTREAM if name == "Tools of your own" else tmp_path
    command = str(Path(sys.executable).with_name("toolkit"))
    arguments = put_here(server["args"], workspace)
    started = StdioServerParameters(command=command, args=arguments, env=dict(os.environ), cwd=folder)

    async def list_tools() -> list[str]:
        async with asyncio.timeout(SECONDS), Client(started) as client:
            return sorted(tool.name for tool in (await client.list_tools()).tools)

    wanted = names_of(arguments[arguments.index("--preset") + 1]) if "--preset" in arguments else ["add", "read_file"]
    assert asyncio.run(list_tools()) == wanted


@pytest.mark.slow
def test_the_snippets_for_http_reach_the_server_that_the_page_starts(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "token.txt").write_text(TOKEN + "\n")
    [(_, server)] = [(name, server) for name, server in SNIPPETS if "--http" in server.get("args", ())]
    verb, *options = put_here(server["args"], workspace)
    place = options.index("--http")
    address = options[place + 1]
    assert verb == "serve"

    async def list_tools(url: str, headers: dict[str, str]) -> list[str]:
        async with (
            asyncio.timeout(SECONDS),
            httpx2.AsyncClient(headers=headers, trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return sorted(tool.name for tool in (await client.list_tools()).tools)

    with serve_http(tmp_path, *options[:place], *options[place + 2 :]) as url:
        for _, settings in REACHED:
            assert settings["url"] == f"http://{address}/mcp"
            if "bearer_token_env_var" in settings:
                settings = {**settings, "headers": {"Authorization": f"Bearer ${{{settings['bearer_token_env_var']}}}"}}
            headers = {key: value.replace("${TOOLKIT_TOKEN}", TOKEN) for key, value in settings["headers"].items()}
            assert asyncio.run(list_tools(url, headers)) == names_of("edit")


def test_the_table_of_presets_is_that_of_the_code() -> None:
    earlier: set[str] = set()
    for preset in PRESETS:
        found = re.search(rf"^\| `{preset}` \| (.*?) \| (.*?) \|$", TEXT, re.MULTILINE)
        assert found is not None
        assert found[1] == ALLOWS[preset]
        assert found[2].startswith("those, and ") == bool(earlier)
        earlier |= set(re.findall(r"`(\w+)`", found[2]))
        assert sorted(earlier) == names_of(preset)
