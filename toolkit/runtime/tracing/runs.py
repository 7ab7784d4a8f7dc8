"""Spans of the loop: one for a run, and one for each query of its model.

Neither is left current while events are handed to the caller of a stream: whatever the caller does meanwhile is not part of
the run.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import AbstractContextManager, aclosing, closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from toolkit.wire.events import AnswerEnded, AnswerEvent

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from toolkit.runtime.call.view import View
    from toolkit.runtime.tracing.settings import Tracing
    from toolkit.wire.conversation import Conversation
    from toolkit.wire.query import QueryOptions, QueryResult, Usage


class RunTrace:
    """The trace of a run that nobody traces: its methods do nothing."""

    def run(self) -> AbstractContextManager[None]:
        """Around the whole run."""
        return nullcontext()

    def calls(self) -> AbstractContextManager[None]:
        """Around the calls of one turn."""
        return nullcontext()

    def query(
        self, events: Generator[AnswerEvent, None, None], options: QueryOptions
    ) -> Generator[AnswerEvent, None, None]:
        """The same events of one query."""
        return events

    def query_async(
        self, events: AsyncGenerator[AnswerEvent, None], options: QueryOptions
    ) -> AsyncGenerator[AnswerEvent, None]:
        """The same events of one query of an async driver."""
        return events

    def end(self, conversation: Conversation) -> None:
        """Notes how the run ended."""


NOT_TRACED: Final = RunTrace()


def trace_run(toolkit: View, driver: object) -> RunTrace:
    """The trace of a run, as the context of its toolkit says."""
    context = toolkit._core.context
    if context.tracing is None:
        return NOT_TRACED
    return SpansOfRun(context.tracing, driver, {
        "gen_ai.agent.name": context.agent, "gen_ai.conversation.id": context.session_id,
    })  # fmt: skip


class SpansOfRun(RunTrace):
    """Makes the spans of one run. A driver may say its ``provider_name`` and its ``model``."""

    def __init__(self, tracing: Tracing, driver: object, common: dict[str, str]) -> None:
        self._tracer = tracing.make_tracer()
        self._agent = common["gen_ai.agent.name"]
        self._common: dict[str, Any] = dict(common)
        self._model = getattr(driver, "model", None)
        for attribute, value in (
            ("gen_ai.provider.name", getattr(driver, "provider_name", None)),
            ("gen_ai.request.model", self._model),
        ):
            if isinstance(value, str) and value:
                self._common[attribute] = value
        self._span: Span | None = None

    @contextmanager
    def run(self) -> Iterator[None]:
        from opentelemetry.trace import SpanKind

        attributes = {**self._common, "gen_ai.operation.name": "invoke_agent"}
        self._span = self._tracer.start_span(
            f"invoke_agent {self._agent}", kind=SpanKind.INTERNAL, attributes=attributes
        )
        try:
            yield
        except GeneratorExit:
            self._span.set_attribute("toolkit.ended_by", "closed")
            raise
        except BaseException as error:
            _set_error(self._span, type(error).__name__)
            raise
        finally:
            self._span.end()

    def calls(self) -> AbstractContextManager[None]:
        return _current(self._span)

    def end(self, conversation: Conversation) -> None:
        if self._span is not None:
            attributes = {"toolkit.turns": conversation.turns, **_usage(conversation.usage)}
            if conversation.ended_by is not None:
                attributes["toolkit.ended_by"] = conversation.ended_by
            self._span.set_attributes(attributes)

    def query(
        self, events: Generator[AnswerEvent, None, None], options: QueryOptions
    ) -> Generator[AnswerEvent, None, None]:
        with self._query_span(options) as span, closing(events):
            while True:
                with _current(span):
                    event = next(events, None)
                if event is None:
                    return
                _note_event(span, event)
                yield event

    async def query_async(
        self, events: AsyncGenerator[AnswerEvent, None], options: QueryOptions
    ) -> AsyncGenerator[AnswerEvent, None]:
        with self._query_span(options) as span:
            async with aclosing(events):
                while True:
                    with _current(span):
                        event = await anext(events, None)
                    if event is None:
                        return
                    _note_event(span, event)
                    yield event

    @contextmanager
    def _query_span(self, options: QueryOptions) -> Iterator[Span]:
        from opentelemetry import trace

        attributes = {**self._common, "gen_ai.operation.name": "chat"}
        for attribute, value in (
            ("gen_ai.request.max_tokens", options.max_tokens),
            ("gen_ai.request.temperature", options.temperature),
        ):
            if value is not None:
                attributes[attribute] = value
        span = self._tracer.start_span(
            f"chat {self._model}" if isinstance(self._model, str) else "chat",
            context=None if self._span is None else trace.set_span_in_context(self._span),
            kind=trace.SpanKind.CLIENT,
            attributes=attributes,
        )
        try:
            yield span
        except GeneratorExit:
            raise
        except BaseException as error:
            _set_error(span, type(error).__name__)
            raise
        finally:
            span.end()


def _current(span: Span | None) -> AbstractContextManager[None]:
    """Makes a span current. What is raised inside is not recorded: its text may quote what a model wrote."""
    if span is None:
        return nullcontext()
    return _attached(span)


@contextmanager
def _attached(span: Span) -> Iterator[None]:
    from opentelemetry import context, trace

    token = context.attach(trace.set_span_in_context(span))
    try:
        yield
    finally:
        context.detach(token)


def _note_event(span: Span, event: AnswerEvent) -> None:
    if isinstance(event, AnswerEnded):
        _note_answer(span, event.result)


def _note_answer(span: Span, result: QueryResult) -> None:
    attributes: dict[str, Any] = {"gen_ai.response.finish_reasons": [result.finish_reason], **_usage(result.usage)}
    for name in ("model", "id"):
        value = _from_provider(result, name)
        if value is not None:
            attributes[f"gen_ai.response.{name}"] = value
    span.set_attributes(attributes)
    if result.finish_reason == "error":
        error = result.metadata.get("error")
        _set_error(span, type(error).__name__ if isinstance(error, BaseException) else "error")


def _from_provider(result: QueryResult, name: str) -> str | None:
    """What the provider said in its answer, whichever adapter read it."""
    kept = [found for found in result.metadata.values() if isinstance(found, dict)]
    for value in (*(one.get(name) for one in kept), getattr(result.raw, name, None)):
        if isinstance(value, str) and value:
            return value
    return None


def _usage(usage: Usage) -> dict[str, int | str]:
    counted = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_input_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    return {name: count for name, count in counted.items() if count is not None}


def _set_error(span: Span, kind: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))
