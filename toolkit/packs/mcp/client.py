"""Resources and prompts of an MCP server, for handlers and programs: ``client = await PACK.client(ctx)``.

It uses the connection that the tools of the pack use, with what the context of the call permits. Every text that a server
sends is untrusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mcp_types import (
    GetPromptRequest,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    InputResponses,
    ListPromptsRequest,
    ListPromptsResult,
    ListResourcesRequest,
    ListResourcesResult,
    ListResourceTemplatesRequest,
    ListResourceTemplatesResult,
    ReadResourceRequest,
    ReadResourceRequestParams,
    ReadResourceResult,
)
from pydantic import TypeAdapter

from toolkit.packs.mcp.content import read_blocks, read_resource_contents
from toolkit.packs.mcp.listing import ToolListing, check_length
from toolkit.wire.content import ContentBlock
from toolkit.wire.message import TextMessage

if TYPE_CHECKING:
    from toolkit.packs.mcp.connection import McpConnection
    from toolkit.packs.mcp.server import McpServer
    from toolkit.packs.mcp.session import ServerAccess

_READ: Final[TypeAdapter[ReadResourceResult | InputRequiredResult]] = TypeAdapter(
    ReadResourceResult | InputRequiredResult
)
_PROMPTED: Final[TypeAdapter[GetPromptResult | InputRequiredResult]] = TypeAdapter(
    GetPromptResult | InputRequiredResult
)


@dataclass(frozen=True, slots=True)
class McpResource:
    """Something a server lets others read."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    media_type: str | None = None
    size: int | None = None
    """In bytes, as far as the server knows."""


@dataclass(frozen=True, slots=True)
class McpResourceTemplate:
    """A family of resources: ``uri_template`` is a URI template (RFC 6570)."""

    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    media_type: str | None = None


@dataclass(frozen=True, slots=True)
class McpPromptArgument:
    """One argument of a prompt; its value is a text."""

    name: str
    description: str | None = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class McpPrompt:
    """A prompt that a server offers to people."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[McpPromptArgument, ...] = ()


class McpClient:
    """Reads what one server offers besides its tools; see ``McpPack.client``. Usable as long as the call lasts."""

    def __init__(self, server: McpServer, connection: McpConnection, access: ServerAccess) -> None:
        self._server: Final = server
        self._connection: Final = connection
        self._access: Final = access

    async def list_tools(self) -> ToolListing:
        """The tools that may be offered, as the server describes them now."""
        return await self._connection.list_tools(self._access)

    async def list_resources(self) -> list[McpResource]:
        """All resources that the server lists."""
        found: list[McpResource] = []
        async for page in self._connection.list_pages(
            ListResourcesRequest, ListResourcesResult, "resources", self._access
        ):
            found += [
                McpResource(item.uri, item.name, item.title, item.description, item.mime_type, item.size)
                for item in page.resources
            ]
            check_length(found, self._server.name, "resources")
        return found

    async def list_resource_templates(self) -> list[McpResourceTemplate]:
        """All families of resources that the server lists."""
        found: list[McpResourceTemplate] = []
        async for page in self._connection.list_pages(
            ListResourceTemplatesRequest, ListResourceTemplatesResult, "resource templates", self._access
        ):
            found += [
                McpResourceTemplate(item.uri_template, item.name, item.title, item.description, item.mime_type)
                for item in page.resource_templates
            ]
            check_length(found, self._server.name, "resource templates")
        return found

    async def read_resource(self, uri: str) -> tuple[ContentBlock, ...]:
        """What is in a resource, and in those below it if it is a folder: texts and media."""

        def make_request(answers: InputResponses | None, state: str | None) -> ReadResourceRequest:
            params = ReadResourceRequestParams(uri=uri, input_responses=answers, request_state=state)
            return ReadResourceRequest(params=params)

        found = await self._request(make_request, _READ)
        return read_resource_contents(found.contents)

    async def list_prompts(self) -> list[McpPrompt]:
        """All prompts that the server lists."""
        found: list[McpPrompt] = []
        async for page in self._connection.list_pages(ListPromptsRequest, ListPromptsResult, "prompts", self._access):
            found += [
                McpPrompt(
                    item.name,
                    item.title,
                    item.description,
                    tuple(
                        McpPromptArgument(argument.name, argument.description, bool(argument.required))
                        for argument in item.arguments or ()
                    ),
                )
                for item in page.prompts
            ]
            check_length(found, self._server.name, "prompts")
        return found

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> list[TextMessage]:
        """The messages of a prompt, ready for a model."""

        def make_request(answers: InputResponses | None, state: str | None) -> GetPromptRequest:
            params = GetPromptRequestParams(
                name=name, arguments=dict(arguments or {}), input_responses=answers, request_state=state
            )
            return GetPromptRequest(params=params)

        found = await self._request(make_request, _PROMPTED)
        return [TextMessage(message.role, read_blocks([message.content])) for message in found.messages]

    async def _request(self, make_request: Any, answer: TypeAdapter[Any]) -> Any:
        return await self._connection.request(make_request, answer, self._access, timeout=self._server.timeout)
