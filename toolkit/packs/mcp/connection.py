"""The connection to one MCP server. Calls may come from any loop or thread.

::

    a call (any loop) ── McpConnection ── its own event loop, in its own thread ── McpSession (one task in that loop)

Who owns what:

- The toolkit makes one ``McpConnection`` per server at the first call (``pack.py``) and closes it when it is closed.
- The connection owns the event loop, its thread, the worker threads, and the current session. Requests run as tasks in
  that loop, whichever loop the call came from.
- The session (``session.py``) owns the server: the process or the HTTP client, and the official client's session. All of
  it lives in one task, because the official client must close what it opened in the task that opened it.

When the server dies, its session is over: calls in progress fail with ``SERVER_DIED`` and are not repeated, because nobody
knows how far they got. The next call starts a new session. Nothing starts one on its own, and calls that come at the same
time share one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import anyio
from mcp import MCPError
from mcp_types import (
    HEADER_MISMATCH,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequest,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    InputResponses,
    ListPromptsRequest,
    ListPromptsResult,
    ListResourcesRequest,
    ListResourcesResult,
    ListResourceTemplatesRequest,
    ListResourceTemplatesResult,
    ListToolsRequest,
    PaginatedRequestParams,
    ReadResourceRequest,
    ReadResourceRequestParams,
    ReadResourceResult,
    Request,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from toolkit.errors import ToolCancelled, ToolFailed
from toolkit.forks import count_restart, start_again_in_child
from toolkit.packs.mcp.content import (
    PageT,
    ToolListing,
    ToolPage,
    check_length,
    collect_tools,
    find_invalid_headers,
    read_blocks,
    read_pages,
    read_resource_contents,
)
from toolkit.packs.mcp.server import forget_logs
from toolkit.packs.mcp.session import McpSession, ServerAccess, SessionExpired, learn_headers
from toolkit.runtime.progress import logger
from toolkit.runtime.workers import LoopThread, Workers
from toolkit.wire.content import ContentBlock
from toolkit.wire.message import TextMessage

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.shared.dispatcher import ProgressFnT

    from toolkit.packs.mcp.server import McpServer


__all__ = ["McpConnection", "ServerAccess"]

T = TypeVar("T")
OnProgress: TypeAlias = Callable[[float, float | None, str | None], None]

_MAX_PENDING_PROGRESS: Final = 1000
_MAX_PROGRESS_TEXT: Final = 2000

_MAX_INPUT_ROUNDS: Final = 10
"""How often a server may ask for input before it answers a call."""

_of_parent: Final[list[McpSession]] = []
"""Sessions that this process got when it was forked. They are kept: if their tasks were collected, Python would end them."""

_CALLED: Final[TypeAdapter[CallToolResult | InputRequiredResult]] = TypeAdapter(CallToolResult | InputRequiredResult)

AnyRequest: TypeAlias = Request[Any, Any]
MakeRequest: TypeAlias = Callable[[InputResponses | None, str | None], AnyRequest]
"""Makes a request from the answers to what the server asked for, and the state it wants to see again."""

Send: TypeAlias = "Callable[[McpSession, ClientSession], Awaitable[T]]"
"""Sends a request over a session."""


class McpConnection:
    """One server, connected to at the first call. May be used from several loops and threads."""

    def __init__(self, server: McpServer) -> None:
        self._server = server
        self._loop = LoopThread()
        self._workers = Workers()
        # Used only in the loop of this connection.
        self._session: McpSession | None = None
        self._session_lock: asyncio.Lock | None = None
        start_again_in_child(self)

    def start_again_in_child(self) -> None:
        """The session, and its server, belong to the parent: the next call connects again."""
        if self._session is not None:
            _of_parent.append(self._session)
        self._session = self._session_lock = None
        forget_logs()

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
        forward = None if on_progress is None else _forward_progress(on_progress, asyncio.get_running_loop())

        def make_request(answers: InputResponses | None, state: str | None) -> CallToolRequest:
            params = CallToolRequestParams(
                name=tool, arguments=dict(arguments), input_responses=answers, request_state=state
            )
            return CallToolRequest(params=params)

        return await self.request(make_request, _CALLED, access, timeout=timeout, on_progress=forward)

    async def request(
        self,
        make_request: MakeRequest,
        answer: TypeAdapter[T | InputRequiredResult],
        access: ServerAccess,
        *,
        timeout: float,
        on_progress: ProgressFnT | None = None,
    ) -> T:
        """The server's answer to a request; what it asks for before it answers goes to the functions of the context."""
        caller = asyncio.get_running_loop()

        async def send(session: McpSession, client: ClientSession) -> T:
            answers: InputResponses | None = None
            state: str | None = None
            for attempt in range(_MAX_INPUT_ROUNDS):
                request = make_request(answers, state)
                found: T | InputRequiredResult = await client.send_request(  # type: ignore[type-var]  # takes adapters
                    request, answer, progress_callback=on_progress
                )
                if not isinstance(found, InputRequiredResult):
                    return found
                if not found.input_requests:  # it only wants to be asked again
                    await asyncio.sleep(min(0.05 * 2**attempt, 0.25))
                answers, state = await session.questions.answer_all(client, found), found.request_state
            raise self._remote_error(f"asked for input {_MAX_INPUT_ROUNDS} times without an answer to the call")

        return await self._run_in_loop(lambda: self._request(send, access, timeout, caller))

    async def list_tools(self, access: ServerAccess) -> ToolListing:
        """Name and version of the server, and the tools that may be offered, as it describes them."""
        pages = self.list_pages(ListToolsRequest, ToolPage, "tools", access)
        tools = await collect_tools(pages, self._server.name)
        identity, version = await self._run_in_loop(lambda: self._describe_server(access))
        # Over stdio there are no headers, so that the mark has no meaning.
        is_modern = bool(self._server.url) and version in MODERN_PROTOCOL_VERSIONS
        dropped = find_invalid_headers(tools) if is_modern else {}
        return ToolListing(identity, [tool for tool in tools if tool.get("name", "") not in dropped], dropped)

    def list_pages(
        self, request: Callable[..., AnyRequest], page: type[PageT], what: str, access: ServerAccess
    ) -> AsyncIterator[PageT]:
        """The pages of a list that the server has; ``what`` is in it."""
        answer: TypeAdapter[PageT | InputRequiredResult] = TypeAdapter(page)

        async def read(params: PaginatedRequestParams) -> PageT:
            return await self.request(
                lambda _, __: request(params=params), answer, access, timeout=self._server.timeout
            )

        return read_pages(read, self._server.name, what)

    def without_secrets(self, text: str) -> str:
        """The text without the secret values that the server was given."""
        return text if self._session is None else self._session.without_secrets(text)

    async def close(self) -> None:
        """End the session and the server, then the loop; returns when nothing of them is left."""
        await self._run_in_loop(self._close_session)
        self._loop.close()
        self._workers.close()

    async def _run_in_loop(self, work: Callable[[], Awaitable[T]]) -> T:
        """Await ``work()`` in the loop of this connection; cancel it there when the calling task is cancelled."""
        # Not the task is cancelled but a scope: a request may already be out of time, and then the official client is
        # telling the server. It shields that from scopes; cancelling the task would interrupt it.
        given_up = anyio.CancelScope()

        async def run() -> T:
            with given_up:
                return await work()
            raise asyncio.CancelledError

        future, _ = self._loop.submit(run())
        waiting = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if waiting.cancelled():
                # Not the calling task but the work was cancelled: its loop was closed.
                raise ToolCancelled("the toolkit was closed") from None
            self._loop.call_soon(given_up.cancel)
            # The result is not used, and asyncio would log an exception that was never read.
            waiting.add_done_callback(lambda done: None if done.cancelled() else done.exception())
            raise

    # -- from here on in the loop of this connection -------------------------------------------------------------------

    async def _request(
        self, send: Send[T], access: ServerAccess, timeout: float, caller: asyncio.AbstractEventLoop
    ) -> T:
        """Send a request to the current session; once more if the server refused it unread: it has forgotten that session,
        or wants other headers."""
        for attempt in (1, 2):
            session = await self._current_session(access)
            client = await session.wait_until_ready()
            questions = session.questions
            try:
                # Not the client's own limit, which does not stand still while a person is asked.
                with questions.during_call(caller), questions.limits.limit(timeout):
                    return await send(session, client)
                raise session.explain_silence()
            except (MCPError, ValidationError, RuntimeError) as error:
                explained = await session.explain_error(error)
                if attempt == 1 and self._wants_other_headers(error):
                    with questions.limits.limit(timeout), suppress(MCPError, ValidationError):
                        await learn_headers(client)
                    continue
            finally:
                if session.is_unread:  # nothing would ever reach it again
                    session.retire()
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
                count_restart("mcp_server")
                await self._session.close()
                self._session = None
            if self._session is None:
                self._session = McpSession(self._server, access, self._workers)
            return self._session

    def _wants_other_headers(self, error: Exception) -> bool:
        """Whether the server refused a request unread, because its tools want other headers than they did."""
        return bool(self._server.url) and isinstance(error, MCPError) and error.code == HEADER_MISMATCH

    async def _describe_server(self, access: ServerAccess) -> tuple[dict[str, str], str | None]:
        """Its name and version, and the version of the protocol that is spoken."""
        client = await (await self._current_session(access)).wait_until_ready()
        info = client.server_info
        return {} if info is None else {"name": info.name, "version": info.version}, client.protocol_version

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


