"""Connections to one origin, at addresses that the network guard permits; HTTP over them is the official client's."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import httpcore2
import httpx2

from toolkit.errors import ToolFailed
from toolkit.guard.net.dial import Deadline, look_up_permitted
from toolkit.guard.network.hosts import Url
from toolkit.guard.network.network import Network
from toolkit.runtime.workers import Workers

CONNECT_SECONDS: Final = 30.0

CONNECTION_FAILURES: Final = (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError)
"""What sending a request and reading its answer may raise."""


def open_pool(url: Url, network: Network, workers: Workers) -> httpcore2.AsyncConnectionPool:
    """A pool of connections to the origin of ``url``. Whoever sends a request compares its origin."""
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
