"""A web service on this machine's loopback that remembers every request, byte for byte, and answers as it is told."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Seen:
    """One request as it arrived; names of headers in lower case."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    body: bytes = b"{}"
    status: int = 200
    content_type: str | None = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Service:
    """``answers`` by method and path, ``usual`` for all others."""

    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    usual: Answer = field(default_factory=Answer)
    waiting: threading.Event = field(default_factory=threading.Event)
    """Set when a request for ``/wait`` has arrived, which is answered when ``closing`` is."""
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def last(self) -> Seen:
        return self.seen[-1]

    def answer(self, value: Any, **keys: Any) -> None:
        self.usual = Answer(json.dumps(value).encode(), **keys)

    def forget(self) -> None:
        self.seen.clear()
        self.answers.clear()
        self.usual = Answer()


@contextmanager
def running_service() -> Iterator[Service]:
    service = Service()

    class Handler(http.server.BaseHTTPRequestHandler):
        def _do(self) -> None:
            length = int(self.headers.get("content-length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            service.seen.append(Seen(self.requestline, headers, self.rfile.read(length)))
            path = self.path.partition("?")[0]
            if path.endswith("/wait"):
                service.waiting.set()
                service.closing.wait(60)
            answer = service.answers.get(f"{self.command} {path}", service.usual)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.content_type is not None:
                self.send_header("content-type", answer.content_type)
            self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

        do_GET = do_HEAD = do_OPTIONS = do_POST = do_PUT = do_PATCH = do_DELETE = _do

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that went away is no news."""

    server = Server(("127.0.0.1", 0), Handler)
    service.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
