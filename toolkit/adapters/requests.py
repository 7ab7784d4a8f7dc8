"""Lists of tool definitions, both ways, with native tools among them.

OpenAI's form, an object ``function`` inside ``{"type": "function"}``, is also what Ollama, Cohere and LangChain take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from toolkit.adapters.lossless import keep_difference, provider_metadata, restore
from toolkit.adapters.natives import own_native
from toolkit.adapters.plain_json import JsonDict, plain_list
from toolkit.wire.definition import AnyDefinition, NativeTool, ToolDefinition
from toolkit.wire.json_types import JsonObject


def encode_definitions(
    definitions: Iterable[AnyDefinition], provider: str, encode: Callable[[ToolDefinition], JsonDict]
) -> list[JsonDict]:
    """A tool for each definition. Native tools of the provider go out unchanged; what only the metadata knows is put back."""
    return [
        own_native(definition, provider)
        if isinstance(definition, NativeTool)
        else restore(encode(definition), provider_metadata(definition.metadata, provider))
        for definition in definitions
    ]


def decode_definitions(
    tools: object,
    provider: str,
    decode: Callable[[JsonDict], ToolDefinition | None],
    encode: Callable[[ToolDefinition], JsonDict],
) -> list[AnyDefinition]:
    """A definition for each tool. One that ``decode`` returns None for is native to the provider."""
    definitions: list[AnyDefinition] = []
    for tool in plain_list(tools):
        made = decode(tool)
        if made is None:
            definitions.append(NativeTool(provider, JsonObject(tool)))
        else:
            definitions.append(keep_difference(made, provider, tool, encode(made)))
    return definitions


def wants_strict(definition: ToolDefinition, strict: bool | None) -> bool | None:
    """Whether strict mode is asked for: by the definition, else by ``strict``."""
    return definition.strict if definition.strict is not None else strict


def encode_function(
    name: str, definition: ToolDefinition, parameters: JsonDict, strict: bool | None = None
) -> JsonDict:
    """A tool in OpenAI's form. ``strict`` is left out if None."""
    function: JsonDict = {"name": name, "description": definition.description, "parameters": parameters}
    if strict is not None:
        function["strict"] = strict
    return {"type": "function", "function": function}


def decode_function(tool: JsonDict) -> ToolDefinition | None:
    """The definition in a tool in OpenAI's form; None if it is not one."""
    function = tool.get("function")
    if tool.get("type", "function") != "function" or not isinstance(function, dict) or "name" not in function:
        return None
    parameters = JsonObject(function.get("parameters") or {})
    return ToolDefinition(function["name"], function.get("description") or "", parameters)


def decode_strict_function(tool: JsonDict) -> ToolDefinition | None:
    """The same for providers that know strict mode."""
    made = decode_function(tool)
    return None if made is None else replace(made, strict=tool["function"].get("strict"))
