"""What is logged about one server: a few lines, however much it sends.

The official client logs every message that it cannot read, with a traceback and parts of the message. A server decides how
many there are. So while a session lasts, the client's warnings in its thread are taken from the client's loggers and
written by us: the first ones to the logger ``toolkit``, each on one line, escaped, cut and without secrets; the rest are
counted, and the number is logged when the session ends.

Limit: records below ``WARNING`` stay as they are. Whoever turns on the client's debug log reads all that a server sends.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from toolkit.guard.files.path import display
from toolkit.runtime.progress import logger

MAX_LINES: Final = 10
"""Warnings about one session that are logged; the others are only counted."""
_MAX_TEXT: Final = 300
_CLIENT_LOGGERS: Final = (
    "client",
    "mcp.client.auth.oauth2",
    "mcp.client.auth.utils",
    "mcp.client.client",
    "mcp.client.session",
    "mcp.client.streamable_http",
    "mcp.shared.dispatcher",
    "mcp.shared.jsonrpc_dispatcher",
)


class ServerLog:
    """The warnings about one session."""

    def __init__(self, server: str, without_secrets: Callable[[str], str]) -> None:
        self._server = server
        self._without_secrets = without_secrets
        self._count = 0

    def warn(self, text: str, level: int = logging.WARNING) -> None:
        """Log a line about the server; after a few only its number is kept."""
        self._count += 1
        if self._count <= MAX_LINES:
            shown = display(self._without_secrets(text[: 4 * _MAX_TEXT]))
            cut = shown if len(shown) <= _MAX_TEXT else f"{shown[:_MAX_TEXT]}..."
            logger.log(level, "the MCP server %r: %s", self._server, cut)

    def finish(self) -> None:
        """Log how many lines were left out."""
        if self._count > MAX_LINES:
            logger.warning("the MCP server %r: %d more warnings", self._server, self._count - MAX_LINES)

    @contextmanager
    def take_over(self) -> Iterator[None]:
        """Take the warnings that the official client logs in this thread."""
        thread = threading.get_ident()
        _LOGS[thread] = self
        for name in _CLIENT_LOGGERS:
            logging.getLogger(name).addFilter(_take_warning)  # adding it again changes nothing
        try:
            yield
        finally:
            del _LOGS[thread]
            self.finish()


_LOGS: Final[dict[int, ServerLog]] = {}
"""The log of the session in each thread that has one."""


def forget_logs() -> None:
    """In a fork of this process, whose new threads may have the numbers of the parent's."""
    _LOGS.clear()


def _take_warning(record: logging.LogRecord) -> bool:
    """A filter: False if the record was taken."""
    log = _LOGS.get(threading.get_ident())
    if log is None or record.levelno < logging.WARNING:
        return True
    error = record.exc_info[1] if record.exc_info else None
    log.warn(f"{record.getMessage()}{f' ({type(error).__name__})' if error is not None else ''}", record.levelno)
    return False
