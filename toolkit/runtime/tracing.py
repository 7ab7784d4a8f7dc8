"""A span for each call, next to its record in the audit log: both get the same facts at the same moments.

The span is current while the call runs, in the threads and tasks of its handler as well, because those copy the context
variables of their caller.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode
from pydantic import BaseModel

from toolkit.errors import ToolFailed, ToolkitError, ToolNotAllowed
from toolkit.runtime.audit.log import redact
from toolkit.runtime.output import ToolMessage
from toolkit.wire.query import AnswerEnded, AnswerEvent

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from toolkit.guard.policy.policy import Verdict
    from toolkit.runtime.audit.log import AuditLog, Record
    from toolkit.runtime.audit.settings import Check
    from toolkit.runtime.catalog import Catalog, Tool
    from toolkit.runtime.context import ToolkitContext, Tracing
    from toolkit.runtime.programs.host import ProgramOrigin
    from toolkit.runtime.signals import CallSignal
    from toolkit.runtime.toolkit import View
    from toolkit.runtime.workers import Workers
    from toolkit.wire.query import Conversation, QueryOptions, QueryResult, Usage


_MAX_NAME: Final = 100
MAX_CONTENT: Final = 10_000
"""How many characters of arguments or a result are kept in a span."""

ReadContent: TypeAlias = Callable[[str, object, str], "str | None"]
"""The text of arguments or a result of a tool, whose schema is under a key of its definition."""


class TracedCalls:
    """Makes the spans of one toolkit, and the records of its audit log if it has one."""

    def __init__(self, tracing: Tracing, context: ToolkitContext[Any], catalog: Catalog, log: AuditLog | None) -> None:
        self._tracer: Final = tracing.make_tracer()
        self._tracing: Final = tracing
        self._context: Final = context
        self._content: Final = tracing.content
        self._catalog: Final = catalog
        self._log: Final = log
        self._common: Final = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.type": "function",
            "gen_ai.agent.name": context.agent,
            "gen_ai.conversation.id": context.session_id,
        }

    def begin(self, name: object, call_id: str | None, origin: ProgramOrigin | None = None) -> TracedRecord:
        """Starts the span of one call, and makes it current."""
        record = None if self._log is None else self._log.begin(name, call_id, origin)
        shown = name[:_MAX_NAME] if isinstance(name, str) else ""
        attributes = {**self._common, "gen_ai.tool.name": shown}
        if call_id is not None:
            attributes["gen_ai.tool.call.id"] = call_id
        # Names of spans are few: not those that a model made up.
        is_known = isinstance(name, str) and name in self._catalog.tools
        title = f"execute_tool {name}" if is_known else "execute_tool"
        span = self._tracer.start_span(title, kind=SpanKind.INTERNAL, attributes=attributes)
        return TracedRecord(span, record, self._read_content if self._content else None, shown)

    def note_program(self, program: str, facts: Mapping[str, Any]) -> None:
        """Writes the line of a program to the audit log. Its span is that of the call that runs it."""
        if self._log is not None:
            self._log.note_program(program, facts)

    def for_catalog(self, catalog: Catalog) -> TracedCalls:
        """The same for other tools."""
        return TracedCalls(self._tracing, self._context, catalog, self._log)

    @property
    def unwritten(self) -> int:
        """How many records the audit log has taken, but not written yet."""
        return 0 if self._log is None else self._log.unwritten

    def close(self) -> None:
        if self._log is not None:
            self._log.close()

    def _read_content(self, name: str, value: object, schema_key: str) -> str | None:
        """Arguments or a result as JSON text, without what their schema marks as secret; None if they cannot be written."""
        if name not in self._catalog.tools:
            return None  # nothing says what is secret
        schema = self._catalog.definitions[name].get(schema_key)
        try:
            if isinstance(value, ToolMessage):
                value = value.content if isinstance(value.content, str) else value._data()
            elif isinstance(value, BaseModel):
                value = value.__pydantic_serializer__.to_python(value, mode="json", by_alias=True, exclude_unset=True)
            text = json.dumps(redact(value, schema) if schema else value, ensure_ascii=False)
        except Exception:  # whatever a value does when it is written: a trace changes no call
            return None
        return text if len(text) <= MAX_CONTENT else text[:MAX_CONTENT] + "…"


class TracedRecord:
    """The span of one call, and its record in the audit log if there is one."""

    __slots__ = ("_began", "_content", "_name", "_record", "_span", "_token")

    def __init__(self, span: Span, record: Record | None, content: ReadContent | None, name: str) -> None:
        self._span = span
        self._record = record
        self._content = content
        self._name = name
        self._began = time.monotonic()
        self._token = otel_context.attach(trace.set_span_in_context(span))

    def note_decision(self, verdict: Verdict, tier: str | None, answer: object = None) -> None:
        """Notes what the policy decided, and what the approver answered if one was asked."""
        span = self._span
        span.set_attribute("toolkit.decision", verdict.decision)
        if answer is not None:
            span.set_attribute("toolkit.approval", type(answer).__name__.lower())
        if tier is not None:
            span.set_attribute("toolkit.sandbox", tier)
        if self._record is not None:
            self._record.note_decision(verdict, tier, answer)

    @property
    def notes_touched(self) -> bool:
        """Whether the audit log wants to know what the call touches."""
        return self._record is not None and self._record.notes_touched

    def note_touched(self, touched: dict[str, Any], args: BaseModel) -> None:
        if self._record is not None:
            self._record.note_touched(touched, args)

    def start(self, tool: Tool, args: BaseModel, check: Check) -> None:
        """Notes the arguments, if they are wanted."""
        self._add_content("gen_ai.tool.call.arguments", args, "inputSchema")
        if self._record is not None:
            self._record.start(tool, args, check)

    async def finish_start(self, workers: Workers, signal: CallSignal) -> None:
        """Waits until the audit log has the start of the call, if that takes longer."""
        if self._record is not None:
            await self._record.finish_start(workers, signal)

    def end_failed(self, error: BaseException, arguments: object) -> None:
        """Ends the span of a call that raised."""
        try:
            if self._record is not None:
                self._record.end_failed(error, arguments)
        finally:
            span = self._span
            code = error.code if isinstance(error, ToolkitError) else "INTERNAL"
            span.set_attribute("error.type", code)
            if isinstance(error, ToolFailed):
                span.set_attribute("toolkit.reason", str(error.reason))
            if isinstance(error, ToolNotAllowed):
                span.set_attribute("toolkit.decision", str(error.details.get("decision", "deny")))
            # The message may name arguments.
            span.set_status(Status(StatusCode.ERROR, str(error) if self._content is not None else None))
            self._end()

    def end_succeeded(self, message: ToolMessage[Any, Any]) -> None:
        """Ends the span of a successful call."""
        try:
            if self._record is not None:
                self._record.end_succeeded(message)
        finally:
            self._add_content("gen_ai.tool.call.result", message, "outputSchema")
            self._end()

    def _add_content(self, attribute: str, value: object, schema_key: str) -> None:
        text = None if self._content is None else self._content(self._name, value, schema_key)
        if text is not None:
            self._span.set_attribute(attribute, text)

    def _end(self) -> None:
        self._span.set_attribute("toolkit.duration_ms", round((time.monotonic() - self._began) * 1000, 3))
        otel_context.detach(self._token)
        self._span.end()


# ----------------------------------------------------------------------------------------------------------------------
# Spans of the loop: one for a run, and one for each query of its model.
#
# Neither is left current while events are handed to the caller of a stream: whatever the caller does meanwhile is not part of
# the run.


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
