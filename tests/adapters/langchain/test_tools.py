"""A toolkit's tools in LangChain, and LangChain's tools in a toolkit: policy, sandbox and errors apply."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, ToolException
from langchain_core.tools import tool as langchain_tool

from toolkit import (
    ContentBlock,
    DynamicContext,
    DynamicPolicy,
    FunctionTool,
    SecurityPolicy,
    ToolCall,
    ToolkitContext,
    ToolResult,
    ToolResultMessage,
    create_agent_toolkit,
    create_async_agent_toolkit,
    define_tool,
)
from toolkit.adapters.langchain import (
    as_langchain_tools,
    decode_messages,
    decode_tools,
    encode_messages,
    from_langchain_tools,
)
from toolkit.generated import ReadFileOutput
from toolkit.wire.codec import from_json, to_json

POLICY = SecurityPolicy(default="deny", tools={"read_file": "allow", "write_file": "allow", "list": "allow"})


def asked(name: str, **arguments: Any) -> Any:
    return tool_call(name=name, args=arguments, id="call_7")


# -- ours as LangChain's -------------------------------------------------------------------------------------------------


def test_each_allowed_tool_becomes_a_structured_tool(tmp_path: Path) -> None:
    with create_agent_toolkit(ToolkitContext(tmp_path, POLICY)) as toolkit:
        tools = as_langchain_tools(toolkit)
        assert all(isinstance(tool, StructuredTool) for tool in tools)
        assert decode_tools(tools) == toolkit.get_allowed_tools()


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        ({"path": "a.txt"}, "success", "hello"),
        ({"path": "none.txt"}, "error", "TOOL_FAILED: NOT_FOUND"),
        ({"path": "../../etc/passwd"}, "error", "SANDBOX_VIOLATION"),
        ({"paht": "a.txt"}, "error", "INVALID_TOOL_ARGUMENTS"),
        ({"path": 7}, "error", "INVALID_TOOL_ARGUMENTS"),
    ],
)
@pytest.mark.parametrize("kind", ["sync", "sync awaited", "async"])
def test_a_call_goes_the_whole_call_path(
    tmp_path: Path, kind: str, arguments: dict[str, Any], status: str, text: str
) -> None:
    (tmp_path / "a.txt").write_text("hello\n")

    async def later() -> Any:
        if kind == "async":
            async with create_async_agent_toolkit(ToolkitContext(tmp_path, POLICY)) as toolkit:
                return await named(as_langchain_tools(toolkit), "read_file").ainvoke(asked("read_file", **arguments))
        with create_agent_toolkit(ToolkitContext(tmp_path, POLICY)) as toolkit:
            return await named(as_langchain_tools(toolkit), "read_file").ainvoke(asked("read_file", **arguments))

    if kind == "sync":
        with create_agent_toolkit(ToolkitContext(tmp_path, POLICY)) as toolkit:
            message = named(as_langchain_tools(toolkit), "read_file").invoke(asked("read_file", **arguments))
    else:
        message = asyncio.run(later())
    assert isinstance(message, ToolMessage)
    assert (message.tool_call_id, message.name, message.status) == ("call_7", "read_file", status)
    assert text in message.text


def named(tools: list[StructuredTool], name: str) -> StructuredTool:
    return next(tool for tool in tools if tool.name == name)


def test_without_a_call_around_them_arguments_give_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    with create_agent_toolkit(ToolkitContext(tmp_path, POLICY)) as toolkit:
        tool = named(as_langchain_tools(toolkit), "read_file")
        assert "hello" in tool.invoke({"path": "a.txt"})
        assert "hello" in tool.invoke('{"path": "a.txt"}'), "argument text is read as the model's would be"
        assert tool.invoke("a.txt").startswith("INVALID_TOOL_ARGUMENTS")


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_typed_output_is_the_artifact(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.txt").write_text("hello\n")

    async def later() -> Any:
        async with create_async_agent_toolkit(ToolkitContext(tmp_path, POLICY)) as toolkit:
            read = named(as_langchain_tools(toolkit), "read_file")
            return [await read.ainvoke(asked("read_file", path=path)) for path in ("a.txt", "none.txt")]

    if kind == "async":
        done, failed = asyncio.run(later())
    else:
        with create_agent_toolkit(ToolkitContext(tmp_path, POLICY)) as toolkit:
            read = named(as_langchain_tools(toolkit), "read_file")
            done, failed = [read.invoke(asked("read_file", path=path)) for path in ("a.txt", "none.txt")]
    assert isinstance(done.artifact, ReadFileOutput)
    assert done.artifact.content == "hello\n"
    assert (failed.status, failed.artifact) == ("error", None)
    [back] = decode_messages([done])
    assert isinstance(back, ToolResultMessage)
    assert encode_messages(from_json(to_json([back])))[0]["data"]["artifact"]["content"] == "hello\n", (
        "and it can be stored"
    )


def test_what_was_done_is_in_the_audit_log_under_the_calls_id(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    (tmp_path / "work").mkdir()
    context = ToolkitContext(tmp_path / "work", POLICY, audit=log)
    with create_agent_toolkit(context) as toolkit:
        named(as_langchain_tools(toolkit), "list").invoke(asked("list"))
    assert "call_7" in log.read_text()


def configured(config: str, run_manager: int) -> dict[str, object]:
    """Arguments with names that LangChain has a meaning for."""
    return {"config": config, "run_manager": run_manager}


def shown() -> list[ContentBlock | str]:
    """A picture."""
    return ["see", ContentBlock("image", "image/png", data="AA==")]


def both(root: Path, *tools: FunctionTool[..., Any]) -> dict[str, Any]:
    with create_agent_toolkit(DynamicContext(root, DynamicPolicy(default="allow")), packs=tools) as toolkit:
        arguments = {"configured": {"config": "c", "run_manager": 1}}
        made = {tool.name: tool for tool in as_langchain_tools(toolkit)}
        return {tool.name: made[tool.name].invoke(arguments.get(tool.name, {})) for tool in tools}


def test_data_and_media_and_arguments_of_any_name(tmp_path: Path) -> None:
    told = both(tmp_path, define_tool(configured), define_tool(shown))
    assert json.loads(told["configured"]) == {"config": "c", "run_manager": 1}
    assert told["shown"] == [
        {"type": "text", "text": "see"},
        {"type": "image", "base64": "AA==", "mime_type": "image/png"},
    ]


# -- LangChain's as ours -------------------------------------------------------------------------------------------------


@langchain_tool
def add(a: int, b: int = 2) -> int:
    """Add numbers."""
    return a + b


@langchain_tool
def tagged(text: str, id: Annotated[str, InjectedToolCallId]) -> str:
    """Say which call this is."""
    return f"{id}: {text}"


@langchain_tool
def refuse() -> str:
    """Always fail."""
    raise ToolException("not today")


@langchain_tool
def picture() -> list[dict[str, str]]:
    """Give a picture."""
    return [{"type": "text", "text": "see"}, {"type": "image", "base64": "AA==", "mime_type": "image/png"}]


@langchain_tool
async def later(text: str) -> str:
    """Say it later."""
    await asyncio.sleep(0)
    return text


SCHEMA = {"type": "object", "properties": {"the text": {"type": "string"}, "n": {"type": "integer"}}, "required": ["the text"]}  # fmt: skip
described = StructuredTool.from_function(
    lambda **given: json.dumps(given), name="described", description="Has a JSON Schema.", args_schema=SCHEMA
)
tolerant = StructuredTool.from_function(
    lambda: refuse.invoke({}), name="tolerant", description="Tells.", handle_tool_error=True
)


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "value"),
    [
        (add, {"a": 1}, "text", "3"),
        (add, {"a": 1, "b": 5}, "text", "6"),
        (add, {"a": "1"}, "error", "INVALID_TOOL_ARGUMENTS: a: "),
        (add, {"a": 1, "c": 1}, "error", "INVALID_TOOL_ARGUMENTS: "),
        (tagged, {"text": "x"}, "text", "c1: x"),
        (tagged, {"text": "x", "id": "forged"}, "error", "INVALID_TOOL_ARGUMENTS: "),
        (refuse, {}, "error", "TOOL_FAILED: LANGCHAIN: not today"),
        (tolerant, {}, "error", "TOOL_FAILED: LANGCHAIN: not today"),
        (later, {"text": "x"}, "text", "x"),
        (described, {"the text": "x"}, "text", '{"the text": "x"}'),
        (described, {"n": 1}, "error", "INVALID_TOOL_ARGUMENTS: the text: "),
        (described, {"the text": "x", "other": 1}, "error", "INVALID_TOOL_ARGUMENTS: "),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_langchain_tool_is_called(tmp_path: Path, tool: BaseTool, arguments: Any, kind: str, value: str, is_async: bool) -> None:  # fmt: skip
    result = called(tmp_path, tool, arguments, is_async)
    assert (result.kind, result.name) == (kind, tool.name)
    assert str(result.value).startswith(value)


def called(root: Path, tool: BaseTool, arguments: Any, is_async: bool) -> ToolResult:
    context = DynamicContext(root, DynamicPolicy(default="allow"))
    call = ToolCall("c1", tool.name, arguments)

    async def awaited() -> ToolResult:
        async with create_async_agent_toolkit(context, packs=[from_langchain_tools([tool])]) as toolkit:
            return await toolkit.call(call)

    if is_async:
        return asyncio.run(awaited())
    with create_agent_toolkit(context, packs=[from_langchain_tools([tool])]) as toolkit:
        return toolkit.call(call)


def test_media_stay_media(tmp_path: Path) -> None:
    result = called(tmp_path, picture, {}, False)
    assert result.kind == "multimodal"
    assert result.value == (ContentBlock("text", text="see"), ContentBlock("image", "image/png", data="AA=="))


def test_the_policy_holds_for_them(tmp_path: Path) -> None:
    pack = from_langchain_tools([add, refuse], permissions=["network"])
    policy = DynamicPolicy(default="allow", tools={"refuse": "deny"})
    with create_agent_toolkit(DynamicContext(tmp_path, policy), packs=[pack]) as toolkit:
        assert "add" in {tool.name for tool in toolkit.get_allowed_tools()}
        assert "refuse" not in {tool.name for tool in toolkit.get_allowed_tools()}
        assert str(toolkit.call(ToolCall("1", "refuse", {})).value).startswith("TOOL_NOT_ALLOWED")


def test_there_and_back(tmp_path: Path) -> None:
    context = DynamicContext(tmp_path, DynamicPolicy(default="deny", tools={"add": "allow"}))
    with create_agent_toolkit(context, packs=[from_langchain_tools([add])]) as toolkit:
        [again] = as_langchain_tools(toolkit)
        assert (again.name, again.description, again.invoke({"a": 1})) == ("add", "Add numbers.", "3")
