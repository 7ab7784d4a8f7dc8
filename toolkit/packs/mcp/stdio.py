"""A server's pipes as the streams that a session reads and writes.

Whatever the server writes, nothing here waits forever or grows without limit: lines that are not JSON-RPC (a banner, a
log) are skipped and the last one is kept; too many of them in a row, or a line that is too long, end the connection.
"""

from __future__ import annotations

import json
import re
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

from toolkit.guard.process.guard import LongProcess
from toolkit.packs.mcp.content import find_excess
from toolkit.packs.mcp.server import write_own_error

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

MAX_MESSAGE: Final = 32 << 20
_MAX_BAD_LINES: Final = 10_000
_MAX_UNANSWERED: Final = 1000
_MAX_QUOTED: Final = 200
_ID: Final = re.compile(rb'"id"\s{0,9}:\s{0,9}([0-9]{1,18}|"[\w-]{1,100}")')


class JsonRpcReader:
    """Reads the messages a server writes, one per line; ``problem`` says what was wrong with its output."""

    def __init__(self, process: LongProcess) -> None:
        self._process = process
        self._buffer = bytearray()
        self._searched = 0
        self._bad_lines = 0
        self._last_bad_line = b""
        self._fatal = ""
        self._unanswered = 0

    async def messages(self) -> AsyncIterator[JSONRPCMessage]:
        """The valid messages, until the end of the output or a fatal problem."""
        async for line in self._read_lines():
            message = parse_message(line)
            if message is not None:
                self._bad_lines = 0
                self._count_request(message)
                if self._fatal:
                    return
                yield message
            elif line.strip():
                self._note_bad_line(line)
                if self._fatal:
                    return

    def note_sent(self, message: JSONRPCMessage) -> None:
        """Call it for every message that was sent to the server."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._unanswered -= 1

    def _count_request(self, message: JSONRPCMessage) -> None:
        """Count requests of the server: each waits in memory until its answer is sent; a cancelled one gets no answer."""
        if isinstance(message, JSONRPCRequest):
            self._unanswered += 1
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._unanswered = max(self._unanswered - 1, 0)
        if self._unanswered > _MAX_UNANSWERED:
            self._fatal = f"it sent more than {_MAX_UNANSWERED} requests without reading the answers"

    @property
    def problem(self) -> str:
        """What is wrong with the output, or an empty text."""
        if self._fatal or not self._last_bad_line:
            return self._fatal
        return f"it wrote something that is not JSON-RPC: {self._last_bad_line.decode('utf-8', 'replace')!r}"

    def _note_bad_line(self, line: bytes) -> None:
        self._bad_lines += 1
        self._last_bad_line = bytes(line[:_MAX_QUOTED])
        if self._bad_lines > _MAX_BAD_LINES:
            self._fatal = f"it wrote {self._bad_lines} lines in a row that are not JSON-RPC"

    async def _read_lines(self) -> AsyncIterator[bytes]:
        while True:
            await anyio.wait_readable(self._process.stdout)
            data = self._process.read()
            if data == b"":
                return
            self._buffer += data or b""
            while (end := self._buffer.find(b"\n", self._searched)) >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                self._searched = 0
                yield line
            self._searched = len(self._buffer)
            if self._searched > MAX_MESSAGE:
                self._fatal = f"it wrote a line of more than {MAX_MESSAGE >> 20} MiB"
                return


def parse_message(line: bytes) -> JSONRPCMessage | None:
    """The message in a line, or None. An answer that is invalid or too large becomes an error: a call is waiting for it."""
    if excess := find_excess(line):
        return _as_error(_guess_answer(line), write_own_error(excess))
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError as error:
        problem = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else "it is not text"
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = _guess_answer(line)
    # In the words of the official client over HTTP; ``session.py`` knows both by them.
    return _as_error(found, ErrorData(code=PARSE_ERROR, message=f"Failed to parse message: {problem[:_MAX_QUOTED]}"))


def _as_error(found: object, data: ErrorData) -> JSONRPCError | None:
    """The error in the place of an answer; None if what was found is no answer."""
    if not isinstance(found, dict) or not isinstance(found.get("id"), int | str) or "method" in found:
        return None
    try:
        return JSONRPCError(jsonrpc="2.0", id=found["id"], error=data)
    except ValueError:  # an id that was never used
        return None


def _guess_answer(line: bytes) -> dict[str, object] | None:
    """The id of an answer that no parser reads (too large, too deep, a number too long), from its start or end."""
    if not line.startswith(b"{") or b'"method"' in line[:_MAX_QUOTED]:
        return None
    identity = _ID.search(line[:_MAX_QUOTED]) or _ID.search(line[-_MAX_QUOTED:])
    return None if identity is None else {"id": json.loads(identity[1])}


@asynccontextmanager
async def stdio_streams(
    process: LongProcess, reader: JsonRpcReader, gone: anyio.Event
) -> AsyncIterator[TransportStreams]:
    """The streams of a session; ``gone`` is set when nothing more will come, before the session sees the end."""
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        with to_session:
            try:
                async for message in reader.messages():
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
                    reader.note_sent(item.message)
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
