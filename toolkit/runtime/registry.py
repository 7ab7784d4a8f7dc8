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
import secrets
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, overload

from toolkit.errors import InternalError, InvalidArguments, SetupError, ToolNotFound
from toolkit.guard.permission import ALL_PERMISSIONS, Permission
from toolkit.guard.policy.policy import SecurityPolicy
from toolkit.runtime import path
from toolkit.runtime.arguments import Reader
from toolkit.runtime.async_ import AsyncRunner
from toolkit.runtime.catalog import Catalog, Tool, ToolInfo
from toolkit.runtime.context import ToolkitContext, check_permissions
from toolkit.runtime.functions import FunctionTool, LazyTool, PermissionNeeds, plain_function
from toolkit.runtime.output import ToolMessage
from toolkit.runtime.packs import CodeTool, Pack, PackSource
from toolkit.runtime.progress import make_harmless
from toolkit.runtime.signals import NEVER, CallSignal, CancelSignal
from toolkit.runtime.sync import Runner
from toolkit.runtime.tool_context import ToolContext
from toolkit.runtime.toolkit import Core, Options, View
from toolkit.runtime.workers import AsyncCloseable
from toolkit.schema.spec import read_module_description
from toolkit.wire.call import ToolCall, ToolResult
from toolkit.wire.content import ContentBlock, ContentOutput
from toolkit.wire.definition import ToolDefinition

if TYPE_CHECKING:
    import os


# ----------------------------------------------------------------------------------------------------------------------
# Standalone contexts, for unit tests of tools and for registries; and running one tool with a context.

ViewT = TypeVar("ViewT", bound=View)

_NO_CATALOG: Final = Catalog("", ())
_NAME: Final = "standalone"
"""The tool name of a context while no tool runs."""


class StandaloneContext(ToolContext, AsyncCloseable):
    """A context that the user makes and closes; see ``ToolContext.standalone``.

    It has everything that its ``ToolkitContext`` grants, so that a function can be called with it directly. A tool that is
    run with it gets its own context, with only what the tool asks for.
    """

    def __init__(self, core: Core, call_id: str | None, signal: CancelSignal | None) -> None:
        no_reader = Reader(ContentOutput)
        granted = core.context.permissions
        fs, consent = core.boundary.files(core.guards.fs, _NAME, granted, granted, ())
        if fs is not None:
            fs = fs.with_consent(consent)
        tool = Tool(
            ToolInfo(_NAME, "", "", ""),
            no_reader,
            no_reader,
            granted=granted,
            commands=core.boundary.commands(_NAME, granted),
            fs=fs,
        )
        called = call_id if call_id is not None else new_call_id()
        notify = Runner._over(core)._options.notify
        self._open(tool, core, called, NEVER if signal is None else CallSignal(signal, None), notify)

    # -- what tools reported -------------------------------------------------------------------------------------------

    @property
    def title(self) -> str | None:
        """The last title that a tool set with ``ctx.metadata(title=...)``."""
        return self._title

    @property
    def collected(self) -> Mapping[str, object]:
        """What tools reported with ``ctx.metadata(...)``, the latest value of each name."""
        return dict(self._metadata or {})

    @property
    def attachments(self) -> tuple[ContentBlock, ...]:
        """What tools added with ``ctx.attach(...)``."""
        return self._attachments

    def _collect(self, message: ToolMessage[Any, Any]) -> None:
        self._title = message.title or self._title
        self._metadata = {**(self._metadata or {}), **message.metadata}
        self._attachments = (*self._attachments, *message.attachments)

    # -- closing -------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Releases what was made for it; later calls with it fail as TOOL_CANCELLED."""
        if self._core.resources.close_once.alive:
            self._drop_output()
            try:
                if self._scope is not None and self._scope.needs_loop:
                    self._core.loop.submit(self._scope.close_async())[0].result()
                elif self._scope is not None:
                    self._scope.close()
            finally:
                self._core.resources.close_once()

    async def close_async(self) -> None:
        """The same, awaited: async generators are closed in the loop where they were made."""
        if self._core.resources.close_once.alive:
            self._drop_output()
            try:
                if self._scope is not None:
                    await self._scope.close_async()
                await self._core.scope.close_async()
            finally:
                self._core.resources.close_once()


