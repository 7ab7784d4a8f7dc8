"""Conversations, tools and choices written from scratch: every shape that the neutral format has."""

from __future__ import annotations

import base64
from typing import Any, Final

from toolkit.wire import (
    AssistantToolCallMessage,
    ChatMessage,
    ContentBlock,
    JsonObject,
    NamedTool,
    TextMessage,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolResultMessage,
)

PNG: Final = base64.b64encode(b"\x89PNG\xfb\xff\xfe").decode()
PDF: Final = base64.b64encode(b"%PDF-1.7 \xfb\xff\xfe").decode()
WAV: Final = base64.b64encode(b"RIFF\xfb\xff\xfe").decode()
TEXT: Final = base64.b64encode("naïve notes".encode()).decode()

BLOCKS: Final[dict[str, ContentBlock]] = {
    "image": ContentBlock("image", "image/png", data=PNG),
    "image with filename": ContentBlock("image", "image/png", data=PNG, filename="shot.png"),
    "image with detail": ContentBlock("image", "image/jpeg", data=PNG, detail="low"),
    "image without media type": ContentBlock("image", data=PNG),
    "image by URL": ContentBlock("image", url="https://example.com/a.png"),
    "image by file id": ContentBlock("image", file_id="file-1"),
    "image in S3": ContentBlock("image", "image/png", url="s3://bucket/a.png"),
    "SVG": ContentBlock("image", "image/svg+xml", data=base64.b64encode(b"<svg/>").decode()),
    "SVG by URL": ContentBlock("image", "image/svg+xml", url="https://example.com/a.svg"),
    "JPEG, as people write it": ContentBlock("image", "image/JPG; q=1", data=PNG),
    "TIFF": ContentBlock("image", "image/tiff", data=PNG),
    "PDF": ContentBlock("document", "application/pdf", data=PDF),
    "PDF with filename": ContentBlock("document", "application/pdf", data=PDF, filename="Report (final), v2.pdf"),
    "PDF by URL": ContentBlock("document", "application/pdf", url="https://example.com/a.pdf"),
    "PDF by file id": ContentBlock("document", "application/pdf", file_id="file-1"),
    "text document": ContentBlock("document", "text/plain", data=TEXT, filename="notes.txt"),
    "JSON document": ContentBlock("document", "application/json", data=base64.b64encode(b'{"x":"as JSON"}').decode()),
    "spreadsheet": ContentBlock("document", "application/vnd.ms-excel", data=PDF, filename="a.xls"),
    "document without media type": ContentBlock("document", data=PDF),
    "file of unknown type": ContentBlock("document", "application/octet-stream", data=TEXT),
    "archive": ContentBlock("document", "application/zip", data=PDF, filename="a.zip"),
    "video": ContentBlock("document", "video/mp4", data=PNG, filename="a.mp4"),
    "video by URL": ContentBlock("document", "video/mp4", url="https://example.com/a.mp4"),
    "video as image": ContentBlock("image", "video/mp4", data=PNG),
    "audio": ContentBlock("audio", "audio/wav", data=WAV),
    "audio, MP3": ContentBlock("audio", "audio/mpeg", data=WAV, filename="a.mp3"),
    "audio, FLAC": ContentBlock("audio", "audio/flac", data=WAV),
    "audio, unknown": ContentBlock("audio", "audio/x-unknown", data=WAV),
    "audio by URL": ContentBlock("audio", "audio/wav", url="https://example.com/a.wav"),
}  # fmt: skip
"""Media of every kind, and from every place."""

QUESTION: Final = TextMessage("user", "please")
_CALL: Final = ToolCall("call_1", "f", {"a": 1})
TURN: Final = AssistantToolCallMessage("", [_CALL])


def result(kind: Any, value: Any, id: str = "call_1") -> ToolResultMessage:
    return ToolResultMessage(ToolResult(id, "f", kind, value))


def in_result(*blocks: ContentBlock) -> list[ChatMessage]:
    """A conversation in which a tool returned these blocks."""
    return [QUESTION, TURN, result("multimodal", blocks)]


