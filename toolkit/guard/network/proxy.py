"""The HTTP proxy of one command with the guarded network. It runs in the agent's process, in threads of its own.

The socket it listens on is made inside the command's network namespace and handed out, so only that command reaches it.

Promise: a connection is made only to a host and port that the ``Network`` permits, as ``dial.connect`` promises: one
lookup, every address judged, connected to one of those. One request for each connection, so each is judged, redirects
too. Heads, buffers, connections and waits are bounded. After ``close`` nothing of it runs, but for a lookup that hangs.

Not stopped: any protocol inside a tunnel to a permitted host; what a request to a permitted host carries out. Names are
looked up by this machine, so its name servers see them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Final, TypeAlias

from toolkit.errors import InvalidArguments, SandboxViolation, ToolFailed, ToolkitError, ToolNotAllowed
from toolkit.guard.forks import start_again_in_child
from toolkit.guard.net.dial import Deadline, connect
from toolkit.guard.net.proxy_request import (
    END_OF_HEAD,
    MAX_HEAD,
    ProxyRequest,
    RefusedRequest,
    ResponseHeadEditor,
    parse_request,
)
from toolkit.guard.net.relay import Flow, relay_response, relay_tunnel
from toolkit.guard.network.network import Network

UrlJudge: TypeAlias = Callable[[str], None]

_log: Final = logging.getLogger("toolkit")

MAX_CONNECTIONS: Final = 64
"""More of them wait until one has ended."""
IDLE_SECONDS: Final = 300.0
_HEAD_SECONDS: Final = 60.0
_CONNECT_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 0.1
# A command that is refused may still be sending; closing at once would take the answer from it.
_LINGER_SECONDS: Final = 2.0
_LINGER_BYTES: Final = 16 << 20
_CHUNK: Final = 64 << 10
_SETTING: Final = "ToolkitContext(network=Network(allow_hosts=[...], allow_addresses=[...]))"
_NOT_PERMITTED: Final = 403
_MAX_REFUSALS: Final = 5
_MAX_REFUSAL: Final = 500
_ESTABLISHED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"


class _Closing(Exception):
    """The proxy is being closed."""


class Refusals:
    """The first few different refusals, and how many requests were refused with another text. Used by several threads."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._more = 0
        self._lock = threading.Lock()

    def add(self, text: str) -> None:
        text = text if len(text) <= _MAX_REFUSAL else f"{text[:_MAX_REFUSAL]}..."
        with self._lock:
            if len(self._texts) < _MAX_REFUSALS:
                self._texts[text] = None
            elif text not in self._texts:
                self._more += 1

    def explain(self) -> list[str]:
        """One line for each."""
        with self._lock:
            lines = [f"the guarded network refused a request: {text}" for text in self._texts]
            return [*lines, f"the guarded network refused {self._more} more requests"] if self._more else lines


