"""Servers as a client starts them (``python -m toolkit serve``), and the official client at the other end.

What a server does is the same in a fork (``tests/forks.py``), which starts in a tenth of the time. ``serve_command`` is for tests
of the start itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import ssl
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.forks import Fork, relayed

T = TypeVar("T")

ERAS = ("legacy", "2026-07-28")
"""The two kinds of client: with a handshake, and without."""
SECONDS = 120
"""For what takes a moment, unless the machine is busy."""


_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # never used; httpx would read all certificates for each client


def make_client() -> httpx.Client:
    return httpx.Client(trust_env=False, timeout=SECONDS, verify=_NO_TLS)


def serve_command(*options: str) -> list[str]:
    return [sys.executable, "-m", "toolkit", "serve", *options]


def talk(
    scenario: Callable[[Client], Awaitable[T]],
    *options: str,
    mode: Any = "legacy",
    folder: Path | None = None,
    **settings: Any,
) -> T:
    """Starts a server over stdio, and lets a client talk to it."""
    command, *arguments = relayed("toolkit", "serve", *options)
    # The client passes only a few variables on; coverage of the tests and the state directory come from ours.
    server = StdioServerParameters(command=command, args=arguments, env=dict(os.environ), cwd=folder or Path("/"))

    async def run() -> T:
        async with asyncio.timeout(SECONDS):
            async with Client(server, mode=mode, **settings) as client:
                return await scenario(client)

    return asyncio.run(run())


@dataclass(frozen=True)
class Running:
    """A server over HTTP."""

    process: Fork
    url: str
    announced: str

    def talk(self, scenario: Callable[[Client], Awaitable[T]], *, mode: Any = "legacy", **settings: Any) -> T:
        async def run() -> T:
            async with asyncio.timeout(SECONDS):
                async with Client(self.url, mode=mode, **settings) as client:
                    return await scenario(client)

        return asyncio.run(run())

    def post(self, body: Any, **headers: str) -> httpx.Response:
        """One request as any program could send it."""
        sent = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json", **headers}
        content = body if isinstance(body, bytes | str) else None
        with make_client() as client:
            return client.post(self.url, headers=sent, content=content, json=None if content is not None else body)

    def open_session(self, **headers: str) -> httpx.Response:
        return self.post(INITIALIZE, **headers)

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Its exit code, and what it printed after the start."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> tuple[int, str]:
        """The same for a server that ends by itself."""
        said = self.process.read_stderr()
        return self.process.wait(SECONDS), said


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


@contextmanager
def serving(
    *options: str, folder: Path | None = None, address: str = "127.0.0.1:0", **variables: str
) -> Iterator[Running]:
    """A server over HTTP, as long as the block lasts."""
    process = Fork("toolkit", "serve", "--http", address, *options, cwd=folder or "/", variables=variables)
    try:
        announced = process.stderr.readline().decode()
        found = re.search(r"at (http://\S+/mcp)", announced)
        assert found is not None, announced + process.read_stderr()
        yield Running(process, found[1], announced)
    finally:
        process.close()


class StreamWatch(logging.Handler):
    """Notices when clients have opened the streams on which a server sends by itself. What it sends before is lost."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._opened: asyncio.Queue[None] = asyncio.Queue()
        self._logger = logging.getLogger("mcp.client.streamable_http")

    def __enter__(self) -> Self:
        self._level = self._logger.level
        self._logger.setLevel(logging.DEBUG)
        self._logger.addHandler(self)
        return self

    def __exit__(self, *exception: object) -> None:
        """Other tests in this process count what is logged."""
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() == "GET SSE connection established":
            self._opened.put_nowait(None)

    async def wait_for(self, count: int) -> None:
        for _ in range(count):
            await self._opened.get()


def text_of(result: types.CallToolResult) -> str:
    """What a model reads."""
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))
