from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit import TextMessage, ToolCall, ToolResult, ToolResultMessage, repair_history, validate_history
from toolkit.adapters.history import LOST_RESULT
from toolkit.wire import AssistantToolCallMessage, ChatMessage


def said(text: str = "hi") -> TextMessage:
    return TextMessage("user", text)


def called(*ids: str) -> AssistantToolCallMessage:
    return AssistantToolCallMessage("", [ToolCall(id, f"tool_{id}", {}) for id in ids])


def result(id: str, value: str = "ok", name: str | None = None) -> ToolResultMessage:
    return ToolResultMessage(ToolResult(id, f"tool_{id}" if name is None else name, "text", value))


def lost(id: str) -> ToolResultMessage:
    return ToolResultMessage(ToolResult(id, f"tool_{id}", "error", LOST_RESULT))


ROWS: dict[str, tuple[list[ChatMessage], list[ChatMessage], list[str]]] = {
    "nothing": ([], [], []),
    "a whole conversation": ([said(), called("a", "b"), result("a"), result("b"), said()], [said(), called("a", "b"), result("a"), result("b"), said()], []),
    "calls that wait": ([said(), called("a")], [said(), called("a")], []),
    "a call without result": ([called("a"), said()], [called("a"), lost("a"), said()], ["message 0: call without result ('a')"]),
    "one of two results at the end": ([called("a", "b"), result("a")], [called("a", "b"), result("a"), lost("b")], ["message 0: call without result ('b')"]),
    "a result without call": ([said(), result("a")], [said()], ["message 1: result without call ('a')"]),
    "a result twice": ([called("a"), result("a", "1"), result("a", "2")], [called("a"), result("a", "1")], ["message 2: duplicate result ('a')"]),
    "a result too late": ([called("a"), said(), result("a")], [called("a"), result("a"), said()], ["message 2: result out of place ('a')"]),
    "a result too early": ([result("a"), called("a"), said()], [called("a"), result("a"), said()], ["message 0: result out of place ('a')"]),
    "results in another order": ([called("a", "b"), result("b"), result("a")], [called("a", "b"), result("a"), result("b")], []),
    "another name": ([called("a"), result("a", name="x")], [called("a"), result("a")], ["message 1: result with another name ('a')"]),
    "no name": ([called("a"), result("a", name="")], [called("a"), result("a")], []),
    "the same id in two turns": ([called("a"), result("a", "1"), called("a"), result("a", "2")], [called("a"), result("a", "1"), called("a"), result("a", "2")], []),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_repairs_and_says_what_it_changed(row: str) -> None:
    given, expected, problems = ROWS[row]
    repaired = repair_history(given)

    assert repaired.messages == expected
    assert [str(problem) for problem in repaired.changes] == problems
    assert [str(problem) for problem in validate_history(given)] == problems


def test_an_id_twice_in_one_turn() -> None:
    repaired = repair_history([called("a", "a"), result("a", "1")])
    [turn, first, second] = repaired.messages
    assert isinstance(turn, AssistantToolCallMessage)
    assert [call.id for call in turn.tool_calls] == ["a", "a_1"]
    assert isinstance(first, ToolResultMessage)
    assert isinstance(second, ToolResultMessage)
    assert (first.result.value, second.result.kind) == ("1", "error")


IDS = st.sampled_from("abc")
MESSAGES: st.SearchStrategy[ChatMessage] = st.one_of(
    st.builds(said, st.text("xyz", max_size=2)),
    st.lists(IDS, min_size=1, max_size=3).map(lambda ids: called(*ids)),
    st.builds(result, IDS, st.text("xyz", max_size=2)),
)


@given(st.lists(MESSAGES, max_size=10))
def test_a_repaired_history_is_valid_and_loses_no_text(messages: list[ChatMessage]) -> None:
    repaired = repair_history(messages)

    assert validate_history(repaired.messages) == []
    assert repair_history(repaired.messages).messages == repaired.messages
    assert [one for one in repaired.messages if isinstance(one, TextMessage)] == [
        one for one in messages if isinstance(one, TextMessage)
    ]
    if not repaired.changes:
        assert len(repaired.messages) == len(messages)
