"""A model's request to run a tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolkit.wire.json_types import JsonObject


@dataclass(frozen=True, init=False)
class ToolCall:
    """One tool call, from any provider.

    ``raw_arguments`` is the argument text as the provider sent it. Unless it is blank, the call path reads *it*, so that
    text which is not JSON is refused instead of passing for an empty object.

    >>> call = ToolCall("call_1", "read_file", {"path": "a.py"})
    >>> call.arguments["path"]
    'a.py'
    """

    id: str
    name: str
    arguments: JsonObject
    metadata: Mapping[str, object]
    raw_arguments: str | None

    def __init__(
        self,
        id: str,
        name: str,
        arguments: Mapping[str, object],
        metadata: Mapping[str, object] | None = None,
        raw_arguments: str | None = None,
    ) -> None:
        # Every call makes one. The constructor of a frozen dataclass would take more than twice as long.
        fields = self.__dict__
        fields["id"] = id
        fields["name"] = name
        # A dict is not copied: values are kept as they are.
        fields["arguments"] = arguments if isinstance(arguments, dict) else dict(arguments)
        fields["metadata"] = {} if metadata is None else metadata
        fields["raw_arguments"] = raw_arguments

    @property
    def unread_text(self) -> str | None:
        """The argument text, or None if it is blank: providers send an empty text for a tool without parameters."""
        text = self.raw_arguments
        return text if text and not text.isspace() else None
