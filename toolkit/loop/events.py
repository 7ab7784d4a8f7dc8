"""What happens during a run, in order: the events of each answer, the results of its calls, the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from toolkit.wire.call import ToolCall
from toolkit.wire.conversation import Conversation
from toolkit.wire.events import AnswerEvent
from toolkit.wire.result import ToolResult


@dataclass(frozen=True, slots=True)
class CallAnswered:
    """A call of the model was run, and this is its result."""

    call: ToolCall
    result: ToolResult


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The last event: the whole conversation."""

    conversation: Conversation


RunEvent: TypeAlias = AnswerEvent | CallAnswered | RunEnded
