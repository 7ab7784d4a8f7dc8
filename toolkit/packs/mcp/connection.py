"""The connection to one MCP server, whichever loop or thread calls come from.

::

    a call (any loop) ── McpLink ── a loop in a thread of its own ── Life: one task that holds the session

The session of the official client lives in one task, because what it opens must be closed where it was opened; calls are
tasks beside it. A life that ended is followed by a new one when the next call comes, never by itself, and no call begins
more than one.
"""

from __future__ import annotations

import asyncio
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
from toolkit.packs.mcp.session import Life, Reach, SessionOver
from toolkit.runtime.context.progress import logger
from toolkit.runtime.workers import LoopThread, Workers

if TYPE_CHECKING:
    from mcp import ClientSession

    from toolkit.packs.mcp.pack import McpServer

__all__ = ["McpLink", "Reach"]

T = TypeVar("T")
OnProgress: TypeAlias = Callable[[float, float | None, str | None], None]

MAX_PAGES: Final = 1000
_PATIENCE: Final = 2.0
"""Seconds a request, or word that it is cancelled, may take to be written, beyond those it has for its answer."""

_MAX_UNHEARD: Final = 1000
_MAX_WORDS: Final = 2000

_ANSWER: Final[TypeAdapter[CallToolResult | InputRequiredResult]] = TypeAdapter(CallToolResult | InputRequiredResult)


class _Page(BaseModel):
    """One page of tools, each as the server tells it."""

    tools: list[dict[str, Any]]
    nextCursor: str | None = None


class McpLink:
    """One server, connected to at the first call. May be used from several loops and threads."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._loop = LoopThread()
        self._workers = Workers()
        self._life: Life | None = None
        self._changing: asyncio.Lock | None = None

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        reach: Reach,
        *,
        timeout: float,
        on_progress: OnProgress | None = None,
    ) -> CallToolResult:
        """What the server answers; whoever stops waiting for it lets the server know.

        ``on_progress`` is called in the caller's loop.
        """
        here = asyncio.get_running_loop()
        sent = heard = 0  # each counted in one thread only

        def hear(*words: Any) -> None:
            nonlocal heard
            heard += 1
            assert on_progress is not None
            on_progress(*words)

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            nonlocal sent
            # Whoever listens more slowly than a server talks misses some of it, or memory would grow without end.
            if sent - heard < _MAX_UNHEARD:
                sent += 1
                here.call_soon_threadsafe(hear, progress, total, message and message[:_MAX_WORDS])

        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments)))

        async def ask(session: ClientSession) -> CallToolResult | InputRequiredResult:
            return await session.send_request(
                request,
                _ANSWER,
                request_read_timeout_seconds=timeout,
                progress_callback=None if on_progress is None else tell,
            )

        result = await self._there(self._asked(ask, reach, timeout))
        if isinstance(result, InputRequiredResult):
            words = f"the MCP server {self._server.name!r} asks for input during a call, which is not offered"
            raise ToolFailed("REMOTE", words, server=self._server.name)
        return result

    async def list_tools(self, reach: Reach) -> tuple[dict[str, str], list[dict[str, Any]]]:
        """Name and version of the server, and all of its tools, as it tells them."""
        return await self._there(self._listed(reach))

    def without_secrets(self, text: str) -> str:
        """The server's words without the values it was handed."""
        return text if self._life is None else self._life.without_secrets(text)

    async def close(self) -> None:
        """End the server and what belongs to it; come back when nothing of it is left."""
        await self._there(self._end())
        self._loop.close()
        self._workers.close()

    async def _there(self, work: Awaitable[T]) -> T:
        """Awaits ``work`` in the loop of the session; stops it when this task is cancelled."""
        future, stop = self._loop.submit(work)
        waiting = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if waiting.cancelled():
                # Not this task but the work was: its loop was closed under it.
                raise ToolCancelled("the toolkit was closed") from None
            stop()
            # Nobody asks what becomes of it.
            waiting.add_done_callback(lambda done: None if done.cancelled() else done.exception())
            raise

    async def _asked(self, ask: Callable[[ClientSession], Awaitable[T]], reach: Reach, timeout: float) -> T:
        for attempt in (1, 2):
            life = await self._alive(reach)
            session = await life.ready()
            try:
                async with asyncio.timeout(timeout + _PATIENCE):
                    return await ask(session)
            except TimeoutError:
                life.give_up()
                words = f"the MCP server {self._server.name!r} does not read what it is sent"
                raise ToolTimeout(words, details={"abandoned": False}) from None
            except (MCPError, ValidationError, RuntimeError) as error:
                named = await life.named(error)
            if not isinstance(named, SessionOver):
                raise named from None
            life.give_up()
            if attempt == 2:
                break
        raise ToolFailed("REMOTE", f"the MCP server {self._server.name!r} forgets its session at once")

    async def _alive(self, reach: Reach) -> Life:
        """The life of now, or a new one."""
        if self._changing is None:
            self._changing = asyncio.Lock()
        async with self._changing:
            if self._life is not None and self._life.over:
                logger.warning("the MCP server %r ended, and is started again", self._server.name)
                await self._life.end()
                self._life = None
            if self._life is None:
                self._life = Life(self._server, reach, self._workers)
            return self._life

    async def _listed(self, reach: Reach) -> tuple[dict[str, str], list[dict[str, Any]]]:
        tools: list[dict[str, Any]] = []
        seen: set[str] = set()
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            request = ListToolsRequest(params=PaginatedRequestParams(cursor=cursor))

            async def ask(session: ClientSession, request: ListToolsRequest = request) -> _Page:
                return await session.send_request(request, _Page, self._server.timeout)

            page = await self._asked(ask, reach, self._server.timeout)
            tools += page.tools
            cursor = page.nextCursor
            if cursor is None:
                return await self._identity(reach), tools
            if cursor in seen:
                raise self._endless("gives one page of its tools again and again")
            seen.add(cursor)
        raise self._endless(f"has more than {MAX_PAGES} pages of tools")

    async def _identity(self, reach: Reach) -> dict[str, str]:
        info = (await (await self._alive(reach)).ready()).server_info
        return {} if info is None else {"name": info.name, "version": info.version}

    def _endless(self, words: str) -> ToolFailed:
        return ToolFailed("REMOTE", f"the MCP server {self._server.name!r} {words}", server=self._server.name)

    async def _end(self) -> None:
        if self._life is not None:
            await self._life.end()
