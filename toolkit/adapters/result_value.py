"""The value of a tool result as providers send it: as text, or as blocks where it holds media."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.adapters.values import compact
from toolkit.wire.content import ContentBlock
from toolkit.wire.result import ToolResult


def result_blocks(result: ToolResult) -> Sequence[ContentBlock] | None:
    """The blocks of a multimodal result; None for any other."""
    return result.value if result.kind == "multimodal" and isinstance(result.value, Sequence) else None


def result_text(result: ToolResult) -> Any:
    """The text of a result without media: text itself, an error as ``{"error": ...}``, data as JSON."""
    if result.kind == "text":
        return result.value
    return compact({"error": result.value}) if result.kind == "error" else compact(result.value)
