"""A pack whose handlers call an MCP server: ``mcp_pack(McpServer(...), {"fs_read": McpTool("read", "acme...:Output")})``.

The server is connected to at the first call and shared by all calls. If it dies, the next call starts it again. The
toolkit closes it; ``connection.py`` says who owns what. A stdio server runs in the process guard's sandbox: it sees the
workspace, the system's programs read-only, and a private HOME and ``/tmp`` that last as long as it does; of the
environment only the named variables; no network unless ``network`` says so. A server over HTTP is reached at its configured
origin and nowhere else.

A call that was under way when its server died is never repeated: it is unknown how far it got, and the hints that a
server declares for its own tools (``idempotentHint``) must not widen what happens. It fails as ``TOOL_FAILED`` with
``SERVER_DIED``.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from toolkit.errors import ToolFailed
from toolkit.guard.policy.preview import Preview
from toolkit.inject import DependencyKey
from toolkit.packs.mcp.server import McpServer
from toolkit.runtime.catalog import NO_SANDBOX
from toolkit.runtime.packs import HandlerParts, Pack, Place
from toolkit.runtime.tool_context import ToolContext
from toolkit.user_state import TOKEN_RECORDS

if TYPE_CHECKING:
    from toolkit.packs.mcp.connection import McpClient, McpConnection
    from toolkit.packs.mcp.session import ServerAccess


@dataclass(frozen=True, slots=True)
class McpTool:
    """One tool: its name at the server, its output model (``"module:Class"``), and whether the server wraps the output
    as ``{"result": ...}``."""

    name: str
    output: str
    wraps_result: bool = False


class McpPack(Pack):
    """The handlers of a server's tools; ``client`` reads its resources and prompts."""

    def __init__(self, server: McpServer, tools: Mapping[str, McpTool]) -> None:
        self.server: Final = server
        self._key: Final[DependencyKey[McpConnection]] = DependencyKey(
            f"mcp server {server.name}", self._connect, lifetime="run"
        )
        super().__init__({name: _Handler(server, tool, self._key, tools).as_parts() for name, tool in tools.items()})

    async def client(self, ctx: ToolContext) -> McpClient:
        """The server's resources and prompts, over the connection that its tools use.

        ``ctx`` must have the permission that the server's tools have: ``execute`` or ``network``.

        >>> async def read_manual(args: BaseModel, ctx: ToolContext) -> str:
        ...     client = await FILES.client(ctx)
        ...     blocks = await client.read_resource("docs://manual")
        ...     return "".join(block.text or "" for block in blocks)
        >>> FILES = mcp_pack(McpServer(name="files", command=("mcp-server-filesystem", ".")), {})
        """
        connection = await ctx.resolve_async(self._key)
        from toolkit.packs.mcp.connection import McpClient

        return McpClient(self.server, connection, server_access(self.server, ctx, self.handlers))

    async def _connect(self) -> AsyncIterator[McpConnection]:
        try:
            from toolkit.packs.mcp.connection import McpConnection
        except ImportError as error:
            message = f"MCP servers need the package {error.name!r}: pip install 'typed-toolkit[mcp]'"
            raise ToolFailed("NOT_CONFIGURED", message) from None
        connection = McpConnection(self.server)
        try:
            yield connection
        finally:
            await connection.close()


def mcp_pack(server: McpServer, tools: Mapping[str, McpTool]) -> McpPack:
    """The handlers of a server's tools, by the names they have in the toolkit.

    >>> files = McpServer(name="files", command=("mcp-server-filesystem", "."))
    >>> pack = mcp_pack(files, {"fs_read": McpTool("read", "acme.generated.models.fs_read:FsReadOutput")})
    >>> list(pack.handlers)
    ['fs_read']
    """
    return McpPack(server, tools)


def server_access(server: McpServer, ctx: ToolContext, tools: Collection[str]) -> ServerAccess:
    """What the context of a call allows a server that has these tools.

    The server outlives the call that starts it, so that call's check is left out.
    """
    from toolkit.packs.mcp.session import ServerAccess

    network = ctx.net.network if server.url or server.network else None
    process = ctx._process_of_server(tools).with_check(_never_stop) if server.command else None
    tokens = ctx._user_records(TOKEN_RECORDS) if server.oauth is not None else None
    return ServerAccess(process, network, ctx.mcp, tokens)


class _Handler:
    """Calls one tool of a server."""

    def __init__(
        self, server: McpServer, tool: McpTool, key: DependencyKey[McpConnection], tools: Collection[str]
    ) -> None:
        self._server: Final = server
        self._tool: Final = tool
        self._key: Final = key
        self._tools: Final = frozenset(tools)
        self._opted_out: Final = bool(server.command) and not server.sandbox

    def as_parts(self) -> HandlerParts[..., object]:
        place: Place = "local server" if self._server.command else "remote"
        network = self._server.command_network
        return HandlerParts(self, preview=self._preview, sandboxed=not self._opted_out, place=place, network=network)

    async def __call__(self, args: BaseModel, ctx: ToolContext) -> object:
        connection = await ctx.resolve_async(self._key)
        from toolkit.packs.mcp.content import read_output

        if self._opted_out:
            ctx.metadata(sandbox=NO_SANDBOX)
        arguments = args.model_dump(mode="json", by_alias=True, exclude_unset=True)
        left = ctx.signal.remaining
        result = await connection.call(
            self._tool.name,
            arguments,
            server_access(self._server, ctx, self._tools),
            timeout=self._server.timeout if left is None else min(left, self._server.timeout),
            on_progress=_progress_reporter(ctx) if ctx._watched else None,
        )
        return read_output(result, self._tool, self._output_model(), ctx, connection.without_secrets)

    def _output_model(self) -> type[BaseModel]:
        module, _, name = self._tool.output.partition(":")
        model: type[BaseModel] = getattr(importlib.import_module(module), name)
        return model

    def _preview(self, args: BaseModel, ctx: ToolContext) -> Preview:
        return Preview(argv=self._server.command) if self._server.command else Preview(url=self._server.url)


def _never_stop() -> None:
    """A guard's check that never ends anything."""


def _progress_reporter(ctx: ToolContext) -> Callable[[float, float | None, str | None], None]:
    def report(progress: float, total: float | None, message: str | None) -> None:
        data = {"progress": progress} if total is None else {"progress": progress, "total": total}
        ctx.progress(title=message, **data)

    return report
