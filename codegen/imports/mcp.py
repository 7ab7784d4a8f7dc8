"""The complete tool list of a running MCP server, read over the same kind of connection that runs the tools later.

A stdio server is started as the settings say, in the sandbox unless they opt out. Its workspace is the project's folder,
read-only: listing tools must not change anything.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from toolkit.codegen.imports.run import ImportResult
from toolkit.codegen.imports.settings import ImportSettings
from toolkit.errors import SetupError, ToolkitError, ToolTimeout, nearest
from toolkit.guard.network.hosts import Network
from toolkit.guard.process.guard import ProcessGuard
from toolkit.packs.mcp.server import McpOAuth, McpServer
from toolkit.runtime.context import McpCallbacks, OpenUrl
from toolkit.runtime.state_directory import TOKEN_RECORDS, PrivateRecords

if TYPE_CHECKING:
    from toolkit.packs.mcp.content import ToolListing

_KEPT: Final = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
# Keys that a wrapper may have besides its one property. Any other key would mean that it is more than a wrapper.
_OF_A_WRAPPER: Final = frozenset(
    {"$schema", "$defs", "definitions", "type", "title", "description", "properties", "required"}
    | {"additionalProperties", "x-fastmcp-wrap-result"}
)

_MAX_LINE: Final = 4096
_DOWNLOADERS: Final = ("npx", "uvx", "bunx", "pipx")
_IT_RAN: Final = ("SERVER_NOT_READY", "SERVER_DIED", "REMOTE")
_WHERE_PROGRAMS_ARE: Final = (
    "; install it next to this Python (`pip install ...`), for the whole system or in the project's folder"
)


def import_mcp(settings: ImportSettings, root: Path, open_url: OpenUrl | None = None) -> ImportResult:
    """Every tool that the server lists, in its order. ``open_url`` shows the page of a login to a person."""
    server = McpServer(
        name=settings.name,
        command=settings.command,
        url=settings.url,
        env=settings.env,
        headers=settings.headers,
        oauth=None if settings.oauth is None else McpOAuth(**asdict(settings.oauth)),
        sandbox=settings.sandbox,
        network=settings.network,
        read_roots=settings.read_roots,
        cwd=settings.cwd,
        timeout=settings.timeout,
        startup_timeout=settings.startup_timeout,
    )
    try:
        listing = asyncio.run(_list_tools(server, root, open_url))
    except ToolkitError as error:
        raise SetupError([settings.finding(_explain_failure(settings, error))]) from None
    except ImportError as error:
        message = f"MCP servers need the package {error.name!r}: pip install 'typed-toolkit[mcp]'"
        raise SetupError([settings.finding(message)]) from None
    origin = {"server": dict(listing.identity)} if listing.identity else {}
    notes = tuple(
        f"{name!r} is left out, as the protocol demands: its x-mcp-header is invalid ({reason})"
        for name, reason in listing.dropped.items()
    )
    return ImportResult(origin, [convert_tool(tool, settings.permissions) for tool in listing.tools], notes)


async def _list_tools(server: McpServer, root: Path, open_url: OpenUrl | None) -> ToolListing:
    from toolkit.packs.mcp.connection import McpConnection, ServerAccess

    callbacks = None if open_url is None else McpCallbacks(open_url=open_url)
    tokens = PrivateRecords(TOKEN_RECORDS, [str(root)]) if server.oauth is not None else None
    with ProcessGuard(str(root), mode="read-only") as guard:
        connection = McpConnection(server)
        try:
            return await connection.list_tools(ServerAccess(guard, Network(), callbacks, tokens))
        finally:
            await connection.close()


def _explain_failure(settings: ImportSettings, error: ToolkitError) -> str:
    from toolkit.packs.mcp.session import RAISE_TIMEOUT

    if error.details.get("reason") not in _IT_RAN or not needs_network(settings):
        return f"{error.message}{_suggest_fix(settings, error)}"
    program = os.path.basename(settings.command[0])
    return (
        f"{error.message.replace(RAISE_TIMEOUT, '')}; {program!r} downloads the server when it starts, and it ran in the"
        " sandbox without the network: set network = true, or install the server and name its own program in 'command'"
    )


def needs_network(settings: ImportSettings) -> bool:
    """Whether the command downloads a server when it starts, and its sandbox has no network."""
    if not settings.command or not settings.sandbox or settings.network:
        return False
    return os.path.basename(settings.command[0]) in _DOWNLOADERS


def _suggest_fix(settings: ImportSettings, error: ToolkitError) -> str:
    """Where the command ran, or why it could not, and the setting that may help."""
    if not settings.command:
        return ""
    reason = error.details.get("reason")
    if reason in ("COMMAND_NOT_FOUND", "NOT_EXECUTABLE") and settings.sandbox and (line := _line_to_add(settings)):
        return f"; in the settings: {line}"
    if reason == "COMMAND_NOT_FOUND":
        names = error.details.get("near")
        near = nearest(settings.command[0], names) if isinstance(names, list) else ""
        return f"{_WHERE_PROGRAMS_ARE if settings.sandbox else ''}{near and '.'}{near}"
    if reason not in _IT_RAN and not isinstance(error, ToolTimeout):
        return ""
    if not settings.sandbox:
        return "; it ran in the project's folder, without a sandbox"
    if settings.network:
        network = "with the guarded network" if settings.network == "guarded" else "with the network"
        return f"; it ran in the project's folder, in the sandbox: read-only, {network}"
    return "; it ran in the project's folder, in the sandbox: read-only, without the network"


def _line_to_add(settings: ImportSettings) -> str | None:
    """The line of the settings that lets the sandbox see a program of this machine."""
    name = settings.command[0]
    program = shutil.which(name) if "/" not in name else os.path.expanduser(name)
    if program is None or not os.path.isabs(program) or not os.path.exists(program):
        return None
    if "/" not in name:  # its environment is found from there
        return f"command = {json.dumps([program, *settings.command[1:]])}"
    with open(program, "rb") as file:
        line = file.readline(_MAX_LINE)
    words = line[2:].decode("utf-8", "replace").split() if line.startswith(b"#!") else []
    folders = [os.path.dirname(os.path.realpath(place)) for place in (program, *words[:1])]
    missing = [folder for folder in folders if not folder.startswith(("/usr/", "/bin/"))]
    return f"read_roots = {json.dumps(list(dict.fromkeys(missing)))}" if missing else None


def convert_tool(tool: dict[str, Any], permissions: tuple[str, ...]) -> dict[str, Any]:
    """One tool as in a spec file. A ``{"result": ...}`` around the output is removed, and ``wrapsResult`` is set."""
    spec = {key: tool[key] for key in _KEPT if tool.get(key) is not None}
    inner = _unwrap_result(spec.get("outputSchema"))
    if inner is not None:
        spec |= {"outputSchema": inner, "wrapsResult": True}
    return {**spec, "permissions": list(permissions)}


def _unwrap_result(schema: Any) -> dict[str, Any] | None:
    """The schema inside a wrapper, with the definitions it refers to; None if the schema is not a wrapper."""
    match schema:
        case {"type": "object", "properties": {"result": dict() as inner, **others}, "required": ["result"]}:
            if others or schema.keys() - _OF_A_WRAPPER or _points_elsewhere(inner):
                return None
        case _:
            return None
    around = {key: schema[key] for key in ("$schema", "$defs", "definitions") if key in schema}
    return {**inner, **around}


def _points_elsewhere(schema: object) -> bool:
    """Whether it refers to a place that would move when the wrapper is removed."""
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str) and not reference.startswith(("#/$defs/", "#/definitions/")):
            return True
        return any(map(_points_elsewhere, schema.values()))
    return isinstance(schema, list) and any(map(_points_elsewhere, schema))
