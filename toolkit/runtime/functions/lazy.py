"""Tools that a factory, sync or async, makes at their first use."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from toolkit.errors import SetupError
from toolkit.guard.permission import Permissions
from toolkit.inject.plan import DependencyNode, Given, Needs
from toolkit.inject.scope import DependencyScope
from toolkit.runtime.catalog.pack import Pack
from toolkit.runtime.context.toolkit_context import ToolkitContext
from toolkit.runtime.functions.define import FunctionTool, PermissionNeeds, check_name
from toolkit.runtime.functions.signature import plain_function, qualified_name
from toolkit.runtime.tool_context import ToolContext
from toolkit.runtime.workers import is_async
from toolkit.wire.definition import ToolDefinition
from toolkit.wire.result import ToolResult

Wait: TypeAlias = Callable[[Awaitable[Any]], Any]
"""Waits for an awaitable, in another loop."""

_VAR_POSITIONAL, _VAR_KEYWORD = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


class LazyTool:
    """A tool of which only the name and the permissions are known until its factory is called.

    The factory is called once, or once per ``ToolkitContext`` if it takes one, also when several threads or tasks need the
    tool at the same time. After a failure, the next use tries again.
    """

    def __init__(
        self,
        factory: Callable[..., Any],
        *,
        name: str,
        permissions: PermissionNeeds = (),
        long_description: str | None = None,
    ) -> None:
        plain = plain_function(factory)
        if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
            raise SetupError(f"the factory {qualified_name(factory)} is a generator; a factory must return one tool")
        self.factory: Final = factory
        self.name: Final = check_name(name, factory)
        self.permissions: Final = Permissions.normalize(permissions)
        self.long_description: Final = long_description
        self.needs_context: Final = _takes_context(factory)
        self._node = self._plan()
        self._for_all = DependencyScope(None)

    def __repr__(self) -> str:
        return f"<lazy tool {self.name!r}: {self.owner}>"

    @property
    def owner(self) -> str:
        """Where it comes from: ``module.factory``."""
        return qualified_name(self.factory)

    @property
    def description(self) -> str:
        """What it does. Like ``definition``, only for a factory that takes no context."""
        return self.load().description

    @property
    def definition(self) -> ToolDefinition:
        return self.load().definition

    def as_pack(self) -> Pack:
        return Pack(tools=[self])

    def replace(self, *, permissions: PermissionNeeds | None = None, long_description: str | None = None) -> LazyTool:
        """A copy with other permissions, or another long description."""
        if permissions is None and long_description is None:
            return self
        needs = self.permissions if permissions is None else permissions
        text = self.long_description if long_description is None else long_description
        return LazyTool(self.factory, name=self.name, permissions=needs, long_description=text)

    def execute_raw(self, text: str, ctx: ToolContext) -> ToolResult:
        """Makes the tool if necessary and runs it; see ``FunctionTool.execute_raw``."""
        from toolkit.runtime.functions.standalone import execute

        return execute(self, text, ctx)

    async def execute_raw_async(self, text: str, ctx: ToolContext) -> ToolResult:
        """The same, awaited. Only the task's own cancellation is raised."""
        from toolkit.runtime.functions.standalone import execute_async

        return await execute_async(self, text, ctx)

    # -- making it ---------------------------------------------------------------------------------------------------

    def load(self, context: ToolkitContext[Any] | None = None, wait: Wait | None = None) -> FunctionTool[..., Any]:
        """The tool. ``wait`` awaits an async factory; without it, the factory must have been called already."""
        scope = self._scope(context)
        tool: FunctionTool[..., Any] | None = scope.find(self._node)
        if tool is not None:
            return tool
        if not self._node.needs_loop:
            tool = scope.resolve(self._node)
        elif wait is not None:
            tool = wait(scope.resolve_async(self._node))
        else:
            raise SetupError(
                f"{self.name!r} is made by the async factory {self.owner}, which must be awaited: "
                f"`await registry.tools_async(context)`, then build the toolkit with that context"
            )
        assert tool is not None
        return tool

    async def load_async(self, context: ToolkitContext[Any] | None = None) -> FunctionTool[..., Any]:
        """The tool; its factory is awaited in the running loop."""
        tool: FunctionTool[..., Any] = await self._scope(context).resolve_async(self._node)
        return tool

    def _scope(self, context: ToolkitContext[Any] | None) -> DependencyScope:
        if not self.needs_context:
            return self._for_all
        if context is None:
            raise SetupError(
                f"{self.name!r} is made per context by {self.owner}: get its definition from a toolkit, or from "
                f"the registry's `tools(context)`"
            )
        return context._lazy_tools.setdefault(self, DependencyScope(context))

    def _plan(self) -> DependencyNode:
        """The factory as a dependency, so that the scope makes it once and handles concurrent uses."""
        needs: Needs = (("context", Given("run")),) if self.needs_context else ()
        if is_async(self.factory):

            async def make_async(**context: ToolkitContext[Any]) -> FunctionTool[..., Any]:
                return self._check_made(await self.factory(*context.values()))

            return DependencyNode(self.name, make_async, "async", "run", needs, needs_loop=True)

        def make(**context: ToolkitContext[Any]) -> FunctionTool[..., Any]:
            return self._check_made(self.factory(*context.values()))

        return DependencyNode(self.name, make, "value", "run", needs, needs_loop=False)

    def _check_made(self, made: object) -> FunctionTool[..., Any]:
        """The factory's result as a tool; refuses one that differs from what was declared."""
        if inspect.iscoroutine(made):
            made.close()
            raise SetupError(f"the factory {self.owner} of {self.name!r} returned a coroutine: write `async def`")
        if not callable(made):
            what = type(made).__name__
            raise SetupError(
                f"the factory {self.owner} of {self.name!r} returned {what}; it must return a function or a tool"
            )
        if not isinstance(made, FunctionTool):
            made = FunctionTool(made, name=self.name)
        if made.name != self.name:
            raise SetupError(f"the factory {self.owner} must make {self.name!r}, but made {made.name!r}")
        if not made.permissions.is_within(self.permissions):
            raise SetupError(
                f"the factory {self.owner} made {self.name!r} with permissions that were not declared: list them in "
                f"define_tool(..., permissions=...)"
            )
        return made.replace(permissions=self.permissions, long_description=self.long_description)


def _takes_context(factory: Callable[..., Any]) -> bool:
    parameters = [
        parameter
        for parameter in inspect.signature(factory).parameters.values()
        if parameter.default is parameter.empty and parameter.kind not in (_VAR_POSITIONAL, _VAR_KEYWORD)
    ]
    if len(parameters) > 1 or any(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters):
        raise SetupError(f"the factory {qualified_name(factory)} takes more parameters than the ToolkitContext")
    return bool(parameters)
