"""The loop with answers that are streamed: every event in its order, and how such a run is ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest

from tests.adapters.loopback import Answer, serve
from tests.loop.conftest import Loop
from tests.loop.scripted import AsyncScriptedDriver, ScriptedDriver, add, calls, done, says
from toolkit import (
    AnswerRefused,
    CancelSignal,
    QueryResult,
    RunCancelled,
    RunLimitReached,
    RunLimits,
    SecurityPolicy,
    SetupError,
    ToolkitContext,
    ToolResult,
    create_agent_toolkit,
    stream_run,
)
from toolkit.adapters.openai_chat import OpenAIChatDriver
from toolkit.loop import CallAnswered, RunEnded
from toolkit.wire import AnswerEnded, CallCompleted, CallStarted, TextCame


def test_every_event_comes_in_its_order(loop: Loop) -> None:
    first, second = calls(add("1", 1, 2), text="hm"), calls(done("It is 3."))
    loop.script(first, second)
    events = list(loop.stream("Add."))
    assert [type(event) for event in events] == [
        *(TextCame, TextCame, CallStarted, CallCompleted, AnswerEnded, CallAnswered),
        *(CallStarted, CallCompleted, AnswerEnded, CallAnswered, RunEnded),
    ]
    assert events[4] == AnswerEnded(first)
    assert events[5] == CallAnswered(add("1", 1, 2), ToolResult("1", "add", "data", {"sum": 3}))
    assert events[-1].conversation.answer == "It is 3."
    loop.script(first, second)
    assert loop.run("Add.") == events[-1].conversation
    assert loop.driver.closed == 0, "a run does not stream"


def test_an_answer_that_cannot_be_used_raises_after_its_events(loop: Loop) -> None:
    loop.script(QueryResult("no", finish_reason="refused"))
    seen: list[object] = []
    with pytest.raises(AnswerRefused) as failure:
        seen.extend(loop.stream("Add."))
    assert failure.value.conversation.turns == 1
    loop.script(says("ok"))
    assert list(loop.stream(failure.value.conversation))[-1].conversation.answer == "ok"


def test_a_conversation_that_has_ended_is_one_event(loop: Loop) -> None:
    loop.script(says("hello"))
    ended = loop.run("hi")
    assert list(loop.stream(ended)) == [RunEnded(ended)]


def test_closing_the_events_closes_the_stream(loop: Loop) -> None:
    loop.script(says("hello"), says("late"))
    events: Any = loop.stream("hi")
    assert next(events) == TextCame("h")
    events.close()
    assert (loop.driver.closed, len(loop.driver.answers)) == (1, 1)


def test_a_signal_ends_a_stream(loop: Loop) -> None:
    signal = CancelSignal()
    loop.script(says("hello"))
    events = loop.stream("hi", signal=signal)
    assert next(events) == TextCame("h")
    signal.cancel("the user pressed stop")
    with pytest.raises(RunCancelled, match="the user pressed stop"):
        next(events)
    assert loop.driver.closed == 1


def test_limits_hold(loop: Loop) -> None:
    loop.script(calls(add("1", 1, 2)), says("late"))
    with pytest.raises(RunLimitReached, match="1 turns"):
        list(loop.stream("Add.", limits=RunLimits(turns=1)))


def test_a_driver_of_the_other_flavour_is_refused(loop: Loop) -> None:
    loop.driver = (ScriptedDriver if loop.is_async else AsyncScriptedDriver)(says("ok"))
    with pytest.raises(SetupError, match=r"ScriptedDriver is not an? a?sync driver; use run"):
        list(loop.stream("Add."))


def chunk(finish: str | None = None, **delta: Any) -> tuple[None, Any]:
    return None, {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}  # fmt: skip


def test_with_the_client_of_an_sdk(tmp_path: Path) -> None:
    (tmp_path / "version.txt").write_text("1.4.2\n")
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "version.txt"}'}}  # fmt: skip
    answers = (
        Answer(events=[chunk(role="assistant", tool_calls=[call]), chunk("tool_calls"), (None, "[DONE]")]),
        Answer(events=[chunk(role="assistant", content="It is "), chunk(content="1.4.2."), chunk("stop"), (None, "[DONE]")]),
    )  # fmt: skip
    policy = SecurityPolicy(default="deny", tools={"read_file": "allow"})
    with (
        serve(*answers) as server,
        openai.OpenAI(api_key="k", base_url=server.url) as client,
        create_agent_toolkit(ToolkitContext(tmp_path, policy)) as toolkit,
    ):
        events = list(stream_run(OpenAIChatDriver(client, model="m"), toolkit, "Which version is it?"))

    assert [event.text for event in events if isinstance(event, TextCame)] == ["It is ", "1.4.2."]
    [answered] = [event for event in events if isinstance(event, CallAnswered)]
    assert "1.4.2" in str(answered.result.value)
    assert isinstance(events[-1], RunEnded) and events[-1].conversation.answer == "It is 1.4.2."
    assert [message["role"] for message in server.requests[1].body["messages"]] == ["user", "assistant", "tool"]