def _called(call: ToolCall, *results: ToolResultMessage) -> list[ChatMessage]:
    return [QUESTION, AssistantToolCallMessage("", [call]), *results]


def _answer(id: str, name: str = "f", text: str = "7") -> ToolResultMessage:
    return ToolResultMessage(ToolResult(id, name, "text", text))


_LEAD: Final = ContentBlock("text", text="here it is")
_LONG: Final = "call_" + "0123456789" * 9

CONVERSATIONS: Final[dict[str, list[ChatMessage]]] = {
    "text": [QUESTION],
    "system": [TextMessage("system", "be brief"), QUESTION],
    "system text with an image": [TextMessage("system", [_LEAD, BLOCKS["image"]]), QUESTION],
    "answer": [QUESTION, TextMessage("assistant", "done"), QUESTION],
    "text blocks": [TextMessage("user", [_LEAD, _LEAD]), TextMessage("assistant", [_LEAD, _LEAD])],
    "call": [QUESTION, TURN],
    "call after text": [QUESTION, AssistantToolCallMessage("I look.", [_CALL]), result("text", "7")],
    "parallel calls": [
        QUESTION,
        AssistantToolCallMessage("", [_CALL, ToolCall("call_2", "g", {})]),
        _answer("call_1"),
        _answer("call_2", "g", "8"),
    ],
    "call with broken arguments": _called(ToolCall("call_1", "f", {}, None, '{"a": '), result("error", "INVALID: no")),
    "call with an odd name": _called(ToolCall("call_1", "a.b c", {}), _answer("call_1", "a.b c")),
    "call with a long id": _called(ToolCall(_LONG, "f", {}), _answer(_LONG)),
    "call with an odd id": _called(ToolCall("functions.f:0", "f", {}), _answer("functions.f:0")),
    "result: text": [QUESTION, TURN, result("text", "7")],
    "result: empty text": [QUESTION, TURN, result("text", "")],
    "result: object": [QUESTION, TURN, result("data", {"n": 7})],
    "result: list": [QUESTION, TURN, result("data", [1, None, "ä"])],
    "result: null": [QUESTION, TURN, result("data", None)],
    "result: error": [QUESTION, TURN, result("error", "CODE: no")],
    "result: text blocks": in_result(_LEAD, _LEAD),
    "result: no blocks": in_result(),
    **{f"user: {name}": [TextMessage("user", [_LEAD, block])] for name, block in BLOCKS.items()},
    **{f"assistant: {name}": [QUESTION, TextMessage("assistant", [_LEAD, block])] for name, block in BLOCKS.items()},
    **{f"result: {name}": in_result(_LEAD, block) for name, block in BLOCKS.items()},
    "result: only media": in_result(BLOCKS["image"]),
    "results of parallel calls, with media": [
        QUESTION,
        AssistantToolCallMessage("", [_CALL, ToolCall("call_2", "f", {})]),
        result("multimodal", (BLOCKS["image"], BLOCKS["PDF"])),
        result("multimodal", (BLOCKS["PDF"], BLOCKS["audio"]), "call_2"),
        QUESTION,
    ],
}  # fmt: skip

_SCHEMA: Final = JsonObject({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
TOOLS: Final[dict[str, ToolDefinition]] = {
    "tool": ToolDefinition("f", "Do it.", _SCHEMA),
    "tool without description": ToolDefinition("f", "", _SCHEMA),
    "tool without parameters": ToolDefinition("f", "Do it.", JsonObject({})),
    "tool with an odd name": ToolDefinition("math.factorial of n", "Do it.", _SCHEMA),
    "tool with a long name": ToolDefinition("f" * 200, "Do it.", _SCHEMA),
    "strict tool": ToolDefinition("f", "Do it.", _SCHEMA, strict=True),
}

CHOICES: Final[dict[str, Any]] = {
    "auto": "auto",
    "none": "none",
    "required": "required",
    "one tool": NamedTool("f"),
    "one tool with an odd name": NamedTool("math.factorial of n"),
}
