"""How one MCP server is reached: ``McpServer(name="files", command=(...))`` or ``McpServer(name="search", url="...")``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from toolkit.errors import SetupError, ToolkitError
from toolkit.guard.network.hosts import Url
from toolkit.guard.permission import CommandNetwork

TOKEN_RECORDS: Final = "mcp-tokens"
"""Where logins are kept, in the user's state directory."""

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
