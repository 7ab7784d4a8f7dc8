"""What a server sends, within limits: answers as a tool's output, and lists page by page.

An output is the typed model, or text and media if the tool declares no output schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol, TypeVar

from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp_types import PaginatedRequestParams
from pydantic import BaseModel, Field, ValidationError

from toolkit.errors import ToolFailed
from toolkit.packs.answers import block_type, find_not_json
from toolkit.runtime.tool_context import ToolContext
from toolkit.wire.content import ContentBlock, ContentOutput

if TYPE_CHECKING:
    from mcp_types import BlobResourceContents, CallToolResult, SamplingMessageContentBlock, TextResourceContents
    from mcp_types import ContentBlock as McpBlock

    from toolkit.packs.mcp.pack import McpTool


_MAX_ERROR_TEXT: Final = 20_000
_WEB_SCHEMES: Final = ("http://", "https://")


def read_output(
    result: CallToolResult,
    tool: McpTool,
    model: type[BaseModel],
    ctx: ToolContext,
    without_secrets: Callable[[str], str],
) -> object:
    """The output of one call; raises ``ToolFailed``, ``without_secrets``, if the server reports that the tool failed.

    A value that fits the model is returned as one. A value that does not is returned as it came: the runner judges it by
    ``output_check``.
    """
    text, media = text_of(result.content), tuple(_media_blocks(result.content))
    if result.is_error:
        message = text if text or result.structured_content is None else json.dumps(result.structured_content)
        message = without_secrets(message)[:_MAX_ERROR_TEXT]
        raise ToolFailed("TOOL_ERROR", message or "the tool failed, and the server did not report a reason")
    if problem := find_not_json(result.structured_content):
        raise ToolFailed("INVALID_OUTPUT", f"the structured content of {tool.name!r} {problem}")
    if issubclass(model, ContentOutput):
        fields = {"text": text, "blocks": media, "structured": result.structured_content}
        return model(**{name: value for name, value in fields.items() if name == "text" or value})
    ctx.attach(*media)
    if result.structured_content is None:
        return _parse_text(text, tool, model, without_secrets)
    value = _unwrap(result.structured_content, tool)
    if text and not _repeats(text, result.structured_content, value):
        ctx.metadata(text=text)
    try:
        return model.model_validate(value)
    except ValidationError:
        return value


def text_of(content: Iterable[McpBlock]) -> str:
    """The plain text of all text blocks."""
    return "\n".join(block.text for block in content if block.type == "text")


def _parse_text(text: str, tool: McpTool, model: type[BaseModel], without_secrets: Callable[[str], str]) -> BaseModel:
    """For servers that declare structured content and return it only as text."""
    try:
        return model.model_validate(_unwrap(json.loads(text), tool))
    except (ValueError, RecursionError):  # a ValidationError is a ValueError
        raise ToolFailed(
            "INVALID_OUTPUT",
            f"the server declares structured content for {tool.name!r} but returned only text that is not such JSON",
            text=without_secrets(text)[:_MAX_ERROR_TEXT],
        ) from None


def _unwrap(value: object, tool: McpTool) -> object:
    return value["result"] if tool.wraps_result and isinstance(value, dict) and "result" in value else value


def _repeats(text: str, *values: object) -> bool:
    """Whether the text only repeats the structured content, which servers do for clients that cannot read that."""
    if text in values:
        return True
    try:
        return json.loads(text) in values
    except (ValueError, RecursionError):
        return False


def read_blocks(content: Iterable[McpBlock | SamplingMessageContentBlock]) -> list[ContentBlock]:
    """All blocks in their order, texts included."""
    found: list[ContentBlock] = []
    for block in content:
        if block.type == "text":
            found.append(ContentBlock("text", text=block.text))
        else:
            found += _media_blocks([block])
    return found


def read_resource_contents(contents: Iterable[TextResourceContents | BlobResourceContents]) -> tuple[ContentBlock, ...]:
    """What is in a resource: texts as they are, everything else as media."""
    return tuple(_resource_block(item) for item in contents)


def _media_blocks(content: Iterable[Any]) -> Iterable[ContentBlock]:
    for block in content:
        if block.type in ("image", "audio"):
            yield ContentBlock(block.type, block.mime_type, data=block.data)
        elif block.type == "resource_link":
            yield _link_block(block)
        elif block.type == "resource":
            yield _embedded_block(block.resource)


def _link_block(link: Any) -> ContentBlock:
    """A link that providers could fetch is a document; one that only the server understands becomes a text."""
    if link.uri.startswith(_WEB_SCHEMES):
        return ContentBlock("document", link.mime_type, url=link.uri)
    description = ": ".join(filter(None, [link.title or link.name, link.description]))
    return ContentBlock("text", text=f"[resource {link.uri}] {description}")


def _embedded_block(resource: TextResourceContents | BlobResourceContents) -> ContentBlock:
    block = _resource_block(resource)
    if block.text is None:
        return block
    return ContentBlock("text", block.media_type, text=f"[resource {resource.uri}]\n{block.text}")


def _resource_block(resource: TextResourceContents | BlobResourceContents) -> ContentBlock:
    kind = resource.mime_type
    text = getattr(resource, "text", None)
    if text is not None:
        return ContentBlock("text", kind, text=text)
    return ContentBlock(block_type(kind or ""), kind, data=getattr(resource, "blob", ""))


# ----------------------------------------------------------------------------------------------------------------------
# How much is in a message of a server, counted in its bytes before a parser makes objects of it.
#
# A value of two bytes becomes an object of a hundred or more, so a limit of bytes alone does not limit memory. Counting takes
# linear time, makes no object for a value, and ends at the first limit.

MAX_ITEMS: Final = 10_000
"""How many parts the content of one answer may have."""

MAX_VALUES: Final = 500_000
"""How many values one message may have, at all levels."""

# Scalars and whole strings, then what divides values. It matches everywhere, a string without an end too: a search that
# failed would begin again one byte later, and be quadratic.
_STEP: Final = re.compile(rb'((?:[^"\[\]{},]++|"[^"\\]*+(?:\\.[^"\\]*+)*+\\?(?:"|\Z))*+)([\[\]{},]|\Z)', re.DOTALL)
_KEY: Final = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*:\s*\Z', re.DOTALL)
_MAX_KEY: Final = 100
_IN_MESSAGE: Final = 2
_IN_RESULT: Final = 3


def find_excess(message: bytes) -> ToolFailed | None:
    """The error for a message that has too much in it.

    >>> find_excess(b'{"result": {"content": [' + b"{}, " * 10_000 + b"{}]}}").message
    "the server's answer has more than 10000 parts of content; no more are read"
    """
    if message.count(b",") + message.count(b"[") + message.count(b"{") < MAX_ITEMS:
        return None
    depth = values = items = 0
    is_result = is_content = was_opened = False
    for match in _STEP.finditer(message):
        token = match[2]
        if was_opened and (token in (b"[", b"{", b",") or match[1].strip()):  # the first value in it
            values += 1
        if token == b",":
            values += 1
            if is_content and depth == _IN_RESULT:
                items += 1
                if items > MAX_ITEMS:
                    return _too_large(MAX_ITEMS, "parts of content")
        elif token in (b"[", b"{"):
            depth += 1
            if depth == _IN_MESSAGE:
                is_result = _ends_in_key(match[1], "result")
            elif depth == _IN_RESULT:
                is_content, items = is_result and token == b"[" and _ends_in_key(match[1], "content"), 1
        else:
            depth -= 1
        was_opened = token in (b"[", b"{")
        if values > MAX_VALUES:
            return _too_large(MAX_VALUES, "values")
    return None


def _ends_in_key(text: bytes, name: str) -> bool:
    """Whether the text before a value ends in this key, however it is escaped."""
    found = _KEY.search(text[-_MAX_KEY:])
    try:
        return found is not None and json.loads(found[1]) == name
    except ValueError:
        return False


def _too_large(limit: int, what: str) -> ToolFailed:
    return ToolFailed("TOO_LARGE", f"the server's answer has more than {limit} {what}; no more are read")


# ----------------------------------------------------------------------------------------------------------------------
# The lists of a server (tools, resources, prompts), page by page, with limits: a server decides how long they are.

MAX_PAGES: Final = 1000
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
