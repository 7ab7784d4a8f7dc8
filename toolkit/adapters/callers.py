"""Who may call a tool, as Anthropic and OpenAI write it: a list with a word for the model and one for programs."""

from __future__ import annotations

from typing import Final

from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.definition import ToolCallers

_DIRECT: Final = "direct"


def encode_callers(callers: ToolCallers, program: str) -> JsonDict:
    """The key of a definition; nothing for a tool that only the model calls, which is what providers assume.

    >>> encode_callers("both", "programmatic")
    {'allowed_callers': ['direct', 'programmatic']}
    """
    if callers == "model":
        return {}
    return {"allowed_callers": [program] if callers == "programs" else [_DIRECT, program]}


def decode_callers(tool: JsonDict, program: str) -> ToolCallers:
    """Who may call a tool; ``program`` is how the provider's words for programs begin."""
    if find_program(tool, program) is None:
        return "model"
    return "both" if _DIRECT in tool["allowed_callers"] else "programs"


def find_program(tool: JsonDict, program: str) -> str | None:
    """The provider's word for the programs that may call a tool; None if none may."""
    words = tool.get("allowed_callers")
    found = [word for word in words if isinstance(word, str)] if isinstance(words, list) else []
    return next((word for word in found if word.startswith(program)), None)
