"""Finds and repairs what providers refuse in a conversation: calls without a result, results without a call, results in
the wrong place.

Every provider wants the results of a turn right after it, one for each call. Histories lose that when a run is
interrupted, when old messages are dropped to save tokens, or when two histories are joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from toolkit.wire.call import ToolCall
from toolkit.wire.message import (
    AssistantToolCallMessage,
    ChatMessage,
    ToolResultMessage,
    has_tool_calls,
    is_tool_result,
)
from toolkit.wire.result import ToolResult

ProblemKind: TypeAlias = Literal[
    "call without result", "result without call", "duplicate result", "result out of place", "result with another name",
    "duplicate call id", "call without id",
]  # fmt: skip

LOST_RESULT: Final = "TOOL_CANCELLED: the result of this call was lost; call the tool again if it is still needed"


@dataclass(frozen=True, slots=True)
class HistoryProblem:
    """What is wrong, and where: the index of the message in the list, and the id of the call."""

    kind: ProblemKind
    index: int
    tool_call_id: str

    def __str__(self) -> str:
        return f"message {self.index}: {self.kind} ({self.tool_call_id!r})"


@dataclass(frozen=True, slots=True)
class RepairedHistory:
    """A conversation that every provider accepts, and what was changed to get it."""

    messages: list[ChatMessage]
    changes: list[HistoryProblem]


def validate_history(messages: Sequence[ChatMessage]) -> list[HistoryProblem]:
    """What providers would refuse. Calls of the last turn may still have no results.

    >>> from toolkit import ToolResult, ToolResultMessage
    >>> [str(problem) for problem in validate_history([ToolResultMessage(ToolResult("1", "add", "text", "3"))])]
    ["message 0: result without call ('1')"]
    """
    return repair_history(messages).changes


def repair_history(messages: Sequence[ChatMessage]) -> RepairedHistory:
    """Moves results to their calls, adds an error for each lost one, and drops results without a call.

    Texts of users and models are never dropped or moved.
    """
    turns = _Turns(messages)
    repaired: list[ChatMessage] = []
    for index, message in enumerate(messages):
        if is_tool_result(message):
            continue
        if not has_tool_calls(message):
            repaired.append(message)
            continue
        turn = turns.by_index[index]
        repaired.append(turn.message)
        repaired += turns.results(turn)
    return RepairedHistory(repaired, sorted(turns.problems, key=lambda problem: problem.index))


@dataclass(slots=True)
class _Turn:
    index: int
    message: AssistantToolCallMessage
    is_last: bool
    """Whether only results follow it."""
    found: dict[str, ToolResultMessage]


class _Turns:
    """The turns with calls in a conversation, each with the results that belong to it."""

    def __init__(self, messages: Sequence[ChatMessage]) -> None:
        self.problems: list[HistoryProblem] = []
        self.by_index: dict[int, _Turn] = {}
        not_results = [index for index, message in enumerate(messages) if not is_tool_result(message)]
        for index, message in enumerate(messages):
            if has_tool_calls(message):
                made = replace(message, tool_calls=list(self._make_ids_distinct(message.tool_calls, index)))
                self.by_index[index] = _Turn(index, made, index == not_results[-1], {})
        current = -1
        for index, message in enumerate(messages):
            if is_tool_result(message):
                self._assign_result(index, message, current)
            else:
                current = index

    def results(self, turn: _Turn) -> Iterator[ToolResultMessage]:
        """One result for each call, in the order of the calls."""
        for call in turn.message.tool_calls:
            result = turn.found.get(call.id)
            if result is not None:
                yield result
            elif not turn.is_last or turn.found:
                self._add_problem("call without result", turn.index, call.id)
                yield ToolResultMessage(ToolResult(call.id, call.name, "error", LOST_RESULT))

    def _assign_result(self, index: int, message: ToolResultMessage, current: int) -> None:
        """Assigns a result to the nearest turn before it that has its call and no result for it yet."""
        id = message.result.tool_call_id
        owners = [turn for turn in self.by_index.values() if any(call.id == id for call in turn.message.tool_calls)]
        waiting = [turn for turn in owners if turn.index < index and id not in turn.found]
        if not waiting:
            later = [turn for turn in owners if turn.index > index and id not in turn.found]
            if not later:
                self._add_problem("duplicate result" if owners else "result without call", index, id)
                return
            waiting = later[:1]
        turn = waiting[-1]
        if turn.index != current:
            self._add_problem("result out of place", index, id)
        name = next(call.name for call in turn.message.tool_calls if call.id == id)
        if message.result.name != name:
            if message.result.name:
                self._add_problem("result with another name", index, id)
            message = replace(message, result=replace(message.result, name=name))
        turn.found[id] = message

    def _make_ids_distinct(self, calls: Sequence[ToolCall], index: int) -> Iterator[ToolCall]:
        taken: set[str] = set()
        for place, call in enumerate(calls):
            id = call.id
            if not id or id in taken:
                self._add_problem("duplicate call id" if id else "call without id", index, id)
                id = f"{id or 'call'}_{place}"
            taken.add(id)
            same = id == call.id
            yield call if same else ToolCall(id, call.name, call.arguments, call.metadata, call.raw_arguments)

    def _add_problem(self, kind: ProblemKind, index: int, id: str) -> None:
        self.problems.append(HistoryProblem(kind, index, id))
