"""HTTP around an ASGI application: where it listens, the gate before every request, health and metrics, and how it stops."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import json
import signal
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from toolkit.errors import SetupError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


GRACE_SECONDS: Final = 5
"""How long answers that are under way may take when the server stops."""
MAX_CONNECTIONS: Final = 1000
"""Connections that are open at the same time, fewer if this process may not open as many files. One more ends the connection
that has been without a request for longest; if all have one, it is answered with 503."""
IDLE_SECONDS: Final = 30
"""How long a connection may be without a request, and how long the head of a request may take."""


def run_app(
    app: ASGIApp, listening: socket.socket, *, on_start: Callable[[], None], on_stop: Callable[[], None]
) -> None:
    """Serves ``app`` until SIGINT or SIGTERM. A second signal stops it without waiting.

    :param on_start: called when requests are answered.
    :param on_stop: called in the event loop when the end begins, so that long answers can be ended first.
    """
    import uvicorn

    from toolkit.serve.http_connection import HttpConnection

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            # uvicorn's own raises the signal again at the end, as if nobody had handled it.
            loop = asyncio.get_running_loop()

            def stop() -> None:
                self.force_exit = self.should_exit
                self.should_exit = True
                on_stop()

            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, stop)
            on_start()
            yield
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    config = uvicorn.Config(
        app,
        http=HttpConnection,
        log_config=None,  # what is wrong goes where all warnings go
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        ws="none",
        lifespan="on",
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    Server(config).run(sockets=[listening])


# ----------------------------------------------------------------------------------------------------------------------
# The gate before every HTTP request: its Host, its Origin, and its token.
#
# - **Host**: a page that made its own name resolve to this machine (DNS rebinding) sends that name.
# - **Origin**: browsers add it to what a foreign page sends. Clients that are not browsers send none.
# - **Token**: ``Authorization: Bearer ...``. Browsers never add it by themselves, so a forged request has none.

_MISDIRECTED: Final = 421


class RequestGate:
    """Passes a request on to the application, or refuses it in one sentence."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Collection[str],
        token: str | None,
        open_paths: Collection[str] = (),
        way_out: str = "",
    ) -> None:
        """``open_paths`` need no token: a page must be loaded before it can send one. ``way_out`` is the end of the sentence
        about an unknown Host."""
        self._app: Final = app
        self._hosts: Final = frozenset(hosts)
        self._origins: Final = frozenset(f"{scheme}://{host}" for host in hosts for scheme in ("http", "https"))
        self._token: Final = None if token is None else token.encode()
        self._open_paths: Final = frozenset(open_paths)
        self._way_out: Final = way_out

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self._judge(scope)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        from starlette.responses import PlainTextResponse

        status, text = refusal
        headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
        await PlainTextResponse(text, status, headers)(scope, receive, send)

    def _judge(self, scope: Scope) -> tuple[int, str] | None:
        """The status and the sentence of a refusal."""
        if scope["type"] != "http":
            return 400, "only HTTP requests are answered here"
        given = _headers(scope)
        hosts = given.get(b"host", [])
        if len(hosts) != 1 or hosts[0].decode("latin-1").lower() not in self._hosts:
            return (
                _MISDIRECTED,
                f"the Host header names another server than this one{self._way_out}",
            )
        origins = given.get(b"origin", [])
        if any(origin.decode("latin-1").lower() not in self._origins for origin in origins):
            return 403, "requests from other web pages are refused"
        if self._token is None or scope["path"] in self._open_paths:
            return None
        if not _has_token(given.get(b"authorization", []), self._token):
            return 401, "the token is missing or wrong: send `Authorization: Bearer TOKEN`"
        return None


def _headers(scope: Scope) -> dict[bytes, list[bytes]]:
    given: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        given.setdefault(name.lower(), []).append(value)
    return given


def _has_token(given: list[bytes], token: bytes) -> bool:
    if len(given) != 1:
        return False
    scheme, _, value = given[0].partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(value.strip(), token)


