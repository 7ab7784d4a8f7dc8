"""A connection to our HTTP server: uvicorn's, which ends when it only takes up room.

uvicorn ends a connection that is idle after an answer, and no other: one on which nothing or half a head was ever sent stays
open, and a thousand of them would leave no room for anybody.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolkit.serve.http import IDLE_SECONDS, MAX_CONNECTIONS


class HttpConnection(H11Protocol):
    """Without a request it ends after a while, and at once if there is no room for another one."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._wait_for_head()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._has_request():
            self._stop_waiting()
        else:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _has_request(self) -> bool:
        return self.conn.their_state is not h11.IDLE or (self.cycle is not None and not self.cycle.response_complete)

    def _wait_for_head(self) -> None:
        """The time counts from the first byte on: sending one now and then gains nothing."""
        if self._waiting is None:
            self._waiting = self.loop.call_later(IDLE_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _make_room(self) -> None:
        others: list[Any] = [one for one in self.connections if not one.transport.is_closing()]
        if len(others) < most_connections():
            return
        # Sets have no order, but the timers know who came first; those that are idle after an answer have none.
        idle = [one for one in others if one is not self and not one._has_request()]
        if idle:
            min(idle, key=lambda one: one._waiting.when() if one._waiting else 0).transport.abort()


def most_connections() -> int:
    """Half of the files that this process may open are for connections."""
    return min(MAX_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
