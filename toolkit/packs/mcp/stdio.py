"""A server's pipes as the streams a session speaks over.

Whatever stands in its output, nothing here waits for ever or grows without end: lines that are no JSON-RPC (a banner, a
log) are passed over and the last is remembered, too many in a row or a line that is too long end the connection.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from toolkit.guard.process.long_process import LongProcess

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

MAX_MESSAGE: Final = 32 << 20
_MAX_UNREADABLE: Final = 10_000
_MAX_UNANSWERED: Final = 1000
_SHOWN: Final = 200


class Output:
    """What a server writes, line by line; ``complaint`` says what was wrong with it."""

    def __init__(self, process: LongProcess) -> None:
        self._process = process
        self._buffer = bytearray()
        self._looked_at = 0
        self._unreadable = 0
        self._last = b""
        self._fatal = ""
        self._unanswered = 0

    async def messages(self) -> AsyncIterator[JSONRPCMessage]:
        """What can be read, until the end of it, or until there is no use in going on."""
        async for line in self._lines():
            message = _message(line)
            if message is not None:
                self._unreadable = 0
                self._count(message)
                if self._fatal:
                    return
                yield message
            elif line.strip():
                self._note(line)
                if self._fatal:
                    return

    def answered(self, message: JSONRPCMessage) -> None:
        """Takes note of what was sent to the server."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._unanswered -= 1

    def _count(self, message: JSONRPCMessage) -> None:
        """Every request of the server waits in memory until its answer is taken; one it cancels gets none."""
        if isinstance(message, JSONRPCRequest):
            self._unanswered += 1
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._unanswered = max(self._unanswered - 1, 0)
        if self._unanswered > _MAX_UNANSWERED:
            self._fatal = f"it asks more than {_MAX_UNANSWERED} things and waits for no answer"

    @property
    def complaint(self) -> str:
        if self._fatal or not self._last:
            return self._fatal
        return f"it wrote what is no JSON-RPC: {self._last.decode('utf-8', 'replace')!r}"

    def _note(self, line: bytes) -> None:
        self._unreadable += 1
        self._last = bytes(line[:_SHOWN])
        if self._unreadable > _MAX_UNREADABLE:
            self._fatal = f"it wrote {self._unreadable} lines in a row that are no JSON-RPC"

    async def _lines(self) -> AsyncIterator[bytes]:
        while True:
            await anyio.wait_readable(self._process.stdout)
            data = self._process.read()
            if data == b"":
                return
            self._buffer += data or b""
            while (end := self._buffer.find(b"\n", self._looked_at)) >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                self._looked_at = 0
                yield line
            self._looked_at = len(self._buffer)
            if self._looked_at > MAX_MESSAGE:
                self._fatal = f"it wrote a line of more than {MAX_MESSAGE >> 20} MiB"
                return


def _message(line: bytes) -> JSONRPCMessage | None:
    """The message in a line, or None. An answer that is no proper one becomes an error: somebody is waiting for it."""
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError as error:
        words = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else "it is no text"
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("id"), int | str) or "method" in found:
        return None
    told = ErrorData(code=PARSE_ERROR, message=f"its answer cannot be read: {words[:_SHOWN]}")
    try:
        return JSONRPCError(jsonrpc="2.0", id=found["id"], error=told)
    except ValueError:  # no such id was ever given out
        return None


@asynccontextmanager
async def stdio_streams(process: LongProcess, output: Output, gone: anyio.Event) -> AsyncIterator[TransportStreams]:
    """The streams of a session; ``gone`` is set when nothing more will come, before the session hears of it."""
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        with to_session:
            try:
                async for message in output.messages():
                    await to_session.send(SessionMessage(message))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # the session is over
            gone.set()

    async def write() -> None:
        with from_session:
            async for item in from_session:
                data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                try:
                    await _send(process, data)
                    output.answered(item.message)
                except OSError:
                    gone.set()
                    to_session.close()
                    return

    with from_server, to_server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            tasks.start_soon(write)
            yield from_server, to_server
            tasks.cancel_scope.cancel()


async def _send(process: LongProcess, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        taken = process.write(bytes(rest[: 1 << 16]))
        rest = rest[taken:]
        if not taken:
            await anyio.wait_writable(process.stdin)
