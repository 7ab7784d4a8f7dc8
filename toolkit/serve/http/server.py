"""Runs an ASGI application until the process is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp

GRACE_SECONDS: Final = 5
"""How long answers that are under way may take when the server stops."""
MAX_CONNECTIONS: Final = 1000
"""Connections beyond these are answered with 503."""
_IDLE_SECONDS: Final = 30


def run_app(
    app: ASGIApp, listening: socket.socket, *, on_start: Callable[[], None], on_stop: Callable[[], None]
) -> None:
    """Serves ``app`` until SIGINT or SIGTERM. A second signal stops it without waiting.

    :param on_start: called when requests are answered.
    :param on_stop: called in the event loop when the end begins, so that long answers can be ended first.
    """
    import uvicorn

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
        log_config=None,  # what is wrong goes where all warnings go
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        ws="none",
        lifespan="on",
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    Server(config).run(sockets=[listening])
