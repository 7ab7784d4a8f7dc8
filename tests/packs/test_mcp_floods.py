"""Servers that send far more than anybody asked for: the call returns, and what is logged stays a few lines.

The control is the official client alone: it logs every message that it cannot read.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.packs.conftest import SERVERS, Doors
from tests.packs.odd_http import OddHttp, odd_http
from tests.packs.test_mcp_endings import odd
from tests.packs.test_mcp_http import greet, pack

RED = "\x1b[31m" * 100
FLOODS: dict[str, dict[str, Any]] = {
    "bad progress": {"method": "notifications/progress", "params": {"progressToken": 1, "progress": "x" * 500}},
    "progress without parameters": {"method": "notifications/progress"},
    "progress that is not a number": {
        "method": "notifications/progress",
        "params": {"progressToken": 1, "progress": float("nan"), "message": RED},
    },
    "progress with a bad message": {
        "method": "notifications/progress",
        "params": {"progressToken": 1, "progress": 1, "message": [RED]},
    },
    "log messages": {"method": "notifications/message", "params": {"level": "warning", "data": RED}},
    "bad log messages": {"method": "notifications/message", "params": {"level": RED}},
    "unknown notifications": {"method": f"notifications/{RED}"},
    "changes of lists": {"method": "notifications/tools/list_changed"},
}
MANY = 5000
MOST_LOGGED = 6000
"""Characters: ten lines, and how many more there were."""


@pytest.fixture
def http() -> Iterator[OddHttp]:
    with odd_http() as server:
        yield server


def check_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert len(caplog.text) < MOST_LOGGED
    assert "\x1b" not in caplog.text and "Traceback" not in caplog.text


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_over_stdio_ends_in_the_answer_and_a_short_log(
    make_sync: Doors, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    door = make_sync(odd(f"floods: {json.dumps(FLOODS[kind])}"))
    assert door.tool("odd", text=str(MANY)).n == 6
    door.close()
    check_logged(caplog)
    if "progress" in kind:
        assert "the MCP server 'odd': a malformed progress notification is ignored" in caplog.text
        assert f"the MCP server 'odd': {MANY - 10} more warnings" in caplog.text


@pytest.mark.sample
@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_over_http_ends_in_the_answer_and_a_short_log(
    make_sync: Doors, http: OddHttp, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    http.habit, http.flood, http.flood_size = "floods", FLOODS[kind], MANY
    door = make_sync(pack(http.url))
    assert greet(door) == "5"
    door.close()
    check_logged(caplog)


def test_a_flood_outside_any_answer_is_as_short(
    make_sync: Doors, http: OddHttp, caplog: pytest.LogCaptureFixture
) -> None:
    http.habit, http.flood_size = "floods by itself", MANY
    door = make_sync(pack(http.url))
    assert greet(door) == "5"
    assert http.has_flooded.wait(60)
    assert greet(door) == "5"
    door.close()
    check_logged(caplog)


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_official_client_alone_logs_every_one_of_them(
    http: OddHttp, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    kind, number = "bad progress", 100
    http.habit, http.flood, http.flood_size = "floods", FLOODS[kind], number
    command = [str(SERVERS / "odd.py"), f"floods: {json.dumps(FLOODS[kind])}"]
    server = (
        stdio_client(StdioServerParameters(command=sys.executable, args=command))
        if transport == "stdio"
        else streamable_http_client(http.url)
    )

    async def call() -> None:
        async with Client(server, cache=None) as client:
            with suppress(MCPError):  # it asks for the list of tools afterwards, which this server does not have
                await client.call_tool("ask", {"text": str(number)})

    asyncio.run(call())
    assert len(caplog.records) >= number and len(caplog.text) > 10 * MOST_LOGGED
