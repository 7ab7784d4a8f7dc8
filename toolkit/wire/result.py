"""What goes back to the model for one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

ResultKind: TypeAlias = Literal["text", "data", "error", "multimodal"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to the call with this id; ``value`` is kept as it is, adapters serialise it.

    ``text`` holds a str, ``data`` a JSON value, ``error`` the text ``CODE: message``, ``multimodal`` a tuple of
    content blocks. ``output_ref`` is where the output cache keeps the whole of it, if it does.
    """

    tool_call_id: str
    name: str
    kind: ResultKind
    value: object
    output_ref: str | None = None
