"""What handlers log during a call (``ctx.logger``), for the client that made the call. People read it, models do not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from toolkit.serve.approvals import CURRENT, AskedCall
from toolkit.serve.mcp_server.clients import Clients, ignore_failure, send_log

if TYPE_CHECKING:
    from mcp_types import LoggingLevel

_MAX_PER_CALL: Final = 100
_MAX_CHARACTERS: Final = 2000
_PREFIX: Final = "toolkit."


class ClientLog(logging.Handler):
    """Passes the messages of handlers on. Tracebacks and messages of the toolkit itself stay in the server's own log: they
    show paths of this machine."""

    def __init__(self, clients: Clients, is_tool: Callable[[str], bool]) -> None:
        super().__init__()
        self._clients: Final = clients
        self._is_tool: Final = is_tool
        self._loop: Final = asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._pass_on(record)
        except Exception:  # a message that cannot be formatted, or a loop that is closed: never the tool's problem
            self.handleError(record)

    def _pass_on(self, record: logging.LogRecord) -> None:
        call = CURRENT.get()
        name, level = record.name.removeprefix(_PREFIX), _level(record.levelno)
        if call is None or not self._is_tool(name) or not self._clients.wants(call.ctx, level):
            return
        if call.logged < _MAX_PER_CALL:
            call.logged += 1
            text = record.getMessage()[:_MAX_CHARACTERS]
            self._loop.call_soon_threadsafe(self._start, call, level, text, name)

    def _start(self, call: AskedCall, level: LoggingLevel, text: str, name: str) -> None:
        task = self._loop.create_task(send_log(call.ctx.session, level, text, name, call.ctx.request_id))
        call.sending.add(task)
        task.add_done_callback(ignore_failure)


def _level(number: int) -> LoggingLevel:
    if number >= logging.CRITICAL:
        return "critical"
    if number >= logging.ERROR:
        return "error"
    if number >= logging.WARNING:
        return "warning"
    return "info" if number >= logging.INFO else "debug"
