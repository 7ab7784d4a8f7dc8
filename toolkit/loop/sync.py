"""The loop: ask the model, run the tools it calls, return their results to it, until it is finished.

Both forms are one iterator of events: a plain query is the last event of an answer alone, a stream is all of them.
``toolkit.loop.async_`` is the same loop, awaited.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Coroutine, Generator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from typing import Any, Final, TypeAlias, TypeVar

from toolkit.errors import SetupError, ToolCancelled, ToolTimeout
from toolkit.loop.driver import Driver, StreamingDriver, check_driver
from toolkit.loop.state import (
    AfterCall,
    BeforeCall,
    CallAnswered,
    Hooks,
    OnAction,
    RunEnded,
    RunEvent,
    RunLimits,
    RunState,
    Save,
)
from toolkit.runtime.signals import CancelSignal
from toolkit.runtime.sync import Runner
from toolkit.runtime.tracing import RunTrace, trace_run
from toolkit.runtime.workers import Workers, wait_for_handler
from toolkit.wire.call import ToolCall, ToolResult
from toolkit.wire.message import ChatMessage
from toolkit.wire.query import AnswerEnded, AnswerEvent, Conversation, QueryOptions, StreamResult

T = TypeVar("T")
Ask: TypeAlias = Callable[[Sequence[ChatMessage], QueryOptions], Generator[AnswerEvent, None, None]]
"""Sends a request; the last event is an ``AnswerEnded``."""
_DEFAULTS: Final = QueryOptions()
_LIMITS: Final = RunLimits()


def run(
    driver: Driver,
    toolkit: Runner,
    prompt: str | Sequence[ChatMessage] | Conversation,
    *,
    options: QueryOptions = _DEFAULTS,
    limits: RunLimits = _LIMITS,
    window: int | None = None,
    signal: CancelSignal | None = None,
    before_call: BeforeCall | None = None,
    after_call: AfterCall | None = None,
    on_action: OnAction | None = None,
    save: Save | None = None,
) -> Conversation:
    """Asks a model, runs the tools it calls and returns their results to it, until it stops calling tools or calls ``done``.

    Calls take the toolkit's usual path: its policy decides, and its approver is asked. A failed call becomes a result that
    the model reads. A run that ends without an answer raises a ``RunError``, which holds the conversation so far:
    ``AnswerFailed``, ``AnswerRefused``, ``AnswerFiltered``, ``AnswerCutOff``, ``ActionNeeded``, ``RunLimitReached`` or
    ``RunCancelled``.

    You can run a conversation again that was returned, raised with an error, or stored as JSON. Calls without a result run
    first. A conversation that has ended is returned unchanged; add a message to continue it.

    >>> from toolkit import QueryOptions, QueryResult, SecurityPolicy, ToolCall, ToolkitContext, create_agent_toolkit
    >>> class ScriptedDriver:
    ...     answers = [QueryResult("", [ToolCall("1", "done", {"message": "It is fixed."})], "tool_calls")]
    ...     def query(self, prompt: object, options: QueryOptions) -> QueryResult:
    ...         return self.answers.pop(0)
    >>> policy = SecurityPolicy(default="deny", tools={"done": "allow"})
    >>> with create_agent_toolkit(ToolkitContext(workspace=".", policy=policy)) as tk:
    ...     conversation = run(ScriptedDriver(), tk, "Fix the bug.")
    >>> conversation.answer, conversation.ended_by, conversation.turns
    ('It is fixed.', 'done', 1)

    :param prompt: a user's text, messages, or a conversation to continue.
    :param options: sent with every request. Without ``tools``, the request has all tools that the policy may allow. A
        ``NamedTool`` is required in the first answer only.
    :param limits: how many turns, tokens and seconds the run may take.
    :param window: the model's context window in tokens. When old tool outputs take too much of it, references to the output
        cache replace them, as in ``fit_history``.
    :param signal: cancels the run, even during a query, a stream or a call.
    :param before_call: called for each call of a turn before any of them runs; may return a result to use instead.
    :param after_call: called with each call and its result; may return a different result.
    :param on_action: called with an answer whose provider waits for an approval or an action, after its calls have run;
        returns the messages to add.
    :param save: called with the conversation after each answer, after the results of its calls, and after ``on_action``.
    """
    check_driver(driver, "query")
    _check_toolkit(toolkit)
    state = RunState(toolkit, prompt, options, limits, window, signal)

    def ask(messages: Sequence[ChatMessage], options: QueryOptions) -> Generator[AnswerEvent, None, None]:
        answer = wait_for_answer(lambda: driver.query(messages, options), state)
        if isinstance(answer, Coroutine):
            raise _not_sync(driver, answer)
        yield AnswerEnded(answer)

    trace = trace_run(toolkit, driver)
    for _ in _take_turns(state, ask, toolkit, Hooks(before_call, after_call, on_action, save), trace):
        pass
    return state.conversation


def stream_run(
    driver: StreamingDriver,
    toolkit: Runner,
    prompt: str | Sequence[ChatMessage] | Conversation,
    *,
    options: QueryOptions = _DEFAULTS,
    limits: RunLimits = _LIMITS,
    window: int | None = None,
    signal: CancelSignal | None = None,
    before_call: BeforeCall | None = None,
    after_call: AfterCall | None = None,
    on_action: OnAction | None = None,
    save: Save | None = None,
) -> Generator[RunEvent, None, None]:
    """Like ``run``, with streamed answers: yields the events of each answer, a ``CallAnswered`` for each call, and finally a
    ``RunEnded`` with the conversation.

    Raises what ``run`` raises, while you read the events. Closing the iterator ends the run and closes the connection.
    """
    check_driver(driver, "stream_query")
    _check_toolkit(toolkit)
    state = RunState(toolkit, prompt, options, limits, window, signal)

    def ask(messages: Sequence[ChatMessage], options: QueryOptions) -> Generator[AnswerEvent, None, None]:
        stream = driver.stream_query(messages, options)
        if isinstance(stream, Coroutine):
            raise _not_sync(driver, stream)
        yield from wait_for_events(stream, state)

    trace = trace_run(toolkit, driver)
    return _take_turns(state, ask, toolkit, Hooks(before_call, after_call, on_action, save), trace)


# -- taking turns --------------------------------------------------------------------------------------------------------


def _take_turns(
    state: RunState, ask: Ask, toolkit: Runner, hooks: Hooks, trace: RunTrace
) -> Generator[RunEvent, None, None]:
    """Takes turns with the model until the conversation has ended."""
    with trace.run():
        try:
            yield from _turns(state, ask, toolkit, hooks, trace)
        finally:
            trace.end(state.conversation)


def _turns(
    state: RunState, ask: Ask, toolkit: Runner, hooks: Hooks, trace: RunTrace
) -> Generator[RunEvent, None, None]:
    while not state.is_over:
        state.check()
        calls, answered = state.waiting_calls(), list[CallAnswered]()
        if calls:
            view = toolkit.with_options(**state.call_options())
            with trace.calls():
                results = _run_calls(view, calls, hooks)
            state.add_results(calls, results)
            answered.extend(map(CallAnswered, calls, results))
        elif (action := state.waiting_action()) is not None:
            state.add_action(action, hooks.on_action(action) if hooks.on_action else ())
        else:
            messages, options = state.next_query()
            with closing(trace.query(ask(messages, options), options)) as events:
                for event in events:
                    yield event
                    if isinstance(event, AnswerEnded):
                        state.add_answer(event.result)
        if hooks.save is not None:
            hooks.save(state.conversation)
        yield from answered
    yield RunEnded(state.conversation)


def _run_calls(toolkit: Runner, calls: Sequence[ToolCall], hooks: Hooks) -> list[ToolResult]:
    """The results of calls, in their order."""
    before_call, after_call = hooks.before_call, hooks.after_call
    instead = [None if before_call is None else before_call(call) for call in calls]
    ran = iter(toolkit.call_all([call for call, found in zip(calls, instead, strict=True) if found is None]))
    results = [
        next(ran) if found is None else as_result_of(call, found) for call, found in zip(calls, instead, strict=True)
    ]
    if after_call is None:
        return results
    pairs = zip(calls, results, strict=True)
    return [as_result_of(call, after_call(call, result) or result) for call, result in pairs]


def as_result_of(call: ToolCall, result: ToolResult) -> ToolResult:
    """The result as that of this call, whatever a hook wrote into it."""
    return replace(result, tool_call_id=call.id, name=call.name)


def _check_toolkit(toolkit: Runner) -> None:
    if not isinstance(toolkit, Runner):
        raise SetupError(f"{type(toolkit).__name__} is not a sync toolkit; use run_async or stream_run_async")


def _not_sync(driver: Driver, answer: Coroutine[Any, Any, Any]) -> SetupError:
    answer.close()
    return SetupError(f"{type(driver).__name__} is not a sync driver; use run_async or stream_run_async")


# -- waiting for a driver, not longer than the run may last --------------------------------------------------------------
#
# If the run can be ended from outside, the driver works in another thread. An SDK's client has no way to end a request, so
# the thread of a query or stream that was given up ends with its request.


def wait_for_answer(query: Callable[[], T], state: RunState) -> T:
    """What a query returns."""
    if not state.can_be_ended:
        return query()
    workers = Workers()
    answer = workers.submit(query)
    workers.close()
    return _wait(answer, state)


def wait_for_events(stream: StreamResult, state: RunState) -> Generator[AnswerEvent, None, None]:
    """The events of a stream, which is closed at the end, or as soon as a read that was given up returns."""
    if not state.can_be_ended:
        with closing(stream.events) as events:
            yield from events
        return
    workers, context = Workers(), contextvars.copy_context()

    def read() -> Future[AnswerEvent | None]:
        # In the same context each time, as if one thread read all of them.
        return workers.submit(lambda: context.run(next, stream.events, None))

    reading = read()
    try:
        while (event := _wait(reading, state)) is not None:
            yield event
            state.check()
            reading = read()
    finally:
        workers.close()
        reading.add_done_callback(lambda _: context.run(stream.events.close))


def _wait(running: Future[T], state: RunState) -> T:
    try:
        wait_for_handler(running, _do_nothing, state.signal)
    except (ToolCancelled, ToolTimeout) as error:
        raise state.ended_by(error) from None
    return running.result()


def _do_nothing() -> None:
    pass
