"""The web server inside the tests' network: one page per behaviour, and a note of every connection."""

from __future__ import annotations

import contextlib
import gzip
import ipaddress
import json
import socket
import socketserver
import ssl
import threading
import time
import urllib.parse
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path

DOCUMENT = b"<p>The quick brown fox jumps over the lazy dog.</p>\n" * 400

EXAMPLE = b"""<!doctype html><html lang="en"><head><title>Example Domain</title><style>body{width:60vw}</style></head>
<body><div><h1>Example Domain</h1><p>This domain is for use in documentation examples without needing permission.</p>
<p><a href="https://iana.org/domains/example">Learn more</a></p></div></body></html>
"""

# An address that no test asks for.
LAST = "127.0.0.99"

# Whole answers, byte by byte; the connection is closed behind each.
RAW: dict[str, bytes] = {
    "no-http": b"SSH-2.0-OpenSSH_9.9\r\n",
    "empty": b"",
    "bad-status": b"HTTP/1.1 abc OK\r\n\r\n",
    "http-2": b"HTTP/2 200 OK\r\n\r\n",
    "cut-head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "short-body": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfive.",
    "bad-length": b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nfive.",
    "two-lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 4\r\n\r\nfive.",
    "bad-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nfive.\r\n0\r\n\r\n",
    "negative-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\nfive.\r\n0\r\n\r\n",
    "cut-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfi",
    "other-coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "brotli": b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 5\r\n\r\nfive.",
    "twice-packed": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip, gzip\r\nContent-Length: 5\r\n\r\nfive.",
    "not-gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nfive.",
    "cut-gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(DOCUMENT)[:-9],
    "many-headers": b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(200)) + b"\r\n",
    "long-header": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
    "big-head": b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: %s\r\n" % (n, b"y" * 60_000) for n in range(20)) + b"\r\n",
    "switch": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nx",
    "bad-location": b"HTTP/1.1 302 Found\r\nLocation: http://site.test/\xff\r\n\r\n",
    "spaced-location": b"HTTP/1.1 302 Found\r\nLocation: http://site.test/a b\r\n\r\n",
    # What must work.
    "until-close": b"HTTP/1.0 200 OK\r\n\r\nfive.",
    "interim": b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfive.",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nfi\r\n3\r\nve.\r\n0\r\nTrailer: x\r\n\r\n",
    "folded": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Folded: a\r\n b\r\n\r\nfive.",
    "no-location": b"HTTP/1.1 302 Found\r\nContent-Length: 5\r\n\r\nfive.",
    "utf8-location": "HTTP/1.1 302 Found\r\nLocation: /plain?ü\r\n\r\n".encode(),
    "latin-1": b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=ISO-8859-1\r\n\r\nK\xe4se",
    "wrong-charset": b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=punycode\r\n\r\nK\xc3\xa4se\xff",
    "no-such-charset": b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=iso-8859-99\r\n\r\nK\xc3\xa4se\xff",
    "binary": b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n" + bytes(range(256)),
    "utf-16": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n" + "Käse".encode("utf-16"),
}
PACKED: dict[str, tuple[str, bytes]] = {
    "gzip": ("gzip", gzip.compress(DOCUMENT)),
    "x-gzip": ("X-GZip", gzip.compress(DOCUMENT)),
    "members": ("gzip", gzip.compress(DOCUMENT[:100]) + gzip.compress(DOCUMENT[100:])),
    "padded": ("gzip", gzip.compress(DOCUMENT) + bytes(50)),
    "deflate": ("deflate", zlib.compress(DOCUMENT)),
    "bare": ("deflate", zlib.compress(DOCUMENT)[2:-4]),
    "identity": ("identity", DOCUMENT),
}


@dataclass(frozen=True)
class Connection:
    """One accepted connection: which of our addresses it came to, and from which port."""

    address: str
    port: int
    peer_port: int


@dataclass(frozen=True)
class Request:
    """One request as it was received."""

    address: str
    line: str
    headers: dict[str, str]


