"""The lists of a server (tools, resources, prompts), page by page, with limits: a server decides how long they are."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Protocol, TypeVar

from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp_types import PaginatedRequestParams
from pydantic import BaseModel, Field

from toolkit.errors import ToolFailed

MAX_PAGES: Final = 1000
MAX_ITEMS: Final = 10_000
MAX_TOOL_BYTES: Final = 64 << 20
"""Bounds of one list, all pages together."""


class ListPage(Protocol):
    """One page of a list."""

    @property
    def next_cursor(self) -> str | None: ...


class ToolPage(BaseModel):
    """One page of tools, each as the server describes it."""

    tools: list[dict[str, Any]]
    next_cursor: Annotated[str | None, Field(alias="nextCursor")] = None


@dataclass(frozen=True, slots=True)
class ToolListing:
    """The tools of a server."""

    identity: Mapping[str, str]
    """Name and version of the server."""
    tools: Sequence[dict[str, Any]]
    """As the server describes them."""
    dropped: Mapping[str, str] = field(default_factory=dict)
    """Tools that must not be offered, because their ``x-mcp-header`` is invalid, and what is wrong with it."""


PageT = TypeVar("PageT", bound=ListPage)


async def read_pages(
    request: Callable[[PaginatedRequestParams], Awaitable[PageT]], server: str, what: str
) -> AsyncIterator[PageT]:
    """The pages of a list of ``what``; a server that repeats one is not asked forever."""
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await request(PaginatedRequestParams(cursor=cursor))
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return
        if cursor in seen:
            raise _refuse_list(server, f"sends the same page of its {what} again and again")
        seen.add(cursor)
    raise _refuse_list(server, f"has more than {MAX_PAGES} pages of {what}")


async def collect_tools(pages: AsyncIterator[ToolPage], server: str) -> list[dict[str, Any]]:
    """The tools of all pages."""
    tools: list[dict[str, Any]] = []
    size = 0
    async for page in pages:
        tools += page.tools
        size += len(json.dumps(page.tools))
        if len(tools) > MAX_ITEMS or size > MAX_TOOL_BYTES:
            message = f"lists more than {MAX_ITEMS} tools, or {MAX_TOOL_BYTES >> 20} MiB of them"
            raise _refuse_list(server, message)
    return tools


def check_length(items: Sequence[object], server: str, what: str) -> None:
    """Raises if a list has become too long."""
    if len(items) > MAX_ITEMS:
        raise _refuse_list(server, f"lists more than {MAX_ITEMS} {what}")


def find_invalid_headers(tools: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The tools whose ``x-mcp-header`` is invalid, which a client over HTTP must not offer, and what is wrong.

    >>> schema = {"properties": {"x": {"type": "object", "x-mcp-header": "X"}}}
    >>> list(find_invalid_headers([{"name": "a", "inputSchema": schema}, {"name": "b", "inputSchema": {}}]))
    ['a']
    """
    reasons = {tool.get("name", ""): find_invalid_x_mcp_header(tool.get("inputSchema")) for tool in tools}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _refuse_list(server: str, message: str) -> ToolFailed:
    return ToolFailed("REMOTE", f"the MCP server {server!r} {message}", server=server)
