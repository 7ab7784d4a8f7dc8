"""Breakpoints of Anthropic's prompt cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.query import CachePoint

_MARK: Final = {"type": "ephemeral"}
# Blocks that take a breakpoint; thinking does not, and an empty text is refused with one.
_BLOCKS: Final = frozenset({"text", "image", "document", "tool_use", "tool_result"})


def add_breakpoints(request: JsonDict, points: Sequence[CachePoint]) -> None:
    """Marks the last tool, the end of the system text and the end of the last message, as far as the request has them."""
    if "tools" in points:
        # A tool that is loaded later is not in the prompt.
        shown = [tool for tool in request.get("tools", ()) if not tool.get("defer_loading")]
        if shown:
            shown[-1].setdefault("cache_control", dict(_MARK))
    if "system" in points and request.get("system"):
        request["system"] = _marked(request["system"])
    if "messages" in points and request["messages"]:
        last = request["messages"][-1]
        request["messages"] = [*request["messages"][:-1], {**last, "content": _marked(last["content"])}]


def _marked(content: str | list[JsonDict]) -> str | list[JsonDict]:
    """The content with a breakpoint at its last block that takes one."""
    blocks: list[JsonDict] = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    for at in reversed(range(len(blocks))):
        block = blocks[at]
        if block.get("type") in _BLOCKS and block.get("text") != "":
            blocks[at] = {"cache_control": dict(_MARK), **block}
            return blocks
    return content