class Recorder:
    """Everything the servers saw since ``clear``."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._connections: list[Connection] = []
        self._requests: list[Request] = []

    def clear(self) -> None:
        with self._changed:
            self._connections, self._requests = [], []

    def connected(self, connection: Connection) -> None:
        with self._changed:
            self._connections.append(connection)
            self._changed.notify_all()

    def requested(self, request: Request) -> None:
        with self._changed:
            self._requests.append(request)

    def all_until_now(self) -> tuple[list[Connection], list[Request]]:
        """Wait until the servers have taken every connection made before this call.

        A listener hands connections out in their order, so one of our own at the end of the queue shows that.
        """
        for port in (80, 443):
            with socket.create_connection((LAST, port)) as last, self._changed:
                own = Connection(LAST, port, last.getsockname()[1])
                while own not in self._connections:
                    assert self._changed.wait(60), "a server has stopped taking connections"
        with self._changed:
            return [each for each in self._connections if each.address != LAST], list(self._requests)


class Server(socketserver.ThreadingTCPServer):
    """Listens on every address of both kinds."""

    address_family = socket.AF_INET6
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 100

    def __init__(self, port: int, recorder: Recorder, tls: ssl.SSLContext | None = None) -> None:
        self.recorder = recorder
        self.tls = tls
        super().__init__(("::", port), Pages)

    def get_request(self) -> tuple[socket.socket, object]:
        request, peer = super().get_request()
        address, port = request.getsockname()[:2]
        self.recorder.connected(Connection(plain(address), port, peer[1]))
        return request, peer

    def finish_request(self, request: socket.socket | tuple[bytes, socket.socket], peer: object) -> None:
        assert isinstance(request, socket.socket)
        if self.tls is None:
            super().finish_request(request, peer)
            return
        with self.tls.wrap_socket(request, server_side=True) as secured:
            super().finish_request(secured, peer)
            secured.unwrap()

    def handle_error(self, request: object, peer: object) -> None:
        """Clients that go away are what these tests are about."""


def plain(address: str) -> str:
    """An address as it is written elsewhere in these tests; IPv4 comes to a listener of both kinds in a mapped form."""
    parsed = ipaddress.IPv6Address(address)
    return str(parsed.ipv4_mapped or parsed)


def start_servers(recorder: Recorder, folder: Path | None) -> None:
    servers = [Server(80, recorder), Server(443, recorder, tls_context(folder) if folder else None)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()


def tls_context(folder: Path) -> ssl.SSLContext:
    """Shows the certificate of an unknown authority to those who ask for rogue.test, else the one for site.test."""
    contexts = {}
    for name in ("site", "rogue"):
        contexts[name] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        contexts[name].load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")

    def choose(connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
        if name == "rogue.test":
            connection.context = contexts["rogue"]

    contexts["site"].sni_callback = choose
    return contexts["site"]


class Pages(BaseHTTPRequestHandler):
    """Serves ``/name?query`` by the method ``page_name``."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        parts = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(parts.query))
        self.close_connection = True
        assert isinstance(self.server, Server)
        self.here = plain(self.connection.getsockname()[0])
        self.server.recorder.requested(
            Request(self.here, self.requestline, {k.lower(): v for k, v in self.headers.items()})
        )
        name = "example" if self.headers["host"] == "example.org" else parts.path.strip("/") or "plain"
        page: Callable[[dict[str, str]], None] = getattr(self, f"page_{name}", self.page_plain)
        with contextlib.suppress(OSError):
            page(query)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a quiet server."""

    def answer(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def page_plain(self, query: dict[str, str]) -> None:
        """The address that was reached."""
        self.answer(self.here.encode(), int(query.get("status", "200")), Content_Type="text/plain")

    def page_example(self, query: dict[str, str]) -> None:
        """What the examples in specs ask for: much like what is really there."""
        self.answer(EXAMPLE, Content_Type="text/html")

    def page_echo(self, query: dict[str, str]) -> None:
        self.answer(json.dumps({name.lower(): value for name, value in self.headers.items()}).encode())

    def page_redirect(self, query: dict[str, str]) -> None:
        self.answer(b"", int(query.get("status", "302")), Location=query["to"], Set_Cookie="session=secret")

    def page_steps(self, query: dict[str, str]) -> None:
        """So many redirects, then a page."""
        left = int(query["left"])
        self.answer(b"there", 302, Location=f"steps?left={left - 1}") if left else self.answer(b"there")

    def page_raw(self, query: dict[str, str]) -> None:
        self.wfile.write(RAW[query["name"]])

    def page_packed(self, query: dict[str, str]) -> None:
        coding, body = PACKED[query["name"]]
        self.answer(body, Content_Encoding=coding)

    def page_bomb(self, query: dict[str, str]) -> None:
        """Endless zeros, packed."""
        packer = zlib.compressobj(9, zlib.DEFLATED, 31 if query["coding"] == "gzip" else 15)
        self.begin_endless(f"Content-Encoding: {query['coding']}\r\n")
        while True:
            self.wfile.write(packer.compress(bytes(1 << 20)))

    def page_hollow(self, query: dict[str, str]) -> None:
        """An endless gzip body with nothing in it."""
        self.begin_endless("Content-Encoding: gzip\r\n")
        while True:
            self.wfile.write(gzip.compress(b"") * 1000)

    def page_endless(self, query: dict[str, str]) -> None:
        self.begin_endless("")
        while True:
            self.wfile.write(b"x" * 65536)

    def page_minus(self, query: dict[str, str]) -> None:
        """A chunk of size -1, for which http.client reads all there is."""
        self.begin_endless("Transfer-Encoding: chunked\r\n")
        self.wfile.write(b"-1\r\n")
        while True:
            self.wfile.write(b"x" * 65536)

    def page_trailers(self, query: dict[str, str]) -> None:
        self.begin_endless("Transfer-Encoding: chunked\r\n")
        self.wfile.write(b"5\r\nfive.\r\n0\r\n")
        while True:
            self.wfile.write(b"X: y\r\n" * 1000)

    def page_interims(self, query: dict[str, str]) -> None:
        while True:
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)

    def page_drip(self, query: dict[str, str]) -> None:
        """A byte now and then: ``head`` in the head, else in the body; without ``count``, for ever."""
        if "head" not in query:
            self.begin_endless("")
        count = int(query.get("count", "1000000"))
        for _ in range(count):
            self.wfile.write(b"x")
            time.sleep(0.01)

    def page_silent(self, query: dict[str, str]) -> None:
        self.connection.recv(1)

    def page_cut(self, query: dict[str, str]) -> None:
        """The connection is reset in the middle of the body."""
        self.begin_endless("Content-Length: 100\r\n")
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.connection.close()

    def page_ragged(self, query: dict[str, str]) -> None:
        """The connection ends without the goodbye of TLS."""
        self.begin_endless("")
        self.wfile.write(b"half")
        self.connection.shutdown(socket.SHUT_RDWR)

    def begin_endless(self, headers: str) -> None:
        self.wfile.write(f"HTTP/1.1 200 OK\r\n{headers}\r\n".encode())
