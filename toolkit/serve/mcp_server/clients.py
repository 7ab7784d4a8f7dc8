"""The clients that are connected: what they are told beside the answers to their requests."""

from __future__ import annotations

import asyncio
import warnings
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, get_args

import anyio
from mcp.server.subscriptions import InMemorySubscriptionBus, ToolsListChanged
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import LoggingLevel
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolkit.serve.mcp_server.sessions import MAX_SESSIONS

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession
    from mcp_types import RequestId

_LEVELS: Final[tuple[LoggingLevel, ...]] = get_args(LoggingLevel)
SEND_SECONDS: Final = 5.0
"""How long a client may take to read a note before it goes without."""
SESSION_HEADER: Final = "mcp-session-id"


def session_key(ctx: ServerRequestContext[Any, Any]) -> str:
    """The session of a request. Over stdio there is one; from 2026-07-28 on the protocol has none."""
    if ctx.request is None or ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return ""
    key: str = ctx.request.headers.get(SESSION_HEADER, "")
    return key


class Clients:
    """The clients of a server. Those of older revisions get notes on their connection, the others by subscription."""

    def __init__(self) -> None:
        self.bus: Final = InMemorySubscriptionBus()
        self._sessions: Final[OrderedDict[str, ServerSession]] = OrderedDict()
        self._levels: Final[dict[str, LoggingLevel]] = {}
        self._greeted: Final[set[str]] = set()

    def remember(self, ctx: ServerRequestContext[Any, Any]) -> None:
        """Called for every request."""
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        key = session_key(ctx)
        if ctx.request is not None and not key:
            return  # the request that opens a session has no id yet; the next one has
        self._sessions[key] = ctx.session
        self._sessions.move_to_end(key)
        while len(self._sessions) > MAX_SESSIONS:
            gone, _ = self._sessions.popitem(last=False)
            self._levels.pop(gone, None)
            self._greeted.discard(gone)

    def is_greeted(self, ctx: ServerRequestContext[Any, Any]) -> bool:
        """Whether this was asked before about the client of a request. Clients of the newest revision have no connection."""
        key = session_key(ctx)
        if key in self._greeted or key not in self._sessions:
            return True
        self._greeted.add(key)
        return False

    def set_level(self, ctx: ServerRequestContext[Any, Any], level: LoggingLevel) -> None:
        self._levels[session_key(ctx)] = level

    def wants(self, ctx: ServerRequestContext[Any, Any], level: LoggingLevel) -> bool:
        """Whether a client wants log messages of this level. One that did not say so gets all of them."""
        return _LEVELS.index(level) >= _LEVELS.index(self._levels.get(session_key(ctx), "debug"))

    async def tell_tools_changed(self) -> None:
        """The list of tools is another one now."""
        await self.bus.publish(ToolsListChanged())
        await self._tell_all(lambda session: session.send_tool_list_changed())

    async def tell_one(self, ctx: ServerRequestContext[Any, Any], level: LoggingLevel, text: str) -> None:
        """A log message for the client of a request."""
        if self.wants(ctx, level):
            await _send_in_time(
                lambda session: send_log(session, level, text, "typed-toolkit", ctx.request_id), ctx.session
            )

    async def note(self, level: LoggingLevel, text: str) -> None:
        """A log message for everybody who is connected and wants such messages."""
        wanted = {
            key for key in self._sessions if _LEVELS.index(level) >= _LEVELS.index(self._levels.get(key, "debug"))
        }
        await self._tell_all(lambda session: send_log(session, level, text, "typed-toolkit"), wanted)

    async def _tell_all(self, send: Callable[[ServerSession], Awaitable[None]], keys: set[str] | None = None) -> None:
        """A client that does not read holds nobody up for long."""
        async with anyio.create_task_group() as group:
            for key, session in list(self._sessions.items()):
                if keys is None or key in keys:
                    group.start_soon(_send_in_time, send, session)


async def _send_in_time(send: Callable[[ServerSession], Awaitable[None]], session: ServerSession) -> None:
    with anyio.move_on_after(SEND_SECONDS):
        try:
            await send(session)
        except Exception:  # the client is gone: whatever its transport raises then
            return


async def send_log(
    session: ServerSession, level: LoggingLevel, text: str, logger: str, request_id: RequestId | None = None
) -> None:
    """A log message to one client, beside the answer to a request if one is named.

    The protocol calls this old-fashioned, and so does the SDK, but clients show it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        sending = session.send_log_message(level, text, logger, request_id)
    await sending


async def finish_sending(tasks: set[asyncio.Task[None]]) -> None:
    """Waits until a client has read what is on its way to it. One that does not read goes without."""
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=SEND_SECONDS)
        for task in late:
            task.cancel()


def ignore_failure(task: asyncio.Task[None]) -> None:
    """For what is sent beside an answer: a client that is gone does not get it."""
    if not task.cancelled():
        task.exception()
