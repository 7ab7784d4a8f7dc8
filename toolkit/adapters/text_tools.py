"""OpenAI's custom tools: the model writes one argument as plain text instead of JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from toolkit.adapters.lossless import provider_metadata
from toolkit.adapters.plain_json import JsonDict
from toolkit.wire.call import ToolCall
from toolkit.wire.definition import AnyDefinition, ToolDefinition

CUSTOM: Final = {"type": "custom"}
"""What the metadata of a call says if the tool is a custom one."""
_ARGUMENT: Final = "argument"


def text_tools(definitions: Iterable[AnyDefinition]) -> dict[str, str]:
    """The argument that is written as text, by the names of the tools that have one."""
    tools = [one for one in definitions if isinstance(one, ToolDefinition)]
    return {one.name: one.text_argument for one in tools if one.text_argument is not None}


def without_text_tools(definitions: Iterable[AnyDefinition]) -> list[AnyDefinition]:
    """The definitions whose arguments are JSON."""
    return [one for one in definitions if not isinstance(one, ToolDefinition) or one.text_argument is None]


def is_custom(call: ToolCall, provider: str) -> bool:
    """Whether this is the call of a custom tool."""
    return provider_metadata(call.metadata, provider).get("type") == CUSTOM["type"]


def custom_input(call: ToolCall, provider: str) -> JsonDict:
    """The text of such a call, under the provider's own key."""
    argument = provider_metadata(call.metadata, provider).get(_ARGUMENT)
    return call.arguments if argument is None else {"input": str(call.arguments.get(argument, ""))}


def name_arguments(
    calls: Sequence[ToolCall], definitions: Iterable[AnyDefinition], provider: str, sent_name: Callable[[str], str]
) -> list[ToolCall]:
    """Calls whose text has the name of the argument that the definition of the tool sends as text."""
    names = {sent_name(name): argument for name, argument in text_tools(definitions).items()}
    return [_name_argument(call, names.get(call.name), provider) for call in calls]


def _name_argument(call: ToolCall, argument: str | None, provider: str) -> ToolCall:
    if argument is None or not is_custom(call, provider) or "input" not in call.arguments:
        return call
    kept = {**provider_metadata(call.metadata, provider), _ARGUMENT: argument}
    return ToolCall(call.id, call.name, {argument: call.arguments["input"]}, {**call.metadata, provider: kept})
