"""Packs of handlers, and the other things that can join a toolkit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from toolkit.errors import SetupError, nearest
from toolkit.runtime.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.guard.permission import Permissions
    from toolkit.wire.result import ToolResult

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")

Handler: TypeAlias = Callable[Concatenate[InputT, ToolContext, ...], OutputT | Awaitable[OutputT]]
"""Runs a tool: takes validated arguments and the context, returns the output; sync or async."""


@runtime_checkable
class CodeTool(Protocol):
    """A tool made from a function, or by a factory: what ``@tool`` and ``define_tool`` return."""

    @property
    def name(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def permissions(self) -> Permissions: ...
    def as_pack(self) -> Pack: ...
    def execute_raw(self, text: str, ctx: ToolContext) -> ToolResult: ...
    async def execute_raw_async(self, text: str, ctx: ToolContext) -> ToolResult: ...


@runtime_checkable
class PackSource(Protocol):
    """Anything that can join a toolkit: a pack, a registry, a code-first tool."""

    def as_pack(self) -> Pack: ...


class Pack:
    """Handlers by tool name, and code-first tools, which have their own.

    A generated ``bind`` makes packs and lets the type checker verify that every handler is there and fits its tool.

    >>> Pack({"done": print}).without("done").handlers
    {}
    """

    def __init__(
        self, handlers: Mapping[str, Callable[..., Any]] | None = None, tools: Iterable[CodeTool] = ()
    ) -> None:
        self.handlers: Final = dict(handlers or {})
        self.tools: Final = tuple(tools)

    def __repr__(self) -> str:
        return f"<Pack: {', '.join([*self.handlers, *(tool.name for tool in self.tools)]) or 'no tools'}>"

    def as_pack(self) -> Pack:
        return self

    def without(self, *names: str) -> Pack:
        """A copy without some tools: they are no longer offered, and fail as NO_HANDLER when called."""
        known = [*self.handlers, *(tool.name for tool in self.tools)]
        for name in names:
            if name not in known:
                raise SetupError(f"this pack has no handler for {name!r}.{nearest(name, known)}")
        handlers = {name: handler for name, handler in self.handlers.items() if name not in names}
        return Pack(handlers, [tool for tool in self.tools if tool.name not in names])
