"""A registry of code-first tools: registered by name, made at first use, run by name or as runnable objects.

>>> from toolkit import SecurityPolicy, ToolContext, ToolkitContext, ToolRegistry, tool
>>> @tool
... def add(a: int, b: int) -> int:
...     "Add two numbers."
...     return a + b
>>> registry = ToolRegistry()
>>> registry.register(add)
>>> with ToolContext.standalone(".") as ctx:
...     registry.execute("add", {"a": 1, "b": 2}, ctx).value
3
>>> with registry.tools(ToolkitContext(".", SecurityPolicy(default="allow"))) as tools:
...     [tool.definition.name for tool in tools], tools[0].execute('{"a": 2, "b": 2}').value
(['add'], 4)
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias, overload

from toolkit.errors import SetupError, ToolNotFound
from toolkit.guard.permission import ALL_PERMISSIONS, Permission
from toolkit.runtime import path as steps
from toolkit.runtime.call.offers import allowed_tools
from toolkit.runtime.catalog.pack import Pack
from toolkit.runtime.closeable import AsyncCloseable
from toolkit.runtime.context.toolkit_context import ToolkitContext, check_permissions
from toolkit.runtime.functions.define import FunctionTool, PermissionNeeds
from toolkit.runtime.functions.lazy import LazyTool
from toolkit.runtime.functions.signature import plain_function
from toolkit.runtime.functions.standalone import StandaloneContext, call_id_of, execute, execute_async, new_call_id
from toolkit.runtime.progress import make_harmless
from toolkit.runtime.tool_context import ToolContext
from toolkit.spec.description import read_module_description
from toolkit.wire.definition import ToolDefinition
from toolkit.wire.result import ToolResult

AnyTool: TypeAlias = FunctionTool[..., Any] | LazyTool
CreateContext: TypeAlias = Callable[[str, str], ToolContext]
"""Makes the context of one call from the tool's name and the call id."""
OnToolResult: TypeAlias = Callable[[ToolResult], object]
"""Receives the result of every call, also of failed ones. What it raises is logged."""


class ToolRegistry:
    """Tools by name. A registry can be one of the ``packs`` of a toolkit, which then has the tools registered at that
    moment."""

    def __init__(self) -> None:
        self._tools: dict[str, AnyTool] = {}
        self._results: dict[str, ToolResult] = {}
        self._last: ToolResult | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<ToolRegistry: {', '.join(self._tools) or 'no tools'}>"

    # -- registering -------------------------------------------------------------------------------------------------

    def register(
        self, tool: AnyTool, *, permissions: PermissionNeeds | None = None, description_file: str | None = None
    ) -> None:
        """Adds a tool; refuses a name that is taken.

        :param permissions: replaces the permissions that the tool declares.
        :param description_file: a text for the model, in or below the folder of the module that defines the tool;
            ``${workspace}``, ``${directory}`` and ``${cwd}`` in it mean the workspace of the context.
        """
        if not isinstance(tool, FunctionTool | LazyTool):
            raise SetupError(f"{type(tool).__name__} is not a tool: make one from it with define_tool(...)")
        text = None if description_file is None else _description(tool, description_file)
        wanted = tool.replace(permissions=permissions, long_description=text)
        with self._lock:
            other = self._tools.get(tool.name)
            if other is not None:
                raise SetupError(
                    f"two tools are named {tool.name!r}: {other.owner} and {tool.owner}; rename one with "
                    f"define_tool(..., name=...), or unregister the first"
                )
            self._tools[tool.name] = wanted

    def unregister(self, name: str) -> None:
        """Removes a tool. Running calls continue; later ones are TOOL_NOT_FOUND."""
        with self._lock:
            if self._tools.pop(name, None) is None:
                raise SetupError(f"no tool named {name!r} is registered")

    def get(self, name: str) -> AnyTool | None:
        """The tool of that name, with the permissions it was registered with."""
        with self._lock:
            return self._tools.get(name)

    def enabled(self, permissions: Collection[Permission]) -> list[AnyTool]:
        """The tools that need no other permissions, in the order they were registered."""
        check_permissions(permissions)
        with self._lock:
            tools = list(self._tools.values())
        return [tool for tool in tools if set(tool.permissions.required) <= set(permissions)]

    def as_pack(self) -> Pack:
        """The tools that are registered now."""
        return Pack(tools=self.enabled(ALL_PERMISSIONS))

    # -- running -----------------------------------------------------------------------------------------------------

    @property
    def last_result(self) -> ToolResult | None:
        """The result of the last call that this registry ran."""
        return self._last

    @property
    def last_results(self) -> Mapping[str, ToolResult]:
        """The result of the last call of each tool, by name."""
        with self._lock:
            return dict(self._results)

    def execute(self, name: str, arguments: Mapping[str, object] | str, ctx: ToolContext) -> ToolResult:
        """Runs a tool as the toolkit behind ``ctx`` would; text is parsed as JSON. Never raises."""
        tool = self.get(name)
        return self._remember(self._unknown_result(name, ctx) if tool is None else execute(tool, arguments, ctx))

    async def execute_async(self, name: str, arguments: Mapping[str, object] | str, ctx: ToolContext) -> ToolResult:
        """The same, awaited. Only the task's own cancellation is raised."""
        tool = self.get(name)
        return self._remember(
            self._unknown_result(name, ctx) if tool is None else await execute_async(tool, arguments, ctx)
        )

    def tools(
        self,
        init_context: ToolkitContext[Any],
        create_context: CreateContext | None = None,
        on_result: OnToolResult | None = None,
    ) -> RunnableTools:
        """The tools that the policy of ``init_context`` may allow, ready to run; lazy ones are made for it.

        Close the result, or use ``with``: it holds what the tools need to run.

        :param create_context: makes the context of each call; by default the calls share one made from ``init_context``.
        """
        return RunnableTools(self, init_context, create_context, on_result)

    async def tools_async(
        self,
        init_context: ToolkitContext[Any],
        create_context: CreateContext | None = None,
        on_result: OnToolResult | None = None,
    ) -> RunnableTools:
        """The same; async factories are awaited here, in the caller's loop."""
        for tool in self.enabled(ALL_PERMISSIONS):
            if isinstance(tool, LazyTool):
                await tool.load_async(init_context)
        return RunnableTools(self, init_context, create_context, on_result)

    def _unknown_result(self, name: str, ctx: ToolContext) -> ToolResult:
        with self._lock:
            error: ToolNotFound = steps.not_found(name, self._tools)
        return ToolResult(call_id_of(ctx), str(name), "error", str(error))

    def _remember(self, result: ToolResult) -> ToolResult:
        with self._lock:
            self._results[result.name] = self._last = result
        return result


