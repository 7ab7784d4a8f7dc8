"""The two ways to a server: standard input and output, for the client that starts it, and HTTP."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from toolkit.errors import SetupError
from toolkit.serve.http import HEALTH, Address, Operations, RequestGate, allowed_hosts, run_app
from toolkit.serve.sessions import MAX_SESSIONS

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from toolkit.serve.server import ToolkitServer

PATH: Final = "/mcp"
_SHORTEST_TOKEN: Final = 16


def serve_stdio(server: ToolkitServer, on_start: Callable[[], None]) -> None:
    """Serves the client at the other end of standard input and output, until it closes them or a signal comes."""
    asyncio.run(_serve_stdio(server, on_start))


async def _serve_stdio(server: ToolkitServer, on_start: Callable[[], None]) -> None:
    from mcp.server.stdio import stdio_server

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    is_stopping = False

    def stop() -> None:
        nonlocal is_stopping
        is_stopping = True
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        async with stdio_server() as (incoming, outgoing):
            on_start()
            await server.protocol.run(incoming, outgoing, server.protocol.create_initialization_options())
    except asyncio.CancelledError:
        if not is_stopping:
            raise


def serve_http(
    server: ToolkitServer,
    address: Address,
    token: str | None,
    names: tuple[str, ...],
    on_start: Callable[[Address], None],
) -> None:
    """Serves any number of clients over HTTP until SIGINT or SIGTERM."""
    check_token(address, token)
    listening = address.listen()
    bound = address.bound_to(listening)
    run_app(_make_app(server, bound, token, names), listening, on_start=lambda: on_start(bound), on_stop=server.stop)


def check_token(address: Address, token: str | None) -> None:
    """Other machines need a token, and a token must not be easy to guess."""
    if token is None and not address.is_loopback:
        raise SetupError(
            f"{address.shown_host} can be reached from other machines, so a token is needed: give --token-file FILE,"
            " or listen on 127.0.0.1"
        )
    if token is not None and (
        len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token
    ):
        raise SetupError(
            f"the token must have at least {_SHORTEST_TOKEN} printable ASCII characters and no spaces; make one with"
            ' `python -c "import secrets; print(secrets.token_urlsafe(32))"`'
        )


def _make_app(server: ToolkitServer, bound: Address, token: str | None, names: tuple[str, ...]) -> ASGIApp:
    from mcp.server.transport_security import TransportSecuritySettings

    app = server.protocol.streamable_http_app(
        streamable_http_path=PATH,
        max_sessions=MAX_SESSIONS,
        stateless_http=server.is_shared,
        # The gate judges Host and Origin for every path, and knows the names of proxies.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    watched = Operations(app, is_stopping=lambda: server.is_stopping, metrics=server.metrics)
    way_out = "; give the names of this server with --allow-host"
    # A balancer asks whether it is well before it has a token, and learns nothing else.
    hosts = allowed_hosts(bound, names)
    return RequestGate(watched, hosts=hosts, token=token, open_paths=(HEALTH,), way_out=way_out)
