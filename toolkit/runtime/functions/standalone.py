"""Standalone contexts, for unit tests of tools and for registries; and running one tool with a context."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from toolkit.errors import InternalError, InvalidArguments, SetupError
from toolkit.guard.policy.policy import SecurityPolicy
from toolkit.runtime import path as steps
from toolkit.runtime.arguments import Reader
from toolkit.runtime.async_ import AsyncRunner
from toolkit.runtime.call.view import Options, View
from toolkit.runtime.catalog.catalog import Catalog, ToolInfo
from toolkit.runtime.catalog.pack import CodeTool, PackSource
from toolkit.runtime.catalog.tool import Tool
from toolkit.runtime.closeable import AsyncCloseable
from toolkit.runtime.context.toolkit_context import ToolkitContext
from toolkit.runtime.functions.define import FunctionTool
from toolkit.runtime.functions.lazy import LazyTool
from toolkit.runtime.output.message import ToolMessage
from toolkit.runtime.signals import NEVER, CallSignal, CancelSignal
from toolkit.runtime.sync import Runner
from toolkit.runtime.tool_context import ToolContext
from toolkit.runtime.toolkit import Core
from toolkit.wire.call import ToolCall
from toolkit.wire.content import ContentBlock, ContentOutput
from toolkit.wire.result import ToolResult

if TYPE_CHECKING:
    import os

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
        fs, consent = core.files_for(_NAME, granted, granted, ())
        if fs is not None:
            fs = fs.with_consent(consent)
        tool = Tool(ToolInfo(_NAME, "", "", ""), no_reader, no_reader, granted=granted, fs=fs)
        called = call_id if call_id is not None else new_call_id()
        notify = Runner.over(core)._options.notify
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
        if self._core.close.alive:
            self._drop_output()
            try:
                if self._scope is not None and self._scope.needs_loop:
                    self._core.loop.submit(self._scope.close_async())[0].result()
                elif self._scope is not None:
                    self._scope.close()
            finally:
                self._core.close()

    async def close_async(self) -> None:
        """The same, awaited: async generators are closed in the loop where they were made."""
        if self._core.close.alive:
            self._drop_output()
            try:
                if self._scope is not None:
                    await self._scope.close_async()
                await self._core.scope.close_async()
            finally:
                self._core.close()


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
    return StandaloneContext(Core(_NO_CATALOG, context, packs), call_id, signal)


def execute(tool: CodeTool, arguments: str | Mapping[str, object], ctx: ToolContext) -> ToolResult:
    """Runs one tool as the toolkit behind ``ctx`` would, on the same call path.

    Never raises, except for a tool that is set up wrongly, with a standalone context: that is for the programmer who made
    them, and no model waits for an answer.
    """
    id = call_id_of(ctx)
    try:
        call, ready = _make_call(id, tool, arguments), tool
        if isinstance(tool, LazyTool):
            ready = tool.load(ctx._core.context, Runner.over(ctx._core)._await_in_loop)
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
    return steps.error_result(error, call_id, tool_name)


def _make_call(id: str, tool: CodeTool, arguments: str | Mapping[str, object]) -> ToolCall:
    if isinstance(arguments, str):
        return ToolCall(id, tool.name, {}, raw_arguments=arguments)
    if isinstance(arguments, Mapping):
        return ToolCall(id, tool.name, arguments)
    raise InvalidArguments(f"the arguments must be JSON text or an object, not {type(arguments).__name__}")


def _make_view(kind: type[ViewT], tool: CodeTool, ctx: ToolContext) -> ViewT:
    """A view whose calls share the signal and the listeners of ``ctx``, and have no more than its permissions."""
    assert isinstance(tool, FunctionTool)
    view = kind.over(ctx._core.with_guest(tool, ctx.granted))
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
