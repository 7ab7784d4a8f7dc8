"""``NetGuard``, the only way from a tool to the web: it fetches URLs that a ``Network`` permits.

Promise: every hop is parsed, checked, looked up once and connected to as ``dial.connect`` promises. Time, redirects,
headers and the decoded body are bounded; so is memory, by a small multiple of ``max_bytes``. Nothing is taken from the
environment and nothing is kept between calls: no proxies, no cookies, no stored credentials.

Not stopped: what the server does with the URL, and what the response contains.
"""

from __future__ import annotations

import contextlib
import copy
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from toolkit.errors import InvalidArguments, ToolFailed
from toolkit.guard.net.dial import Check, Deadline, connect
from toolkit.guard.net.redirects import next_hop, redirect_location
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

if TYPE_CHECKING:
    from toolkit.guard.net.service import ServiceGuard

Method: TypeAlias = Literal["GET", "HEAD"]
RedirectJudge: TypeAlias = Callable[[str], None]

MAX_REDIRECTS: Final = 5


class NetGuard:
    """Fetches URLs that ``network`` permits. Thread-safe."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._check: Check = _no_check
        self._judge_redirect: RedirectJudge = _no_redirect_judge
        # Shared by all views, because each network loads the system's certificate authorities once.
        self._service_networks: dict[tuple[str, bool], Network] = {}

    def __repr__(self) -> str:
        return f"<NetGuard: {self._network!r}>"

    @property
    def network(self) -> Network:
        """What may be reached."""
        return self._network

    def with_check(self, check: Check) -> NetGuard:
        """A view with the same network that calls ``check`` before every wait.

        ``check`` raises a ``ToolkitError`` to end the call; it replaces an earlier one.
        """
        view = copy.copy(self)
        view._check = check
        return view

    def with_redirect_judge(self, judge: RedirectJudge) -> NetGuard:
        """A view that calls ``judge`` with the URL of every redirect to another host.

        ``judge`` raises a ``ToolkitError`` to refuse the redirect, before the name is looked up.
        """
        view = copy.copy(self)
        view._judge_redirect = judge
        return view

    def service(self, url: str, *, public_only: bool = False) -> ServiceGuard:
        """A guard that may send all kinds of requests to the origin of ``url``, and nowhere else.

        ``url`` must come from the configuration: the origin may be anywhere, including this machine. If somebody else chose
        it, such as the author of a document, use ``public_only``: then every lookup is judged as for ``fetch``.
        """
        from toolkit.guard.net.service import ServiceGuard

        origin = Url.parse(url)
        key = (origin.origin, public_only)
        if key not in self._service_networks:
            self._service_networks[key] = self._network.for_service(origin.host, public_only=public_only)
        return ServiceGuard(self._service_networks[key], origin, self._check)

    def fetch(
        self,
        url: str,
        *,
        method: Method = "GET",
        headers: Mapping[str, str] | None = None,
        timeout: float = 30,
        max_bytes: int = 5 << 20,
        check: Check | None = None,
    ) -> Response:
        """Request ``url`` and follow at most five redirects, each checked like the first URL.

        ``headers`` go to the first origin. After a redirect to another origin only accept, accept-language and user-agent
        are sent; the others are not sent again. A redirect from https to http is refused. ``timeout`` (seconds) covers the
        whole call.
        Raises ``InvalidArguments``, ``SandboxViolation``, ``ToolFailed`` with NETWORK (no connection, or timed out) or
        REMOTE (invalid HTTP, too many redirects), and what ``check`` raises.
        """
        if max_bytes < 0:
            raise ValueError("max_bytes must not be negative: a fetch is always bounded")
        deadline = Deadline(timeout, check or self._check)
        if method not in ("GET", "HEAD"):
            raise InvalidArguments("the method must be GET or HEAD")
        current, sent = Url.parse(url), check_headers(headers or {})
        hops: list[str] = []
        while len(hops) <= MAX_REDIRECTS:
            with (
                contextlib.closing(self._connect(current, deadline)) as sock,
                ConnectionErrors(current),
                contextlib.closing(Wire(sock, deadline)) as wire,
            ):
                answer = send_request(wire, current, method, sent)
                location = redirect_location(answer)
                if location is None:
                    body, truncated = read_body(wire, answer, max_bytes)
                    return build_response(url, current, answer, body, truncated, tuple(hops))
            hops.append(current.text)
            before, (current, sent) = current.host, next_hop(current, location, sent)
            if current.host != before:
                self._judge_redirect(current.text)
        raise ToolFailed("REMOTE", f"the server sent more than {MAX_REDIRECTS} redirects")

    def _connect(self, url: Url, deadline: Deadline) -> socket.socket:
        return connect(self._network, url.host, url.port, deadline, tls=url.scheme == "https")


def _no_check() -> None:
    """The check of a ``NetGuard`` without one."""


def _no_redirect_judge(url: str) -> None:
    """Only the network's settings decide about redirects."""
