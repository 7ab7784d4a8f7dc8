"""A pack whose handlers call an MCP server: ``mcp_pack(McpServer(...), {"fs_read": McpTool("read", "acme...:Output")})``.

The server is connected to at the first call, shared by all calls, started again by the next call after it died, and
closed with the toolkit. A stdio server runs in the process guard's sandbox: it sees the workspace, the system's programs
read-only, and a private HOME and ``/tmp`` that last as long as it does; nothing of the environment but the variables
named; no network unless ``network=True``. A server over HTTP is reached at its configured origin and nowhere else.

A call that was under way when its server died is never repeated: nobody can know how far it came, and what a server says
of its own tools (``idempotentHint``) must not widen what happens. It fails as ``TOOL_FAILED`` with ``SERVER_DIED``.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from toolkit.errors import SetupError, ToolFailed, ToolkitError
from toolkit.guard.net.hosts import Url
from toolkit.guard.policy.preview import Preview
from toolkit.inject.key import DependencyKey
from toolkit.runtime.catalog.handler_parts import HandlerParts
from toolkit.runtime.catalog.pack import Pack
from toolkit.runtime.catalog.tool import NO_SANDBOX
from toolkit.runtime.context.tool_context import ToolContext

if TYPE_CHECKING:
    from toolkit.packs.mcp.connection import McpLink
    from toolkit.packs.mcp.session import Reach


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """How a server is reached: by a command it is started with, or by the URL it answers at.

    :param name: what it is called in errors.
    :param command: program and arguments, for a server over stdio; started in the workspace.
    :param url: for a server over HTTP.
    :param env: names of variables that are handed on to the command.
    :param headers: sent with every request; ``${NAME}`` stands for the variable of that name.
    :param sandbox: False runs the command without a sandbox, which the audit log then says of every call.
    :param network: whether the command may use the network.
    :param timeout: seconds one call may take, and the start of the server.

    >>> McpServer(name="files", command=("mcp-server-filesystem", ".")).sandbox
    True
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    sandbox: bool = True
    network: bool = False
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise SetupError(f"the MCP server {self.name!r} needs a command or a url, and not both")
        if isinstance(self.command, str) or isinstance(self.env, str):
            raise SetupError(f"'command' and 'env' of the MCP server {self.name!r} are lists of texts")
        if not self.timeout > 0:
            raise SetupError(f"the timeout of the MCP server {self.name!r} is a number of seconds above 0")
        if self.url:
            try:
                Url.parse(self.url)
            except ToolkitError as error:
                raise SetupError(f"the url of the MCP server {self.name!r}: {error.message}") from None


@dataclass(frozen=True, slots=True)
class McpTool:
    """One tool: its name at the server, where its output model is (``"module:Class"``), and whether the server wraps
    the output as ``{"result": ...}``."""

    name: str
    output: str
    wraps_result: bool = False


def mcp_pack(server: McpServer, tools: Mapping[str, McpTool]) -> Pack:
    """The handlers of a server's tools, by the names they have in the toolkit.

    >>> files = McpServer(name="files", command=("mcp-server-filesystem", "."))
    >>> pack = mcp_pack(files, {"fs_read": McpTool("read", "acme.generated.models.fs_read:FsReadOutput")})
    >>> list(pack.handlers)
    ['fs_read']
    """

    async def linked() -> AsyncIterator[McpLink]:
        try:
            from toolkit.packs.mcp.connection import McpLink
        except ImportError as error:
            words = f"MCP servers need the package {error.name!r}: pip install 'typed-toolkit[mcp]'"
            raise ToolFailed("NOT_CONFIGURED", words) from None
        link = McpLink(server)
        try:
            yield link
        finally:
            await link.close()

    key: DependencyKey[McpLink] = DependencyKey(f"mcp server {server.name}", linked, lifetime="run")
    return Pack({name: _Handler(server, tool, key).as_parts() for name, tool in tools.items()})


class _Handler:
    """Calls one tool of a server."""

    def __init__(self, server: McpServer, tool: McpTool, key: DependencyKey[McpLink]) -> None:
        self._server: Final = server
        self._tool: Final = tool
        self._key: Final = key
        self._opted_out: Final = bool(server.command) and not server.sandbox

    def as_parts(self) -> HandlerParts[..., object]:
        return HandlerParts(self, preview=self._preview, sandboxed=not self._opted_out)

    async def __call__(self, args: BaseModel, ctx: ToolContext) -> object:
        link = await ctx.resolve_async(self._key)
        from toolkit.packs.mcp.content import output_of

        if self._opted_out:
            ctx.metadata(sandbox=NO_SANDBOX)
        arguments = args.model_dump(mode="json", by_alias=True, exclude_unset=True)
        left = ctx.signal.remaining
        result = await link.call(
            self._tool.name,
            arguments,
            self._reach(ctx),
            timeout=self._server.timeout if left is None else min(left, self._server.timeout),
            on_progress=_telling(ctx) if ctx.watched else None,
        )
        return output_of(result, self._tool, self._output(), ctx, link.without_secrets)

    def _reach(self, ctx: ToolContext) -> Reach:
        """As far as the tool may reach; the server outlives the call that starts it, and must not end with it."""
        from toolkit.packs.mcp.session import Reach

        network = ctx.net.network if self._server.url or self._server.network else None
        return Reach(ctx.process.bound(_never), network) if self._server.command else Reach(network=network)

    def _output(self) -> type[BaseModel]:
        module, _, name = self._tool.output.partition(":")
        found: type[BaseModel] = getattr(importlib.import_module(module), name)
        return found

    def _preview(self, args: BaseModel, ctx: ToolContext) -> Preview:
        return Preview(argv=self._server.command) if self._server.command else Preview(url=self._server.url)


def _never() -> None:
    """Asked by a guard whether to stop."""


def _telling(ctx: ToolContext) -> Callable[[float, float | None, str | None], None]:
    def tell(progress: float, total: float | None, message: str | None) -> None:
        data = {"progress": progress} if total is None else {"progress": progress, "total": total}
        ctx.progress(title=message, **data)

    return tell
