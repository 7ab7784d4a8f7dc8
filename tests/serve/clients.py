"""Servers as a client starts them (``python -m toolkit serve``), and the official client at the other end."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import subprocess
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

T = TypeVar("T")

ERAS = ("legacy", "2026-07-28")
"""The two kinds of client: with a handshake, and without."""
SECONDS = 120
"""For what takes a moment, unless the machine is busy."""


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
    command, *arguments = serve_command(*options)
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

    process: subprocess.Popen[str]
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
        with httpx.Client(trust_env=False, timeout=SECONDS) as client:
            return client.post(self.url, headers=sent, content=content, json=None if content is not None else body)

    def open_session(self, **headers: str) -> httpx.Response:
        return self.post(INITIALIZE, **headers)

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Its exit code, and what it printed after the start."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> tuple[int, str]:
        """The same for a server that ends by itself."""
        assert self.process.stderr is not None
        said = self.process.stderr.read()  # not ``communicate``: it would miss what the first line has buffered
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
    process = subprocess.Popen(
        serve_command("--http", address, *options),
        cwd=folder or "/",
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        announced = process.stderr.readline()
        found = re.search(r"at (http://\S+/mcp)", announced)
        assert found is not None, announced + process.stderr.read()
        yield Running(process, found[1], announced)
    finally:
        process.kill()
        process.communicate()


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
