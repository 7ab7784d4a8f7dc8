"""Breakpoints of OpenAI's prompt cache, in chat completions and in Responses: marks on content parts.

Tools come before all messages there, so a breakpoint after the system text has them in the cache as well.
"""

from __future__ import annotations

from typing import Any, Final

from toolkit.adapters.plain_json import JsonDict

_KEY: Final = "prompt_cache_breakpoint"
_MARK: Final = {"mode": "explicit"}
# Parts of what is sent, of both APIs; what a model wrote takes no breakpoint.
_PARTS: Final = frozenset(
    {"text", "image_url", "input_audio", "file", "input_text", "input_image", "input_file"}
)  # fmt: skip


def with_breakpoint(message: JsonDict, key: str, text_type: str) -> JsonDict:
    """The message with a breakpoint at its last part; ``text_type`` is the type of a part that is text."""
    content: Any = message.get(key)
    parts = [{"type": text_type, "text": content}] if isinstance(content, str) and content else content
    if not isinstance(parts, list) or not parts or parts[-1].get("type") not in _PARTS:
        return message
    return {**message, key: [*parts[:-1], {_KEY: dict(_MARK), **parts[-1]}]}