class RunnableTool:
    """One tool of a registry, ready to run."""

    def __init__(self, definition: ToolDefinition, tool: AnyTool, owner: RunnableTools) -> None:
        self.definition: Final = definition
        self.permissions: Final = tool.permissions
        self._tool = tool
        self._owner = owner

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def description(self) -> str:
        return self.definition.description

    def __repr__(self) -> str:
        return f"<runnable tool {self.name!r}>"

    def execute(self, arguments: Mapping[str, object] | str, call_id: str | None = None) -> ToolResult:
        """Runs it with JSON text or an object; never raises. The registry remembers the result."""
        return self._owner._run(self._tool, arguments, call_id)

    async def execute_async(self, arguments: Mapping[str, object] | str, call_id: str | None = None) -> ToolResult:
        """The same, awaited. Only the task's own cancellation is raised."""
        return await self._owner._run_async(self._tool, arguments, call_id)


class RunnableTools(Sequence[RunnableTool], AsyncCloseable):
    """The tools of a registry for one context; closing it closes what they share."""

    def __init__(
        self,
        registry: ToolRegistry,
        context: ToolkitContext[Any],
        create_context: CreateContext | None,
        on_result: OnToolResult | None,
    ) -> None:
        tools = {tool.name: tool for tool in registry.enabled(ALL_PERMISSIONS)}
        self._registry = registry
        self._shared = ToolContext.standalone(context, packs=tools.values())
        self._create_context = create_context
        self._on_result = None if on_result is None else make_harmless(on_result, "on_result")
        allowed = {definition.name: definition for definition in allowed_tools(self._shared._core)}
        self._all = [RunnableTool(allowed[name], tool, self) for name, tool in tools.items() if name in allowed]

    @overload
    def __getitem__(self, index: int) -> RunnableTool: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RunnableTool]: ...
    def __getitem__(self, index: int | slice) -> RunnableTool | Sequence[RunnableTool]:
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)

    def __repr__(self) -> str:
        return f"<runnable tools: {', '.join(tool.name for tool in self._all)}>"

    def _run(self, tool: AnyTool, arguments: Mapping[str, object] | str, call_id: str | None) -> ToolResult:
        id = call_id if call_id is not None else new_call_id()
        try:
            result = execute(tool, arguments, self._context_of(tool, id))
        except Exception as error:  # from the caller's create_context
            result = steps.error_result(error, id, tool.name)
        return self._report(result)

    async def _run_async(self, tool: AnyTool, arguments: Mapping[str, object] | str, call_id: str | None) -> ToolResult:
        id = call_id if call_id is not None else new_call_id()
        try:
            result = await execute_async(tool, arguments, self._context_of(tool, id))
        except Exception as error:
            result = steps.error_result(error, id, tool.name)
        return self._report(result)

    def _context_of(self, tool: AnyTool, call_id: str) -> ToolContext:
        if self._registry.get(tool.name) is not tool:
            raise ToolNotFound(f"{tool.name!r} has been unregistered", tool_name=tool.name)
        if self._create_context is None:
            return StandaloneContext(self._shared._core, call_id, None)
        return self._create_context(tool.name, call_id)

    def _report(self, result: ToolResult) -> ToolResult:
        self._registry._remember(result)
        if self._on_result is not None:
            self._on_result(result)
        return result

    # -- closing -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Closes what the tools share; later calls fail as TOOL_CANCELLED."""
        self._shared.close()

    async def close_async(self) -> None:
        """The same in a loop."""
        await self._shared.close_async()


def _description(tool: AnyTool, name: str) -> str:
    maker = plain_function(tool.factory if isinstance(tool, LazyTool) else tool.function)
    try:
        source = inspect.getsourcefile(maker)
    except TypeError:  # a C function
        source = None
    return read_module_description(source, name, tool.owner)
