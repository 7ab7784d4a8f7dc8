"""The neutral format as JSON and back, to store a conversation or send it elsewhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from toolkit.wire.call import ToolCall, ToolResult
from toolkit.wire.content import ContentBlock
from toolkit.wire.definition import NamedTool, NativeChoice, NativeTool, OutputSchema, ToolDefinition
from toolkit.wire.message import AssistantToolCallMessage, TextMessage, ToolResultMessage
from toolkit.wire.query import Conversation, QueryOptions, QueryResult, Reasoning, Usage

_KINDS: Final[dict[str, type[Any]]] = {
    "tool_call": ToolCall,
    "tool_result": ToolResult,
    "tool_definition": ToolDefinition,
    "native_tool": NativeTool,
    "named_tool": NamedTool,
    "native_choice": NativeChoice,
    "content_block": ContentBlock,
    "text_message": TextMessage,
    "tool_call_message": AssistantToolCallMessage,
    "tool_result_message": ToolResultMessage,
    "output_schema": OutputSchema,
    "query_options": QueryOptions,
    "query_result": QueryResult,
    "usage": Usage,
    "reasoning": Reasoning,
    "conversation": Conversation,
}
_NAMES: Final = {kind: name for name, kind in _KINDS.items()}
_KIND: Final = "$kind"
_PLAIN: Final = "$plain"
_TUPLE: Final = "$tuple"
_MARKS: Final = frozenset({_KIND, _PLAIN, _TUPLE})


def to_json(value: object) -> Any:
    """JSON for a value of the neutral format, or a list of them; ``from_json`` returns the value.

    >>> from_json(to_json(ToolCall("1", "add", {"a": 1}))).arguments
    {'a': 1}
    """
    name = _NAMES.get(type(value))
    if name is not None:
        fields = [field for field in dataclasses.fields(value) if field.metadata.get("is_stored", True)]  # type: ignore[arg-type]
        return {_KIND: name, **{field.name: to_json(getattr(value, field.name)) for field in fields}}
    if isinstance(value, Mapping):
        plain = {key: to_json(item) for key, item in value.items()}
        # User data may contain our own keys.
        return {_PLAIN: plain} if not _MARKS.isdisjoint(plain) else plain
    if isinstance(value, tuple):
        return {_TUPLE: [to_json(item) for item in value]}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [to_json(item) for item in value]
    if isinstance(value, BaseException):
        # The error of a query: only its text can be kept.
        return f"{type(value).__name__}: {value}"
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"a value of type {type(value).__name__} cannot be written as JSON")


def from_json(data: Any) -> Any:
    """The value that ``to_json`` was given; an exception comes back as its text."""
    if isinstance(data, list):
        return [from_json(item) for item in data]
    if not isinstance(data, dict):
        return data
    if _TUPLE in data:
        return tuple(from_json(item) for item in data[_TUPLE])
    if _PLAIN in data:
        return {key: from_json(item) for key, item in data[_PLAIN].items()}
    name = data.get(_KIND)
    if name is None:
        return {key: from_json(item) for key, item in data.items()}
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(f"unknown kind of value in the neutral format: {name!r}")
    return kind(**{key: from_json(item) for key, item in data.items() if key != _KIND})
