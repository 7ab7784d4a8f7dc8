"""A server's answer as the output of its tool: the typed model, or text and media where it declares no output schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from toolkit.errors import ToolFailed
from toolkit.packs.answers import find_not_json
from toolkit.packs.media import block_type
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
    except (ValueError, RecursionError):  # a ValidationError is one as well
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
    """All blocks in their order, texts as well."""
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
