"""What a caller of ``run`` can do at each step. With ``run_async``, hooks may be async."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from toolkit.wire.call import ToolCall
from toolkit.wire.conversation import Conversation
from toolkit.wire.message import ChatMessage
from toolkit.wire.query import QueryResult
from toolkit.wire.result import ToolResult

BeforeCall: TypeAlias = Callable[[ToolCall], ToolResult | None]
"""Called for each call of a turn, before the first of them runs; a result is used instead of running the call."""

AfterCall: TypeAlias = Callable[[ToolCall, ToolResult], ToolResult | None]
"""Called with each call and its result; another result is used instead."""

OnAction: TypeAlias = Callable[[QueryResult], Sequence[ChatMessage]]
"""Called with an answer whose provider waits for an action, after its calls have run; returns the messages to add."""

Save: TypeAlias = Callable[[Conversation], object]
"""Called with the conversation after each step: an answer, the results of its calls, what ``on_action`` returned."""

AsyncBeforeCall: TypeAlias = Callable[[ToolCall], ToolResult | Awaitable[ToolResult | None] | None]
AsyncAfterCall: TypeAlias = Callable[[ToolCall, ToolResult], ToolResult | Awaitable[ToolResult | None] | None]
AsyncOnAction: TypeAlias = Callable[[QueryResult], Sequence[ChatMessage] | Awaitable[Sequence[ChatMessage]]]


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of a run."""

    before_call: BeforeCall | None
    after_call: AfterCall | None
    on_action: OnAction | None
    save: Save | None


@dataclass(frozen=True, slots=True)
class AsyncHooks:
    """The hooks of an async run."""

    before_call: AsyncBeforeCall | None
    after_call: AsyncAfterCall | None
    on_action: AsyncOnAction | None
    save: Save | None
