"""``[tool.toolkit.imports.<name>]``: where imported tools come from, and how they are reached.

Commands, addresses and names of variables are only in these settings of the user: no imported file and no workspace can
decide what is started or called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from toolkit.schema.problems import Finding, below

ImportKind: TypeAlias = Literal["mcp", "openapi", "tools", "functions", "models"]
ServerNetwork: TypeAlias = bool | Literal["guarded"]

POINTER: Final = "/tool/toolkit/imports"


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """``oauth = true``, or a table with these keys; see ``McpOAuth``."""

    client_id: str = ""
    client_secret: str = ""
    scope: str = ""
    issuer: str = ""
    redirect_port: int = 0

    def given(self) -> dict[str, str | int]:
        """What the settings name."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name))}


@dataclass(frozen=True, slots=True)
class ImportSettings:
    """One import. ``kind`` follows from the one key that names the source of the tools.

    >>> ImportSettings("files", command=("npx", "server"), prefix="fs_").kind
    'mcp'
    """

    name: str
    prefix: str = ""
    """Added to every tool's name; the origin sees its own names."""
    command: tuple[str, ...] = ()
    """Starts an MCP server that communicates over standard input and output."""
    url: str = ""
    """The address of an MCP server; with ``openapi``, of the service."""
    env: tuple[str, ...] | Mapping[str, str] = ()
    """Names of environment variables that the command gets, or values by name, in which ``${NAME}`` is such a variable."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with every request; ``${NAME}`` in a value is an environment variable, read when connecting."""
    sandbox: bool = True
    network: ServerNetwork = False
    """What the command reaches: nothing, what the toolkit's ``Network`` allows (``guarded``), or what this machine does."""
    timeout: float = 60.0
    """Seconds for one call."""
    startup_timeout: float | None = None
    """Seconds for the start of a server, if that is not ``timeout``."""
    read_roots: tuple[str, ...] = ()
    """Directories outside the workspace that the command reads: its own environment."""
    cwd: str = "."
    """The folder of the workspace in which the command starts."""
    oauth: OAuthSettings | None = None
    """The login of a server over HTTP."""
    openapi: str = ""
    """The document's file, relative to the project's folder. It may be outside, for example in another project."""
    operations: tuple[str, ...] = ()
    """The operations to import; empty means all."""
    without: tuple[str, ...] = ()
    """Tools of a server or a file that are not imported, by their names there."""
    tools: str = ""
    """A file of tools in a provider's format, relative to the project's folder."""
    functions: tuple[str, ...] = ()
    """Modules of code-first tools, or ``module:name`` of a registry or a pack."""
    models: tuple[str, ...] = ()
    """``module:Input`` or ``module:Input -> module:Output`` for one tool each."""

    @property
    def kind(self) -> ImportKind:
        if self.openapi:
            return "openapi"
        if self.tools:
            return "tools"
        if self.functions:
            return "functions"
        return "models" if self.models else "mcp"

    @property
    def permissions(self) -> tuple[str, ...]:
        """The permissions that each of its tools requires.

        >>> ImportSettings("files", command=("npx", "server"), network=True).permissions
        ('execute', 'network')
        """
        if self.command:
            return ("execute", "network") if self.network else ("execute",)
        return ("network",) if self.kind in ("mcp", "openapi") else ()

    @property
    def identifier(self) -> str:
        """The Python name of its pack."""
        return self.name.upper().replace("-", "_")

    def finding(self, message: str, key: str | None = None) -> Finding:
        """A mistake in its table of the settings, or at a key of it."""
        pointer = below(POINTER, self.name)
        return Finding(message, "pyproject.toml", pointer if key is None else below(pointer, key))


def url_mistake(url: str) -> str | None:
    """Why a text cannot be the address of a service, as the end of a sentence about it; None if it can."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        return "is not an absolute http or https URL, such as https://example.org/mcp"
    if parts.username is not None or parts.password is not None:
        return "contains credentials; send them in 'headers', as ${NAME}"
    if parts.fragment:
        return "has a fragment; remove what follows '#'"
    return None


def placeholders(text: str) -> list[str]:
    """The texts inside ``${...}``; an unclosed one counts as empty.

    >>> placeholders("Bearer ${TOKEN}")
    ['TOKEN']
    """
    return [name if closed else "" for name, closed, _ in (piece.partition("}") for piece in text.split("${")[1:])]
