"""One session with an MCP server: from its start, or the first request to it, until its end, and why it ended.

``McpSession`` belongs to an ``McpConnection`` and lives in one task of that connection's loop. The task opens the
transport (a process over stdio, or HTTP), connects the official client over it, waits until the session is to stop or
the server is gone, and closes everything in reverse order. Whatever the reason, it keeps one error for the calls that
are still waiting.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp import Client, MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    Implementation,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    PaginatedRequestParams,
)
from pydantic import ValidationError

from toolkit.errors import SetupError, ToolCancelled, ToolFailed, ToolkitError, ToolTimeout
from toolkit.guard.network.hosts import Url
from toolkit.guard.process.guard import GRACE, LongProcess
from toolkit.packs.answers import hide_secrets
from toolkit.packs.mcp.http import http_streams
from toolkit.packs.mcp.questions import ServerQuestions
from toolkit.packs.mcp.server import OWN_ERROR, ServerLog, read_own_error
from toolkit.packs.mcp.stdio import JsonRpcReader, stdio_streams
from toolkit.runtime.arguments import first_errors
from toolkit.runtime.workers import Workers
from toolkit.user_state import fill_in, read_variables, read_variables_by_name
from toolkit.visible import display

if TYPE_CHECKING:
    import contextvars

    from mcp import ClientSession
    from mcp.client._transport import ReadStream, TransportStreams, WriteStream

    from toolkit.guard.network.hosts import Network
    from toolkit.guard.process.guard import ProcessGuard
    from toolkit.packs.mcp.http import Authorize
    from toolkit.packs.mcp.oauth import ServerAuthorization
    from toolkit.packs.mcp.server import McpServer
    from toolkit.runtime.context import McpCallbacks
    from toolkit.runtime.state_directory import PrivateRecords


# ----------------------------------------------------------------------------------------------------------------------
# What a server sends, before the official client sees it; the same for stdio and HTTP.
#
# Promise: the client gets the answers, the requests, and the notifications that have a use here: well-formed progress, and
# cancellations. Everything else is dropped: log messages, changes of lists, unknown methods, progress that is malformed or
# not a finite number. Questions that nobody answers (elicitation, sampling) get a refusal in our words.


class IncomingStream:
    """The stream of a server's messages, without those that are dropped."""

    def __init__(
        self,
        stream: ReadStream[SessionMessage | Exception],
        outgoing: WriteStream[SessionMessage],
        log: ServerLog,
        refusal: Callable[[str], str | None],
    ) -> None:
        self._stream = stream
        self._outgoing = outgoing
        self._log = log
        self._refusal = refusal
        self.assumes_complete = False
        """Whether an answer that does not say what it is counts as complete, as newer revisions of the protocol demand."""

    @property
    def last_context(self) -> contextvars.Context | None:
        """The context variables of the last message's sender, which the client asks for."""
        context: contextvars.Context | None = getattr(self._stream, "last_context", None)
        return context

    async def receive(self) -> SessionMessage | Exception:
        while True:
            item = await self._stream.receive()
            if isinstance(item, Exception):
                self._log.warn(f"a message that cannot be read is ignored ({type(item).__name__})")
            elif isinstance(item.message, JSONRPCRequest) and (words := self._refusal(item.message.method)):
                await self._refuse(item.message, words)
            elif not isinstance(item.message, JSONRPCNotification) or self._is_useful(item.message):
                if self.assumes_complete and isinstance(item.message, JSONRPCResponse):
                    item.message.result.setdefault("resultType", "complete")
                return item

    async def _refuse(self, request: JSONRPCRequest, words: str) -> None:
        error = ErrorData(code=INVALID_REQUEST, message=words)
        await self._outgoing.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=request.id, error=error)))

    def _is_useful(self, message: JSONRPCNotification) -> bool:
        if message.method == "notifications/progress":
            if not is_progress(message.params):
                self._log.warn("a malformed progress notification is ignored")
                return False
            return True
        return message.method == "notifications/cancelled"

    def __aiter__(self) -> IncomingStream:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        from anyio import EndOfStream

        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> IncomingStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


def is_progress(params: dict[str, Any] | None) -> bool:
    """Whether these are the parameters of a progress notification, with numbers that are finite.

    >>> is_progress({"progressToken": 1, "progress": 0.5}), is_progress({"progressToken": 1, "progress": float("nan")})
    (True, False)
    """
    if params is None or not _is_token(params.get("progressToken")) or not _is_number(params.get("progress")):
        return False
    total, message = params.get("total"), params.get("message")
    return (total is None or _is_number(total)) and (message is None or isinstance(message, str))


