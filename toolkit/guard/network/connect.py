"""``connect``, the only way out for a tool: a name is looked up once, and the connection goes where ``Network`` permits it.

Nothing is taken from the environment: no proxies, no stored credentials. HTTP over these connections is in ``toolkit.web``
for tools, in ``proxy.py`` for commands; neither can open a connection by itself.

Not stopped: what is sent over a connection, and what the server does with it.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import queue
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from toolkit.errors import SandboxViolation, ToolFailed
from toolkit.guard.network.hosts import Address, Host, Network, parse_address

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Check: TypeAlias = Callable[[], None]

# The longest wait between two calls of the caller's check.
_MAX_WAIT: Final = 0.1
# If a name has more addresses than this, the others are not tried.
_MAX_ATTEMPTS: Final = 8


class Deadline:
    """The time limit of one call, over all its waits. Calls the caller's ``check`` before each wait.

    Limit: checked between waits of at most a tenth of a second, not while Python code runs.
    """

    def __init__(self, seconds: float, check: Check) -> None:
        if not seconds > 0:
            raise ValueError("a timeout must be positive")
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._check = check

    def seconds_left(self) -> float:
        """The remaining seconds, more than zero; raises if the time is up or the caller ended the call."""
        self._check()
        left = self._end - time.monotonic()
        if left <= 0:
            raise ToolFailed("NETWORK", f"no complete response within {self._seconds:g} s", timed_out=True)
        return left

    def next_wait(self) -> float:
        """How many seconds the next wait may take."""
        return min(self.seconds_left(), _MAX_WAIT)


def connect(network: Network, host: Host, port: int, deadline: Deadline, *, tls: bool) -> socket.socket:
    """Connect to ``host``; raises ``SandboxViolation`` before any packet is sent to an address that is not permitted.

    Promise: a name is looked up once, and the connection goes to an address of that answer that the network permits,
    whatever the name means later. An address that is not permitted is never tried. With ``tls`` the certificate is checked
    for the name in the URL. Proxies are not used. Error texts name only the host.
    Limit: the lookup itself sends the name to the system's name servers. A lookup that hangs is left behind in its own
    thread.
    """
    addresses = look_up_permitted(network, host, port, deadline)
    plain = _connect_to_first(addresses, host, port, deadline)
    if not tls:
        return plain
    try:
        return _start_tls(network.context, plain, host, deadline)
    except ssl.SSLCertVerificationError as error:
        raise ToolFailed("NETWORK", f"the certificate of '{host.text}' is not valid: {error.verify_message}") from None
    except OSError:
        raise ToolFailed("NETWORK", f"the TLS connection to '{host.text}' failed") from None


def look_up_permitted(network: Network, host: Host, port: int, deadline: Deadline) -> list[Address]:
    """The addresses of one lookup that may be connected to; ``SandboxViolation`` if there is none."""
    network.judge_host(host)
    if host.address is not None:
        found: list[Address | None] = [host.address]
    else:
        found = [parse_address(text) for text in _look_up(network, host, port, deadline)]
    permitted = [address for address in dict.fromkeys(found) if address is not None and network.permits(address)]
    if not permitted:
        raise SandboxViolation(
            f"the host '{host.text}' has no permitted address: only public addresses may be reached",
            details={"reason": "NOT_PUBLIC"},
        )
    return permitted[:_MAX_ATTEMPTS]


def _look_up(network: Network, host: Host, port: int, deadline: Deadline) -> Sequence[str]:
    """The lookup runs in a thread, because the system's lookup has no time limit."""
    answers: queue.SimpleQueue[Sequence[str] | Exception] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put(network.resolve(host.text, port))
        except Exception as error:
            answers.put(error)

    threading.Thread(target=work, name="toolkit-lookup", daemon=True).start()
    while True:
        with contextlib.suppress(queue.Empty):
            answer = answers.get(timeout=deadline.next_wait())
            break
    if isinstance(answer, OSError | UnicodeError) or not answer:
        raise ToolFailed("NETWORK", f"the host '{host.text}' could not be resolved; check its name")
    if isinstance(answer, Exception):
        raise answer
    return answer


