"""What a run works with: its limits, its hooks, its events, and its state between two steps, for both loops.

The state follows from the conversation, so a run can be continued from the JSON of one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from toolkit.adapters.history import EncodedHistory, GrowingHistory, RunMessages
from toolkit.errors import (
    ActionNeeded,
    AnswerCutOff,
    AnswerFailed,
    AnswerFiltered,
    AnswerRefused,
    RunCancelled,
    RunError,
    RunLimitReached,
    SetupError,
    ToolCancelled,
    ToolkitError,
)
from toolkit.runtime.signals import CallSignal, CancelSignal
from toolkit.runtime.stores.budget import FittedHistory
from toolkit.runtime.toolkit import View, options_of
from toolkit.wire.call import ToolCall, ToolResult
from toolkit.wire.definition import NamedTool
from toolkit.wire.message import ChatMessage, TextMessage, ToolResultMessage, has_tool_calls, is_tool_result
from toolkit.wire.query import DONE, AnswerEvent, Conversation, FinishReason, QueryOptions, QueryResult, Usage


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The most that one run may use; None is no limit. A run that reaches one raises ``RunLimitReached``.

    ``turns`` counts answers of the model. ``tokens`` counts input and output as the provider reports them, and is checked
    before each request. After ``seconds``, the query, stream or call in progress is cancelled.

    >>> RunLimits(turns=10, seconds=600)
    RunLimits(turns=10, tokens=None, seconds=600)
    """

    turns: int | None = 50
    tokens: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("turns", "tokens", "seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise SetupError(f"the limit of {name} must be greater than 0, not {value!r}; None is no limit")


# -- hooks: what a caller of ``run`` can do at each step; those of ``run_async`` may be async ----------------------------

BeforeCall: TypeAlias = Callable[[ToolCall], ToolResult | None]
"""Called for each call of a turn before any of them runs. If it returns a result, the call does not run."""
AfterCall: TypeAlias = Callable[[ToolCall, ToolResult], ToolResult | None]
"""Called with each call and its result. If it returns a result, that one is used."""
OnAction: TypeAlias = Callable[[QueryResult], Sequence[ChatMessage]]
"""Called with an answer whose provider waits for an action, after its calls have run. Returns the messages to add."""
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


# -- events: those of each answer, the results of its calls, the end -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallAnswered:
    """A call ran, and this is its result."""

    call: ToolCall
    result: ToolResult


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The last event: the whole conversation."""

    conversation: Conversation


RunEvent: TypeAlias = AnswerEvent | CallAnswered | RunEnded


# -- the state -----------------------------------------------------------------------------------------------------------

_ERRORS: Final[dict[FinishReason, tuple[type[RunError], str]]] = {
    "error": (AnswerFailed, "the provider reported an error"),
    "refused": (AnswerRefused, "the model declined to answer"),
    "filtered": (AnswerFiltered, "the provider's filter blocked the request, or stopped the answer"),
    "length": (AnswerCutOff, "the answer was cut at the token limit; set a higher max_tokens, or ask for less at once"),
}
_ACTION_NEEDED: Final = (
    "the provider waits for an approval, or an action of one of its own tools; give on_action, or add what it waits for to "
    "the conversation of this error and run it again"
)


class RunState:
    """A conversation that a run continues within its limits."""

    def __init__(
        self,
        toolkit: View,
        prompt: str | Sequence[ChatMessage] | Conversation,
        options: QueryOptions,
        limits: RunLimits,
        window: int | None,
        signal: CancelSignal | None,
    ) -> None:
        if options.messages:
            raise SetupError("options.messages must be empty: a run sends its conversation; give them as the prompt")
        messages = [TextMessage("user", prompt)] if isinstance(prompt, str) else prompt
        start = messages if isinstance(messages, Conversation) else Conversation(messages)
        self._history = GrowingHistory()
        self._fitted = None if window is None else FittedHistory(window)
        self._encoded: dict[object, EncodedHistory] = {}
        self.conversation = start
        if not start.ended_by:
            self._set_messages(start.messages)
        self.signal: Final = CallSignal(signal or options_of(toolkit).signal, limits.seconds)
        self._toolkit = toolkit
        self._options = replace(options, tools=options.tools or toolkit.get_allowed_tools())
        self._limits = limits
        self._turns = self._tokens = 0
        self._action = _find_action(self.conversation.messages)

    @property
    def is_over(self) -> bool:
        return self.conversation.ended_by is not None

    @property
    def can_be_ended(self) -> bool:
        """Whether somebody, or the clock, can end the run while it waits."""
        return self.signal.caller is not None or self.signal.remaining is not None

    # -- what comes next -----------------------------------------------------------------------------------------------

    def waiting_calls(self) -> Sequence[ToolCall]:
        """The calls to run next; none if it is the model's turn."""
        messages = self.conversation.messages
        return messages[-1].tool_calls if messages and has_tool_calls(messages[-1]) else ()

    def waiting_action(self) -> QueryResult | None:
        """The answer whose provider waits for an action, once all its calls have results."""
        return None if self.waiting_calls() else self._action

    def call_options(self) -> dict[str, Any]:
        """The options of the next calls: they end with the run, or at their own deadline if that is earlier."""
        remaining, deadline = self.signal.remaining, options_of(self._toolkit).deadline
        if remaining is not None:
            left = max(remaining, 1e-6)  # a deadline is above zero, even if time has just run out
            deadline = left if deadline is None else min(left, deadline)
        return {"deadline": deadline, "signal": self.signal.caller}

    @property
    def keeps_outputs(self) -> bool:
        """Whether ``next_query`` may have to keep outputs, to replace them with their refs."""
        return self._fitted is not None

    def next_query(self) -> tuple[Sequence[ChatMessage], QueryOptions]:
        """The messages and the options of the next request."""
        limits = self._limits
        if limits.turns is not None and self._turns >= limits.turns:
            raise self._limit_reached("turns", f"{limits.turns} turns")
        if limits.tokens is not None and self._tokens >= limits.tokens:
            raise self._limit_reached("tokens", f"{limits.tokens} tokens")
        options = self._options
        if self._turns and isinstance(options.tool_choice, NamedTool):
            # It would be called again in every turn.
            options = replace(options, tool_choice="auto")
        self._turns += 1
        # Hooks get the conversation and may have edited its messages.
        self._set_messages(self.conversation.messages)
        messages = self.conversation.messages
        return RunMessages(self._fitted.fit(messages) if self._fitted else messages, self._encoded), options

    def check(self) -> None:
        """Raises if the run was cancelled, or its time is over."""
        error = self.signal.error()
        if error is not None:
            raise self.ended_by(error)

    def ended_by(self, error: ToolkitError) -> RunError:
        """The error of a run that its signal has ended."""
        if isinstance(error, ToolCancelled):
            return RunCancelled(f"the run was cancelled: {error.message}", self.conversation)
        return self._limit_reached("seconds", f"{self._limits.seconds:g} seconds")

    def _limit_reached(self, limit: Any, amount: str) -> RunLimitReached:
        message = f"the run has used its limit of {amount}; run the conversation of this error again to go on"
        return RunLimitReached(limit, message, self.conversation)

    # -- what has happened ---------------------------------------------------------------------------------------------

    def add_answer(self, result: QueryResult) -> None:
        """Adds an answer of the model; raises for one that cannot be used, and leaves it out so that you can run again."""
        self._tokens += (result.usage.input_tokens or 0) + (result.usage.output_tokens or 0)
        before = self.conversation
        self.conversation = replace(before, turns=before.turns + 1, usage=_sum(before.usage, result.usage))
        if result.finish_reason in _ERRORS:
            kind, message = _ERRORS[result.finish_reason]
            cause = result.metadata.get("error")
            error = kind(f"{message}{_detail(result)}", self.conversation, result)
            raise error from (cause if isinstance(cause, BaseException) else None)
        self._set_messages([*self.conversation.messages, result.message()])
        self._action = result if result.finish_reason == "needs_action" or _has_action(result.metadata) else None
        if not result.tool_calls and result.finish_reason in ("stop", "tool_calls"):
            self.conversation = replace(self.conversation, ended_by="stop")

    def add_results(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> None:
        """Adds the results of calls. A call of ``done`` that succeeded ends the conversation."""
        self._set_messages([*self.conversation.messages, *map(ToolResultMessage, results)])
        pairs = zip(calls, results, strict=True)
        is_done = any(call.name == DONE and result.kind != "error" for call, result in pairs)
        self.conversation = replace(self.conversation, ended_by="done" if is_done else None)

    def add_action(self, result: QueryResult, messages: Sequence[ChatMessage]) -> None:
        """Adds what the provider waits for; raises if there is nothing."""
        if not messages:
            raise ActionNeeded(_ACTION_NEEDED, self.conversation, result)
        self._set_messages([*self.conversation.messages, *messages])
        self._action = None

    def _set_messages(self, messages: Sequence[ChatMessage]) -> None:
        # Repaired, because servers may send the ids of earlier calls again.
        self.conversation = replace(self.conversation, messages=self._history.repair(messages).messages)


def _find_action(messages: Sequence[ChatMessage]) -> QueryResult | None:
    """The last answer, if nothing but results of its calls came after it and its provider waits for more than those."""
    answer = next((one for one in reversed(messages) if not is_tool_result(one)), None)
    if answer is None or not _has_action(answer.metadata):
        return None
    calls = answer.tool_calls if has_tool_calls(answer) else ()
    return QueryResult(
        answer.content if isinstance(answer.content, str) else "", calls, "needs_action", metadata=answer.metadata
    )


def _has_action(metadata: Mapping[str, object]) -> bool:
    return any(isinstance(kept, Mapping) and kept.get("needs_action") for kept in metadata.values())


def _sum(one: Usage, other: Usage) -> Usage:
    pairs = [(getattr(one, name), getattr(other, name)) for name in Usage.__slots__]
    return Usage(*(None if a is None and b is None else (a or 0) + (b or 0) for a, b in pairs))


def _detail(result: QueryResult) -> str:
    """What is known of an answer that was not accepted, for the message of an error."""
    error = result.metadata.get("error")
    if error is None:
        kept = [found for found in result.metadata.values() if isinstance(found, dict)]
        error = next((one["error"] for one in kept if one.get("error")), None)
    if isinstance(error, BaseException):
        return f": {type(error).__name__}: {error}"
    text = str(error) if error is not None else result.content if result.finish_reason == "refused" else ""
    return f": {text[:500]}" if text else ""
