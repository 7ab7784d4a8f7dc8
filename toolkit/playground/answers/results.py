"""The result of a call: the typed output for a program beside the text that a model reads."""

from __future__ import annotations

from typing import Any, Final

from toolkit.adapters.result_value import result_blocks, result_text
from toolkit.wire.content import ContentBlock
from toolkit.wire.result import ToolResult

MAX_SHOWN: Final = 200_000
"""The most characters of each that the page shows."""
_MAX_TEXT: Final = 20_000
_MAX_ITEMS: Final = 200
_WIDTH: Final = 88


def describe_result(result: ToolResult, duration_ms: float) -> dict[str, Any]:
    """The last event of a call."""
    text = _model_text(result)
    is_error = result.kind == "error"
    typed = None if is_error else _typed(result.output)
    return {
        "event": "result",
        "kind": result.kind,
        "durationMs": duration_ms,
        "error": str(result.value) if is_error else None,
        "type": None if is_error else type(result.output).__name__,
        "typed": None if typed is None else typed[:MAX_SHOWN],
        "text": text[:MAX_SHOWN],
        "dropped": max(0, len(text) - MAX_SHOWN),
        "media": [_describe_block(block) for block in result_blocks(result) or () if block.type != "text"],
    }


def _model_text(result: ToolResult) -> str:
    blocks = result_blocks(result)
    if blocks is None:
        return str(result_text(result))
    return "\n".join(block.text for block in blocks if block.text is not None)


def _typed(output: object) -> str:
    """The output as Python shows it, a field on each line."""
    from rich.pretty import pretty_repr

    return pretty_repr(output, max_width=_WIDTH, max_length=_MAX_ITEMS, max_string=_MAX_TEXT)


def _describe_block(block: ContentBlock) -> str:
    size = f", {len(block.data) * 3 // 4:,} bytes" if block.data is not None else ""
    return f"{block.type}{f' {block.media_type}' if block.media_type else ''}{size}"
