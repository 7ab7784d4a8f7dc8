"""A request to an MCP server carries the trace it belongs to, so that the spans of the server can be joined to it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.packs.conftest import SERVERS
from toolkit import DynamicContext, DynamicPolicy, JsonObject, ToolContext, Tracing, create_agent_toolkit, tool
from toolkit.packs import McpServer, mcp_pack

SHOP = mcp_pack(McpServer(name="traced", command=("python", "traced.py")), {})


@tool(permissions=["execute"])
async def read_trace(ctx: ToolContext) -> str:
    "The trace that the server was told of."
    client = await SHOP.client(ctx)
    return "".join(block.text or "" for block in await client.read_resource("trace://parent"))


@pytest.mark.sandbox
def test_requests_carry_the_span_of_their_call(tmp_path: Path) -> None:
    shutil.copy(SERVERS / "traced.py", tmp_path)
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    policy = DynamicPolicy(default="allow")
    with create_agent_toolkit(
        DynamicContext(tmp_path, policy, tracing=Tracing(provider)), packs=[read_trace]
    ) as toolkit:
        content = toolkit.invoke("read_trace", JsonObject({})).content

    [span] = exporter.get_finished_spans()
    assert span.context is not None
    assert str(content).split("-")[1:3] == [f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}"]
