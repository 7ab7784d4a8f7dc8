"""The spans of a run: one for the run, one for each query, and those of the calls below it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.loop.conftest import Loop
from tests.loop.scripted import add, calls, done, says
from toolkit import AnswerFailed, QueryResult, Tracing, Usage
from toolkit.testing import ModelRequest

PROVIDER = TracerProvider()
EXPORTER = InMemorySpanExporter()
PROVIDER.add_span_processor(SimpleSpanProcessor(EXPORTER))


@pytest.fixture
def traced(make_loop: Callable[..., Loop]) -> Loop:
    EXPORTER.clear()
    return make_loop(tracing=Tracing(PROVIDER), agent="clerk", session_id="s-1")


def named(name: str) -> list[ReadableSpan]:
    return [span for span in EXPORTER.get_finished_spans() if span.name == name]


def parents() -> dict[str, str]:
    """The name of each span -> that of its parent."""
    ids = {span.context.span_id: span.name for span in EXPORTER.get_finished_spans() if span.context}
    return {
        span.name: ids.get(span.parent.span_id, "?") if span.parent else "" for span in EXPORTER.get_finished_spans()
    }


def script(loop: Loop, *answers: Any) -> None:
    loop.script(*answers)
    loop.driver.model, loop.driver.provider_name = "gpt-test", "openai"


ANSWERS = (
    calls(add("1", 1, 2), add("2", 3, 4)),
    QueryResult(
        "",
        [done("It is 10.")],
        "tool_calls",
        Usage(100, 20, 30, 5, 7),
        {"openai": {"model": "gpt-test-2026", "id": "resp-1"}},
    ),
)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_run_is_a_tree_of_spans(traced: Loop, streamed: bool) -> None:
    script(traced, *ANSWERS)
    with PROVIDER.get_tracer("the application").start_as_current_span("request") as request:
        if streamed:
            for _ in traced.stream("Add."):
                assert trace.get_current_span() is request
        else:
            traced.run("Add.")

    assert parents() == {
        "request": "",
        "invoke_agent clerk": "request",
        "chat gpt-test": "invoke_agent clerk",
        "execute_tool add": "invoke_agent clerk",
        "execute_tool done": "invoke_agent clerk",
    }
    assert (len(named("chat gpt-test")), len(named("execute_tool add"))) == (2, 2)
    [whole], [_, last] = named("invoke_agent clerk"), named("chat gpt-test")
    assert dict(whole.attributes or {}) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "clerk",
        "gen_ai.conversation.id": "s-1",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-test",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 30,
        "gen_ai.usage.cache_creation.input_tokens": 7,
        "gen_ai.usage.reasoning.output_tokens": 5,
        "toolkit.turns": 2,
        "toolkit.ended_by": "done",
    }
    assert last.kind is trace.SpanKind.CLIENT
    answered = dict(last.attributes or {})
    assert answered["gen_ai.operation.name"] == "chat"
    assert (answered["gen_ai.response.model"], answered["gen_ai.response.id"]) == ("gpt-test-2026", "resp-1")
    assert answered["gen_ai.response.finish_reasons"] == ("tool_calls",)
    assert answered["gen_ai.usage.input_tokens"] == 100


def test_the_query_is_current_while_the_driver_works(traced: Loop) -> None:
    seen: list[str] = []

    def answer(_request: ModelRequest) -> QueryResult:
        seen.append(trace.get_current_span().name)  # type: ignore[attr-defined]
        return says("Hello.")

    script(traced, answer)
    traced.run("Say hello.")
    assert seen == ["chat gpt-test"]
    assert not trace.get_current_span().get_span_context().is_valid


def test_an_answer_that_fails_is_an_error_of_its_query_and_of_the_run(traced: Loop) -> None:
    error = ConnectionError("the key sk-123 was refused")
    script(traced, QueryResult("", finish_reason="error", metadata={"error": error}))
    with pytest.raises(AnswerFailed):
        traced.run("Say hello.")
    [query], [whole] = named("chat gpt-test"), named("invoke_agent clerk")
    assert (query.attributes or {})["error.type"] == "ConnectionError"
    assert (whole.attributes or {})["error.type"] == "AnswerFailed"
    assert query.status.status_code is whole.status.status_code is trace.StatusCode.ERROR
    assert "sk-123" not in query.to_json() + whole.to_json()


def test_a_stream_that_is_closed_ends_its_spans(traced: Loop) -> None:
    script(traced, says("Hello."))
    events = traced.stream("Say hello.")
    next(events)
    events.close()  # type: ignore[attr-defined]
    [whole] = named("invoke_agent clerk")
    assert (whole.attributes or {})["toolkit.ended_by"] == "closed" and whole.status.is_unset
    assert named("chat gpt-test")


def test_a_driver_without_names_is_traced_without_them(traced: Loop) -> None:
    traced.script(says("Hello."))
    traced.run("Say hello.")
    assert parents() == {"invoke_agent clerk": "", "chat": "invoke_agent clerk"}
