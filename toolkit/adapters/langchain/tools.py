"""A toolkit's tools as LangChain tools, which run on the toolkit's whole call path; and LangChain's tools for a toolkit."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from toolkit.adapters.langchain.codec import content_text, decode_blocks, message_json, result_content
from toolkit.adapters.lossless import has_native_parts
from toolkit.adapters.values import JsonDict
from toolkit.errors import SetupError, ToolFailed
from toolkit.wire.call import ToolCall, ToolResult
from toolkit.wire.definition import ToolDefinition

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from langchain_core.tools import BaseTool, StructuredTool
    from pydantic import BaseModel

    from toolkit.runtime.functions import FunctionTool, PermissionNeeds
    from toolkit.runtime.packs import Pack
    from toolkit.runtime.tool_context import ToolContext


class AnyToolkit(Protocol):
    """A ``Toolkit`` or an ``AsyncToolkit``."""

    def get_allowed_tools(self) -> list[ToolDefinition]: ...
    def call(self, call: ToolCall) -> ToolResult | Awaitable[ToolResult]: ...


# -- a toolkit's tools for LangChain ---------------------------------------------------------------------------------------


def as_langchain_tools(toolkit: AnyToolkit) -> list[StructuredTool]:
    """The tools that the policy may allow. Each runs through ``tk.call``, with its policy, sandbox, limits and audit.

    The model gets a failure as text, with the status ``error``; nothing is raised. The typed output of the tool is the
    ``artifact`` of the ``ToolMessage``. Tools of an ``AsyncToolkit`` are awaited (``ainvoke``).
    """
    from inspect import iscoroutinefunction

    run: Any = toolkit.call
    runner = {"coroutine": _run_async(run)} if iscoroutinefunction(run) else {"func": _run(run)}
    tool_class = _tool_class()
    return [
        tool_class(
            name=definition.name,
            description=definition.description,
            args_schema=definition.parameters,
            handle_tool_error=True,
            response_format="content_and_artifact",
            **runner,
        )
        for definition in toolkit.get_allowed_tools()
    ]


@cache
def _tool_class() -> Any:
    from langchain_core.tools import StructuredTool

    class ToolkitTool(StructuredTool):
        """A tool of a toolkit: its function takes the call itself."""

        # Not as keywords: LangChain would overwrite arguments named `config` or `run_manager`.
        def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> tuple[Any, JsonDict]:
            id = tool_call_id or f"call_{secrets.token_hex(8)}"
            if isinstance(tool_input, str):
                return (ToolCall(id, self.name, {}, raw_arguments=tool_input),), {}
            return (ToolCall(id, self.name, tool_input),), {}

    return ToolkitTool


def _run(call_tool: Callable[[ToolCall], ToolResult]) -> Callable[[ToolCall], Any]:
    def run(call: ToolCall) -> tuple[Any, object]:
        return _content_and_artifact(call_tool(call))

    return run


def _run_async(call_tool: Callable[[ToolCall], Awaitable[ToolResult]]) -> Callable[[ToolCall], Awaitable[Any]]:
    async def run(call: ToolCall) -> tuple[Any, object]:
        return _content_and_artifact(await call_tool(call))

    return run


def _content_and_artifact(result: ToolResult) -> tuple[Any, object]:
    from langchain_core.tools import ToolException

    if result.kind == "error":
        # LangChain handles it: it becomes the text of a message with the status `error`.
        raise ToolException(str(result.value))
    return result_content(result, {}), result.output


# -- LangChain's tools for a toolkit ---------------------------------------------------------------------------------------


def from_langchain_tools(tools: Iterable[BaseTool], *, permissions: PermissionNeeds = ()) -> Pack:
    """LangChain's tools for a toolkit: ``create_agent_toolkit(context, from_langchain_tools([...]))``.

    They are not sandboxed: their code can do whatever it could before, and the policy decides only whether they run. So
    declare in ``permissions`` what they may touch. They never run in parallel with other calls.
    """
    from toolkit.runtime.packs import Pack

    return Pack(tools=[_function_tool(tool, permissions) for tool in tools])


def _function_tool(tool: BaseTool, permissions: PermissionNeeds) -> FunctionTool[..., Any]:
    from toolkit.runtime.functions import FunctionTool
    from toolkit.runtime.tool_context import ToolContext

    def run(args: Any, ctx: ToolContext) -> Any:
        with _raise_as_failure():
            return _read_answer(tool.invoke(_build_call(tool, args, ctx)))

    async def run_async(args: Any, ctx: ToolContext) -> Any:
        with _raise_as_failure():
            return _read_answer(await tool.ainvoke(_build_call(tool, args, ctx)))

    for function in (run, run_async):
        # Annotations are resolved by the names of the module, and this one imports the runtime only here.
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


def _build_call(tool: BaseTool, args: BaseModel, ctx: ToolContext) -> Any:
    """A call as LangChain's agents make it: the answer is then a ``ToolMessage``, which says whether it is an error."""
    arguments = args.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {
        "type": "tool_call",
        "id": ctx.call_id or f"call_{secrets.token_hex(8)}",
        "name": tool.name,
        "args": arguments,
    }


@contextmanager
def _raise_as_failure() -> Iterator[None]:
    from langchain_core.tools import ToolException

    try:
        yield
    except ToolException as error:
        raise ToolFailed("LANGCHAIN", str(error)) from error


def _read_answer(message: object) -> Any:
    data = message_json(message).get("data")
    if data is None:
        return message  # a tool may return an object of its own
    content = data.get("content")
    if data.get("status") == "error":
        raise ToolFailed("LANGCHAIN", content_text(content))
    if not isinstance(content, list):
        return content
    blocks, kept = decode_blocks(content)
    return content if has_native_parts(kept) or not blocks else blocks


def _input_model(tool: BaseTool) -> type[BaseModel]:
    """The model of the arguments, without those that LangChain injects."""
    from pydantic import BaseModel

    schema = tool.tool_call_schema
    if isinstance(schema, dict):
        return _model_from_schema(schema)
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return schema
    raise SetupError(
        f"the arguments of the LangChain tool {tool.name!r} are neither a pydantic 2 model nor a JSON Schema"
    )


def _model_from_schema(schema: JsonDict) -> type[BaseModel]:
    """A model with the properties of a schema; like LangChain, it does not check their values."""
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
