"""Streamable HTTP to one configured origin: the official transport over a connection pool that connects nowhere else.

Promise: every request is compared with the configured origin; its name is looked up once for each connection, judged by
the context's ``Network``, and the connection goes to that address. Redirects are refused. Nothing is taken from the
environment: no proxies, no ``.netrc``. A failure here fails one request with a clear error, not the whole session.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio
import httpcore2
import httpx2
from mcp.client.streamable_http import streamable_http_client

from toolkit.errors import SandboxViolation, ToolFailed, ToolkitError
from toolkit.guard.network.connect import Deadline, look_up_permitted
from toolkit.guard.network.hosts import Network, Url
from toolkit.packs.mcp.content import find_excess
from toolkit.packs.mcp.server import write_own_error
from toolkit.packs.mcp.stdio import MAX_MESSAGE
from toolkit.runtime.workers import Workers
from toolkit.web import check_headers

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams


# ----------------------------------------------------------------------------------------------------------------------
# Connections to one origin, at addresses that the network guard permits; HTTP over them is the official client's.

CONNECT_SECONDS: Final = 30.0

CONNECTION_FAILURES: Final = (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError)
"""What sending a request and reading its answer may raise."""


def open_pool(url: Url, network: Network, workers: Workers) -> httpcore2.AsyncConnectionPool:
    """A pool of connections to the origin of ``url``. The sender of a request compares its origin."""
    return httpcore2.AsyncConnectionPool(
        ssl_context=network.context if url.scheme == "https" else None,
        network_backend=_GuardedBackend(url, network, workers),
    )


async def send(pool: httpcore2.AsyncConnectionPool, request: httpx2.Request) -> httpcore2.Response:
    """The answer to a request; its body is still to be read."""
    target = httpcore2.URL(
        scheme=request.url.raw_scheme,
        host=request.url.raw_host,
        port=request.url.port,
        target=request.url.raw_path,
    )
    stream: Any = request.stream
    sent = httpcore2.Request(
        request.method, target, headers=request.headers.raw, content=stream, extensions=request.extensions
    )
    return await pool.handle_async_request(sent)


async def read_body(answer: httpcore2.Response, limit: int) -> bytes:
    """The body of an answer of at most ``limit`` bytes."""
    pieces, size = list[bytes](), 0
    async for chunk in answer.aiter_stream():
        pieces.append(chunk)
        size += len(chunk)
        if size > limit:
            raise ToolFailed("TOO_LARGE", f"the server's answer is longer than {limit >> 20} MiB")
    return b"".join(pieces)


def describe_failure(error: Exception) -> str:
    """One of ``CONNECTION_FAILURES`` as the end of a sentence."""
    if isinstance(error, httpcore2.ConnectError | httpcore2.ConnectTimeout):
        untrusted = "certificate" in str(error).lower()
        return "its certificate is not valid" if untrusted else "the connection failed; is the server running?"
    if isinstance(error, httpcore2.TimeoutException):
        return "it did not respond in time"
    return "the connection was lost, or the response was not HTTP"


class _GuardedBackend(httpcore2.AnyIOBackend):
    """Connects only to addresses that the network guard permits, with one lookup for each connection."""

    def __init__(self, url: Url, network: Network, workers: Workers) -> None:
        self._url = url
        self._network = network
        self._workers = workers

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        import asyncio

        deadline = Deadline(timeout or CONNECT_SECONDS, lambda: None)
        look_up = partial(look_up_permitted, self._network, self._url.host, self._url.port, deadline)
        addresses = await asyncio.wrap_future(self._workers.submit(look_up))
        for number, address in enumerate(addresses, 1):
            try:
                return await super().connect_tcp(str(address), self._url.port, deadline.seconds_left() / len(addresses))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if number == len(addresses):
                    raise
        raise AssertionError("the guard returns at least one address")


Authorize: TypeAlias = Callable[[httpx2.AsyncBaseTransport], httpx2.AsyncBaseTransport]

_MAX_STREAM: Final = 8 * MAX_MESSAGE
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_EVENT_END: Final = re.compile(rb"(?>\r\n|\n|\r){2}")

_IDLE_SECONDS: Final = 300.0
_SECONDS_BETWEEN_STREAMS: Final = 0.1


@asynccontextmanager
async def http_streams(
    url: Url,
    headers: Mapping[str, str],
    network: Network,
    workers: Workers,
    authorize: Authorize | None = None,
) -> AsyncIterator[TransportStreams]:
    """The streams of a session with the server at ``url``; ``authorize`` adds a login to its transport."""
    transport: httpx2.AsyncBaseTransport = _OneOrigin(url, network.for_service(url.host), workers)
    client = httpx2.AsyncClient(
        transport=transport if authorize is None else authorize(transport),
        headers={**check_headers(headers), "accept-encoding": "identity"},
        timeout=httpx2.Timeout(CONNECT_SECONDS, read=_IDLE_SECONDS),
        trust_env=False,
    )
    async with client, streamable_http_client(url.text, http_client=client, max_sse_event_size=MAX_MESSAGE) as streams:
        yield streams


class _OneOrigin(httpx2.AsyncBaseTransport):
    """Sends requests to the configured origin only; its failures become answers to single requests."""

    def __init__(self, url: Url, network: Network, workers: Workers) -> None:
        self._url = url
        self._next_stream = 0.0
        self._pool = open_pool(url, network, workers)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            if _origin(request.url) != _origin(httpx2.URL(self._url.text)):
                raise SandboxViolation("the MCP session sent a request to an origin other than the configured one")
            if request.method == "GET":
                await self._wait_for_turn()
            return await self._send(request)
        except ToolkitError as error:
            return error_answer(error)
        except CONNECTION_FAILURES as error:
            return error_answer(ToolFailed("NETWORK", f"'{self._url.authority}': {describe_failure(error)}"))

    async def _wait_for_turn(self) -> None:
        """Limit how often streams are opened: a server decides that, and may ask for it at once and forever."""
        now = anyio.current_time()
        self._next_stream = max(self._next_stream, now) + _SECONDS_BETWEEN_STREAMS
        await anyio.sleep(self._next_stream - _SECONDS_BETWEEN_STREAMS - now)

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        answer = await send(self._pool, request)
        try:
            headers = httpx2.Headers(answer.headers)
            if refusal := self._find_refusal(answer.status, headers):
                raise refusal
            if headers.get("content-type", "").startswith("text/event-stream"):
                return httpx2.Response(answer.status, headers=headers, stream=_LimitedStream(answer))
            body = await read_body(answer, MAX_MESSAGE)
            if excess := find_excess(body):
                raise excess
        except BaseException:
            await answer.aclose()
            raise
        await answer.aclose()
        if answer.status >= 400 and not _is_rpc_error(body):
            return self._status_answer(answer.status, request, headers)
        headers.pop("content-length", None)
        return httpx2.Response(answer.status, headers=headers, content=body)

    def _find_refusal(self, status: int, headers: httpx2.Headers) -> ToolkitError | None:
        if 300 <= status < 400:
            place = _without_query(headers.get("location", "nowhere"))
            return SandboxViolation(
                f"'{self._url.authority}' redirects to {place}, which is refused: only the configured url may be used; "
                "if the server has moved, configure its new url"
            )
        if headers.get("content-encoding", "identity") != "identity":
            return ToolFailed("REMOTE", f"'{self._url.authority}' used an unrequested Content-Encoding")
        return None

    def _status_answer(self, status: int, request: httpx2.Request, headers: httpx2.Headers) -> httpx2.Response:
        # With a session, 404 means that the session is over; the transport has its own error for that.
        if status == 404 and "mcp-session-id" in request.headers:
            return httpx2.Response(status)
        advice = ""
        if status == 401:
            advice = ": it needs authorization; set 'oauth = true' in its settings, or send a token in 'headers'"
        answer = error_answer(ToolFailed("REMOTE", f"'{self._url.authority}' returned status {status}{advice}"), status)
        if challenge := headers.get("www-authenticate"):
            answer.headers["www-authenticate"] = challenge
        return answer

    async def aclose(self) -> None:
        await self._pool.aclose()


class _LimitedStream(httpx2.AsyncByteStream):
    """The events of an answer, up to a limit; one with too much in it is replaced by an error."""

    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = _MAX_STREAM
        buffer, searched = bytearray(), 0
        async for chunk in self._answer.aiter_stream():
            left -= len(chunk)
            if left < 0:  # for example of a cancelled call: it would never be stopped
                raise httpcore2.ReadError("the stream is too long")
            buffer += chunk
            start = 0
            for end in _EVENT_END.finditer(buffer, searched):
                yield _limit_event(bytes(buffer[start : end.end()]))
                start = end.end()
            del buffer[:start]
            searched = max(len(buffer) - 3, 0)  # the end of an event may have begun
            if len(buffer) > MAX_MESSAGE:
                raise httpcore2.ReadError("an event is too long")

    async def aclose(self) -> None:
        await self._answer.aclose()


def _limit_event(event: bytes) -> bytes:
    lines = _LINE_END.split(event)
    excess = find_excess(b"\n".join(line[5:] for line in lines if line.startswith(b"data:")))
    if excess is None:
        return event
    return b"data: " + json.dumps(_rpc_error(excess)).encode() + b"\n\n"


def _origin(url: httpx2.URL) -> tuple[str, bytes, int | None]:
    return url.scheme, url.raw_host, url.port


def _is_rpc_error(body: bytes) -> bool:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and "jsonrpc" in found and "error" in found


def error_answer(error: ToolkitError, status: int = 502) -> httpx2.Response:
    """An error of ours as the answer to one request; raising it would end the whole session."""
    return httpx2.Response(status, json=_rpc_error(error))


def _rpc_error(error: ToolkitError) -> dict[str, object]:
    """The official client puts the id of its request in the place of ours."""
    return {"jsonrpc": "2.0", "id": 0, "error": write_own_error(error).model_dump(mode="json", by_alias=True)}


def _without_query(location: str) -> str:
    return repr(location.partition("?")[0].partition("#")[0][:200])
