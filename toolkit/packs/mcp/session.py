"""One life of a server: from its start, or the first request to it, to its end, and what that end was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp import Client, MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT, Implementation, PaginatedRequestParams
from pydantic import ValidationError

from toolkit.errors import ToolCancelled, ToolFailed, ToolkitError, ToolTimeout
from toolkit.guard.fs.path import display
from toolkit.guard.net.hosts import Url
from toolkit.guard.process.long_process import GRACE, LongProcess
from toolkit.guard.variables import fill_in, read_variables, read_variables_by_name
from toolkit.packs.mcp.http import FAILED_HERE, failed_here, http_streams
from toolkit.packs.mcp.stdio import Output, stdio_streams
from toolkit.runtime.workers import Workers

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.client._transport import TransportStreams

    from toolkit.guard.net.network import Network
    from toolkit.guard.process.guard import ProcessGuard
    from toolkit.packs.mcp.pack import McpServer

_CLIENT: Final = Implementation(name="typed-toolkit", version="0.1.0")
_SHOWN: Final = 2000
_MAX_PAGES: Final = 100
_SHORTEST_SECRET: Final = 4
_SESSION_OVER: Final = "Session terminated"  # the transport's own words for a session the server has forgotten


@dataclass(frozen=True, slots=True)
class Reach:
    """What a server is reached with: a command by the one, an address by the other."""

    process: ProcessGuard | None = None
    network: Network | None = None


class SessionOver(Exception):
    """The server did not take the request, because it has forgotten the session: the one thing worth a second try."""


class Life:
    """Begun where a loop runs. ``ready`` gives the session, or raises why there is none; ``over`` says that it is no use
    any more."""

    def __init__(self, server: McpServer, reach: Reach, workers: Workers) -> None:
        self._server = server
        self._reach = reach
        self._workers = workers
        self._gone = anyio.Event()
        self._stop = anyio.Event()
        self._process: LongProcess | None = None
        self._output: Output | None = None
        self._secrets: Mapping[str, str] = {}
        self._failure: ToolkitError | None = None
        self._closed = False
        self._patience = anyio.CancelScope(deadline=anyio.current_time() + server.timeout)
        self._ready: asyncio.Future[ClientSession] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live())

    @property
    def over(self) -> bool:
        return self._gone.is_set() or self._stop.is_set() or self._task.done()

    async def ready(self) -> ClientSession:
        """The session, once the server has answered; whoever stops waiting does not end it for the others."""
        waiting: list[asyncio.Future[Any]] = [self._ready, self._task]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if self._ready.done():
            return self._ready.result()
        raise self._ended()

    def give_up(self) -> None:
        """Let nobody use it any more."""
        self._stop.set()

    async def end(self) -> None:
        """Close it, and come back when it is."""
        self._closed = not self.over
        self.give_up()
        # Saying goodbye to a server over HTTP must not take longer than ending one that is a process.
        self._patience.deadline = anyio.current_time() + GRACE
        await asyncio.wait({self._task})

    async def named(self, error: Exception) -> ToolkitError | SessionOver:
        """What went wrong in a request, in our words."""
        if isinstance(error, ValidationError):
            return ToolFailed(
                "REMOTE",
                f"{self._name} answered what the protocol does not know: {self._shown(_place(error))}",
                server=self._server.name,
            )
        if not isinstance(error, MCPError):
            return ToolFailed("REMOTE", f"{self._name} asks for more than a call: {self._shown(str(error))}")
        if error.code == FAILED_HERE and (own := failed_here(error.error.data, self.without_secrets(error.message))):
            return own
        if error.code == CONNECTION_CLOSED and (self.over or self._server.url):
            await asyncio.wait({self._task}, timeout=None if self.over else 0)
            return self._ended()
        if error.code == REQUEST_TIMEOUT:
            return ToolTimeout(f"{self._name} gave no answer in time", details={"abandoned": False})
        if self._server.url and error.message == _SESSION_OVER:
            return SessionOver()
        return ToolFailed("REMOTE", f"{self._name} refuses: {self._shown(error.message)}", rpc_code=error.code)

    def without_secrets(self, text: str) -> str:
        """The text with the names of variables in the place of the values the server was handed."""
        for name, value in self._secrets.items():
            if len(value) >= _SHORTEST_SECRET:
                text = text.replace(value, f"${{{name}}}")
        return text

    @property
    def _name(self) -> str:
        return f"the MCP server {self._server.name!r}"

    async def _live(self) -> None:
        try:
            with self._patience:
                async with self._session() as session:
                    self._ready.set_result(session)
                    self._patience.deadline = float("inf")
                    await self._any(self._stop, self._gone)
        except Exception as error:
            self._failure = self._of(error)
        finally:
            if self._failure is None:
                self._failure = self._of(None)

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[ClientSession]:
        async with self._streams() as streams, Client(_given(streams), client_info=_CLIENT, cache=None) as client:
            if self._server.url and client.session.discover_result is not None:
                await _learn_headers(client.session)
            yield client.session

    @asynccontextmanager
    async def _streams(self) -> AsyncIterator[TransportStreams]:
        server = self._server
        if server.url:
            self._secrets = read_variables(server.headers.values(), self._name)
            headers = {name: fill_in(value, self._secrets) for name, value in server.headers.items()}
            network = self._reach.network
            assert network is not None
            async with http_streams(Url.parse(server.url), headers, network, self._workers) as streams:
                yield streams
            return
        self._secrets = read_variables_by_name(server.env, self._name)
        process = self._process = await self._started()
        output = self._output = Output(process)
        try:
            async with stdio_streams(process, output, self._gone) as streams:
                yield streams
        finally:
            with anyio.CancelScope(shield=True):
                await asyncio.wrap_future(self._workers.submit(process.close))

    async def _started(self) -> LongProcess:
        server, guard = self._server, self._reach.process
        assert guard is not None

        def start() -> LongProcess:
            return guard.start(server.command, env=self._secrets, network=server.network, sandbox=server.sandbox)

        starting = asyncio.wrap_future(self._workers.submit(start))
        with anyio.CancelScope(shield=True):  # or nobody would hold what was started
            await asyncio.wait({starting})
        return starting.result()

    async def _any(self, *events: anyio.Event) -> None:
        async with anyio.create_task_group() as tasks:

            async def wait(event: anyio.Event) -> None:
                await event.wait()
                tasks.cancel_scope.cancel()

            for event in events:
                tasks.start_soon(wait, event)

    # -- what its end was ----------------------------------------------------------------------------------------------

    def _ended(self) -> ToolkitError:
        """A new error for each call: the road writes the name of its tool into it."""
        return copy(self._failure) if self._failure else ToolFailed("SERVER_DIED", f"{self._name} broke off the call")

    def _of(self, error: Exception | None) -> ToolkitError:
        cause = _first(error)
        if self._closed:
            return ToolCancelled("the toolkit was closed")
        if isinstance(cause, ToolkitError):
            return cause
        if isinstance(cause, MCPError) and cause.code == FAILED_HERE:
            own = failed_here(cause.error.data, self.without_secrets(cause.message))
            if own is not None:
                return own
        try:
            how = self._how()
        except ToolkitError as unknown:  # it never began, or its sandbox was killed from outside
            if not self._ready.done():
                return unknown
            how = [unknown.message]
        if self._ready.done():
            return self._failed("SERVER_DIED", "ended during the call; whether it had any effect is not known", how)
        if self._patience.cancelled_caught:
            words = f"was not ready within {self._server.timeout:g} s"
            return self._failed("SERVER_NOT_READY", words, how)
        if self._gone.is_set():
            return self._failed("SERVER_DIED", "ended before it was ready", how)
        said = f": {self._shown(str(cause))}" if cause is not None else ""
        return self._failed("SERVER_NOT_READY", f"does not speak the protocol{said}", how)

    def _how(self) -> list[str]:
        """What is known of the end of a process; raises where it ended in no way of its own."""
        if self._process is None:
            return []
        ending = self._process.ending()
        how = f"exit code {ending.exit_code}" if ending.exit_code is not None else f"signal {ending.signal}"
        # One whose time was up was ended by us: how it took that tells nobody anything.
        notes = [] if self._patience.cancelled_caught else [how]
        if self._output is not None and self._output.complaint:
            notes.append(self._shown(self._output.complaint))
        if said := self._process.said().strip():
            notes.append(f"the last it said: {self._shown(said)}")
        return notes

    def _failed(self, reason: str, words: str, notes: list[str]) -> ToolFailed:
        behind = f" ({'; '.join(notes)})" if notes else ""
        return ToolFailed(reason, f"{self._name} {words}{behind}", server=self._server.name)

    def _shown(self, text: str) -> str:
        """The server's words, without the values it was handed."""
        lines = map(display, self.without_secrets(text)[-_SHOWN:].splitlines())
        return "\n".join(lines)


async def _learn_headers(session: ClientSession) -> None:
    """Newer servers want some arguments in headers, too, and say which ones in their list of tools."""
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        cursor = page.next_cursor
        if cursor is None:
            return


@asynccontextmanager
async def _given(streams: TransportStreams) -> AsyncIterator[TransportStreams]:
    yield streams


def _place(error: ValidationError) -> str:
    """The first thing that was wrong, without the value."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'/'.join(map(str, first['loc']))}: {first['msg']}"


def _first(error: BaseException | None) -> BaseException | None:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