def standalone(
    context: ToolkitContext[Any] | str | os.PathLike[str],
    packs: Iterable[PackSource | str],
    call_id: str | None,
    signal: CancelSignal | None,
) -> StandaloneContext:
    """Implements ``ToolContext.standalone``."""
    if not isinstance(context, ToolkitContext):
        context = ToolkitContext[str](context, SecurityPolicy(default="allow"))
    if signal is not None and not isinstance(signal, CancelSignal):
        raise SetupError(f"the signal of a standalone context must be a CancelSignal, not {type(signal).__name__}")
    return StandaloneContext(Core.open(_NO_CATALOG, context, packs), call_id, signal)


def execute(tool: CodeTool, arguments: str | Mapping[str, object], ctx: ToolContext) -> ToolResult:
    """Runs one tool as the toolkit behind ``ctx`` would, on the same call path.

    Never raises, except for a tool that is set up wrongly, with a standalone context: that is for the programmer who made
    them, and no model waits for an answer.
    """
    id = call_id_of(ctx)
    try:
        call, ready = _make_call(id, tool, arguments), tool
        if isinstance(tool, LazyTool):
            ready = tool.load(ctx._core.context, Runner._over(ctx._core)._await_in_loop)
        text = call.unread_text
        view, given = _make_view(Runner, ready, ctx), call.arguments if text is None else text
        return view._run(call.name, given, id, is_text=text is not None).to_result(id)
    except Exception as error:
        return _error_result(error, id, tool.name, ctx)


async def execute_async(tool: CodeTool, arguments: str | Mapping[str, object], ctx: ToolContext) -> ToolResult:
    """The same, awaited."""
    id = call_id_of(ctx)
    try:
        call = _make_call(id, tool, arguments)
        ready = await tool.load_async(ctx._core.context) if isinstance(tool, LazyTool) else tool
        text = call.unread_text
        view, given = _make_view(AsyncRunner, ready, ctx), call.arguments if text is None else text
        return await (await view._run(call.name, given, id, is_text=text is not None)).to_result_async(id)
    except Exception as error:
        return _error_result(error, id, tool.name, ctx)


def _error_result(error: Exception, call_id: str, tool_name: str, ctx: ToolContext) -> ToolResult:
    """A failed call as the model reads it. What is set up wrongly before the tool runs is raised, if its programmer made the
    context; what its handler finds out is said in the result."""
    if isinstance(ctx, StandaloneContext):
        if isinstance(error, SetupError):
            raise error
        if isinstance(error, InternalError) and isinstance(error.__cause__, SetupError):
            error.message = f"the tool is not set up correctly: {error.__cause__}"
    return path.error_result(error, call_id, tool_name)


def _make_call(id: str, tool: CodeTool, arguments: str | Mapping[str, object]) -> ToolCall:
    if isinstance(arguments, str):
        return ToolCall(id, tool.name, {}, raw_arguments=arguments)
    if isinstance(arguments, Mapping):
        return ToolCall(id, tool.name, arguments)
    raise InvalidArguments(f"the arguments must be JSON text or an object, not {type(arguments).__name__}")