class CommandProxy:
    """Serves one command until it is closed. ``judge`` raises a ``ToolkitError`` to refuse a URL."""

    def __init__(
        self, listener: int, network: Network, judge: UrlJudge | None = None, *, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self._listener = socket.socket(fileno=listener)
        self._listener.setblocking(False)
        self._network = network
        self._judge = judge
        self._idle_seconds = idle_seconds
        self._stop, self._stopper = os.pipe()  # readable once the other end is closed
        self._closing = threading.Event()
        self._has_logged = False
        self._refusals = Refusals()
        self._slots = threading.Semaphore(MAX_CONNECTIONS)
        self._workers: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept, name="toolkit-proxy", daemon=True)
        self._acceptor.start()
        start_again_in_child(self)

    def start_again_in_child(self) -> None:
        """In a fork of this process: the command, and its proxy, go on in the parent."""
        self._closing = threading.Event()
        self._closing.set()
        self._listener.close()
        for end in (self._stop, self._stopper):
            os.close(end)

    def close(self) -> None:
        """End every connection, and return when no thread is left; a second time does nothing."""
        if self._closing.is_set():
            return
        self._closing.set()
        os.close(self._stopper)
        self._acceptor.join()
        for worker in self._workers:
            worker.join()
        self._listener.close()
        os.close(self._stop)

    def refusals(self) -> list[str]:
        """What was not permitted, for the reader of the result: many programs do not show what a proxy answers."""
        return self._refusals.explain()

    def _accept(self) -> None:
        while True:
            self._slots.acquire()
            if not self._wait(self._listener, None):
                return
            self._workers = [worker for worker in self._workers if worker.is_alive()]
            try:
                self._start_worker(self._listener.accept()[0])
            except (OSError, RuntimeError):  # no descriptor or no thread is left for now, or the client is gone
                self._slots.release()
                self._closing.wait(_PAUSE_SECONDS)

    def _start_worker(self, client: socket.socket) -> None:
        worker = threading.Thread(target=self._work, args=(client,), name="toolkit-proxy", daemon=True)
        try:
            worker.start()
        except RuntimeError:
            client.close()
            raise
        self._workers.append(worker)

    def _work(self, client: socket.socket) -> None:
        try:
            with client, contextlib.suppress(_Closing, OSError):
                client.setblocking(False)
                self._serve(client)
        finally:
            self._slots.release()

    def _serve(self, client: socket.socket) -> None:
        try:
            head, rest = self._read_head(client)
            request = parse_request(head)
            server = self._connect(request)
        except (_Closing, OSError):
            raise
        except (RefusedRequest, ToolkitError) as refusal:
            status, text = _explain(refusal)
            if status == _NOT_PERMITTED:
                self._refusals.add(text)
            self._refuse(client, status, text)
            return
        except Exception:
            self._log_failure()
            self._refuse(client, 502, "the request failed in the toolkit; the log of the agent says why")
            return
        with server:
            if self._relay(request, client, server, rest):
                self._linger(client)
            else:  # what was cut off must not look like a whole response
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _relay(self, request: ProxyRequest, client: socket.socket, server: socket.socket, rest: bytes) -> bool:
        """Whether everything was passed on."""
        if request.is_tunnel:
            up, down = Flow(client, server, rest), Flow(server, client, _ESTABLISHED)
            return relay_tunnel(up, down, self._stop, self._idle_seconds)
        # What follows the body would be a second request, which nobody judged.
        body = rest[: request.body_length]
        up = Flow(client, server, request.head + body, limit=request.body_length - len(body))
        down = Flow(server, client, editor=ResponseHeadEditor())
        return relay_response(up, down, self._stop, self._idle_seconds)

    def _connect(self, request: ProxyRequest) -> socket.socket:
        if self._judge is not None:
            self._judge(request.url.text)
        deadline = Deadline(_CONNECT_SECONDS, self._check)
        return connect(self._network, request.url.host, request.url.port, deadline, tls=False)

    def _read_head(self, client: socket.socket) -> tuple[bytes, bytes]:
        """The head of a request, and what came after it."""
        data = bytearray()
        end = time.monotonic() + _HEAD_SECONDS
        while True:
            if not self._wait(client, max(0.0, end - time.monotonic())):
                raise RefusedRequest(408, "the request did not come in time")
            chunk = client.recv(_CHUNK)
            if not chunk:
                raise _Closing
            searched = max(0, len(data) - len(END_OF_HEAD))
            data += chunk
            found = data.find(END_OF_HEAD, searched)
            if found > MAX_HEAD or (found < 0 and len(data) > MAX_HEAD):
                raise RefusedRequest(431, f"the head of a request may have at most {MAX_HEAD} bytes")
            if found >= 0:
                return bytes(data[:found]), bytes(data[found + len(END_OF_HEAD) :])

    def _refuse(self, client: socket.socket, status: int, text: str) -> None:
        client.send(_answer(status, text))
        self._linger(client)

    def _linger(self, client: socket.socket) -> None:
        """Read and drop what the command still sends, for a moment."""
        left, end = _LINGER_BYTES, time.monotonic() + _LINGER_SECONDS
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_WR)
        while left > 0 and self._wait(client, max(0.0, end - time.monotonic())):
            dropped = len(client.recv(_CHUNK))
            if not dropped:
                return
            left -= dropped

    def _wait(self, sock: socket.socket, seconds: float | None) -> bool:
        """Whether something can be read in time; raises when the proxy is being closed, unless it waits without end."""
        poller = select.poll()
        poller.register(sock, select.POLLIN)
        poller.register(self._stop, select.POLLIN)
        ready = dict(poller.poll(None if seconds is None else seconds * 1000))
        if self._stop in ready:
            if seconds is None:
                return False
            raise _Closing
        return bool(ready)

    def _log_failure(self) -> None:
        """A resolver or judge of the caller raised something unexpected: once, because a command may ask without end."""
        if not self._has_logged:
            self._has_logged = True
            _log.exception("the proxy of a command failed; further failures for this command are not logged")

    def _check(self) -> None:
        if self._closing.is_set():
            raise _Closing


def _explain(refusal: RefusedRequest | ToolkitError) -> tuple[int, str]:
    """The status and the text for the person or model that reads what the command prints."""
    match refusal:
        case RefusedRequest():
            return refusal.status, refusal.message
        case InvalidArguments():
            return 400, refusal.message
        case SandboxViolation():
            return _NOT_PERMITTED, f"{refusal.message}; what commands reach is set by {_SETTING}"
        case ToolNotAllowed():
            return _NOT_PERMITTED, refusal.message
        case ToolFailed():
            return (504 if refusal.details.get("timed_out") else 502), refusal.message
    return 502, refusal.message


def _answer(status: int, text: str) -> bytes:
    body = f"typed-toolkit: {text}\n".encode()
    # Programs show the first line of a refused CONNECT and not its body, so it says the same where it can.
    line = text if text.isascii() and text.isprintable() and len(text) < 500 else "Refused"
    head = [
        f"HTTP/1.1 {status} {line}",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    return "\r\n".join([*head, "", ""]).encode() + body
