"""The tools that scenarios call."""

from __future__ import annotations

import base64
from typing import Annotated

from pydantic import Field

from toolkit import ContentBlock, ToolContext, tool
from toolkit.errors import ToolFailed

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="

IMAGE = ContentBlock("image", media_type="image/png", data=PIXEL)


def document(text: str, media_type: str) -> ContentBlock:
    return ContentBlock("document", media_type=media_type, data=base64.b64encode(text.encode()).decode())


@tool
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@tool
def test_image_content() -> ContentBlock:
    """Return an image."""
    return IMAGE


@tool
def test_audio_content() -> ContentBlock:
    """Return a sound."""
    return ContentBlock("audio", media_type="audio/wav", data=SILENCE)


@tool
def test_embedded_resource() -> ContentBlock:
    """Return a document."""
    return document("This is an embedded resource content.", "text/plain")


@tool
def test_multiple_content_types() -> list[ContentBlock]:
    """Return a text, an image and a document."""
    text = ContentBlock("text", text="Multiple content types test:")
    return [text, IMAGE, document('{"test":"data","value":123}', "application/json")]


@tool
def test_error_handling() -> str:
    """Fail."""
    raise ToolFailed("TOOL_ERROR", "This tool intentionally returns an error for testing")


@tool
def test_unexpected_error() -> str:
    """Fail in a way that the toolkit logs."""
    raise RuntimeError("/a/place/of/this/machine")


@tool
def test_tool_with_logging(ctx: ToolContext) -> str:
    """Log three messages."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        ctx.logger.info(text)
    return "logged"


@tool
def test_tool_with_wrong_logging(ctx: ToolContext) -> str:
    """Log a message whose argument does not fit."""
    ctx.logger.info("%d files", "many")
    return "logged all the same"


@tool
def test_tool_with_progress(ctx: ToolContext) -> str:
    """Report three steps."""
    for step in (0, 50, 100):
        ctx.progress(title=f"{step} of 100")
    return "done"


@tool
def test_elicitation(message: str) -> str:
    """Run only if a person agrees: the policy asks."""
    return message


@tool
def test_input_required_result_elicitation() -> str:
    """Run only if a person agrees: the policy asks."""
    return "ran"


@tool
def test_input_required_result_tampered_state() -> str:
    """Run only if a person agrees: the policy asks."""
    return "ran"


@tool
def test_header(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """Take an argument that is also sent as a header."""
    return region
