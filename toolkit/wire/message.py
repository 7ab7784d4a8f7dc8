"""A conversation, whatever provider it is with: texts, a model's tool calls, and their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from typing_extensions import TypeIs

from toolkit.wire.call import ToolCall
from toolkit.wire.content import ContentBlock
from toolkit.wire.result import ToolResult

Role: TypeAlias = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class TextMessage:
    """What somebody says: text, or content blocks where media are part of it.

    ``metadata``, here and below, carries what the neutral form has no field for.

    >>> TextMessage("user", "hello").content
    'hello'
    """

    role: Role
    content: str | Sequence[ContentBlock]
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AssistantToolCallMessage:
    """What a model says when it wants tools to run; ``content`` is the text beside the calls."""

    content: str
    tool_calls: Sequence[ToolCall]
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolResultMessage:
    """The result of one call, on its way back to the model."""

    result: ToolResult
    metadata: Mapping[str, object] = field(default_factory=dict)


ChatMessage: TypeAlias = TextMessage | AssistantToolCallMessage | ToolResultMessage


def has_tool_calls(message: ChatMessage) -> TypeIs[AssistantToolCallMessage]:
    """Whether a model asks for tools here."""
    return isinstance(message, AssistantToolCallMessage)


def is_tool_result(message: ChatMessage) -> TypeIs[ToolResultMessage]:
    """Whether this is the result of a call."""
    return isinstance(message, ToolResultMessage)