# ----------------------------------------------------------------------------------------------------------------------
# Where to listen.


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port. Port 0 lets the system choose one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Reads ``HOST:PORT``; IPv6 addresses are written in brackets.

        >>> Address.parse("127.0.0.1:8123")
        Address(host='127.0.0.1', port=8123)
        >>> Address.parse("[::1]:0").host
        '::1'
        """
        host, colon, port = text.rpartition(":")
        host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise SetupError(f"{text!r} is not an address; write HOST:PORT, such as 127.0.0.1:8123")
        return cls(host, int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect. Names other than localhost count as reachable."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def is_unspecified(self) -> bool:
        """Whether it stands for every address of this machine. No client names it so."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False

    @property
    def shown_host(self) -> str:
        """The host as it is written in an URL."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def listen(self) -> socket.socket:
        """A socket that listens here."""
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, _, _, _, place = found[0]
            listening = socket.create_server(place[:2], family=family, backlog=128)
            # Connections have it from here. asyncio sets it only for sockets that name their protocol, and without it every
            # answer on a kept connection waits for the client's delayed acknowledgement: 40 milliseconds.
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return listening
        except OSError as error:
            reason = error.strerror or str(error)
            raise SetupError(
                f"{self.shown_host}:{self.port} cannot be listened on: {reason}; choose another port, or 0 for any free one"
            ) from None

    def bound_to(self, listening: socket.socket) -> Address:
        """The address with the port that the system chose."""
        return Address(self.host, listening.getsockname()[1])


LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


def allowed_hosts(address: Address, others: tuple[str, ...] = ()) -> frozenset[str]:
    """The accepted values of the Host header. A page whose name was made to resolve to this machine sends another.

    ``others`` are names under which a proxy or a network reaches this server, with or without a port.
    """
    names = [*LOOPBACK_NAMES] if address.is_loopback else [address.shown_host]
    known = {f"{name}:{address.port}" for name in (*names, address.shown_host)}
    if address.port == 80:  # which clients leave out
        known.update(names)
    return frozenset(name.lower() for name in (*known, *others))


# ----------------------------------------------------------------------------------------------------------------------
# Health, and metrics for Prometheus.

HEALTH: Final = "/health"
METRICS: Final = "/metrics"
_TEXT_FORMAT: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Metric:
    """One number, or one for each value of a label.

    >>> print(Metric("toolkit_calls_waiting", "gauge", "Calls that wait.", {(): 3}).as_text())
    # HELP toolkit_calls_waiting Calls that wait.
    # TYPE toolkit_calls_waiting gauge
    toolkit_calls_waiting 3
    """

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    values: Mapping[tuple[tuple[str, str], ...], float]
    """By labels, which are pairs of a name and a value."""

    def as_text(self) -> str:
        """In Prometheus' text format."""
        lines = [f"# HELP {self.name} {self.help}", f"# TYPE {self.name} {self.kind}"]
        for labels, value in self.values.items():
            shown = ",".join(f"{name}={json.dumps(text)}" for name, text in labels)
            lines.append(f"{self.name}{f'{{{shown}}}' if shown else ''} {value:g}")
        return "\n".join(lines)


class Operations:
    """Answers ``/health`` and ``/metrics``, and passes every other request on."""

    def __init__(
        self, app: ASGIApp, *, is_stopping: Callable[[], bool], metrics: Callable[[], Iterable[Metric]]
    ) -> None:
        self._app: Final = app
        self._is_stopping: Final = is_stopping
        self._metrics: Final = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in (HEALTH, METRICS):
            await self._app(scope, receive, send)
            return
        from starlette.responses import PlainTextResponse

        if scope["method"] not in ("GET", "HEAD"):
            answer = PlainTextResponse("only GET is answered here", 405, {"Allow": "GET, HEAD"})
        elif scope["path"] == METRICS:
            text = "".join(f"{metric.as_text()}\n" for metric in self._metrics())
            answer = PlainTextResponse(text, media_type=_TEXT_FORMAT)
        elif self._is_stopping():
            answer = PlainTextResponse("stopping\n", 503)
        else:
            answer = PlainTextResponse("ok\n")
        answer.headers["Cache-Control"] = "no-store"
        await answer(scope, receive, send)
