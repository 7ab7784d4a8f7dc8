"""A server over HTTP, written by hand, that answers as its habit says; it remembers what it was asked."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "odd", "version": "0"},
}


class OddHttp:
    """Where it is, its habit, and the requests so far: method, path, headers in lower case, body."""

    def __init__(self) -> None:
        self.habit = "plain"
        self.elsewhere = ""
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.url = ""
        self.sessions = 0
        self.released = threading.Event()
        self.flood: dict[str, Any] = {}
        self.flood_size = 0
        self.has_flooded = threading.Event()

    def methods(self) -> list[str]:
        return [body["method"] for verb, _, _, body in self.requests if verb == "POST" and "method" in body]


def _event(data: str) -> bytes:
    return f"data: {data}\n\n".encode()


def _many_parts() -> bytes:
    content = [{"type": "text", "text": "x"}] * 20_000
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": content}}).encode()


@contextmanager
def odd_http(tls: ssl.SSLContext | None = None) -> Iterator[OddHttp]:
    odd = OddHttp()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            odd.requests.append(("POST", self.path, self._headers(), body))
            method = body.get("method")
            if "id" not in body:
                self._send(202, b"")
            elif method == "initialize":
                odd.sessions += 1
                self._result(body, INITIALIZED, {"mcp-session-id": f"session-{odd.sessions}"})
            elif method != "tools/call":
                error = {"code": -32601, "message": "Method not found"}
                self._json({"jsonrpc": "2.0", "id": body["id"], "error": error})
            else:
                self._habit(body)

        def do_GET(self) -> None:
            odd.requests.append(("GET", self.path, self._headers(), None))
            if odd.habit == "floods by itself":
                self._send(200, _event("\x1b[31m no JSON" * 20) * odd.flood_size, {"content-type": "text/event-stream"})
                odd.has_flooded.set()
                return
            self._send(405, b"")

        def do_DELETE(self) -> None:
            odd.requests.append(("DELETE", self.path, self._headers(), None))
            if odd.habit == "silent":
                odd.released.wait()
                self.close_connection = True
                return
            self._send(200, b"")

        def _habit(self, body: dict[str, Any]) -> None:
            number = {"content": [{"type": "text", "text": "5"}], "structuredContent": {"n": 5}}
            match odd.habit:
                case "redirects":
                    self._send(307, b"", {"location": odd.elsewhere})
                case "redirects telling":
                    self._send(307, b"", {"location": f"/{self.headers['x-token']}"})
                case "redirects within":
                    self._send(308, b"", {"location": "/mcp/"})
                case "status":
                    self._send(401, b"<html>who are you?</html>", {"content-type": "text/html"})
                case "garbage":
                    self._send(200, b"\x00 no json", {"content-type": "application/json"})
                case "no type":
                    self._send(200, b"what?", {"content-type": "text/plain"})
                case "packed":
                    self._send(200, b"x" * 100, {"content-type": "application/json", "content-encoding": "gzip"})
                case "huge":
                    self.send_response(200)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(1 << 40))
                    self.end_headers()
                    try:
                        while True:
                            self.wfile.write(b"x" * (1 << 20))
                    except OSError:
                        self.close_connection = True
                case "silent":
                    odd.released.wait()
                    self.close_connection = True
                case "hangs up":
                    self.close_connection = True
                case "ends the stream":
                    self._send(200, b": nothing\n\n", {"content-type": "text/event-stream"})
                case "floods":
                    answer = {"jsonrpc": "2.0", "id": body["id"], "result": number}
                    flood = _event(json.dumps({"jsonrpc": "2.0", **odd.flood})) * odd.flood_size
                    self._send(200, flood + _event(json.dumps(answer)), {"content-type": "text/event-stream"})
                case "many parts":
                    self._send(200, _many_parts(), {"content-type": "application/json"})
                case "many parts in an event":
                    events = b'id: "\r\n: "\r\nevent: message\r\n' + _event(_many_parts().decode())
                    self._send(200, events, {"content-type": "text/event-stream"})
                case "many parts in many lines":
                    lines = _many_parts().replace(b"}, ", b"},\rdata:").decode()
                    self._send(200, f"data:{lines}\r\r".encode(), {"content-type": "text/event-stream"})
                case "answers in an event":
                    text = json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": number})
                    lines = text.replace(", ", ",\r\ndata: ")
                    self._send(
                        200, f": hello\r\n\r\ndata: {lines}\r\n\r\n".encode(), {"content-type": "text/event-stream"}
                    )
                case "forgets once" if odd.sessions == 1:
                    self._send(404, b"")
                case "always forgets":
                    self._send(404, b"")
                case _:
                    self._result(body, number)

        def _result(self, body: dict[str, Any], result: dict[str, Any], more: dict[str, str] | None = None) -> None:
            self._json({"jsonrpc": "2.0", "id": body["id"], "result": result}, more)

        def _json(self, value: object, more: dict[str, str] | None = None) -> None:
            self._send(200, json.dumps(value).encode(), {"content-type": "application/json", **(more or {})})

        def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"content-length": str(len(body)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def _headers(self) -> dict[str, str]:
            return {name.lower(): value for name, value in self.headers.items()}

        def log_message(self, *words: object) -> None:
            """Nothing: tests ask ``requests``."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    odd.url = f"http{'s' * (tls is not None)}://127.0.0.1:{server.server_port}/mcp"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield odd
    finally:
        odd.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
