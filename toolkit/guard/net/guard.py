"""The only way from a tool to the web: ``NetGuard`` fetches a URL inside what a ``Network`` permits.

Promise: every hop is parsed, judged, looked up once and connected to as ``dial.connect`` says. Time, redirects,
headers and the decoded body are bounded; memory is too, by a small multiple of ``max_bytes``. Nothing is taken
from the environment and nothing is kept between calls: no proxies, no cookies, no stored credentials.

Not stopped: what the asked server does with the URL it gets, and what stands in the answer.
"""

from __future__ import annotations

import contextlib
import copy
import socket
from collections.abc import Callable, Mapping
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from toolkit.errors import InvalidArguments, SandboxViolation, ToolFailed
from toolkit.guard.net.dial import Check, Deadline, connect
from toolkit.guard.net.exchange import Response, Wire, ask, checked_headers, read_body, response_of, translated
from toolkit.guard.net.hosts import Url
from toolkit.guard.net.network import Network

if TYPE_CHECKING:
    from toolkit.guard.net.service import ServiceGuard

Method: TypeAlias = Literal["GET", "HEAD"]
Judge: TypeAlias = Callable[[str], None]

MAX_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
# What is not in here may be a secret meant for the first origin only.
_TO_OTHER_ORIGINS: Final = frozenset({"accept", "accept-language", "user-agent"})


class NetGuard:
    """Fetches inside what ``network`` permits. May be used by several threads."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._check: Check = _no_check
        self._judge: Judge = _no_judge
        # Shared by all views: a network of its own loads the system's authorities once.
        self._toward: dict[str, Network] = {}

    @property
    def network(self) -> Network:
        """What may be reached."""
        return self._network

    def bound(self, check: Check) -> NetGuard:
        """A view with the same network that calls ``check`` before every wait.

        ``check`` raises a ``ToolkitError`` to end the call; it takes the place of an earlier one.
        """
        view = copy.copy(self)
        view._check = check
        return view

    def judging(self, judge: Judge) -> NetGuard:
        """A view that asks ``judge`` about every redirect to another host than the one before, by its URL.

        ``judge`` raises a ``ToolkitError`` to refuse it, before the name is even looked up.
        """
        view = copy.copy(self)
        view._judge = judge
        return view

    def service(self, url: str) -> ServiceGuard:
        """What may send requests of every kind to the origin of ``url``, and nowhere else.

        ``url`` must come from the set-up: the origin may be anywhere, this machine included.
        """
        from toolkit.guard.net.service import ServiceGuard

        origin = Url.parse(url)
        if origin.origin not in self._toward:
            self._toward[origin.origin] = self._network.toward(origin.host)
        return ServiceGuard(self._toward[origin.origin], origin, self._check)

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
        """Ask for ``url`` and follow at most five redirects, each judged as if it had been asked for.

        ``headers`` go to the first origin; a redirect to another one takes along only accept, accept-language and
        user-agent, and the rest is gone for good. A redirect from https to http is refused. ``timeout`` (seconds)
        covers the whole call.
        Raises ``InvalidArguments``, ``SandboxViolation``, ``ToolFailed`` with NETWORK (no connection, or out of time)
        or REMOTE (no proper HTTP, too many redirects), and what ``check`` raises.
        """
        if max_bytes < 0:
            raise ValueError("max_bytes must not be negative: a fetch is always bounded")
        deadline = Deadline(timeout, check or self._check)
        if method not in ("GET", "HEAD"):
            raise InvalidArguments("the method must be GET or HEAD")
        current, sent = Url.parse(url), checked_headers(headers or {})
        hops: list[str] = []
        while len(hops) <= MAX_REDIRECTS:
            with contextlib.closing(self._connect(current, deadline)) as sock, translated(current):
                wire = Wire(sock, deadline)
                answer = ask(wire, current, method, sent)
                location = _location(answer)
                if location is None:
                    body, truncated = read_body(wire, answer, max_bytes)
                    return response_of(url, current, answer, body, truncated, tuple(hops))
            hops.append(current.text)
            before, (current, sent) = current.host, _next_hop(current, location, sent)
            if current.host != before:
                self._judge(current.text)
        raise ToolFailed("REMOTE", f"more than {MAX_REDIRECTS} redirects")

    def _connect(self, url: Url, deadline: Deadline) -> socket.socket:
        return connect(self._network, url.host, url.port, deadline, tls=url.scheme == "https")


def _no_check() -> None:
    """What an unbound ``NetGuard`` asks before each wait."""


def _no_judge(url: str) -> None:
    """What is asked about redirects when only the network's settings decide."""


def _location(answer: HTTPResponse) -> str | None:
    location = answer.headers.get("location")
    if answer.status not in _REDIRECTS or location is None:
        return None
    try:
        return location.encode("latin-1").decode()
    except UnicodeError:
        raise HTTPException("a Location that is no text") from None


def _next_hop(current: Url, location: str, sent: Mapping[str, str]) -> tuple[Url, dict[str, str]]:
    try:
        following = current.join(location)
    except InvalidArguments as error:
        raise ToolFailed("REMOTE", f"'{current.host.text}' redirects to no proper URL: {error.message}") from None
    if current.scheme == "https" and following.scheme == "http":
        raise SandboxViolation(f"'{current.host.text}' redirects from https to http")
    same = following.origin == current.origin
    return following, {name: value for name, value in sent.items() if same or name in _TO_OTHER_ORIGINS}
