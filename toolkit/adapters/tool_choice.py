"""The choice of a tool as providers write it, both ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Literal, TypeAlias

from toolkit.adapters.natives import own_native
from toolkit.adapters.plain_json import plain
from toolkit.wire.choice import NamedTool, NativeChoice, ToolChoice

ChoiceWord: TypeAlias = Literal["auto", "none", "required"]
ChoiceTable: TypeAlias = Mapping[ChoiceWord, object]
"""What a provider writes for each neutral word."""


def encode_tool_choice(choice: ToolChoice, provider: str, table: ChoiceTable, encode_name: Callable[[str], Any]) -> Any:
    """What the provider writes for ``choice``; ``encode_name`` encodes the choice of a single tool."""
    if isinstance(choice, NativeChoice):
        return own_native(choice, provider)
    return encode_name(choice.name) if isinstance(choice, NamedTool) else deepcopy(table[choice])


def decode_tool_choice(
    choice: object, provider: str, table: ChoiceTable, decode_name: Callable[[Any], str | None]
) -> ToolChoice:
    """The neutral choice; None is ``auto``. ``decode_name`` returns the name of a single tool, None for a native choice."""
    found = plain(choice)
    if found is None:
        return "auto"
    for word, written in table.items():
        if found == written:
            return word
    name = decode_name(found)
    return NativeChoice(provider, found) if name is None else NamedTool(name)


def function_choice(name: str) -> Any:
    """A single tool in OpenAI's form."""
    return {"type": "function", "function": {"name": name}}


def function_choice_name(found: Any) -> str | None:
    """The name of the tool in a choice in OpenAI's form; None if it is not one."""
    function = found.get("function") if isinstance(found, dict) else None
    if not isinstance(function, dict) or found != function_choice(function.get("name")):  # type: ignore[arg-type]
        return None
    name: str = function["name"]
    return name
