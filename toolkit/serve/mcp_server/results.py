"""The result of a call as MCP content: the text that a model reads, media, the typed output, a link to what was cut."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from mcp_types import ContentBlock as McpBlock
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from toolkit.serve.sessions import output_uri
from toolkit.wire.content import ContentBlock, ContentOutput

if TYPE_CHECKING:
    from toolkit.wire.result import ToolResult

_UNKNOWN_TYPE: Final = "application/octet-stream"


def as_call_result(result: ToolResult, *, has_schema: bool) -> CallToolResult:
    """``has_schema`` says whether the client was told an output schema: it expects structured content then."""
    if result.kind == "error":
        return failed(str(result.value))
    content = list(_content(result))
    ref = result.ref_if_kept
    if ref is not None:
        content.append(ResourceLink(uri=output_uri(ref), name=f"whole output of {result.name}", mime_type="text/plain"))
    return CallToolResult(content=content, structured_content=_structured(result.output, has_schema=has_schema))


def failed(text: str) -> CallToolResult:
    """A call without a result: the model reads why, and what to do."""
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def _content(result: ToolResult) -> Iterator[McpBlock]:
    value: Any = result.value
    if result.kind == "multimodal":
        yield from as_mcp_blocks(value)
    elif result.kind == "text":
        yield TextContent(text=value)
    else:
        yield TextContent(text=json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def as_mcp_blocks(blocks: Iterable[ContentBlock]) -> Iterator[McpBlock]:
    """Blocks of ours in MCP's forms. What has only an address is a link; another provider's file can only be named."""
    for position, block in enumerate(blocks):
        kind = block.media_type or _UNKNOWN_TYPE
        if block.text is not None:
            yield TextContent(text=block.text)
        elif block.url is not None:
            yield ResourceLink(uri=block.url, name=block.filename or block.type, mime_type=block.media_type)
        elif block.data is None:
            yield TextContent(text=f"[{block.type} {block.file_id!r}, a file of {block.provider or 'a provider'}]")
        elif block.type == "image":
            yield ImageContent(data=block.data, mime_type=kind)
        elif block.type == "audio":
            yield AudioContent(data=block.data, mime_type=kind)
        else:
            uri = f"attachment:{position}/{block.filename or block.type}"
            yield EmbeddedResource(resource=BlobResourceContents(uri=uri, mime_type=kind, blob=block.data))


def _structured(output: object, *, has_schema: bool) -> Any:
    if isinstance(output, ContentOutput):
        return output.structured if isinstance(output.structured, dict) else None
    if not has_schema:
        return None
    if isinstance(output, BaseModel):
        # Unset means absent: an optional field must not become null where the schema forbids null.
        return output.__pydantic_serializer__.to_python(output, mode="json", by_alias=True, exclude_unset=True)
    return to_jsonable_python(output, by_alias=True)
