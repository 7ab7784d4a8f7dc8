"""How to reach one MCP server, how our refusals replace its answers, and what is logged about it.

``McpServer(name="files", command=(...))`` or ``McpServer(name="search", url="...")``.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal

from mcp_types import ErrorData

from toolkit.errors import SandboxViolation, SetupError, ToolFailed, ToolkitError
from toolkit.guard.network.hosts import Url
from toolkit.guard.permission import CommandNetwork
from toolkit.runtime.progress import logger
from toolkit.visible import display

NEEDS_HTTPS: Final = "needs an https url: over http the token could be read on the way"

_MAX_PORT: Final = 65535


def is_readable_on_the_way(url: str) -> bool:
    """Whether what is sent to this address leaves the machine without encryption; False for a text that is no address."""
    try:
        read = Url.parse(url)
    except ToolkitError:
        return False
    return read.scheme != "https" and not read.host.is_this_machine


@dataclass(frozen=True, slots=True, kw_only=True)
class McpOAuth:
    """A login with OAuth 2.1: discovery, registration, PKCE and refresh. The token is kept for this user.

    :param client_id: of a client that you registered by hand, or the https URL of a client metadata document, for
        authorization servers that read those. Without one the toolkit registers itself.
    :param client_secret: of that client; ``${NAME}`` stands for the environment variable of that name. Needs ``issuer``.
    :param scope: rights to ask for in addition to those that the server names, separated by blanks.
    :param issuer: the only authorization server that may be used. It may be inside your network.
    :param redirect_port: the port on this machine that the browser is sent back to, for a client that you registered by
        hand; 0 means a free one.

    >>> McpOAuth(scope="files:read").client_id
    ''
    """

    client_id: str = ""
    client_secret: str = ""
    scope: str = ""
    issuer: str = ""
    redirect_port: int = 0

    def __post_init__(self) -> None:
        if self.client_secret and not (self.client_id and self.issuer):
            raise SetupError("'client_secret' of oauth needs 'client_id' and 'issuer': it is sent to that issuer only")
        if self.issuer:
            try:
                Url.parse(self.issuer)
            except ToolkitError as error:
                raise SetupError(f"'issuer' of oauth: {error.message}") from None
            if is_readable_on_the_way(self.issuer):
                raise SetupError(f"'issuer' of oauth {NEEDS_HTTPS}")
        if not 0 <= self.redirect_port <= _MAX_PORT:
            raise SetupError(f"'redirect_port' of oauth must be a port between 1 and {_MAX_PORT}")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """How a server is reached: by the command that starts it, or by its URL.

    :param name: its name in errors.
    :param command: program and arguments, for a server over stdio; started in the workspace.
    :param url: for a server over HTTP.
    :param env: names of environment variables that are passed to the command, or values by name; ``${NAME}`` in a value
        stands for the environment variable of that name.
    :param headers: sent with every request; ``${NAME}`` stands for the environment variable of that name.
    :param oauth: the login of a server over HTTP that needs one; run ``toolkit import`` to log in.
    :param sandbox: False runs the command without a sandbox; the audit log then says so for every call.
    :param network: True gives the command the network of this machine, ``"guarded"`` what the context's ``Network`` allows.
    :param read_roots: directories outside the workspace that the command may read: its own environment. ``~/`` is the
        home of this user. The environment of a program that is named by its absolute path is found without it.
    :param cwd: the folder of the workspace in which the command starts.
    :param timeout: seconds that one call may take.
    :param startup_timeout: seconds that the start of the server may take; None means as many as a call.

    >>> McpServer(name="files", command=("mcp-server-filesystem", ".")).sandbox
    True
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: tuple[str, ...] | Mapping[str, str] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    oauth: McpOAuth | None = None
    sandbox: bool = True
    network: bool | Literal["guarded"] = False
    read_roots: tuple[str, ...] = ()
    cwd: str = "."
    timeout: float = 60.0
    startup_timeout: float | None = None

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise SetupError(f"the MCP server {self.name!r} needs a command or a url, not both")
        if any(isinstance(value, str) for value in (self.command, self.env, self.read_roots)):
            raise SetupError(
                f"'command', 'env' and 'read_roots' of the MCP server {self.name!r} must be lists of strings"
            )
        if not self.sandbox and self.read_roots:
            raise SetupError(f"'read_roots' of the MCP server {self.name!r} has no effect without the sandbox")
        if self.network not in (True, False, "guarded") or (self.network == "guarded" and not self.sandbox):
            raise SetupError(
                f"'network' of the MCP server {self.name!r} must be True, False or 'guarded', which needs the sandbox"
            )
        if self.oauth is not None and (not self.url or "authorization" in map(str.lower, self.headers)):
            raise SetupError(
                f"'oauth' of the MCP server {self.name!r} needs a url, and no 'Authorization' among its headers"
            )
        if not self.timeout > 0 or not self.seconds_to_start > 0:
            raise SetupError(f"the timeout of the MCP server {self.name!r} must be a number of seconds greater than 0")
        if self.url:
            try:
                Url.parse(self.url)
            except ToolkitError as error:
                raise SetupError(f"the url of the MCP server {self.name!r}: {error.message}") from None
            if self.oauth is not None and is_readable_on_the_way(self.url):
                raise SetupError(f"'oauth' of the MCP server {self.name!r} {NEEDS_HTTPS}")

    @property
    def seconds_to_start(self) -> float:
        """How long its start may take."""
        return self.timeout if self.startup_timeout is None else self.startup_timeout

    @property
    def command_network(self) -> CommandNetwork:
        """What its command reaches."""
        if self.network == "guarded":
            return "guarded"
        return "host" if self.network else "none"


# ----------------------------------------------------------------------------------------------------------------------
# Errors of ours in the place of a server's answer.
#
# The official client expects an answer to every request. Where we refuse one, the request gets a JSON-RPC error that carries
# our error, and ``session.py`` turns it back. A server may use the same code, and must not be believed: its errors lack the
# mark, which never leaves this process.

OWN_ERROR: Final = -32099
"""The JSON-RPC code of our own errors; their data say which error it is."""

_MARK: Final = secrets.token_hex(16)


def write_own_error(error: ToolkitError) -> ErrorData:
    """An error of ours as that of an answer; ``read_own_error`` is the way back."""
    reason = error.reason if isinstance(error, ToolFailed) else None
    return ErrorData(code=OWN_ERROR, message=error.message, data={"mark": _MARK, "code": error.code, "reason": reason})


def read_own_error(data: object, message: str) -> ToolkitError | None:
    """The error that ``write_own_error`` wrote into an answer with the code ``OWN_ERROR``; None if it is not ours."""
    match data:
        case {"mark": mark} if mark != _MARK:
            return None
        case {"mark": _, "code": "SANDBOX_VIOLATION"}:
            return SandboxViolation(message)
        case {"mark": _, "reason": str() as reason}:
            return ToolFailed(reason, message)
    return None


# ----------------------------------------------------------------------------------------------------------------------
# What is logged about one server: a few lines, however much it sends.
#
# The official client logs every message that it cannot read, with a traceback and parts of the message. A server decides how
# many there are. So while a session lasts, the client's warnings in its thread are taken from the client's loggers and
# written by us: the first ones to the logger ``toolkit``, each on one line, escaped, cut and without secrets; the rest are
# counted, and the number is logged when the session ends.
#
# Limit: records below ``WARNING`` stay as they are. If you turn on the client's debug log, you read all that a server sends.

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
