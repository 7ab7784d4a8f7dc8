"""The folders that a client works in, beside the one that the tools work in."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import anyio
from mcp.shared.message import ServerMessageMetadata
from mcp_types import ClientCapabilities, ListRootsRequest, ListRootsResult, RootsCapability

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

_SECONDS: Final = 2.0
"""How long the first list of tools waits for a client that announced folders and does not name them."""
_MAX_SHOWN: Final = 500


async def find_other_folder(ctx: ServerRequestContext[Any, Any], workspace: Path) -> str | None:
    """A sentence if the client works in other folders than the tools; None if it does not, or does not say.

    A client's folders never widen what the tools may reach: the workspace is chosen where the server is started.
    """
    asked = ClientCapabilities(roots=RootsCapability())
    if not ctx.session.can_send_request or not ctx.session.check_client_capability(asked):
        return None
    beside = ServerMessageMetadata(related_request_id=ctx.request_id)
    answer = None
    with anyio.move_on_after(_SECONDS):
        try:
            answer = await ctx.session.send_request(ListRootsRequest(), ListRootsResult, metadata=beside)
        except Exception:  # the client announced roots and does not answer, or answers nonsense
            return None
    folders = [] if answer is None else list(_folders(str(root.uri) for root in answer.roots))
    if not folders or any(_overlap(folder, workspace) for folder in folders):
        return None
    theirs = folders[0][:_MAX_SHOWN]
    return (
        f"the client works in {theirs}, but the tools work in {workspace};"
        f" start the server with --workspace {theirs} if that is not meant"
    )


def _folders(uris: Iterable[str]) -> Iterable[str]:
    for uri in uris:
        parts = urlsplit(uri)
        if parts.scheme == "file" and parts.netloc in ("", "localhost"):
            yield unquote(parts.path)


def _overlap(folder: str, workspace: Path) -> bool:
    """Whether one of the two contains the other."""
    first, second = os.path.realpath(folder), os.path.realpath(workspace)
    return os.path.commonpath([first, second]) in (first, second)
