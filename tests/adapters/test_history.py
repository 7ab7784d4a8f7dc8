from __future__ import annotations

import copy
import pickle
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit import ContentBlock, TextMessage, ToolCall, ToolResult, ToolResultMessage, repair_history, validate_history
from toolkit.adapters import anthropic, gemini, ollama, openai_chat, openai_responses
from toolkit.adapters.history import (
    LOST_RESULT,
    NO_FIRST_MESSAGE,
    EncodedHistory,
    GrowingHistory,
    RunMessages,
    encode_history,
)
from toolkit.adapters.values import JsonDict
from toolkit.wire import AssistantToolCallMessage, ChatMessage


def said(text: str = "hi") -> TextMessage:
    return TextMessage("user", text)


def call(id: str, name: str | None = None) -> ToolCall:
    return ToolCall(id, f"tool_{id}" if name is None else name, {})


def called(*ids: str) -> AssistantToolCallMessage:
    return AssistantToolCallMessage("", [call(id) for id in ids])


def result(id: str, value: str = "ok", name: str | None = None) -> ToolResultMessage:
    return ToolResultMessage(ToolResult(id, f"tool_{id}" if name is None else name, "text", value))


def lost(id: str) -> ToolResultMessage:
    return ToolResultMessage(ToolResult(id, f"tool_{id}", "error", LOST_RESULT))


START = TextMessage("user", NO_FIRST_MESSAGE)
BLANK = ContentBlock("text", text=" ")
IMAGE = ContentBlock("image", "image/png", data="AA==")
NATIVE = {"anthropic": {"layout": [{"native": {"type": "server_tool_use", "id": "1", "name": "web_search"}}]}}