def _is_token(value: object) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False


# ----------------------------------------------------------------------------------------------------------------------
# What is sent to a server; the same for stdio and HTTP. Notices a server that does not read.


class OutgoingStream:
    """The stream of messages to a server."""

    def __init__(self, stream: WriteStream[SessionMessage]) -> None:
        self._stream = stream
        self.is_blocked = False
        """Whether the last message was given up, because the transport still waits for the server to take an earlier one.

        The official client sends a cancellation for every request that it gives up, and tries that for some seconds. So after
        a request without an answer this says whether the server reads.
        """

    async def send(self, item: SessionMessage) -> None:
        try:
            await self._stream.send(item)
        except anyio.get_cancelled_exc_class():
            self.is_blocked = True
            raise
        self.is_blocked = False

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> OutgoingStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


RAISE_TIMEOUT: Final = "; raise its 'startup_timeout' if it needs longer"
_MAX_QUOTED: Final = 2000
_MAX_PAGES: Final = 100
_SESSION_TERMINATED: Final = "Session terminated"  # the transport's message for a session the server has forgotten
_UNREADABLE: Final = re.compile(r"Failed to parse [\w ]{1,30}: ")


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """What a server is reached with: ``process`` starts its command, ``network`` allows its address, ``callbacks`` answer
    what it asks, ``tokens`` are where its login is kept."""

    process: ProcessGuard | None = None
    network: Network | None = None
    callbacks: McpCallbacks | None = None
    tokens: PrivateRecords | None = None


class SessionExpired(Exception):
    """The server refused the request because it has forgotten the session: the only case that is tried again."""


