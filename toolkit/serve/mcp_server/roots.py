"""The folders that a client works in, beside the one that the tools work in."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import anyio
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import ClientCapabilities, RootsCapability

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

_SECONDS: Final = 10.0


async def find_other_folder(session: ServerSession, workspace: Path) -> str | None:
    """A sentence if the client works in other folders than the tools; None if it does not, or does not say.

    A client's folders never widen what the tools may reach: the workspace is chosen where the server is started.
    """
    if not session.check_client_capability(ClientCapabilities(roots=RootsCapability())):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        asking = session.list_roots()
    answer = None
    with anyio.move_on_after(_SECONDS):
        try:
            answer = await asking
        except Exception:  # the client announced roots and does not answer, or answers nonsense
            return None
    folders = [] if answer is None else list(_folders(str(root.uri) for root in answer.roots))
    if not folders or any(_overlap(folder, workspace) for folder in folders):
        return None
    return (
        f"the client works in {folders[0]}, but the tools work in {workspace};"
        f" start the server with --workspace {folders[0]} if that is not meant"
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