ROWS: dict[str, tuple[list[ChatMessage], list[ChatMessage], list[str]]] = {
    "nothing": ([], [], []),
    "a whole conversation": ([said(), called("a", "b"), result("a"), result("b"), said()], [said(), called("a", "b"), result("a"), result("b"), said()], []),
    "calls that wait": ([said(), called("a")], [said(), called("a")], []),
    "a call without result": ([said(), called("a"), said()], [said(), called("a"), lost("a"), said()], ["message 1: call without result ('a')"]),
    "one of two results at the end": ([said(), called("a", "b"), result("a")], [said(), called("a", "b"), result("a"), lost("b")], ["message 1: call without result ('b')"]),
    "a result without call": ([said(), result("a")], [said()], ["message 1: result without call ('a')"]),
    "a result twice": ([said(), called("a"), result("a", "1"), result("a", "2")], [said(), called("a"), result("a", "1")], ["message 3: duplicate result ('a')"]),
    "a result too late": ([said(), called("a"), said(), result("a")], [said(), called("a"), result("a"), said()], ["message 3: result out of place ('a')"]),
    "a result too early": ([said(), result("a"), called("a"), said()], [said(), called("a"), result("a"), said()], ["message 1: result out of place ('a')"]),
    "a result too early, and one in its place": ([said(), result("a", "1"), called("a"), result("a", "2")], [said(), called("a"), result("a", "2")], ["message 1: duplicate result ('a')"]),
    "results in another order": ([said(), called("a", "b"), result("b"), result("a")], [said(), called("a", "b"), result("a"), result("b")], []),
    "another name": ([said(), called("a"), result("a", name="x")], [said(), called("a"), result("a")], ["message 2: result with another name ('a')"]),
    "no name": ([said(), called("a"), result("a", name="")], [said(), called("a"), result("a")], []),
    "an empty list of calls": ([said(), AssistantToolCallMessage("so", []), said()], [said(), TextMessage("assistant", "so"), said()], ["message 1: no tool calls"]),
    "an empty list of calls and no text": ([said(), AssistantToolCallMessage("", []), said()], [said(), said()], ["message 1: no tool calls", "message 1: blank text"]),
    "blank texts": ([TextMessage("system", " "), said(), TextMessage("assistant", ""), said("\n")], [said()], ["message 0: blank text", "message 2: blank text", "message 3: blank text"]),
    "a blank text before calls": ([said(), AssistantToolCallMessage("\n", [call("a")]), result("a")], [said(), called("a"), result("a")], ["message 1: blank text"]),
    "a blank text between a call and its result": ([said(), called("a"), said(""), result("a")], [said(), called("a"), result("a")], ["message 2: blank text"]),
    "blank blocks": ([TextMessage("user", [BLANK, IMAGE]), TextMessage("user", [BLANK]), TextMessage("user", [])], [TextMessage("user", [IMAGE])], ["message 0: blank text", "message 1: blank text", "message 2: blank text"]),
    "no text, but content of the provider": ([said(), TextMessage("assistant", "", NATIVE)], [said(), TextMessage("assistant", "", NATIVE)], []),
    "the assistant first": ([TextMessage("system", "s"), TextMessage("assistant", "hello"), said()], [TextMessage("system", "s"), START, TextMessage("assistant", "hello"), said()], ["message 1: assistant first"]),
    "calls first": ([called("a"), result("a")], [START, called("a"), result("a")], ["message 0: assistant first"]),
    "the assistant first, after a blank text": ([said(""), called("a")], [START, called("a")], ["message 0: blank text", "message 1: assistant first"]),
    "a line of a user's system prompt only": ([TextMessage("system", "s")], [TextMessage("system", "s")], []),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_repairs_and_says_what_it_changed(row: str) -> None:
    given, expected, problems = ROWS[row]
    repaired = repair_history(given)

    assert repaired.messages == expected
    assert [str(problem) for problem in repaired.changes] == problems
    assert [str(problem) for problem in validate_history(given)] == problems


def values_by_call(messages: Sequence[ChatMessage]) -> list[tuple[str, object]]:
    """Each call's id and the value of its result, in the order of the calls; checks that every result follows its turn."""
    found: list[tuple[str, object]] = []
    waiting: list[ToolCall] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            made = waiting.pop(0)
            assert (message.result.tool_call_id, message.result.name) == (made.id, made.name)
            found.append((made.id, message.result.value))
            continue
        assert not waiting, "a call has no result"
        waiting = list(message.tool_calls) if isinstance(message, AssistantToolCallMessage) else []
    return found


IDS_THAT_REPEAT: dict[str, tuple[list[ChatMessage], list[tuple[str, object]], list[str]]] = {
    "twice in a turn": (
        [said(), called("a", "a"), result("a", "1"), result("a", "2")],
        [("a", "1"), ("a_1", "2")],
        ["message 1: duplicate call id ('a')"],
    ),
    "twice in a turn, one result": (
        [said(), called("a", "a"), result("a", "1")],
        [("a", "1"), ("a_1", LOST_RESULT)],
        ["message 1: duplicate call id ('a')", "message 1: call without result ('a_1')"],
    ),
    "no ids": (
        [said(), called("", ""), result("", "1"), result("", "2")],
        [("call_1", "1"), ("call_2", "2")],
        ["message 1: call without id", "message 1: call without id"],
    ),
    "no ids, results in another order, with names": (
        [said(), AssistantToolCallMessage("", [call("", "x"), call("", "y")]), result("", "of y", "y"), result("", "of x", "x")],
        [("call_1", "of x"), ("call_2", "of y")],
        ["message 1: call without id", "message 1: call without id"],
    ),
    "a made id that is there already": (
        [said(), called("a", "a_1", "a"), result("a", "1"), result("a_1", "2"), result("a", "3")],
        [("a", "1"), ("a_1", "2"), ("a_2", "3")],
        ["message 1: duplicate call id ('a')"],
    ),
    "a made id that comes later": (
        [said(), called("a", "a"), result("a", "1"), result("a", "2"), called("a_1"), result("a_1", "3")],
        [("a", "1"), ("a_1", "2"), ("a_1_1", "3")],
        ["message 1: duplicate call id ('a')", "message 4: duplicate call id ('a_1')"],
    ),
    "again in a later turn": (
        [said(), called("a"), result("a", "1"), called("a"), result("a", "2"), called("a"), result("a", "3")],
        [("a", "1"), ("a_1", "2"), ("a_2", "3")],
        ["message 3: duplicate call id ('a')", "message 5: duplicate call id ('a')"],
    ),
    "again in a later turn, the first result lost": (
        [said(), called("a"), called("a"), result("a", "2")],
        [("a", LOST_RESULT), ("a_1", "2")],
        ["message 1: call without result ('a')", "message 2: duplicate call id ('a')"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", IDS_THAT_REPEAT)
def test_calls_with_the_same_id_get_distinct_ones_and_keep_their_results(row: str) -> None:
    given, expected, problems = IDS_THAT_REPEAT[row]
    repaired = repair_history(given)

    assert values_by_call(repaired.messages) == expected
    assert [str(problem) for problem in repaired.changes] == problems


def test_what_comes_later_changes_no_id_before_it() -> None:
    messages: list[ChatMessage] = [said(), called("a", "a"), result("a", "1"), result("a", "2"), called("a_1")]
    whole = call_ids(repair_history(messages).messages)
    assert whole == ["a", "a_1", "a_1_1"]
    for length in range(len(messages)):
        ids = call_ids(repair_history(messages[:length]).messages)
        assert ids == whole[: len(ids)]


def call_ids(messages: Sequence[ChatMessage]) -> list[str]:
    return [one.id for turn in messages if isinstance(turn, AssistantToolCallMessage) for one in turn.tool_calls]


def test_a_call_under_another_id_keeps_its_place_between_what_only_the_provider_knows() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    after = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    asked = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    answered = {"type": "function_call_output", "call_id": "a", "output": "1"}
    question = {"role": "user", "content": "hi"}
    messages = openai_responses.decode_messages([question, asked, answered, thought, asked, after, answered])

    sent = openai_responses.encode_messages(repair_history(messages).messages)
    renamed = {"call_id": "a_1"}
    assert sent == [question, asked, answered, thought, {**asked, **renamed}, after, {**answered, **renamed}]


def test_the_result_of_a_call_that_only_the_provider_knows_stays() -> None:
    question = {"role": "user", "content": "hi"}
    search = {"type": "tool_search_call", "call_id": "s", "execution": "client", "arguments": {}, "status": "completed"}
    found = {"type": "function_call_output", "call_id": "s", "output": "one tool"}
    for items in ([question, search, found], [question, search, found, question]):
        messages = openai_responses.decode_messages(items)
        assert validate_history(messages) == []
        assert openai_responses.encode_messages(repair_history(messages).messages) == items


IDS = st.sampled_from(["a", "b", "a_1", ""])
NAMES = st.sampled_from(["f", "g", ""])
TEXTS = st.sampled_from(["", " ", "x", "y\n"])
BLOCKS = st.lists(st.sampled_from([BLANK, IMAGE, ContentBlock("text", text="z")]), max_size=2)
MESSAGES: st.SearchStrategy[ChatMessage] = st.one_of(
    st.builds(TextMessage, st.sampled_from(["system", "user", "assistant"]), TEXTS | BLOCKS),
    st.builds(AssistantToolCallMessage, TEXTS, st.lists(st.builds(call, IDS, st.sampled_from(["f", "g"])), max_size=3)),
    st.builds(lambda id, name: result(id, "", name), IDS, NAMES),
)


@st.composite
def histories(draw: st.DrawFn) -> list[ChatMessage]:
    """Messages in any order; the value of each result occurs once."""
    drawn = draw(st.lists(MESSAGES, max_size=10))
    return [
        result(one.result.tool_call_id, f"result {at}", one.result.name) if isinstance(one, ToolResultMessage) else one
        for at, one in enumerate(drawn)
    ]


def texts(messages: Sequence[ChatMessage]) -> list[object]:
    """All that users and models said, without blank texts."""
    contents = [one.content for one in messages if not isinstance(one, ToolResultMessage)]
    parts = [part for content in contents for part in ([content] if isinstance(content, str) else content)]
    return [part for part in parts if (part if isinstance(part, str) else part.text or "media").strip()]


@given(histories())
def test_a_repaired_history_is_valid_and_loses_nothing(messages: list[ChatMessage]) -> None:
    repaired = repair_history(messages)

    assert validate_history(repaired.messages) == []
    assert repair_history(repaired.messages).messages == repaired.messages
    assert [text for text in texts(repaired.messages) if text != NO_FIRST_MESSAGE] == texts(messages)
    calls = Counter(call_ids(messages))
    results = {one.result.value: one.result.tool_call_id for one in messages if isinstance(one, ToolResultMessage)}
    kept = [one.result.value for one in repaired.messages if isinstance(one, ToolResultMessage)]
    assert Counter(results[value] for value in kept if value != LOST_RESULT) == calls & Counter(results.values())
    if not repaired.changes:
        assert len(repaired.messages) == len(messages)


@given(histories())
def test_a_repaired_history_is_what_providers_demand(messages: list[ChatMessage]) -> None:
    repaired = repair_history([*messages, said("go on")]).messages
    values_by_call(repaired)

    chat = openai_chat.encode_messages(repaired)
    assert all(message.get("tool_calls") != [] for message in chat)
    turns = anthropic.encode_messages([one for one in repaired if getattr(one, "role", "") != "system"])
    assert turns[0]["role"] == "user"
    blocks = [block for turn in turns for block in (turn["content"] if isinstance(turn["content"], list) else [{"type": "text", "text": turn["content"]}])]  # fmt: skip
    assert all(block["text"].strip() for block in blocks if block["type"] == "text")
    assert all(turn["content"] for turn in turns)
    used = [block["id"] for block in blocks if block["type"] == "tool_use"]
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert used == answered and len(set(used)) == len(used)


# The loop repairs and encodes only what is new; these are internal because the public functions take whole conversations.


@given(st.lists(histories(), max_size=4))
def test_a_history_that_grows_is_repaired_like_a_whole_one(pieces: list[list[ChatMessage]]) -> None:
    growing = GrowingHistory()
    messages: list[ChatMessage] = []
    for piece in pieces:
        given_now = [*messages, *piece]
        repaired, whole = growing.repair(given_now), repair_history(given_now)
        assert repaired.messages == whole.messages
        assert [one.index for one in repaired.changes] == [one.index for one in whole.changes]
        messages = repaired.messages


def test_an_edited_history_is_repaired_again() -> None:
    growing = GrowingHistory()
    messages = growing.repair([said(), called("a"), result("a"), said()]).messages
    assert growing.repair([said(), said(), *messages[2:]]).messages == [said(), said(), said()]
    assert growing.repair(messages[:2]).messages == [said(), called("a")]
    assert growing.repair([*messages[:2], result("a", "2")]).messages == [said(), called("a"), result("a", "2")]


@pytest.mark.parametrize(
    "adapter", [anthropic, gemini, ollama, openai_chat, openai_responses], ids=lambda one: one.__name__
)
@given(pieces=st.lists(histories(), max_size=4))
def test_a_history_that_grows_is_encoded_like_a_whole_one(adapter: Any, pieces: list[list[ChatMessage]]) -> None:
    growing, encoded = GrowingHistory(), dict[object, EncodedHistory]()
    messages: list[ChatMessage] = []
    for piece in pieces:
        messages = growing.repair([*messages, *piece]).messages
        sent = encode_history(RunMessages(messages, encoded), messages, adapter.encode_messages)
        assert sent == encode_history(messages, messages, adapter.encode_messages)


def test_an_edited_history_is_encoded_again() -> None:
    encoded: dict[object, EncodedHistory] = {}
    turn: list[ChatMessage] = [said(), called("a"), result("a")]
    for messages in ([*turn, TextMessage("assistant", "so")], [said("bye"), *turn[1:]], [said("bye")]):
        sent = encode_history(RunMessages(messages, encoded), messages, openai_chat.encode_messages)
        assert sent == openai_chat.encode_messages(messages)


def test_two_threads_may_encode_one_request() -> None:
    """As with a driver that asks two models at once."""
    encoded: dict[object, EncodedHistory] = {}
    messages: list[ChatMessage] = [said(), called("1"), result("1"), called("2"), result("2")]
    together = threading.Barrier(1)

    def encode(some: Sequence[ChatMessage]) -> list[JsonDict]:
        if some == messages[1:3]:
            together.wait(10)
        return openai_chat.encode_messages(some)

    def send(count: int) -> list[JsonDict]:
        return encode_history(RunMessages(messages[:count], encoded), messages[:count], encode)

    send(3)
    together = threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        assert [*pool.map(send, [5, 5])] == [openai_chat.encode_messages(messages)] * 2


def test_copies_of_a_requests_messages_are_plain_lists() -> None:
    messages = RunMessages([said()], {})
    for made in (copy.copy(messages), copy.deepcopy(messages), pickle.loads(pickle.dumps(messages))):
        assert type(made) is list
        assert made == [said()]