def _connect_to_first(addresses: list[Address], host: Host, port: int, deadline: Deadline) -> socket.socket:
    """A connection to the first address that accepts one."""
    for number, address in enumerate(addresses):
        # An address that drops packets may use only its share of the time.
        seconds = deadline.seconds_left() / (len(addresses) - number)
        try:
            return _connect_to(address, port, deadline, seconds)
        except OSError:
            continue
    deadline.seconds_left()
    raise ToolFailed("NETWORK", f"could not connect to '{host.text}' port {port}")


def _connect_to(address: Address, port: int, deadline: Deadline, seconds: float) -> socket.socket:
    end = time.monotonic() + seconds
    sock = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        problem = sock.connect_ex((str(address), port))
        waiting = select.poll()
        waiting.register(sock, select.POLLOUT)
        while problem == errno.EINPROGRESS:
            if waiting.poll(deadline.next_wait() * 1000):
                problem = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            elif time.monotonic() > end:
                problem = errno.ETIMEDOUT
        if problem:
            raise OSError(problem, os.strerror(problem))
    except BaseException:
        sock.close()
        raise
    return sock


def _start_tls(context: ssl.SSLContext, plain: socket.socket, host: Host, deadline: Deadline) -> ssl.SSLSocket:
    with plain:  # wrapping detaches it, so this closes it only if that failed
        # A connection that ends without a TLS closure is an error: an attacker could have shortened the body.
        secured = context.wrap_socket(
            plain, server_hostname=host.text, do_handshake_on_connect=False, suppress_ragged_eofs=False
        )
    try:
        while True:
            secured.settimeout(deadline.next_wait())
            with contextlib.suppress(TimeoutError):
                secured.do_handshake()
                return secured
    except BaseException:
        secured.close()
        raise


# -- an open connection ------------------------------------------------------------------------------------------------

_MAX_HEAD: Final = 128 << 10


class Wire:
    """A connection in the form ``HTTPResponse`` reads: the deadline limits every wait, and the bytes read are limited."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline
        self._left = _MAX_HEAD
        self.ended = False
        self._reader = _SharedReader(_WireSource(self))
        self._answer: HTTPResponse | None = None

    def next_response(self, method: str) -> HTTPResponse:
        """The response to read next. The one before is closed, and ``close`` closes the last one."""
        self.close()
        self._answer = HTTPResponse(cast(socket.socket, self), method=method)  # all it calls is makefile
        return self._answer

    def close(self) -> None:
        """Close the response, not the connection. If the garbage collector closed it, its reader might be gone already."""
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def makefile(self, _mode: str) -> io.BufferedReader:
        """The only reader of this connection, so that nothing is lost between an interim response and the next one."""
        return self._reader

    def allow(self, count: int) -> None:
        """Allow this many more bytes to be read."""
        self._left = count

    def send(self, data: bytes) -> None:
        while data:
            self._sock.settimeout(self._deadline.next_wait())
            with contextlib.suppress(TimeoutError):
                data = data[self._sock.send(data) :]

    def receive(self, buffer: WriteableBuffer) -> int:
        if self._left <= 0:
            raise HTTPException("more bytes than the content needs")
        with memoryview(buffer)[: self._left] as room:
            while True:
                self._sock.settimeout(self._deadline.next_wait())
                with contextlib.suppress(TimeoutError):
                    count = self._sock.recv_into(room)
                    self._left -= count
                    self.ended = count == 0
                    return count


class _WireSource(io.RawIOBase):
    """The received bytes of a ``Wire`` as a raw stream."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        return self._wire.receive(buffer)


class _SharedReader(io.BufferedReader):
    def close(self) -> None:
        """Does nothing: an interim response closes its reader, but the next one still needs it."""
