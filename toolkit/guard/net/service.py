"""Requests to one service that the set-up names: every method, with bodies, to exactly its origin.

Promise: a request goes to the scheme, host and port of the service or nowhere; redirects are answers and are not followed.
Hosts and addresses that the network denies stay denied. Time and sizes are bounded, and nothing is kept between calls.

Not stopped: what the service does with a request.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Final

from toolkit.errors import InvalidArguments, SandboxViolation
from toolkit.guard.net.dial import Check, Deadline, connect
from toolkit.guard.net.exchange import Response, Wire, ask, checked_headers, read_body, response_of, translated
from toolkit.guard.net.hosts import Url
from toolkit.guard.net.network import Network

METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
MAX_SENT: Final = 32 << 20
# An absent body and an empty one are told apart only where a body is usual.
_USUALLY_WITH_BODY: Final = ("POST", "PUT", "PATCH")


class ServiceGuard:
    """Made by ``NetGuard.service``. May be used by several threads."""

    def __init__(self, network: Network, origin: Url, check: Check) -> None:
        self._network = network
        self._origin = origin
        self._check = check

    def send(
        self,
        target: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout: float = 60,
        max_bytes: int = 5 << 20,
    ) -> Response:
        """Ask for ``target``, a path and query. The answer is what came, whatever its status, redirects too.

        Raises as ``NetGuard.fetch`` does.
        """
        if method not in METHODS:
            raise InvalidArguments(f"the method must be one of {', '.join(METHODS)}")
        if body is not None and len(body) > MAX_SENT:
            raise InvalidArguments(f"a request may have a body of at most {MAX_SENT} bytes")
        url = self._url(target)
        sent = checked_headers(headers or {})
        if body is None and method in _USUALLY_WITH_BODY:
            body = b""
        deadline = Deadline(timeout, self._check)
        sock = connect(self._network, url.host, url.port, deadline, tls=url.scheme == "https")
        with contextlib.closing(sock), translated(url):
            wire = Wire(sock, deadline)
            answer = ask(wire, url, method, sent, body)
            content, truncated = read_body(wire, answer, max_bytes)
            return response_of(url.text, url, answer, content, truncated, ())

    def _url(self, target: str) -> Url:
        if not target.startswith("/"):
            raise InvalidArguments("a path must begin with a slash")
        url = Url.parse(f"{self._origin.origin}{target}")
        if url.origin != self._origin.origin:
            raise SandboxViolation(f"only {self._origin.origin} may be asked")
        return url