def _make_view(kind: type[ViewT], tool: CodeTool, ctx: ToolContext) -> ViewT:
    """A view whose calls share the signal and the listeners of ``ctx``, and have no more than its permissions."""
    assert isinstance(tool, FunctionTool)
    view = kind._over(ctx._core.with_guest(tool, ctx.granted))
    # Each call of a standalone context has the whole deadline; a call within a call has what is left of it.
    deadline = ctx._core.context.deadline if isinstance(ctx, StandaloneContext) else ctx.signal.remaining
    view = view._with(Options(deadline, ctx.signal.caller, ctx._notify))
    if isinstance(ctx, StandaloneContext):
        on_result = view._on_result

        def collect(message: ToolMessage[Any, Any]) -> None:
            ctx._collect(message)
            if on_result is not None:
                on_result(message)

        view._tell(collect)
    return view


def call_id_of(ctx: ToolContext) -> str:
    """The id of the call that a context was made for, or a new one."""
    return getattr(ctx, "call_id", None) or new_call_id()


def new_call_id() -> str:
    return f"call_{secrets.token_hex(8)}"


CreateContext: TypeAlias = Callable[[str, str], ToolContext]
"""Makes the context of one call from the tool's name and the call id."""
OnToolResult: TypeAlias = Callable[[ToolResult], object]
"""Receives the result of every call, also of failed ones. What it raises is logged."""


class ToolRegistry:
    """Tools by name. A registry can be one of the ``packs`` of a toolkit, which then has the tools registered at that
    moment."""

    def __init__(self) -> None:
        self._tools: dict[str, CodeTool] = {}
        self._results: dict[str, ToolResult] = {}
        self._last: ToolResult | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<ToolRegistry: {', '.join(self._tools) or 'no tools'}>"

    # -- registering -------------------------------------------------------------------------------------------------

    def register(
        self, tool: CodeTool, *, permissions: PermissionNeeds | None = None, description_file: str | None = None
    ) -> None:
        """Adds a tool; refuses a name that is taken.

        :param permissions: replaces the permissions that the tool declares.
        :param description_file: a text for the model, in or below the folder of the module that defines the tool;
            ``${workspace}``, ``${directory}`` and ``${cwd}`` in it mean the workspace of the context.
        """
        if not isinstance(tool, CodeTool):
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

    def get(self, name: str) -> CodeTool | None:
        """The tool of that name, with the permissions it was registered with."""
        with self._lock:
            return self._tools.get(name)

    def enabled(self, permissions: Collection[Permission]) -> list[CodeTool]:
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
            error: ToolNotFound = path.not_found(name, self._tools)
        return ToolResult(call_id_of(ctx), str(name), "error", str(error))

    def _remember(self, result: ToolResult) -> ToolResult:
        with self._lock:
            self._results[result.name] = self._last = result
        return result


class RunnableTool:
    """One tool of a registry, ready to run."""

    def __init__(self, definition: ToolDefinition, tool: CodeTool, owner: RunnableTools) -> None:
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
        allowed = {definition.name: definition for definition in self._shared._core.allowed_tools()}
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

    def _run(self, tool: CodeTool, arguments: Mapping[str, object] | str, call_id: str | None) -> ToolResult:
        id = call_id if call_id is not None else new_call_id()
        try:
            result = execute(tool, arguments, self._context_of(tool, id))
        except Exception as error:  # from the caller's create_context
            result = path.error_result(error, id, tool.name)
        return self._report(result)

    async def _run_async(
        self, tool: CodeTool, arguments: Mapping[str, object] | str, call_id: str | None
    ) -> ToolResult:
        id = call_id if call_id is not None else new_call_id()
        try:
            result = await execute_async(tool, arguments, self._context_of(tool, id))
        except Exception as error:
            result = path.error_result(error, id, tool.name)
        return self._report(result)

    def _context_of(self, tool: CodeTool, call_id: str) -> ToolContext:
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


def _description(tool: CodeTool, name: str) -> str:
    assert isinstance(tool, FunctionTool | LazyTool)
    maker = plain_function(tool.factory if isinstance(tool, LazyTool) else tool.function)
    try:
        source = inspect.getsourcefile(maker)
    except TypeError:  # a C function
        source = None
    return read_module_description(source, name, tool.owner)
