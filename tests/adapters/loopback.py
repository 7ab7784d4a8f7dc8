"""A loopback server for real SDK clients, which sends the given answers and records the requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. ``events`` are sent as server-sent events (each ``(event name or None, data)``), ``lines`` as JSON
    lines; else ``body`` is JSON. ``cut`` closes the connection in the middle, ``silent`` never answers."""

    body: Any = None
    status: int = 200
    events: Sequence[tuple[str | None, Any]] | None = None
    lines: Sequence[Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    silent: bool = False

    def payload(self) -> tuple[str, bytes]:
        if self.events is not None:
            return "text/event-stream", b"".join(_event(name, data) for name, data in self.events)
        if self.lines is not None:
            return "application/x-ndjson", b"".join(json.dumps(line).encode() + b"\n" for line in self.lines)
        return "application/json", json.dumps(self.body).encode()


def _event(name: str | None, data: Any) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {text}\n\n".encode()


@dataclass(slots=True)
class Request:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Loopback:
    """The server's address, and the requests so far."""

    def __init__(self, url: str, requests: list[Request]) -> None:
        self.url = url
        self.requests = requests


@contextmanager
def serve(*answers: Answer) -> Iterator[Loopback]:
    """A server that sends these answers in order; further requests get status 599."""
    waiting, requests, released = list(answers), list[Request](), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # or each body waits for its headers to be acknowledged

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
            body = json.loads(data) if data else None
            requests.append(Request(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            answer = waiting.pop(0) if waiting else Answer({"error": "nothing more to say"}, 599)
            if answer.silent:
                released.wait()
                self.close_connection = True
                return
            kind, payload = answer.payload()
            self.send_response(answer.status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(payload) + (1000 if answer.cut else 0)))
            for key, value in answer.headers.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(payload)
            if answer.cut:
                self.close_connection = True

        do_GET = do_POST

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield Loopback(f"http://127.0.0.1:{server.server_address[1]}", requests)
    finally:
        released.set()
        server.shutdown()
        server.server_close()
        thread.join()
