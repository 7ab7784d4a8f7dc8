# ruff: noqa: T201
"""An honest server made with the official SDK: ``python shop.py`` over stdio, ``python shop.py http`` on a port it prints."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

server = MCPServer("shop", version="1.2.3", log_level="ERROR")
calls = 0


class Item(BaseModel):
    name: str
    price: float
    tags: list[str] = []


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def item(name: str, price: float = 1.5) -> Item:
    """An item of the shop."""
    return Item(name=name, price=price, tags=["new"])


@server.tool()
def items(count: int) -> list[Item]:
    """Many items."""
    return [Item(name=str(number), price=number) for number in range(count)]


@server.tool(structured_output=False)
def greet(name: str) -> str:
    """A greeting without any schema."""
    return f"Hello {name}"


@server.tool()
def media() -> CallToolResult:
    """One block of every kind."""
    return CallToolResult(
        content=[
            TextContent(type="text", text="before"),
            ImageContent(type="image", data="aW1hZ2U=", mime_type="image/png"),
            AudioContent(type="audio", data="YXVkaW8=", mime_type="audio/wav"),
            ResourceLink(type="resource_link", uri="https://example.org/a.pdf", name="a", mime_type="application/pdf"),
            ResourceLink(type="resource_link", uri="shop://b", name="b", description="of the shop"),
            EmbeddedResource(type="resource", resource=TextResourceContents(uri="shop://c", text="inside")),
            EmbeddedResource(
                type="resource", resource=BlobResourceContents(uri="shop://d", blob="YmxvYg==", mime_type="image/gif")
            ),
            TextContent(type="text", text="after"),
        ],
    )


@server.tool()
def fail(words: str) -> int:
    """Fails with these words."""
    raise ToolError(words)


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
async def work(steps: int, name: str, ctx: Context[Any]) -> int:
    """Tells its progress, then waits until a file called like ``name`` with ``.go`` behind it is there."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
    Path(f"{name}.began").touch()
    try:
        while not Path(f"{name}.go").exists():
            await anyio.sleep(0.01)
    except asyncio.CancelledError:
        Path(f"{name}.cancelled").touch()
        raise
    return steps


@server.tool()
def count() -> int:
    """How often it was called since the server was started."""
    global calls
    calls += 1
    return calls


@server.tool()
async def headers(ctx: Context[Any]) -> dict[str, str]:
    """The headers of the request."""
    return dict(ctx.headers or {})


if __name__ == "__main__":
    if sys.argv[1:] != ["http"]:
        server.run()
    else:
        import socket

        import uvicorn

        listening = socket.create_server(("127.0.0.1", 0))
        print(listening.getsockname()[1], flush=True)
        config = uvicorn.Config(server.streamable_http_app(), log_level="error", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listening])