# ----------------------------------------------------------------------------------------------------------------------
# Resources and prompts of an MCP server, for handlers and programs: ``client = await PACK.client(ctx)``.
#
# It uses the connection that the tools of the pack use, with what the context of the call permits. Every text that a server
# sends is untrusted.

_READ: Final[TypeAdapter[ReadResourceResult | InputRequiredResult]] = TypeAdapter(
    ReadResourceResult | InputRequiredResult
)
_PROMPTED: Final[TypeAdapter[GetPromptResult | InputRequiredResult]] = TypeAdapter(
    GetPromptResult | InputRequiredResult
)


@dataclass(frozen=True, slots=True)
class McpResource:
    """Something a server lets others read."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    media_type: str | None = None
    size: int | None = None
    """In bytes, as far as the server knows."""


@dataclass(frozen=True, slots=True)
class McpResourceTemplate:
    """A family of resources: ``uri_template`` is a URI template (RFC 6570)."""

    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    media_type: str | None = None


@dataclass(frozen=True, slots=True)
class McpPromptArgument:
    """One argument of a prompt; its value is a text."""

    name: str
    description: str | None = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class McpPrompt:
    """A prompt that a server offers to people."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[McpPromptArgument, ...] = ()


class McpClient:
    """Reads what one server offers besides its tools; see ``McpPack.client``. Usable as long as the call lasts."""

    def __init__(self, server: McpServer, connection: McpConnection, access: ServerAccess) -> None:
        self._server: Final = server
        self._connection: Final = connection
        self._access: Final = access

    async def list_tools(self) -> ToolListing:
        """The tools that may be offered, as the server describes them now."""
        return await self._connection.list_tools(self._access)

    async def list_resources(self) -> list[McpResource]:
        """All resources that the server lists."""
        found: list[McpResource] = []
        async for page in self._connection.list_pages(
            ListResourcesRequest, ListResourcesResult, "resources", self._access
        ):
            found += [
                McpResource(item.uri, item.name, item.title, item.description, item.mime_type, item.size)
                for item in page.resources
            ]
            check_length(found, self._server.name, "resources")
        return found

    async def list_resource_templates(self) -> list[McpResourceTemplate]:
        """All families of resources that the server lists."""
        found: list[McpResourceTemplate] = []
        async for page in self._connection.list_pages(
            ListResourceTemplatesRequest, ListResourceTemplatesResult, "resource templates", self._access
        ):
            found += [
                McpResourceTemplate(item.uri_template, item.name, item.title, item.description, item.mime_type)
                for item in page.resource_templates
            ]
            check_length(found, self._server.name, "resource templates")
        return found

    async def read_resource(self, uri: str) -> tuple[ContentBlock, ...]:
        """What is in a resource, and in those below it if it is a folder: texts and media."""

        def make_request(answers: InputResponses | None, state: str | None) -> ReadResourceRequest:
            params = ReadResourceRequestParams(uri=uri, input_responses=answers, request_state=state)
            return ReadResourceRequest(params=params)

        found = await self._request(make_request, _READ)
        return read_resource_contents(found.contents)

    async def list_prompts(self) -> list[McpPrompt]:
        """All prompts that the server lists."""
        found: list[McpPrompt] = []
        async for page in self._connection.list_pages(ListPromptsRequest, ListPromptsResult, "prompts", self._access):
            found += [
                McpPrompt(
                    item.name,
                    item.title,
                    item.description,
                    tuple(
                        McpPromptArgument(argument.name, argument.description, bool(argument.required))
                        for argument in item.arguments or ()
                    ),
                )
                for item in page.prompts
            ]
            check_length(found, self._server.name, "prompts")
        return found

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> list[TextMessage]:
        """The messages of a prompt, ready for a model."""

        def make_request(answers: InputResponses | None, state: str | None) -> GetPromptRequest:
            params = GetPromptRequestParams(
                name=name, arguments=dict(arguments or {}), input_responses=answers, request_state=state
            )
            return GetPromptRequest(params=params)

        found = await self._request(make_request, _PROMPTED)
        return [TextMessage(message.role, read_blocks([message.content])) for message in found.messages]

    async def _request(self, make_request: Any, answer: TypeAdapter[Any]) -> Any:
        return await self._connection.request(make_request, answer, self._access, timeout=self._server.timeout)
