"""The result of one call, as the model gets it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

ResultKind: TypeAlias = Literal["text", "data", "error", "multimodal"]


@dataclass(frozen=True, init=False)
class ToolResult:
    """The result of the call with this id; ``value`` is kept as it is, and adapters serialise it.

    ``text`` holds a str, ``data`` a JSON value, ``error`` the text ``CODE: message``, ``multimodal`` a tuple of
    content blocks. ``output_ref`` refers to the whole output in the output cache, if it is kept there. ``output`` is the
    tool's typed output if a toolkit ran the call: it is for the program, is not sent and not stored as JSON.
    """

    tool_call_id: str
    name: str
    kind: ResultKind
    value: object
    output_ref: str | None = None
    output: object = field(default=None, repr=False, compare=False, metadata={"is_stored": False})

    def __init__(
        self,
        tool_call_id: str,
        name: str,
        kind: ResultKind,
        value: object,
        output_ref: str | None = None,
        output: object = None,
    ) -> None:
        # Every call makes one. The constructor of a frozen dataclass would take more than twice as long.
        fields = self.__dict__
        fields["tool_call_id"] = tool_call_id
        fields["name"] = name
        fields["kind"] = kind
        fields["value"] = value
        fields["output_ref"] = output_ref
        fields["output"] = output
