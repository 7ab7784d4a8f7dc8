"""Tools that are made when they are first needed, by a factory that may have to wait for something."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from toolkit.errors import SetupError
from toolkit.guard.permission import Permissions
from toolkit.inject.plan import Given, Needs, Node
from toolkit.inject.scope import Scope
from toolkit.runtime.catalog.pack import Pack
from toolkit.runtime.context.tool_context import ToolContext
from toolkit.runtime.context.toolkit_context import ToolkitContext
from toolkit.runtime.functions.define import FunctionTool, checked_name
from toolkit.runtime.functions.define import Needs as PermissionNeeds
from toolkit.runtime.functions.signature import plain_function, qualified
from toolkit.runtime.workers import is_async
from toolkit.wire.definition import ToolDefinition
from toolkit.wire.result import ToolResult

Wait: TypeAlias = Callable[[Awaitable[Any]], Any]
"""Waits for something to be awaited, in a loop of its own."""

_VAR_POSITIONAL, _VAR_KEYWORD = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


class LazyTool:
    """A tool of which only the name and the permissions are known before its factory was called.

    The factory is called once, or, if it takes the ``ToolkitContext``, once for each: also when several threads or
    tasks need the tool at the same time. After a failure the next one who needs it tries again.
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
            raise SetupError(f"the factory {qualified(factory)} is a generator: it gives one tool, for good")
        self.factory: Final = factory
        self.name: Final = checked_name(name, factory)
        self.permissions: Final = Permissions.of(permissions)
        self.long_description: Final = long_description
        self.needs_context: Final = _takes_context(factory)
        self._node = self._plan()
        self._for_all = Scope(None)

    def __repr__(self) -> str:
        return f"<lazy tool {self.name!r}: {self.owner}>"

    @property
    def owner(self) -> str:
        """Who makes it: ``module.factory``."""
        return qualified(self.factory)

    @property
    def description(self) -> str:
        """What it does; as ``definition``, only for a factory that needs no context."""
        return self.made().description

    @property
    def definition(self) -> ToolDefinition:
        return self.made().definition

    def as_pack(self) -> Pack:
        return Pack(tools=[self])

    def changed(self, *, permissions: PermissionNeeds | None = None, long_description: str | None = None) -> LazyTool:
        """The same tool with other permissions, or another text."""
        if permissions is None and long_description is None:
            return self
        needs = self.permissions if permissions is None else permissions
        text = self.long_description if long_description is None else long_description
        return LazyTool(self.factory, name=self.name, permissions=needs, long_description=text)

    def execute_raw(self, text: str, ctx: ToolContext) -> ToolResult:
        """Makes the tool if need be and runs it; see ``FunctionTool.execute_raw``."""
        from toolkit.runtime.functions.standalone import execute

        return execute(self, text, ctx)

    async def execute_raw_async(self, text: str, ctx: ToolContext) -> ToolResult:
        """The same, awaited. Only the task's own cancellation is raised."""
        from toolkit.runtime.functions.standalone import execute_async

        return await execute_async(self, text, ctx)

    # -- making it ---------------------------------------------------------------------------------------------------

    def made(self, context: ToolkitContext[Any] | None = None, wait: Wait | None = None) -> FunctionTool[..., Any]:
        """The tool. An async factory is awaited by ``wait``; without that, it must have been called already."""
        scope = self._scope(context)
        tool: FunctionTool[..., Any] | None = scope.known(self._node)
        if tool is not None:
            return tool
        if not self._node.needs_loop:
            tool = scope.resolve(self._node)
        elif wait is not None:
            tool = wait(scope.resolve_async(self._node))
        else:
            raise SetupError(
                f"{self.name!r} is made by the async factory {self.owner}, which has to be awaited: "
                f"`await registry.tools_async(context)`, then build the toolkit with that context"
            )
        assert tool is not None
        return tool

    async def made_async(self, context: ToolkitContext[Any] | None = None) -> FunctionTool[..., Any]:
        """The tool; its factory is awaited in the loop that runs."""
        tool: FunctionTool[..., Any] = await self._scope(context).resolve_async(self._node)
        return tool

    def _scope(self, context: ToolkitContext[Any] | None) -> Scope:
        if not self.needs_context:
            return self._for_all
        if context is None:
            raise SetupError(
                f"{self.name!r} is made for a context by {self.owner}: ask a toolkit, or the registry's "
                f"`tools(context)`, what it is there"
            )
        return context._made.setdefault(self, Scope(context))

    def _plan(self) -> Node:
        """The factory as something to be made once and kept: what waits for what is the scope's business."""
        needs: Needs = (("context", Given("run")),) if self.needs_context else ()
        if is_async(self.factory):

            async def make_async(**context: ToolkitContext[Any]) -> FunctionTool[..., Any]:
                return self._checked(await self.factory(*context.values()))

            return Node(self.name, make_async, "async", "run", needs, needs_loop=True)

        def make(**context: ToolkitContext[Any]) -> FunctionTool[..., Any]:
            return self._checked(self.factory(*context.values()))

        return Node(self.name, make, "value", "run", needs, needs_loop=False)

    def _checked(self, made: object) -> FunctionTool[..., Any]:
        """What the factory gave, as a tool that is what was said of it."""
        if inspect.iscoroutine(made):
            made.close()
            raise SetupError(f"the factory {self.owner} of {self.name!r} gave a coroutine: write `async def`")
        if not callable(made):
            what = type(made).__name__
            raise SetupError(f"the factory {self.owner} of {self.name!r} gave {what}; it gives a function or a tool")
        if not isinstance(made, FunctionTool):
            made = FunctionTool(made, name=self.name)
        if made.name != self.name:
            raise SetupError(f"the factory {self.owner} was to make {self.name!r} and made {made.name!r}")
        if not made.permissions.within(self.permissions):
            raise SetupError(
                f"the factory {self.owner} made {self.name!r} with permissions nobody was told of: say in "
                f"define_tool(..., permissions=...) what it needs"
            )
        return made.changed(permissions=self.permissions, long_description=self.long_description)


def _takes_context(factory: Callable[..., Any]) -> bool:
    parameters = [
        parameter
        for parameter in inspect.signature(factory).parameters.values()
        if parameter.default is parameter.empty and parameter.kind not in (_VAR_POSITIONAL, _VAR_KEYWORD)
    ]
    if len(parameters) > 1 or any(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters):
        raise SetupError(f"the factory {qualified(factory)} takes more than the ToolkitContext")
    return bool(parameters)
