"""What is sent to a server; the same for stdio and HTTP. Notices a server that does not read."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

import anyio
from mcp.shared.message import SessionMessage

if TYPE_CHECKING:
    from mcp.client._transport import WriteStream


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
