"""What a model is told about a tool."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.wire.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """Name, description and the JSON Schema of the arguments, for any provider.

    ``strict`` asks for a provider's strict mode and is ignored where a provider has none.
    """

    name: str
    description: str
    parameters: JsonObject
    strict: bool | None = None
