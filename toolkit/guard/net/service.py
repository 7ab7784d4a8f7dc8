"""Requests to one service from the configuration: every method, with bodies, only to the origin of the service.

Promise: a request goes to the scheme, host and port of the service or nowhere; a redirect is returned and not followed.
Hosts and addresses that the network denies stay denied; with ``public_only`` so do all addresses that are not public. Time
and sizes are bounded, and nothing is kept between calls.

Not stopped: what the service does with a request.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Final

from toolkit.errors import InvalidArguments, SandboxViolation
from toolkit.guard.net.dial import Check, Deadline, connect
from toolkit.guard.network.guard import (
    ConnectionErrors,
    Response,
    Wire,
    build_response,
    check_headers,
    read_body,
    send_request,
)
from toolkit.guard.network.hosts import Url
from toolkit.guard.network.network import Network

METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
MAX_SENT: Final = 32 << 20
# For these methods, a request without a body is sent with an empty one.
_USUALLY_WITH_BODY: Final = ("POST", "PUT", "PATCH")


class ServiceGuard:
    """Sends requests to one origin. Created by ``NetGuard.service``; thread-safe."""

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
        """Request ``target``, a path and query. Returns the response with any status, redirects included.

        Raises the same errors as ``NetGuard.fetch``.
        """
        if method not in METHODS:
            raise InvalidArguments(f"the method must be one of {', '.join(METHODS)}")
        if body is not None and len(body) > MAX_SENT:
            raise InvalidArguments(f"the body of a request may have at most {MAX_SENT} bytes")
        url = self._url(target)
        sent = check_headers(headers or {})
        if body is None and method in _USUALLY_WITH_BODY:
            body = b""
        deadline = Deadline(timeout, self._check)
        sock = connect(self._network, url.host, url.port, deadline, tls=url.scheme == "https")
        with (
            contextlib.closing(sock),
            ConnectionErrors(url),
            contextlib.closing(Wire(sock, deadline)) as wire,
        ):
            answer = send_request(wire, url, method, sent, body)
            content, truncated = read_body(wire, answer, max_bytes)
            return build_response(url.text, url, answer, content, truncated, ())

    def _url(self, target: str) -> Url:
        if not target.startswith("/"):
            raise InvalidArguments("a path must begin with a slash")
        url = Url.parse(f"{self._origin.origin}{target}")
        if url.origin != self._origin.origin:
            raise SandboxViolation(f"requests may go only to {self._origin.origin}")
        return url
