"""The tool ``add`` in other toolkits, each as its documentation shows: from (name, argument text) to the text for the model.

A peer is imported when it is asked for. One that is not installed is named in the table instead.
"""

# No `from __future__ import annotations` here: langchain-core resolves type hints at every call, and text would cost it
# a fifth more.
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from typing import Any, Final, NamedTuple

from typing_extensions import TypedDict

CallSync = Callable[[str, str], str]
CallAsync = Callable[[str, str], Awaitable[str]]


class Peers(NamedTuple):
    """What could be measured, by label, and a sentence for each peer that could not."""

    sync: dict[str, CallSync]
    awaited: dict[str, CallAsync]
    missing: list[str]


class Sum(TypedDict):
    sum: int


def add(a: int, b: int) -> Sum:
    """Add two integers.

    Args:
        a: The first.
        b: The second.
    """
    return {"sum": a + b}


async def add_async(a: int, b: int) -> Sum:
    """Add two integers.

    Args:
        a: The first.
        b: The second.
    """
    return {"sum": a + b}


Found = tuple[str, CallSync | None, CallAsync | None]


async def anthropic(stack: AsyncExitStack) -> AsyncIterator[Found]:
    from anthropic import beta_async_tool, beta_tool

    def add_text(a: int, b: int) -> str:
        """Add two integers."""
        return json.dumps({"sum": a + b})

    async def add_text_async(a: int, b: int) -> str:
        """Add two integers."""
        return json.dumps({"sum": a + b})

    tools: dict[str, Any] = {"add": beta_tool(add_text, name="add")}
    async_tools: dict[str, Any] = {"add": beta_async_tool(add_text_async, name="add")}

    def call(name: str, text: str) -> str:
        return str(tools[name].call(json.loads(text)))

    async def call_async(name: str, text: str) -> str:
        return str(await async_tools[name].call(json.loads(text)))

    yield "anthropic beta_tool.call", call, None
    yield "anthropic beta_async_tool.call", None, call_async


async def openai_agents(stack: AsyncExitStack) -> AsyncIterator[Found]:
    from agents import function_tool
    from agents.items import ItemHelpers
    from agents.tool_context import ToolContext
    from openai.types.responses import ResponseFunctionToolCall

    tools = {"add": function_tool(add_async, name_override="add")}

    async def call(name: str, text: str) -> str:
        asked = ResponseFunctionToolCall(type="function_call", call_id="1", name=name, arguments=text)
        context = ToolContext(None, tool_name=name, tool_call_id="1", tool_arguments=text)
        output = await tools[name].on_invoke_tool(context, text)
        return str(ItemHelpers.tool_call_output_item(asked, output)["output"])

    yield "openai-agents on_invoke_tool", None, call


async def pydantic_ai(stack: AsyncExitStack) -> AsyncIterator[Found]:
    from pydantic_ai import RunContext
    from pydantic_ai.messages import ToolCallPart, ToolReturnPart
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.tool_manager import ToolManager
    from pydantic_ai.toolsets import FunctionToolset
    from pydantic_ai.usage import RunUsage

    tools = FunctionToolset()
    tools.add_function(add_async, name="add")
    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    manager = await ToolManager(tools).for_run_step(context)
    found = await tools.get_tools(context)

    async def bare(name: str, text: str) -> str:
        tool = found[name]
        output = await tools.call_tool(name, tool.args_validator.validate_json(text), context, tool)
        return str(ToolReturnPart(tool_name=name, content=output, tool_call_id="1").model_response_str())

    async def managed(name: str, text: str) -> str:
        output = await manager.handle_call(ToolCallPart(tool_name=name, args=text, tool_call_id="1"))
        return str(ToolReturnPart(tool_name=name, content=output, tool_call_id="1").model_response_str())

    yield "pydantic-ai FunctionToolset.call_tool", None, bare
    yield "pydantic-ai ToolManager.handle_call", None, managed


async def langchain_core(stack: AsyncExitStack) -> AsyncIterator[Found]:
    from langchain_core.tools import StructuredTool

    tools: dict[str, Any] = {"add": StructuredTool.from_function(func=add, coroutine=add_async, name="add")}

    def asked(name: str, text: str) -> dict[str, Any]:
        return {"name": name, "args": json.loads(text), "id": "1", "type": "tool_call"}

    def call(name: str, text: str) -> str:
        return str(tools[name].invoke(asked(name, text)).content)

    async def call_async(name: str, text: str) -> str:
        return str((await tools[name].ainvoke(asked(name, text))).content)

    yield "langchain-core StructuredTool.invoke", call, None
    yield "langchain-core StructuredTool.ainvoke", None, call_async


async def fastmcp(stack: AsyncExitStack) -> AsyncIterator[Found]:
    from fastmcp import Client, FastMCP

    server = FastMCP("benchmark")
    server.tool(add_async, name="add")
    tools = {"add": await server.get_tool("add")}
    client = await stack.enter_async_context(Client(server))

    async def run(name: str, text: str) -> str:
        return str((await tools[name].run(json.loads(text))).content[0].text)

    async def serve(name: str, text: str) -> str:
        return str((await server.call_tool(name, json.loads(text))).content[0].text)

    async def ask(name: str, text: str) -> str:
        return str((await client.call_tool(name, json.loads(text))).content[0].text)

    yield "fastmcp Tool.run", None, run
    yield "fastmcp server.call_tool", None, serve
    yield "fastmcp in-memory Client.call_tool", None, ask


PEERS: Final[dict[str, Callable[[AsyncExitStack], AsyncIterator[Found]]]] = {
    "anthropic": anthropic,
    "openai-agents": openai_agents,
    "pydantic-ai": pydantic_ai,
    "langchain-core": langchain_core,
    "fastmcp": fastmcp,
}
QUIET: Final = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "FASTMCP_LOG_LEVEL": "ERROR", "LANGSMITH_TRACING": "false"}
"""Tracing and logs would be measured, too, and some would be sent."""


async def find_peers(stack: AsyncExitStack) -> Peers:
    """Every peer that can be imported here. What they open is closed with the stack."""
    os.environ.update(QUIET)
    found = Peers({}, {}, [])
    for name, make in PEERS.items():
        try:
            async for label, sync, awaited in make(stack):
                if sync is not None:
                    found.sync[label] = sync
                if awaited is not None:
                    found.awaited[label] = awaited
        except ImportError as error:
            found.missing.append(f"{name} is not installed: {error}")
    return found


def open_monty(stack: ExitStack) -> tuple[Any, str]:
    """A pool of Monty's workers, which interpret programs; None and the reason if it is not installed."""
    try:
        from pydantic_monty import Monty
    except ImportError as error:
        return None, str(error)
    return stack.enter_context(Monty()), ""