class McpSession:
    """Made inside the connection's loop, where it starts its task at once.

    ``wait_until_ready`` returns the client's session, or raises why there is none. ``is_over`` means that it must not be
    used any more; its owner still has to ``close`` it.
    """

    def __init__(self, server: McpServer, access: ServerAccess, workers: Workers) -> None:
        self._server = server
        self._access = access
        self._workers = workers
        self.questions: Final = ServerQuestions(server.name, access.callbacks, workers)
        self._server_gone = anyio.Event()
        self._stop = anyio.Event()
        self._process: LongProcess | None = None
        self._reader: JsonRpcReader | None = None
        self._outgoing: OutgoingStream | None = None
        self._secrets: Mapping[str, str] = {}
        self._authorization: ServerAuthorization | None = None
        self._log = ServerLog(server.name, self.without_secrets)
        self._failure: ToolkitError | None = None
        self._closed_by_owner = False
        # Its deadline is first that of the start, then none, then that of the end.
        self._time_limit = anyio.CancelScope(deadline=anyio.current_time() + server.seconds_to_start)
        self._ready: asyncio.Future[ClientSession] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run())

    @property
    def is_over(self) -> bool:
        return self._server_gone.is_set() or self._stop.is_set() or self._task.done()

    async def wait_until_ready(self) -> ClientSession:
        """The client's session, once the server has answered; a caller that is cancelled does not end it for others."""
        waiting: list[asyncio.Future[Any]] = [self._ready, self._task]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if self._ready.done():
            return self._ready.result()
        raise self._end_error()

    @property
    def is_unread(self) -> bool:
        """Whether the server did not take the last message."""
        return self._outgoing is not None and self._outgoing.is_blocked

    def explain_silence(self) -> ToolTimeout:
        """The error for a request that was not answered in time."""
        problem = "does not read its input" if self.is_unread else "did not answer in time"
        return ToolTimeout(f"{self._name} {problem}", details={"abandoned": False})

    def retire(self) -> None:
        """Let no new call use it; its task ends soon."""
        self._stop.set()

    async def close(self) -> None:
        """End the session and its server; returns when nothing of them is left."""
        self._closed_by_owner = not self.is_over
        self.retire()
        # Ending an HTTP session must not take longer than ending a process.
        self._time_limit.deadline = anyio.current_time() + GRACE
        await asyncio.wait({self._task})

    async def explain_error(self, error: Exception) -> ToolkitError | SessionExpired:
        """The error of ours for what a request raised."""
        if isinstance(error, ValidationError):
            message = (
                f"{self._name} sent an answer that is not valid in the protocol: {self._quote(_first_error(error))}"
            )
            return ToolFailed("REMOTE", message, server=self._server.name)
        if not isinstance(error, MCPError):
            return ToolFailed("REMOTE", f"{self._name} sent an unsupported request: {self._quote(str(error))}")
        if error.code == OWN_ERROR and (own := self._own_error(error)):
            return own
        if error.code == CONNECTION_CLOSED and (self.is_over or self._server.url):
            await asyncio.wait({self._task}, timeout=None if self.is_over else 0)
            return self._end_error()
        if self._server.url and error.message == _SESSION_TERMINATED:
            return SessionExpired()
        if error.code == PARSE_ERROR and (unreadable := _UNREADABLE.match(error.message)):
            problem = self._quote(error.message[unreadable.end() :])
            return ToolFailed("REMOTE", f"{self._name} sent an answer that cannot be read: {problem}")
        return ToolFailed(
            "REMOTE", f"{self._name} refused the request: {self._quote(error.message)}", rpc_code=error.code
        )

    def without_secrets(self, text: str) -> str:
        """The text with the names of variables in place of the values that the server was given."""
        text = hide_secrets(text, ((f"${{{name}}}", value) for name, value in self._secrets.items()))
        if self._authorization is None:
            return text
        return hide_secrets(text, (("${token}", value) for value in self._authorization.secret_values()))

    @property
    def _name(self) -> str:
        return f"the MCP server {self._server.name!r}"

    # -- the task of the session ---------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            with self._time_limit, self.questions.limits.watch(self._time_limit), self._log.take_over():
                async with self._open_client() as client:
                    self._ready.set_result(client)
                    self._time_limit.deadline = float("inf")
                    await _wait_for_any(self._stop, self._server_gone)
        except Exception as error:
            self._failure = self._explain_end(error)
        finally:
            if self._failure is None:
                self._failure = self._explain_end(None)

    @asynccontextmanager
    async def _open_client(self) -> AsyncIterator[ClientSession]:
        async with self._open_transport() as (stream, to_server):
            outgoing = self._outgoing = OutgoingStream(to_server)
            incoming = IncomingStream(stream, outgoing, self._log, self.questions.refusal)
            async with Client(
                _transport((incoming, outgoing)),
                client_info=_client_info(),
                cache=None,
                elicitation_callback=self.questions.on_elicit,
                sampling_callback=self.questions.on_sample,
            ) as client:
                if client.session.discover_result is not None:
                    incoming.assumes_complete = True
                    if self._server.url:
                        await learn_headers(client.session)
                yield client.session

    @asynccontextmanager
    async def _open_transport(self) -> AsyncIterator[TransportStreams]:
        server = self._server
        if server.url:
            self._secrets = read_variables(server.headers.values(), self._name)
            headers = {name: fill_in(value, self._secrets) for name, value in server.headers.items()}
            network = self._access.network
            assert network is not None
            url = Url.parse(server.url)
            authorize = None if server.oauth is None else self._authorize(url, network)
            async with http_streams(url, headers, network, self._workers, authorize) as streams:
                yield streams
            return
        env = self._read_environment()
        process = self._process = await self._start_process(env)
        reader = self._reader = JsonRpcReader(process)
        try:
            async with stdio_streams(process, reader, self._server_gone) as streams:
                yield streams
        finally:
            with anyio.CancelScope(shield=True):
                await asyncio.wrap_future(self._workers.submit(process.close))

    def _authorize(self, url: Url, network: Network) -> Authorize:
        """Adds the login of the server to its transport."""
        from toolkit.packs.mcp.oauth import AuthorizationServers, AuthorizedTransport, ServerAuthorization, TokenStore

        server, access = self._server, self._access
        assert server.oauth is not None and access.tokens is not None
        store = TokenStore(access.tokens, server)
        open_url = None if access.callbacks is None else access.callbacks.open_url
        login = self._authorization = ServerAuthorization(server, store, open_url, self._workers, self.questions.limits)
        servers = AuthorizationServers(url, server.oauth.issuer, network, self._workers)
        return lambda transport: AuthorizedTransport(transport, login, servers, server.name)

    def _read_environment(self) -> Mapping[str, str]:
        """The variables of the command; values that come from our environment are secrets."""
        env = self._server.env
        if isinstance(env, Mapping):
            self._secrets = read_variables(env.values(), self._name)
            return {name: fill_in(text, self._secrets) for name, text in env.items()}
        self._secrets = read_variables_by_name(env, self._name)
        return self._secrets

    async def _start_process(self, env: Mapping[str, str]) -> LongProcess:
        server, guard = self._server, self._access.process
        assert guard is not None

        def start() -> LongProcess:
            return guard.start(
                server.command,
                cwd=server.cwd,
                env=env,
                network=server.command_network,
                sandbox=server.sandbox,
                read_roots=server.read_roots,
            )

        starting = asyncio.wrap_future(self._workers.submit(start))
        with anyio.CancelScope(shield=True):  # or what was started would never be closed
            await asyncio.wait({starting})
        return starting.result()

    # -- why it ended --------------------------------------------------------------------------------------------------

    def _end_error(self) -> ToolkitError:
        """A new error for each call: the runner writes the name of the tool into it."""
        if self._failure is None:
            return ToolFailed("SERVER_DIED", f"{self._name} closed the connection during the call")
        return copy(self._failure)

    def _explain_end(self, error: Exception | None) -> ToolkitError:
        cause = _first_cause(error)
        if self._closed_by_owner:
            return ToolCancelled("the toolkit was closed")
        if isinstance(cause, ToolkitError):
            return cause
        if isinstance(cause, SetupError):
            return ToolFailed("NOT_CONFIGURED", f"{self._name}: {cause}", server=self._server.name)
        if isinstance(cause, MCPError) and cause.code == OWN_ERROR and (own := self._own_error(cause)):
            return own
        try:
            notes = self._describe_exit()
        except ToolkitError as unknown:  # it never started, or its sandbox was killed from outside
            if not self._ready.done():
                return unknown
            notes = [unknown.message]
        if self._ready.done():
            return self._make_failure(
                "SERVER_DIED", "ended during the call; whether the call had an effect is unknown", notes
            )
        if self._time_limit.cancelled_caught:
            return self._make_failure(
                "SERVER_NOT_READY",
                f"was not ready within {self._server.seconds_to_start:g} s{RAISE_TIMEOUT}",
                notes,
            )
        if self._server_gone.is_set():
            return self._make_failure("SERVER_DIED", "ended before it was ready", notes)
        quoted = f": {self._quote(str(cause))}" if cause is not None else ""
        return self._make_failure("SERVER_NOT_READY", f"does not follow the protocol{quoted}", notes)

    def _describe_exit(self) -> list[str]:
        """What is known about the end of the process; raises if it never started or was not ended by itself or by us."""
        if self._process is None:
            return []
        outcome = self._process.outcome()
        status = f"exit code {outcome.exit_code}" if outcome.exit_code is not None else f"signal {outcome.signal}"
        # One that was not ready in time was ended by us: its status says nothing.
        notes = [] if self._time_limit.cancelled_caught else [outcome.note or status]
        if self._reader is not None and self._reader.problem:
            notes.append(self._quote(self._reader.problem))
        if stderr := self._process.last_stderr().strip():
            notes.append(f"the end of its stderr: {self._quote(stderr)}")
        return notes

    def _own_error(self, error: MCPError) -> ToolkitError | None:
        return read_own_error(error.error.data, self.without_secrets(error.message))

    def _make_failure(self, reason: str, message: str, notes: list[str]) -> ToolFailed:
        suffix = f" ({'; '.join(notes)})" if notes else ""
        return ToolFailed(reason, f"{self._name} {message}{suffix}", server=self._server.name)

    def _quote(self, text: str) -> str:
        """The end of the server's text, escaped and without the secret values it was given."""
        lines = map(display, self.without_secrets(text)[-_MAX_QUOTED:].splitlines())
        return "\n".join(lines)


def _client_info() -> Implementation:
    from toolkit import __version__

    return Implementation(name="typed-toolkit", version=__version__)


async def learn_headers(session: ClientSession) -> None:
    """Newer servers over HTTP want some arguments in headers; their list of tools says which ones."""
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        cursor = page.next_cursor
        if cursor is None:
            return


async def _wait_for_any(*events: anyio.Event) -> None:
    async with anyio.create_task_group() as tasks:

        async def wait(event: anyio.Event) -> None:
            await event.wait()
            tasks.cancel_scope.cancel()

        for event in events:
            tasks.start_soon(wait, event)


@asynccontextmanager
async def _transport(streams: TransportStreams) -> AsyncIterator[TransportStreams]:
    """Open streams in the form in which the official client takes a transport."""
    yield streams


def _first_error(error: ValidationError) -> str:
    """Where the first mistake is and what it is, without the value."""
    first = first_errors(error, 1)[0]
    return f"{'/'.join(map(str, first['loc']))}: {first['msg']}"


def _first_cause(error: BaseException | None) -> BaseException | None:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
