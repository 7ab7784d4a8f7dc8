"""Servers for tests of the proxy: one that commands may reach, one inside that they may not, and a record of each."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from toolkit.guard import Network
from toolkit.guard.network.proxy import CommandProxy, UrlJudge

GOOD = "127.0.0.1"
INSIDE = "127.0.0.2"  # stands for everything that may not be reached; the whole of 127.0.0.0/8 is this machine
NAMES = {"good.example": [GOOD], "rebound.example": [INSIDE], "both.example": [INSIDE, GOOD]}
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfive."

Conversation = Callable[[socket.socket], None]


@dataclass
class Origin:
    """A server that notes what it is sent. ``talk`` is what it does with a connection, by default ``answer``."""

    sock: socket.socket
    heads: list[bytes] = field(default_factory=list)
    answer: bytes = OK
    talk: Conversation | None = None
    connections: int = 0

    @property
    def port(self) -> int:
        return int(self.sock.getsockname()[1])

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.sock.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            if self.talk is not None:
                self.talk(connection)
                return
            self.heads.append(read_head(connection))
            connection.sendall(self.answer)


@contextlib.contextmanager
def running_origin(address: str = GOOD) -> Iterator[Origin]:
    with socket.create_server((address, 0)) as sock:
        origin = Origin(sock)
        thread = threading.Thread(target=origin.serve, daemon=True)
        thread.start()
        yield origin
        sock.shutdown(socket.SHUT_RDWR)
        thread.join()


def network(
    *,
    names: Mapping[str, Sequence[str]] = NAMES,
    allow_hosts: Sequence[str] | None = ("good.example", "rebound.example", "both.example"),
    allow_addresses: Sequence[str] = (GOOD,),
    lookups: list[str] | None = None,
) -> Network:
    """A network in which ``GOOD`` is public, and ``names`` are the only names."""

    def resolve(host: str, port: int) -> Sequence[str]:
        if lookups is not None:
            lookups.append(host)
        if host not in names:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return names[host]

    return Network(allow_hosts=allow_hosts, allow_addresses=allow_addresses, resolve=resolve)


@contextlib.contextmanager
def running_proxy(
    permitted: Network, judge: UrlJudge | None = None, *, idle_seconds: float = 60
) -> Iterator[tuple[CommandProxy, int]]:
    """A proxy on this machine's own loopback, and its port."""
    listener = socket.create_server((GOOD, 0), backlog=128)
    port = int(listener.getsockname()[1])
    proxy = CommandProxy(listener.detach(), permitted, judge, idle_seconds=idle_seconds)
    try:
        yield proxy, port
    finally:
        proxy.close()


def read_head(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(1 << 16)
        if not more:
            break
        data += more
    return data


def read_all(connection: socket.socket) -> bytes:
    data = b""
    while more := connection.recv(1 << 16):
        data += more
    return data


def ask(port: int, request: bytes) -> bytes:
    """Everything the proxy sends for these bytes."""
    with socket.create_connection((GOOD, port)) as client:
        client.sendall(request)
        return read_all(client)


def proxy_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "toolkit-proxy"]
