"""The loop with answers that are streamed: every event in its order, and how such a run is ended."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openai
import pytest

from tests.adapters.loopback import Answer, serve
from tests.loop.conftest import Loop
from tests.loop.scripted import add, calls, done, says, values
from toolkit import (
    AnswerRefused,
    AsyncStreamResult,
    CancelSignal,
    Conversation,
    QueryResult,
    RunCancelled,
    RunLimitReached,
    RunLimits,
    SecurityPolicy,
    SetupError,
    StreamResult,
    ToolkitContext,
    ToolResult,
    create_agent_toolkit,
    stream_run,
)
from toolkit.adapters.openai_chat import OpenAIChatDriver
from toolkit.loop import CallAnswered, RunEnded
from toolkit.testing import AsyncScriptedModel, ScriptedModel
from toolkit.wire import AnswerEnded, AnswerEvent, ArgumentsDelta, CallCompleted, CallStarted, TextDelta


def test_every_event_comes_in_its_order(loop: Loop) -> None:
    first, second = calls(add("1", 1, 2), text="hm so"), calls(done("It is 3."))
    loop.script(first, second)
    events = list(loop.stream("Add."))
    assert [type(event) for event in events] == [
        *(TextDelta, TextDelta, CallStarted, ArgumentsDelta, ArgumentsDelta, CallCompleted, AnswerEnded, CallAnswered),
        *(CallStarted, ArgumentsDelta, ArgumentsDelta, CallCompleted, AnswerEnded, CallAnswered, RunEnded),
    ]
    assert events[6] == AnswerEnded(first)
    assert events[7] == CallAnswered(add("1", 1, 2), ToolResult("1", "add", "data", {"sum": 3}))
    assert events[-1].conversation.answer == "It is 3."
    loop.script(first, second)
    assert loop.run("Add.") == events[-1].conversation
    assert loop.driver.streams_closed == 0, "a run does not stream"


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
    loop.script(says("hello you"), says("late"))
    events: Any = loop.stream("hi")
    assert next(events) == TextDelta("hello ")
    events.close()
    assert (loop.driver.streams_closed, loop.driver.turns_left) == (1, 1)


def test_results_are_saved_before_they_are_told(loop: Loop) -> None:
    """So that calls which have run do not run again if the reader leaves there."""
    saved: list[Conversation] = []
    loop.script(calls(add("1", 1, 2)), says("late"))
    events: Any = loop.stream("Add.", save=saved.append)
    assert next(event for event in events if isinstance(event, CallAnswered))
    events.close()
    assert values(saved[-1]) == [{"sum": 3}]


def test_a_signal_ends_a_stream(loop: Loop) -> None:
    signal = CancelSignal()
    loop.script(says("hello you"))
    events = loop.stream("hi", signal=signal)
    assert next(events) == TextDelta("hello ")
    signal.cancel("the user pressed stop")
    with pytest.raises(RunCancelled, match="the user pressed stop"):
        next(events)
    assert loop.driver.streams_closed == 1


class Silence:
    """A driver of either flavour whose stream says one letter, and then nothing until it is released."""

    def __init__(self, before: Callable[[], None]) -> None:
        self.before = before
        self.is_started = False
        self.released = threading.Event()
        self.closed = threading.Event()

    def driver(self, is_async: bool) -> Any:
        return SimpleNamespace(stream_query=self.stream_async if is_async else self.stream)

    def stream(self, prompt: object, options: object) -> StreamResult:
        def read() -> Iterator[AnswerEvent]:
            try:
                self.is_started = True
                yield TextDelta("h")
                self.before()
                self.released.wait(60)
                yield TextDelta("i")
            finally:
                self.closed.set()

        return StreamResult(read(), lambda: says("hi"))

    async def stream_async(self, prompt: object, options: object) -> AsyncStreamResult:
        async def read() -> AsyncIterator[AnswerEvent]:
            try:
                self.is_started = True
                yield TextDelta("h")
                self.before()
                await asyncio.Event().wait()
            finally:
                self.closed.set()

        return AsyncStreamResult(read(), lambda: says("hi"))


def test_a_signal_ends_a_silent_stream(loop: Loop) -> None:
    signal = CancelSignal()
    silence = Silence(before=lambda: signal.cancel("the user pressed stop"))
    loop.driver = silence.driver(loop.is_async)
    events = loop.stream("hi", signal=signal)
    assert next(events) == TextDelta("h")
    with pytest.raises(RunCancelled, match="the user pressed stop"):
        next(events)
    silence.released.set()
    assert silence.closed.wait(60), "at the latest when the next event comes"


def test_seconds_end_a_silent_stream(loop: Loop) -> None:
    for seconds in (0.1, 1, 10, 60):  # on a busy machine, short ones may be over before the stream has started
        silence = Silence(before=lambda: None)
        loop.driver = silence.driver(loop.is_async)
        with pytest.raises(RunLimitReached, match=rf"limit of {seconds} seconds") as failure:
            list(loop.stream("hi", limits=RunLimits(seconds=seconds)))
        assert failure.value.limit == "seconds"
        silence.released.set()
        if silence.is_started:
            break
    assert silence.closed.wait(60)


def test_a_stream_with_limits_has_the_same_events_in_one_context(loop: Loop) -> None:
    """A driver may set a context variable when it starts, and reset it when it ends."""
    variable: ContextVar[str] = ContextVar("variable", default="outside")
    seen: list[str] = []

    def read() -> Iterator[AnswerEvent]:
        token = variable.set("inside")
        for letter in "hi":
            yield TextDelta(letter)
            seen.append(variable.get())
        variable.reset(token)

    async def read_async() -> AsyncIterator[AnswerEvent]:
        for event in read():
            yield event

    async def stream_async(prompt: object, options: object) -> AsyncStreamResult:
        return AsyncStreamResult(read_async(), lambda: says("hi"))

    def stream(prompt: object, options: object) -> StreamResult:
        return StreamResult(read(), lambda: says("hi"))

    loop.driver = SimpleNamespace(stream_query=stream_async if loop.is_async else stream)
    events = loop.stream_at_once("hi", limits=RunLimits(seconds=600), signal=CancelSignal())
    assert events[:3] == [TextDelta("h"), TextDelta("i"), AnswerEnded(says("hi"))]
    assert isinstance(events[3], RunEnded)
    assert seen == ["inside", "inside"]


def test_limits_hold(loop: Loop) -> None:
    loop.script(calls(add("1", 1, 2)), says("late"))
    with pytest.raises(RunLimitReached, match="1 turns"):
        list(loop.stream("Add.", limits=RunLimits(turns=1)))


def test_a_driver_of_the_other_flavour_is_refused(loop: Loop) -> None:
    loop.driver = (ScriptedModel if loop.is_async else AsyncScriptedModel)(says("ok"))
    with pytest.raises(SetupError, match=r"ScriptedModel is not an? a?sync driver; use run"):
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

    assert [event.text for event in events if isinstance(event, TextDelta)] == ["It is ", "1.4.2."]
    [answered] = [event for event in events if isinstance(event, CallAnswered)]
    assert "1.4.2" in str(answered.result.value)
    assert isinstance(events[-1], RunEnded) and events[-1].conversation.answer == "It is 1.4.2."
    assert [message["role"] for message in server.requests[1].body["messages"]] == ["user", "assistant", "tool"]
