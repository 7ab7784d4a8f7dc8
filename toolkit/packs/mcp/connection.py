"""The connection to one MCP server. Calls may come from any loop or thread.

::

    a call (any loop) ── McpConnection ── its own event loop, in its own thread ── McpSession (one task in that loop)

Who owns what:

- The toolkit makes one ``McpConnection`` per server at the first call (``pack.py``) and closes it when it is closed.
- The connection owns the event loop, its thread, the worker threads, and the current session. Requests run as tasks in
  that loop, whichever loop the call came from.
- The session (``session.py``) owns the server: the process or the HTTP client, and the official client's session. All of
  it lives in one task, because the official client must close what it opened in the task that opened it.

When the server dies, its session is over: calls under way fail with ``SERVER_DIED``, and the next call starts a new
session. Nothing starts one on its own, and calls that come at the same time share one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from mcp import MCPError
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListToolsRequest,
    PaginatedRequestParams,
)
from pydantic import BaseModel, TypeAdapter, ValidationError

from toolkit.errors import ToolCancelled, ToolFailed, ToolTimeout
from toolkit.packs.mcp.session import McpSession, ServerAccess, SessionExpired
from toolkit.runtime.context.progress import logger
from toolkit.runtime.workers import LoopThread, Workers

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.shared.dispatcher import ProgressFnT

    from toolkit.packs.mcp.server import McpServer

__all__ = ["McpConnection", "ServerAccess"]

T = TypeVar("T")
OnProgress: TypeAlias = Callable[[float, float | None, str | None], None]

MAX_PAGES: Final = 1000
MAX_TOOLS: Final = 10_000
MAX_TOOL_BYTES: Final = 64 << 20
"""Bounds of a server's list of tools, all pages together."""

_WRITE_SECONDS: Final = 2.0
"""Seconds that sending a request, or its cancellation, may take in addition to the time for its answer."""

_MAX_PENDING_PROGRESS: Final = 1000
_MAX_PROGRESS_TEXT: Final = 2000

_ANSWER: Final[TypeAdapter[CallToolResult | InputRequiredResult]] = TypeAdapter(CallToolResult | InputRequiredResult)


class _ToolPage(BaseModel):
    """One page of tools, each as the server describes it."""

    tools: list[dict[str, Any]]
    nextCursor: str | None = None


