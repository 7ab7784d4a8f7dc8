"""The description of a tool that a model gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from toolkit.wire.json_types import JsonObject

ToolCallers: TypeAlias = Literal["model", "programs", "both"]
"""Who may call a tool: the model, programs that it writes and the provider runs, or both."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """Name, description and the JSON Schema of the arguments, for any provider.

    ``strict`` asks for strict mode and is ignored by providers that have none. ``metadata`` carries what a provider adds to
    a definition and the neutral form has no field for. With ``defer_loading`` the model sees the tool only after it has
    searched for it; providers without a search for tools show it at once, and drivers of the others add the search.

    ``callers`` says whether programs that the provider runs may call the tool. Providers without such programs ignore it, and
    drivers of the others add the provider's tool that runs them. ``text_argument`` names the argument that a model writes as
    plain text instead of JSON, where the provider has such tools (OpenAI's custom tools); it cannot give others then.
    """

    name: str
    description: str
    parameters: JsonObject
    strict: bool | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    defer_loading: bool = False
    callers: ToolCallers = "model"
    text_argument: str | None = None


@dataclass(frozen=True, slots=True)
class NativeTool:
    """A tool that the provider runs itself (web search, code interpreter), in its own form; it is sent unchanged, and to no
    other provider."""

    provider: str
    raw: JsonObject


AnyDefinition: TypeAlias = ToolDefinition | NativeTool
