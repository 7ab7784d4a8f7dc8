"""Our tools as LangChain's, which run on the whole road of their toolkit; and LangChain's tools as ours."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from toolkit.adapters.langchain.decode import message_json
from toolkit.adapters.langchain.encode import result_content
from toolkit.adapters.langchain.parts import decode_blocks, text_of
from toolkit.adapters.plain_json import JsonDict
from toolkit.errors import SetupError, ToolFailed
from toolkit.wire.call import ToolCall
from toolkit.wire.definition import ToolDefinition
from toolkit.wire.result import ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from langchain_core.tools import BaseTool, StructuredTool
    from pydantic import BaseModel

    from toolkit.runtime.catalog.pack import Pack
    from toolkit.runtime.context.tool_context import ToolContext
    from toolkit.runtime.functions.define import FunctionTool, PermissionNeeds


class AnyToolkit(Protocol):
    """A ``Toolkit`` or an ``AsyncToolkit``."""

    def get_allowed_tools(self) -> list[ToolDefinition]: ...
    def call(self, call: ToolCall) -> ToolResult | Awaitable[ToolResult]: ...


# -- ours as LangChain's -------------------------------------------------------------------------------------------------


def as_langchain_tools(toolkit: AnyToolkit) -> list[StructuredTool]:
    """The tools its policy allows. Each runs through ``toolkit.call``: policy, sandbox, limits and audit hold.

    What fails is told to the model as text, with the status ``error``; nothing is raised. Tools of an ``AsyncToolkit``
    are awaited (``ainvoke``).
    """
    from inspect import iscoroutinefunction

    run: Any = toolkit.call
    running = {"coroutine": _awaited(run)} if iscoroutinefunction(run) else {"func": _called(run)}
    made = _tool_class()
    return [
        made(
            name=definition.name,
            description=definition.description,
            args_schema=definition.parameters,
            handle_tool_error=True,
            **running,
        )
        for definition in toolkit.get_allowed_tools()
    ]


@cache
def _tool_class() -> Any:
    from langchain_core.tools import StructuredTool

    class ToolkitTool(StructuredTool):
        """A tool of a toolkit: its function takes the call itself."""

        # Not as keywords: arguments may be called `config` or `run_manager`, which LangChain would overwrite.
        def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> tuple[Any, JsonDict]:
            id = tool_call_id or f"call_{secrets.token_hex(8)}"
            if isinstance(tool_input, str):
                return (ToolCall(id, self.name, {}, raw_arguments=tool_input),), {}
            return (ToolCall(id, self.name, tool_input),), {}

    return ToolkitTool


def _called(run: Callable[[ToolCall], ToolResult]) -> Callable[[ToolCall], Any]:
    def called(call: ToolCall) -> Any:
        return _told(run(call))

    return called


def _awaited(run: Callable[[ToolCall], Awaitable[ToolResult]]) -> Callable[[ToolCall], Awaitable[Any]]:
    async def awaited(call: ToolCall) -> Any:
        return _told(await run(call))

    return awaited


def _told(result: ToolResult) -> Any:
    from langchain_core.tools import ToolException

    if result.kind == "error":
        # Handled by LangChain, which makes it the text of a message with the status `error`.
        raise ToolException(str(result.value))
    return result_content(result, {})


# -- LangChain's as ours -------------------------------------------------------------------------------------------------


def from_langchain_tools(tools: Iterable[BaseTool], *, permissions: PermissionNeeds = ()) -> Pack:
    """LangChain's tools for a toolkit: ``create_agent_toolkit(context, from_langchain_tools([...]))``.

    They are the code they were: no sandbox is around them, and a toolkit's policy decides only whether they run. So say in
    ``permissions`` what they may touch. They never run beside other calls.
    """
    from toolkit.runtime.catalog.pack import Pack

    return Pack(tools=[_function_tool(tool, permissions) for tool in tools])


def _function_tool(tool: BaseTool, permissions: PermissionNeeds) -> FunctionTool[..., Any]:
    from toolkit.runtime.context.tool_context import ToolContext
    from toolkit.runtime.functions.define import FunctionTool

    def run(args: Any, ctx: ToolContext) -> Any:
        with _failing():
            return _answer(tool.invoke(_call(tool, args, ctx)))

    async def run_async(args: Any, ctx: ToolContext) -> Any:
        with _failing():
            return _answer(await tool.ainvoke(_call(tool, args, ctx)))

    for function in (run, run_async):
        # Tools read annotations by their module's names, and this one loads the runtime only here.
        function.__annotations__ = {"args": Any, "ctx": ToolContext, "return": Any}
    only_async = getattr(tool, "coroutine", None) is not None and getattr(tool, "func", None) is None
    return FunctionTool(
        run_async if only_async else run,
        name=tool.name,
        description=tool.description,
        input=_input_model(tool),
        permissions=permissions,
        parallel=False,
    )


def _call(tool: BaseTool, args: BaseModel, ctx: ToolContext) -> Any:
    """As LangChain's agents call a tool: the answer is then a ``ToolMessage``, which says whether it is an error."""
    arguments = args.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {
        "type": "tool_call",
        "id": ctx.call_id or f"call_{secrets.token_hex(8)}",
        "name": tool.name,
        "args": arguments,
    }


@contextmanager
def _failing() -> Iterator[None]:
    from langchain_core.tools import ToolException

    try:
        yield
    except ToolException as error:
        raise ToolFailed("LANGCHAIN", str(error)) from error


def _answer(message: object) -> Any:
    data = message_json(message).get("data")
    if data is None:
        return message  # a tool may answer with something of its own
    content = data.get("content")
    if data.get("status") == "error":
        raise ToolFailed("LANGCHAIN", text_of(content))
    if not isinstance(content, list):
        return content
    blocks, kept = decode_blocks(content)
    return content if "native_parts" in kept or not blocks else blocks


def _input_model(tool: BaseTool) -> type[BaseModel]:
    """What a model fills in; what LangChain injects is not part of it."""
    from pydantic import BaseModel

    schema = tool.tool_call_schema
    if isinstance(schema, dict):
        return _model_of_schema(schema)
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return schema
    raise SetupError(f"the arguments of the LangChain tool {tool.name!r} are no pydantic 2 model and no JSON Schema")


def _model_of_schema(schema: JsonDict) -> type[BaseModel]:
    """Takes the properties of a schema; like LangChain, it looks no further into their values."""
    from pydantic import BaseModel, Field, create_model

    class Described(BaseModel):
        @classmethod
        def model_json_schema(cls, *args: Any, **kwargs: Any) -> JsonDict:
            return {key: value for key, value in deepcopy(schema).items() if key != "description"}

    required = schema.get("required", ())
    fields: JsonDict = {
        f"field_{at}": (Any, Field(alias=name) if name in required else Field(None, alias=name))
        for at, name in enumerate(schema.get("properties", {}))
    }
    made: type[BaseModel] = create_model("Arguments", __base__=Described, **fields)
    return made
