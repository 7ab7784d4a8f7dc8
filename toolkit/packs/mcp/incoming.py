"""What a server sends, before the official client sees it; the same for stdio and HTTP.

Promise: the client gets the answers, the requests, and the notifications that have a use here: well-formed progress, and
cancellations. Everything else is dropped: log messages, changes of lists, unknown methods, progress that is malformed or
not a finite number. Questions that nobody answers (elicitation, sampling) get a refusal in our words.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from toolkit.packs.mcp.server_log import ServerLog

if TYPE_CHECKING:
    import contextvars

    from mcp.client._transport import ReadStream, WriteStream


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
