"""What a server answered, as the output of its tool: the typed model, or text and media where it promised none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from toolkit.errors import ToolFailed
from toolkit.runtime.context.tool_context import ToolContext
from toolkit.wire.content import BlockType, ContentBlock, ContentOutput

if TYPE_CHECKING:
    from mcp_types import BlobResourceContents, CallToolResult, TextResourceContents
    from mcp_types import ContentBlock as McpBlock

    from toolkit.packs.mcp.pack import McpTool

_MAX_ERROR_TEXT: Final = 20_000
_WEB: Final = ("http://", "https://")


def output_of(
    result: CallToolResult,
    tool: McpTool,
    model: type[BaseModel],
    ctx: ToolContext,
    without_secrets: Callable[[str], str],
) -> object:
    """The output of one call; ``ToolFailed`` where the server says that the tool failed, ``without_secrets``.

    What fits the model is given as one. What does not is given as it came: the road judges it, as its context says.
    """
    text, media = text_of(result.content), tuple(_media(result.content))
    if result.is_error:
        said = text if text or result.structured_content is None else json.dumps(result.structured_content)
        said = without_secrets(said)[:_MAX_ERROR_TEXT]
        raise ToolFailed("TOOL_ERROR", said or "the tool failed, and its server does not say why")
    if issubclass(model, ContentOutput):
        given = {"text": text, "blocks": media, "structured": result.structured_content}
        return model(**{name: value for name, value in given.items() if name == "text" or value})
    ctx.attach(*media)
    if result.structured_content is None:
        return _from_text(text, tool, model, without_secrets)
    value = _unwrapped(result.structured_content, tool)
    if text and not _says_the_same(text, result.structured_content, value):
        ctx.metadata(text=text)
    try:
        return model.model_validate(value)
    except ValidationError:
        return value


def text_of(content: Iterable[McpBlock]) -> str:
    """Its plain text, whichever blocks stood between."""
    return "\n".join(block.text for block in content if block.type == "text")


def _from_text(text: str, tool: McpTool, model: type[BaseModel], without_secrets: Callable[[str], str]) -> BaseModel:
    """For servers that promise structured content and write it as text only."""
    try:
        return model.model_validate(_unwrapped(json.loads(text), tool))
    except (ValueError, RecursionError):  # a ValidationError is one as well
        raise ToolFailed(
            "INVALID_OUTPUT",
            f"the server promises structured content for {tool.name!r} and gave text only, which is no such JSON",
            text=without_secrets(text)[:_MAX_ERROR_TEXT],
        ) from None


def _unwrapped(value: object, tool: McpTool) -> object:
    return value["result"] if tool.wraps_result and isinstance(value, dict) and "result" in value else value


def _says_the_same(text: str, *values: object) -> bool:
    """Whether the text is only the structured content again, which servers add for clients that cannot read that."""
    if text in values:
        return True
    try:
        return json.loads(text) in values
    except (ValueError, RecursionError):
        return False


def _media(content: Iterable[McpBlock]) -> Iterable[ContentBlock]:
    for block in content:
        if block.type in ("image", "audio"):
            yield ContentBlock(block.type, block.mime_type, data=block.data)
        elif block.type == "resource_link":
            yield _link(block)
        elif block.type == "resource":
            yield _embedded(block.resource)


def _link(link: Any) -> ContentBlock:
    """What providers could fetch is a document; an address only the server understands is told in words."""
    if link.uri.startswith(_WEB):
        return ContentBlock("document", link.mime_type, url=link.uri)
    words = ": ".join(filter(None, [link.title or link.name, link.description]))
    return ContentBlock("text", text=f"[resource {link.uri}] {words}")


def _embedded(resource: TextResourceContents | BlobResourceContents) -> ContentBlock:
    kind = resource.mime_type
    text = getattr(resource, "text", None)
    if text is not None:
        return ContentBlock("text", kind, text=f"[resource {resource.uri}]\n{text}")
    return ContentBlock(_block_type(kind or ""), kind, data=getattr(resource, "blob", ""))


def _block_type(media_type: str) -> BlockType:
    family = media_type.partition("/")[0]
    return "image" if family == "image" else "audio" if family == "audio" else "document"
