# ruff: noqa: T201
"""The client that the official conformance suite starts: ``python -m tests.packs.conformance.client URL``.

The suite names the scenario, and what it needs to know, in two variables. Everything goes the way of a user's program: a
pack of ``mcp_pack``, a context with ``McpCallbacks``, the handlers and the client of the pack. The suite judges what its
servers saw; a call that fails is printed, and the exit code says so.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading
import urllib.request
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from toolkit import SecurityPolicy, ToolContext, ToolkitContext
from toolkit.errors import ToolkitError
from toolkit.packs import ElicitRequest, McpCallbacks, McpOAuth, McpServer, McpTool, mcp_pack

CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "tools_call": [("add_numbers", {"a": 5, "b": 3})],
    "sse-retry": [("test_reconnection", {})],
    "elicitation-sep1034-client-defaults": [("test_client_elicitation_defaults", {})],
    "sep-2322-client-request-state": [
        ("test_mrtr_echo_state", {}),
        ("test_mrtr_no_state", {}),
        ("test_mrtr_unrelated", {}),
        ("test_mrtr_no_result_type", {}),
    ],
    "http-invalid-tool-headers": [("valid_tool", {"region": "us-west1"})],
}
"""The calls of a scenario. With a login it is one tool, called twice, so that a refused token is noticed."""
WITH_LOGIN: list[tuple[str, dict[str, Any]]] = [("test-tool", {}), ("test-tool", {})]
DOCUMENT = "https://conformance-test.local/client-metadata.json"
SECONDS = 120
"""For what takes a moment, unless the machine is busy."""


class Arguments(BaseModel):
    """Stands for the generated input model of any tool."""

    model_config = ConfigDict(extra="allow")


def log_in(url: str) -> None:
    """The person with a browser: opens the page and is sent back to the toolkit."""
    with urllib.request.urlopen(url, timeout=SECONDS) as page:
        page.read()


def confirm(request: ElicitRequest) -> Mapping[str, object]:
    """The person who is asked: confirms, and leaves everything else as it is."""
    return {"confirmed": True} if "confirmed" in request.schema["properties"] else {}


def settings(scenario: str, known: Mapping[str, str]) -> McpOAuth | None:
    if not scenario.startswith("auth/"):
        return None
    if scenario == "auth/pre-registration":
        os.environ["CONFORMANCE_SECRET"] = known["client_secret"]
        secret = "${CONFORMANCE_SECRET}"
        return McpOAuth(client_id=known["client_id"], client_secret=secret, issuer=known["issuer"])
    return McpOAuth(client_id=DOCUMENT if scenario == "auth/basic-cimd" else "")


class StreamWatch(logging.Handler):
    """Notices when the client has opened the stream on which a server sends by itself.

    The server of ``sse-retry`` takes every later stream for a reconnection. On a busy machine that would be this one.
    """

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._opened = threading.Event()
        logger = logging.getLogger("mcp.client.streamable_http")
        logger.setLevel(logging.DEBUG)
        logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() == "GET SSE connection established":
            self._opened.set()

    async def wait(self) -> None:
        if not await asyncio.to_thread(self._opened.wait, SECONDS):
            sys.exit("the client has opened no stream, or does not log it any more as this class expects")


async def run(url: str, scenario: str, known: Mapping[str, Any]) -> None:
    stream = StreamWatch() if scenario == "sse-retry" else None
    calls = CALLS.get(scenario, [])
    if scenario.startswith("auth/"):
        calls = WITH_LOGIN
    elif "toolCalls" in known:
        calls = [(call["name"], call["arguments"]) for call in known["toolCalls"]]
    server = McpServer(name="conformance", url=url, oauth=settings(scenario, known), timeout=SECONDS)
    tools = {name: McpTool(name, "toolkit.wire.content:ContentOutput") for name, _ in calls}
    pack = mcp_pack(server, {**tools, "json_schema_echo": McpTool("json_schema_echo", "toolkit:ContentOutput")})
    callbacks = McpCallbacks(elicit=confirm, open_url=log_in)
    context = ToolkitContext(".", SecurityPolicy(default="allow"), mcp=callbacks)
    async with ToolContext.standalone(context) as ctx:
        client = await pack.client(ctx)
        listing = await client.list_tools()
        offered = {tool["name"]: tool for tool in listing.tools}
        print("offered:", sorted(offered), "left out:", dict(listing.dropped))
        if "json_schema_echo" in offered:
            schema = next(tool["inputSchema"] for name, tool in offered.items() if name != "json_schema_echo")
            calls = [("json_schema_echo", {"schema": schema})]
        if stream is not None:
            await stream.wait()
        for name, arguments in calls:
            print(name, await pack.handlers[name](Arguments(**arguments), ctx))


if __name__ == "__main__":
    try:
        asyncio.run(
            run(
                sys.argv[1],
                os.environ["MCP_CONFORMANCE_SCENARIO"],
                json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"),
            )
        )
    except ToolkitError as error:
        sys.exit(str(error))
