"""The messages of a conversation, for any provider: texts, a model's tool calls, and their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from typing_extensions import TypeIs

from toolkit.wire.call import ToolCall, ToolResult
from toolkit.wire.content import ContentBlock

Role: TypeAlias = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class TextMessage:
    """A message of text, or of content blocks if it has media.

    ``metadata``, here and below, carries what the neutral form has no field for.

    >>> TextMessage("user", "hello").content
    'hello'
    """

    role: Role
    content: str | Sequence[ContentBlock]
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AssistantToolCallMessage:
    """A model's message with tool calls; ``content`` is its text."""

    content: str
    tool_calls: Sequence[ToolCall]
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolResultMessage:
    """The result of one call, for the model."""

    result: ToolResult
    metadata: Mapping[str, object] = field(default_factory=dict)


ChatMessage: TypeAlias = TextMessage | AssistantToolCallMessage | ToolResultMessage


def has_tool_calls(message: ChatMessage) -> TypeIs[AssistantToolCallMessage]:
    """Whether a model calls tools in this message."""
    return isinstance(message, AssistantToolCallMessage)


def is_tool_result(message: ChatMessage) -> TypeIs[ToolResultMessage]:
    """Whether this is the result of a call."""
    return isinstance(message, ToolResultMessage)
