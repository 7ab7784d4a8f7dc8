"""From a judged host to a connection: one lookup, every answer judged, the connection made to that very answer."""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from toolkit.errors import SandboxViolation, ToolFailed
from toolkit.guard.net.addresses import Address, parse_address
from toolkit.guard.net.hosts import Host
from toolkit.guard.net.network import Network

Check: TypeAlias = Callable[[], None]

# The longest wait between two looks at the caller's check.
_SLICE: Final = 0.1
# A name with more answers than this is no reason to knock at all of them.
_MAX_ATTEMPTS: Final = 8


class Deadline:
    """The end of one call, however many waits it is made of, and the caller's ``check`` asked before each.

    Limit: looked at between waits of at most a tenth of a second, not while Python code runs.
    """

    def __init__(self, seconds: float, check: Check) -> None:
        if not seconds > 0:
            raise ValueError("a timeout must be positive")
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._check = check

    def left(self) -> float:
        """The seconds left, more than none; raises when the time is up or the caller ended the call."""
        self._check()
        left = self._end - time.monotonic()
        if left <= 0:
            raise ToolFailed("NETWORK", f"no complete answer within {self._seconds:g} s", timed_out=True)
        return left

    def slice(self) -> float:
        """How long the next wait may be."""
        return min(self.left(), _SLICE)


def connect(network: Network, host: Host, port: int, deadline: Deadline, *, tls: bool) -> socket.socket:
    """A connection to ``host``, or ``SandboxViolation`` before a packet was sent to a place that is not permitted.

    Promise: a name is looked up once and the connection goes to one of the answers of that lookup that the network
    permits, whatever the name means later; an answer that is not permitted is never tried. With ``tls`` the
    certificate is checked for the name in the URL. Proxies are not asked. Texts of failures name the host only.
    Limit: the lookup itself asks the system's name servers about the name. A lookup that hangs is left behind in
    a thread of its own.
    """
    addresses = permitted(network, host, port, deadline)
    plain = _first_to_answer(addresses, host, port, deadline)
    if not tls:
        return plain
    try:
        return _secured(network.context, plain, host, deadline)
    except ssl.SSLCertVerificationError as error:
        raise ToolFailed("NETWORK", f"the certificate of '{host.text}' is refused: {error.verify_message}") from None
    except OSError:
        raise ToolFailed("NETWORK", f"no TLS connection to '{host.text}' could be made") from None


def permitted(network: Network, host: Host, port: int, deadline: Deadline) -> list[Address]:
    """The answers of one lookup that may be connected to; ``SandboxViolation`` where there is none."""
    network.judge_host(host)
    if host.address is not None:
        found: list[Address | None] = [host.address]
    else:
        found = [parse_address(text) for text in _look_up(network, host, port, deadline)]
    permitted = [address for address in dict.fromkeys(found) if address is not None and network.permits(address)]
    if not permitted:
        raise SandboxViolation(f"the host '{host.text}' has no address that may be reached: only public ones may")
    return permitted[:_MAX_ATTEMPTS]


def _look_up(network: Network, host: Host, port: int, deadline: Deadline) -> Sequence[str]:
    """The lookup, in a thread because the system's cannot be given a time limit."""
    answers: queue.SimpleQueue[Sequence[str] | Exception] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put(network.resolve(host.text, port))
        except Exception as error:
            answers.put(error)

    threading.Thread(target=work, name="toolkit-lookup", daemon=True).start()
    while True:
        with contextlib.suppress(queue.Empty):
            answer = answers.get(timeout=deadline.slice())
            break
    if isinstance(answer, OSError | UnicodeError) or not answer:
        raise ToolFailed("NETWORK", f"the host '{host.text}' could not be found")
    if isinstance(answer, Exception):
        raise answer
    return answer


def _first_to_answer(addresses: list[Address], host: Host, port: int, deadline: Deadline) -> socket.socket:
    for number, address in enumerate(addresses):
        # An answer that swallows packets leaves their share of the time to the others.
        patience = deadline.left() / (len(addresses) - number)
        try:
            return _connected(address, port, deadline, patience)
        except OSError:
            continue
    deadline.left()
    raise ToolFailed("NETWORK", f"no connection to '{host.text}' port {port} could be made")


def _connected(address: Address, port: int, deadline: Deadline, patience: float) -> socket.socket:
    end = time.monotonic() + patience
    sock = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        problem = sock.connect_ex((str(address), port))
        waiting = select.poll()
        waiting.register(sock, select.POLLOUT)
        while problem == errno.EINPROGRESS:
            if waiting.poll(deadline.slice() * 1000):
                problem = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            elif time.monotonic() > end:
                problem = errno.ETIMEDOUT
        if problem:
            raise OSError(problem, os.strerror(problem))
    except BaseException:
        sock.close()
        raise
    return sock


def _secured(context: ssl.SSLContext, plain: socket.socket, host: Host, deadline: Deadline) -> ssl.SSLSocket:
    with plain:  # empty when wrapped, so that this closes it only if that failed
        # A connection cut without a goodbye is an error: an attacker could have shortened the body.
        secured = context.wrap_socket(
            plain, server_hostname=host.text, do_handshake_on_connect=False, suppress_ragged_eofs=False
        )
    try:
        while True:
            secured.settimeout(deadline.slice())
            with contextlib.suppress(TimeoutError):
                secured.do_handshake()
                return secured
    except BaseException:
        secured.close()
        raise
