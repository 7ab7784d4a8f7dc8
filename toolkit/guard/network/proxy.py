"""The HTTP proxy of one command with the guarded network. It runs in the agent's process, in threads of its own.

The socket it listens on is made inside the command's network namespace and handed out, so only that command reaches it.

Promise: a connection is made only to a host and port that the ``Network`` permits, as ``connect`` promises: one
lookup, every address judged, connected to one of those. One request for each connection, so each is judged, redirects
too. Heads, buffers, connections and waits are bounded. After ``close`` nothing of it runs, but for a lookup that hangs.

Not stopped: any protocol inside a tunnel to a permitted host; what a request to a permitted host carries out. Names are
looked up by this machine, so its name servers see them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from toolkit.errors import InvalidArguments, SandboxViolation, ToolFailed, ToolkitError, ToolNotAllowed
from toolkit.forks import start_again_in_child
from toolkit.guard.network.connect import Deadline, connect
from toolkit.guard.network.hosts import Network, Url

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


# -- the head of a request ---------------------------------------------------------------------------------------------

# A head is read in exactly one way, or refused. What is sent on consists of exactly the parts that were read: no line break,
# NUL, second length or second host can make the server read another request than the one that was judged. The ``Host``
# header is that of the URL, whatever the command sent. Headers for the proxy alone are not sent on.

MAX_HEAD: Final = 64 << 10
END_OF_HEAD: Final = b"\r\n\r\n"

_REQUEST_LINE: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) (HTTP/1\.[01])")
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
# For this connection only, or rewritten below.
_NOT_SENT_ON: Final = frozenset(
    {"connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)
_PROXY_PREFIX: Final = "proxy-"


class RefusedRequest(Exception):
    """The request is not sent on: the status and the text of the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status: Final = status
        self.message: Final = message


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """One request. ``head`` is what the server gets, empty for a tunnel (``CONNECT``); ``body_length`` bytes follow it."""

    url: Url
    is_tunnel: bool
    head: bytes = b""
    body_length: int = 0


def parse_request(head: bytes) -> ProxyRequest:
    """Read a head without its last empty line. Raises ``RefusedRequest``, or what ``Url.parse`` raises.

    >>> request = parse_request(b"GET http://Example.org/a HTTP/1.1\\r\\nHost: other\\r\\nProxy-Connection: keep-alive")
    >>> request.head
    b'GET /a HTTP/1.1\\r\\nHost: example.org\\r\\nConnection: close\\r\\n\\r\\n'
    """
    first, *lines = head.split(b"\r\n")
    found = _REQUEST_LINE.fullmatch(first)
    if found is None:
        raise RefusedRequest(400, "the first line must be a method, a URL and HTTP/1.0 or HTTP/1.1")
    method, target, version = (part.decode("ascii") for part in found.groups())
    fields = [_parse_field(line) for line in lines]
    if method == "CONNECT":
        return ProxyRequest(_parse_authority(target), is_tunnel=True)
    url = _parse_url(target)
    length = _body_length(fields)
    sent = [f"{method} {url.target} {version}", f"Host: {url.authority}", *_fields_to_send(fields)]
    if length is not None:
        sent.append(f"Content-Length: {length}")
    sent += ["Connection: close", "", ""]
    return ProxyRequest(url, is_tunnel=False, head="\r\n".join(sent).encode("latin-1"), body_length=length or 0)


def _parse_field(line: bytes) -> tuple[str, str]:
    name, colon, value = line.partition(b":")
    if not colon or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise RefusedRequest(
            400, "a header must be a name, a colon and a value, on one line without control characters"
        )
    return name.decode("ascii"), value.strip(b" \t").decode("latin-1")


def _parse_authority(target: str) -> Url:
    """The host and port of a tunnel; the path is made up, so that the policy gets a URL as for any request."""
    if re.search("[/?#]", target) or not re.search(":[0-9]{1,5}$", target):
        raise RefusedRequest(400, "CONNECT needs a host and a port, such as example.org:443")
    return Url.parse(f"https://{target}/")


def _parse_url(target: str) -> Url:
    scheme = _SCHEME.match(target)
    if scheme is None:
        raise RefusedRequest(400, "this is a proxy: a request must name a whole URL, such as http://example.org/")
    if scheme[1].lower() == "https":
        raise RefusedRequest(501, "https URLs are reached with CONNECT")
    if scheme[1].lower() != "http":
        raise RefusedRequest(501, "only http and https URLs can be reached")
    return Url.parse(target)


def _body_length(fields: list[tuple[str, str]]) -> int | None:
    if any(name.lower() == "transfer-encoding" for name, _ in fields):
        raise RefusedRequest(411, "a request body needs a Content-Length; chunked bodies are not sent on")
    lengths = [value for name, value in fields if name.lower() == "content-length"]
    if len(lengths) > 1 or not all(map(_LENGTH.fullmatch, lengths)):
        raise RefusedRequest(400, "a request may have one Content-Length, which is a number")
    return int(lengths[0]) if lengths else None


def _fields_to_send(fields: list[tuple[str, str]]) -> list[str]:
    named = {
        word.strip().lower() for name, value in fields if name.lower() == "connection" for word in value.split(",")
    }
    dropped = _NOT_SENT_ON | named
    return [
        f"{name}: {value}"
        for name, value in fields
        if name.lower() not in dropped and not name.lower().startswith(_PROXY_PREFIX)
    ]


class ResponseHeadEditor:
    """Passes a response on, and says in its head that the connection ends with it: the command would otherwise wait for an
    answer to its next request. What does not look like a response is passed on as it is.

    >>> editor = ResponseHeadEditor()
    >>> editor.feed(b"HTTP/1.1 200 OK\\r\\nKeep-Alive: timeout=5\\r\\n"), editor.feed(b"\\r\\nbody")
    (b'', b'HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\nbody')
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._is_past_head = False

    def feed(self, data: bytes) -> bytes:
        """What to pass on now."""
        if self._is_past_head:
            return data
        searched = max(0, len(self._held) - len(END_OF_HEAD))
        self._held += data
        passed_on = b""
        while (end := self._held.find(END_OF_HEAD, searched)) >= 0:
            head = bytes(self._held[:end])
            del self._held[: end + len(END_OF_HEAD)]
            searched = 0
            if not _is_interim(head):
                self._is_past_head = True
                return passed_on + _edit_head(head) + self.end()
            passed_on += head + END_OF_HEAD
        if len(self._held) > MAX_HEAD:
            self._is_past_head = True
            return passed_on + self.end()
        return passed_on

    def end(self) -> bytes:
        """What is left when no more comes."""
        rest = bytes(self._held)
        self._held.clear()
        return rest


def _is_interim(head: bytes) -> bool:
    """100 to 199, which another response follows; 101 is the last one on a connection."""
    return re.match(rb"HTTP/1\.[01] 1(?!01)[0-9][0-9]", head) is not None


def _edit_head(head: bytes) -> bytes:
    first, *lines = head.split(b"\r\n")
    kept = [
        line
        for line in lines
        if line.partition(b":")[0].strip().lower() not in (b"connection", b"keep-alive", b"proxy-connection")
    ]
    return b"\r\n".join([first, *kept, b"Connection: close", b"", b""])


# -- passing bytes on --------------------------------------------------------------------------------------------------

# At most two chunks are held for each direction, so a slow reader slows its writer down and memory stays flat. It ends when
# both sides have, when nothing moves for the idle limit, and at once when ``stop`` becomes readable. What came before a
# side broke off is still passed on: a server may answer and refuse the rest of what it is sent.

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
