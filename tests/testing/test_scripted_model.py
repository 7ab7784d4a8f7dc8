"""Scripted models: every kind of turn, what they check, and what they say when a script does not fit."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from toolkit import (
    AnswerCutOff,
    AnswerFailed,
    AnswerRefused,
    QueryOptions,
    QueryResult,
    TextMessage,
    ToolCall,
    Toolkit,
    Usage,
    run,
    run_async,
    stream_run,
)
from toolkit.testing import AsyncScriptedModel, ModelRequest, ScriptedModel, call, cut_off, failure, refusal, turn
from toolkit.wire import AnswerEnded, ArgumentsDelta, CallCompleted, CallStarted, TextDelta, UsageUpdate

pytestmark = pytest.mark.toolkit(files={"notes.txt": "hello\n"})


def test_texts_calls_and_functions_are_turns(toolkit: Toolkit) -> None:
    def answer(request: ModelRequest) -> str:
        return f"It says {request.results[0]}"

    with ScriptedModel(call("read_file", path="notes.txt"), answer) as model:
        conversation = run(model, toolkit, "What do my notes say?")
    assert "hello" in conversation.answer
    assert [len(request.messages) for request in model.requests] == [1, 3]
    assert "read_file" in {tool.name for tool in model.requests[0].options.tools if not hasattr(tool, "raw")}


def test_calls_get_ids_in_their_order() -> None:
    model = ScriptedModel([call("list"), call("tree")], turn("more", call("list"), ToolCall("mine", "list", {})))
    first, second = model.query("go"), model.query("go on")
    assert [one.id for one in (*first.tool_calls, *second.tool_calls)] == ["call_1", "call_2", "call_3", "mine"]
    assert (second.content, second.finish_reason) == ("more", "tool_calls")


ENDS: dict[str, tuple[Any, type[Exception]]] = {
    "refusal": (refusal("No."), AnswerRefused),
    "cut off": (cut_off("The answer is"), AnswerCutOff),
    "failure": (failure("overloaded"), AnswerFailed),
    "an exception": (ConnectionError("reset"), AnswerFailed),
    "a result": (QueryResult("", finish_reason="refused"), AnswerRefused),
}


@pytest.mark.parametrize("name", ENDS)
def test_answers_that_cannot_be_used(toolkit: Toolkit, name: str) -> None:
    made, expected = ENDS[name]
    with ScriptedModel(made) as model, pytest.raises(expected):
        run(model, toolkit, "hi")


def test_streams_come_in_pieces(toolkit: Toolkit) -> None:
    made = turn("Let me  look.", call("read_file", path="notes.txt"), usage=Usage(3, 4))
    events = list(ScriptedModel(made).stream_query("hi").events)
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert texts == ["Let ", "me ", " ", "look."]
    pieces = [event.text for event in events if isinstance(event, ArgumentsDelta)]
    assert len(pieces) == 2 and "".join(pieces) == '{"path": "notes.txt"}'
    assert [type(event) for event in events[4:]] == [CallStarted, ArgumentsDelta, ArgumentsDelta, CallCompleted, UsageUpdate, AnswerEnded]  # fmt: skip
    with ScriptedModel(call("done", message="bye")) as model:
        assert list(stream_run(model, toolkit, "hi"))


@pytest.mark.parametrize("made", [cut_off(call("list"), call("tree")), failure("reset", call("list"), call("tree"))])
def test_a_stream_that_ends_early_leaves_its_last_call_incomplete(made: Any) -> None:
    events = list(ScriptedModel(made).stream_query("hi").events)
    assert [event.call.name for event in events if isinstance(event, CallCompleted)] == ["list"]


def test_a_stream_that_is_not_read_sends_nothing() -> None:
    model = ScriptedModel("hello")
    stream = model.stream_query("hi")
    stream.events.close()
    assert stream.result.finish_reason == "error"
    assert (model.requests, model.turns_left) == ([], 1)


def test_the_async_model_plays_the_same_turns(async_toolkit: Any) -> None:
    async def answer(request: ModelRequest) -> QueryResult:
        return QueryResult(f"{len(request.messages)} messages")

    with AsyncScriptedModel(call("read_file", path="notes.txt"), answer) as model:
        assert asyncio.run(run_async(model, async_toolkit, "hi")).answer == "3 messages"


def test_prompt_and_messages_of_the_options_are_one_conversation() -> None:
    model = ScriptedModel("hello")
    model.query("first", QueryOptions(messages=[TextMessage("user", "second")]))
    assert [message.content for message in model.requests[0].messages if isinstance(message, TextMessage)] == ["first", "second"]  # fmt: skip


def test_a_turn_sees_what_it_must(toolkit: Toolkit) -> None:
    with ScriptedModel(
        turn(call("read_file", path="notes.txt"), sees="my notes"), turn("hello", sees=["hello", "read_file"])
    ) as model:
        run(model, toolkit, "What do my notes say?")


def test_a_turn_that_does_not_see_what_it_must(toolkit: Toolkit) -> None:
    model = ScriptedModel(call("read_file", path="notes.txt"), turn("bye", sees="goodbye"))
    with pytest.raises(AssertionError) as told:
        run(model, toolkit, "What do my notes say?")
    assert str(told.value).startswith(
        "turn 2 of the script must be sent 'goodbye', which is not in the new messages:\ncall_1: text of read_file:\n"
    )
    assert "What do my notes say?" not in str(told.value), "the prompt is not new"
    with pytest.raises(AssertionError, match="turn 2"):
        model.check_finished()


def test_a_script_that_ends_too_early(toolkit: Toolkit) -> None:
    model = ScriptedModel(call("read_file", path="notes.txt"))
    with pytest.raises(
        AssertionError, match=r"^the script ends after turn 1, but the model was asked for turn 2; add a turn"
    ):
        run(model, toolkit, "What do my notes say?")


LEFT: dict[str, tuple[Any, str]] = {
    "a call": (call("list"), "a call of 'list'"),
    "a text": ("bye", "stop: 'bye'"),
    "a function": (test_a_turn_sees_what_it_must, "the function test_a_turn_sees_what_it_must"),
}


@pytest.mark.parametrize("name", LEFT)
def test_turns_that_are_left_over(name: str) -> None:
    made, shown = LEFT[name]
    with pytest.raises(AssertionError) as told, ScriptedModel("hello", made, "and more") as model:
        model.query("hi")
    assert str(told.value) == f"2 of 3 turns of the script were not played; the next is turn 2: {shown}"


def test_an_error_of_the_block_is_not_hidden_by_turns_that_are_left() -> None:
    with pytest.raises(ZeroDivisionError), ScriptedModel("hello"):
        raise ZeroDivisionError


def test_a_workspace_of_its_own(toolkit: Toolkit, toolkit_workspace: Path, tmp_path: Path) -> None:
    toolkit.tools.write_file(path="new.txt", content="x")
    assert (toolkit_workspace / "new.txt").read_text() == "x"
    assert toolkit_workspace.parent == tmp_path
