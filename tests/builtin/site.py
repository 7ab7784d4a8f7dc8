"""A web site on the loopback interface for the tests of ``webfetch``, and toolkits that may reach it by name."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from toolkit import Network
from toolkit.generated import SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit
from toolkit.runtime.approvals import Approver

HERE = "127.0.0.1"
INSIDE = "10.1.2.3"


@dataclass(frozen=True)
class Answer:
    """The response of the site for a page."""

    body: bytes = b""
    content_type: str | None = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Site:
    """``pages`` by path; ``asked`` are the requests so far, each with its headers."""

    port: int = 0
    pages: dict[str, Answer | Callable[[], Iterator[bytes]]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str = "/", host: str = "site.test") -> str:
        return f"http://{host}:{self.port}{path}"

    def serve(self, body: bytes | str, content_type: str | None = "text/html; charset=utf-8", status: int = 200) -> str:
        """Put a page at the root; returns its URL."""
        self.pages["/"] = Answer(body.encode() if isinstance(body, str) else body, content_type, status)
        return self.url()

    def redirect(self, path: str, target: str) -> str:
        self.pages[path] = Answer(status=302, headers={"Location": target})
        return self.url(path)

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


@contextmanager
def running_site() -> Iterator[Site]:
    site = Site()

    class Pages(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            page = site.pages.get(self.path.partition("?")[0], Answer(b"<p>nothing here", status=404))
            with contextlib.suppress(OSError):
                if isinstance(page, Answer):
                    self._answer(page)
                    return
                self.send_response(200)
                self.end_headers()
                for piece in page():
                    self.wfile.write(piece)

        def _answer(self, page: Answer) -> None:
            self.send_response(page.status)
            for name, value in page.headers.items():
                self.send_header(name, value)
            if page.content_type is not None:
                self.send_header("Content-Type", page.content_type)
            self.send_header("Content-Length", str(len(page.body)))
            self.end_headers()
            self.wfile.write(page.body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with http.server.ThreadingHTTPServer((HERE, 0), Pages) as server:
        server.daemon_threads = True
        site.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield site
        site.closing.set()
        server.shutdown()
        thread.join()


def toolkit_on_the_web(
    root: Path,
    policy: SecurityPolicy | None = None,
    *,
    names: Mapping[str, Sequence[str]] | None = None,
    allow_addresses: Sequence[str] = (HERE,),
    allow_hosts: Sequence[str] | None = None,
    approver: Approver | None = None,
) -> Toolkit:
    """A toolkit that treats this machine as public; every name resolves to it unless ``names`` says otherwise."""

    def resolve(host: str, port: int) -> Sequence[str]:
        return (names or {}).get(host, [HERE])

    network = Network(allow_hosts=allow_hosts, allow_addresses=allow_addresses, resolve=resolve)
    policy = policy or SecurityPolicy(default="allow")
    return create_agent_toolkit(ToolkitContext(root, policy, network=network, approver=approver))
