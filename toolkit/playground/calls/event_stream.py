"""The response to a call: its events as lines of JSON, while they happen."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from toolkit.playground.calls.outbox import PageEvent
from toolkit.playground.calls.running_calls import RunningCall
from toolkit.playground.http.json_text import to_json

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


class EventStream:
    """An ASGI application that answers one request.

    Starlette's own streaming response notices a client that has gone only when it sends something, with servers of newer
    revisions of ASGI. A call may be silent for minutes, so this one waits for the client's end beside the events.
    """

    def __init__(self, call: RunningCall) -> None:
        self._call: Final = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_wait_until_gone(receive))
        try:
            headers = [(b"content-type", b"application/x-ndjson; charset=utf-8")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            while (events := await self._next_events(gone)) is not None:
                # It waits while the client does not read. Progress is joined and bounded meanwhile.
                await send({"type": "http.response.body", "body": b"".join(map(_line, events)), "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            await self._call.end("the page no longer listens to the call")

    async def _next_events(self, gone: asyncio.Future[None]) -> list[PageEvent] | None:
        """The next events; None at the end of the call, or if the client has gone."""
        taking = asyncio.ensure_future(self._call.outbox.take())
        try:
            both: set[asyncio.Future[Any]] = {taking, gone}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            return None if gone.done() else taking.result()
        finally:
            taking.cancel()


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _line(event: PageEvent) -> bytes:
    return to_json(event) + b"\n"
