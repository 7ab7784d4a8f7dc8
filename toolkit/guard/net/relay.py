"""Passing bytes between two connections, both ways at once, in one thread.

Promise: at most two chunks are held for each direction, so a slow reader slows its writer down and memory stays flat. It
ends when both sides have, when nothing moves for the idle limit, and at once when ``stop`` becomes readable. What came
before a side broke off is still passed on: a server may answer and refuse the rest of what it is sent.
"""

from __future__ import annotations

import contextlib
import select
import socket
from typing import Final

from toolkit.guard.net.proxy_request import ResponseHeadEditor

_CHUNK: Final = 64 << 10
_FAILED: Final = select.POLLHUP | select.POLLERR | select.POLLNVAL


class Flow:
    """One direction: from ``source`` to ``sink``, first what is ``pending``.

    ``limit`` is how many bytes are read; None reads to the end. ``editor`` changes what is passed on.
    ``was_cut_off``: the source broke off, so something is missing. ``was_refused``: the sink took not all of it.
    """

    def __init__(
        self,
        source: socket.socket,
        sink: socket.socket,
        pending: bytes = b"",
        *,
        limit: int | None = None,
        editor: ResponseHeadEditor | None = None,
    ) -> None:
        self.source: Final = source
        self.sink: Final = sink
        self._left = limit
        self._editor = editor
        self._held = bytearray(pending)
        self._has_ended = limit == 0
        self.was_cut_off = self.was_refused = False

    @property
    def wants_to_read(self) -> bool:
        return not self._has_ended and len(self._held) < _CHUNK

    @property
    def wants_to_write(self) -> bool:
        return bool(self._held)

    @property
    def is_done(self) -> bool:
        """Whether everything that came was passed on, and nothing more will come."""
        return self._has_ended and not self._held

    def read(self) -> None:
        try:
            data = self.source.recv(_CHUNK if self._left is None else min(_CHUNK, self._left))
        except BlockingIOError:
            return
        except OSError:
            data, self.was_cut_off = b"", True
        if self._left is not None:
            self._left -= len(data)
        self._has_ended = not data or self._left == 0
        if not data and self._left is not None:
            self.was_cut_off = True
        if self._editor is not None:
            data = self._editor.feed(data) if data else self._editor.end()
        self._held += data

    def write(self) -> None:
        try:
            del self._held[: self.sink.send(self._held)]
        except BlockingIOError:
            return
        except OSError:
            self._has_ended = self.was_refused = True
            self._held.clear()


def relay_tunnel(up: Flow, down: Flow, stop: int, idle_seconds: float) -> bool:
    """Pass both directions on, the end of each too; returns whether both ended by themselves."""
    ended: set[Flow] = set()
    while len(ended) < 2:
        if not _move((up, down), stop, idle_seconds):
            return False
        for flow in {up, down} - ended:
            if flow.is_done:
                if flow.was_cut_off:
                    return False
                ended.add(flow)
                with contextlib.suppress(OSError):  # it has closed both directions already
                    flow.sink.shutdown(socket.SHUT_WR)
    return not (up.was_refused or down.was_refused)


def relay_response(up: Flow, down: Flow, stop: int, idle_seconds: float) -> bool:
    """Pass the request on until the response has ended, whether or not the server read all of the request.

    Returns whether the response ended by itself, or with a server that broke off because it refused the rest of the request.
    """
    while not down.is_done:
        if up.was_cut_off or not _move((up, down), stop, idle_seconds):
            return False
    return not down.was_refused and (not down.was_cut_off or not up.is_done or up.was_refused)


def _move(flows: tuple[Flow, Flow], stop: int, idle_seconds: float) -> bool:
    """Wait until something can be read or written, and do it; False when nothing moves or it has to stop."""
    wanted = {stop: select.POLLIN}
    for flow in flows:
        if flow.wants_to_read:
            wanted[flow.source.fileno()] = wanted.get(flow.source.fileno(), 0) | select.POLLIN
        if flow.wants_to_write:
            wanted[flow.sink.fileno()] = wanted.get(flow.sink.fileno(), 0) | select.POLLOUT
    poller = select.poll()
    for fd, events in wanted.items():
        poller.register(fd, events)
    ready = dict(poller.poll(idle_seconds * 1000))
    if not ready or stop in ready:
        return False
    for flow in flows:
        if flow.wants_to_read and ready.get(flow.source.fileno(), 0) & (select.POLLIN | _FAILED):
            flow.read()
        if flow.wants_to_write and ready.get(flow.sink.fileno(), 0) & (select.POLLOUT | _FAILED):
            flow.write()
    return True