class McpConnection:
    """One server, connected to at the first call. May be used from several loops and threads."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._loop = LoopThread()
        self._workers = Workers()
        # Used only in the loop of this connection.
        self._session: McpSession | None = None
        self._session_lock: asyncio.Lock | None = None

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        access: ServerAccess,
        *,
        timeout: float,
        on_progress: OnProgress | None = None,
    ) -> CallToolResult:
        """The server's answer; cancelling this call cancels the request at the server.

        ``on_progress`` is called in the caller's loop.
        """
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments)))
        forward = None if on_progress is None else _forward_progress(on_progress, asyncio.get_running_loop())

        async def send(session: ClientSession) -> CallToolResult | InputRequiredResult:
            return await session.send_request(
                request, _ANSWER, request_read_timeout_seconds=timeout, progress_callback=forward
            )

        result = await self._run_in_loop(self._request(send, access, timeout))
        if isinstance(result, InputRequiredResult):
            raise self._remote_error("asks for input during a call, which is not supported")
        return result

    async def list_tools(self, access: ServerAccess) -> tuple[dict[str, str], list[dict[str, Any]]]:
        """Name and version of the server, and all of its tools, as it describes them."""
        return await self._run_in_loop(self._list_tools(access))

    def without_secrets(self, text: str) -> str:
        """The text without the secret values that the server was given."""
        return text if self._session is None else self._session.without_secrets(text)

    async def close(self) -> None:
        """End the session and the server, then the loop; returns when nothing of them is left."""
        await self._run_in_loop(self._close_session())
        self._loop.close()
        self._workers.close()

    async def _run_in_loop(self, work: Awaitable[T]) -> T:
        """Await ``work`` in the loop of this connection; cancel it there when the calling task is cancelled."""
        future, stop = self._loop.submit(work)
        waiting = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if waiting.cancelled():
                # Not the calling task but the work was cancelled: its loop was closed.
                raise ToolCancelled("the toolkit was closed") from None
            stop()
            # The result is not used, and asyncio would log an exception that was never read.
            waiting.add_done_callback(lambda done: None if done.cancelled() else done.exception())
            raise

    # -- from here on in the loop of this connection -------------------------------------------------------------------

    async def _request(self, send: Callable[[ClientSession], Awaitable[T]], access: ServerAccess, timeout: float) -> T:
        """Send a request to the current session; once more if the server has forgotten that session."""
        for attempt in (1, 2):
            session = await self._current_session(access)
            client = await session.wait_until_ready()
            try:
                async with asyncio.timeout(timeout + _WRITE_SECONDS):
                    return await send(client)
            except TimeoutError:
                session.retire()
                message = f"the MCP server {self._server.name!r} does not read its input"
                raise ToolTimeout(message, details={"abandoned": False}) from None
            except (MCPError, ValidationError, RuntimeError) as error:
                explained = await session.explain_error(error)
            if not isinstance(explained, SessionExpired):
                raise explained from None
            session.retire()
            if attempt == 2:
                break
        raise ToolFailed("REMOTE", f"the MCP server {self._server.name!r} ends every new session at once")

    async def _current_session(self, access: ServerAccess) -> McpSession:
        """The session in use, or a new one if there is none or it is over."""
        if self._session_lock is None:
            self._session_lock = asyncio.Lock()
        async with self._session_lock:
            if self._session is not None and self._session.is_over:
                logger.warning("the MCP server %r has ended and is started again", self._server.name)
                await self._session.close()
                self._session = None
            if self._session is None:
                self._session = McpSession(self._server, access, self._workers)
            return self._session

    async def _list_tools(self, access: ServerAccess) -> tuple[dict[str, str], list[dict[str, Any]]]:
        tools: list[dict[str, Any]] = []
        seen: set[str] = set()
        cursor: str | None = None
        size = 0
        for _ in range(MAX_PAGES):
            request = ListToolsRequest(params=PaginatedRequestParams(cursor=cursor))

            async def send(session: ClientSession, request: ListToolsRequest = request) -> _ToolPage:
                return await session.send_request(request, _ToolPage, self._server.timeout)

            page = await self._request(send, access, self._server.timeout)
            tools += page.tools
            size += len(json.dumps(page.tools))
            if len(tools) > MAX_TOOLS or size > MAX_TOOL_BYTES:
                raise self._remote_error(f"lists more than {MAX_TOOLS} tools, or {MAX_TOOL_BYTES >> 20} MiB of them")
            cursor = page.nextCursor
            if cursor is None:
                return await self._identity(access), tools
            if cursor in seen:
                raise self._remote_error("sends the same page of its tools again and again")
            seen.add(cursor)
        raise self._remote_error(f"has more than {MAX_PAGES} pages of tools")

    async def _identity(self, access: ServerAccess) -> dict[str, str]:
        info = (await (await self._current_session(access)).wait_until_ready()).server_info
        return {} if info is None else {"name": info.name, "version": info.version}

    async def _close_session(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _remote_error(self, message: str) -> ToolFailed:
        return ToolFailed("REMOTE", f"the MCP server {self._server.name!r} {message}", server=self._server.name)


def _forward_progress(on_progress: OnProgress, loop: asyncio.AbstractEventLoop) -> ProgressFnT:
    """A callback for the session's loop that calls ``on_progress`` in the caller's ``loop``."""
    sent = received = 0  # each counted in one thread only

    def receive(*event: Any) -> None:
        nonlocal received
        received += 1
        on_progress(*event)

    async def send(progress: float, total: float | None, message: str | None) -> None:
        nonlocal sent
        # A caller that is slower than the server misses events, or memory would grow without limit.
        if sent - received < _MAX_PENDING_PROGRESS:
            sent += 1
            loop.call_soon_threadsafe(receive, progress, total, message and message[:_MAX_PROGRESS_TEXT])

    return send
