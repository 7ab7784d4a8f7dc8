"""How one MCP server is reached: ``McpServer(name="files", command=(...))`` or ``McpServer(name="search", url="...")``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from toolkit.errors import SetupError, ToolkitError
from toolkit.guard.net.hosts import Url
from toolkit.guard.permission import CommandNetwork


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """How a server is reached: by the command that starts it, or by its URL.

    :param name: its name in errors.
    :param command: program and arguments, for a server over stdio; started in the workspace.
    :param url: for a server over HTTP.
    :param env: names of environment variables that are passed to the command.
    :param headers: sent with every request; ``${NAME}`` stands for the environment variable of that name.
    :param sandbox: False runs the command without a sandbox; the audit log then says so for every call.
    :param network: True gives the command the network of this machine, ``"guarded"`` what the context's ``Network`` allows.
    :param timeout: seconds that one call, or the start of the server, may take.

    >>> McpServer(name="files", command=("mcp-server-filesystem", ".")).sandbox
    True
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    sandbox: bool = True
    network: bool | Literal["guarded"] = False
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise SetupError(f"the MCP server {self.name!r} needs a command or a url, not both")
        if isinstance(self.command, str) or isinstance(self.env, str):
            raise SetupError(f"'command' and 'env' of the MCP server {self.name!r} must be lists of strings")
        if self.network not in (True, False, "guarded") or (self.network == "guarded" and not self.sandbox):
            raise SetupError(
                f"'network' of the MCP server {self.name!r} must be True, False or 'guarded', which needs the sandbox"
            )
        if not self.timeout > 0:
            raise SetupError(f"the timeout of the MCP server {self.name!r} must be a number of seconds greater than 0")
        if self.url:
            try:
                Url.parse(self.url)
            except ToolkitError as error:
                raise SetupError(f"the url of the MCP server {self.name!r}: {error.message}") from None

    @property
    def command_network(self) -> CommandNetwork:
        """What its command reaches."""
        if self.network == "guarded":
            return "guarded"
        return "host" if self.network else "none"
