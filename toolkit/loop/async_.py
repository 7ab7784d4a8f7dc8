"""The loop of ``toolkit.loop.sync``, awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Final, TypeAlias, TypeVar

from toolkit.errors import SetupError, ToolTimeout
from toolkit.loop.driver import AsyncDriver, AsyncStreamingDriver, check_driver
from toolkit.loop.state import (
    AsyncAfterCall,
    AsyncBeforeCall,
    AsyncHooks,
    AsyncOnAction,
    CallAnswered,
    RunEnded,
    RunEvent,
    RunLimits,
    RunState,
    Save,
)
from toolkit.loop.sync import as_result_of
from toolkit.runtime.async_ import AsyncRunner
from toolkit.runtime.signals import CancelSignal
from toolkit.runtime.tracing import RunTrace, trace_run
from toolkit.wire.call import ToolCall, ToolResult
from toolkit.wire.message import ChatMessage
from toolkit.wire.query import AnswerEnded, AnswerEvent, AsyncStreamResult, Conversation, QueryOptions

T = TypeVar("T")
AsyncAsk: TypeAlias = Callable[[Sequence[ChatMessage], QueryOptions], AsyncGenerator[AnswerEvent, None]]
"""Sends a request; the last event is an ``AnswerEnded``."""
_DEFAULTS: Final = QueryOptions()
_LIMITS: Final = RunLimits()


async def run_async(
    driver: AsyncDriver,
    toolkit: AsyncRunner,
    prompt: str | Sequence[ChatMessage] | Conversation,
    *,
    options: QueryOptions = _DEFAULTS,
    limits: RunLimits = _LIMITS,
    window: int | None = None,
    signal: CancelSignal | None = None,
    before_call: AsyncBeforeCall | None = None,
    after_call: AsyncAfterCall | None = None,
    on_action: AsyncOnAction | None = None,
    save: Save | None = None,
) -> Conversation:
    """``run`` for an async driver and an async toolkit. Hooks may be async, and cancelling the task ends the run."""
    check_driver(driver, "query")
    _check_toolkit(toolkit)
    state = RunState(toolkit, prompt, options, limits, window, signal)

    async def ask(messages: Sequence[ChatMessage], options: QueryOptions) -> AsyncGenerator[AnswerEvent, None]:
        waiting = driver.query(messages, options)
        if not inspect.isawaitable(waiting):
            raise _not_async(driver)
        yield AnswerEnded(await await_answer(waiting, state))

    trace = trace_run(toolkit, driver)
    async for _ in _take_turns(state, ask, toolkit, AsyncHooks(before_call, after_call, on_action, save), trace):
        pass
    return state.conversation


def stream_run_async(
    driver: AsyncStreamingDriver,
    toolkit: AsyncRunner,
    prompt: str | Sequence[ChatMessage] | Conversation,
    *,
    options: QueryOptions = _DEFAULTS,
    limits: RunLimits = _LIMITS,
    window: int | None = None,
    signal: CancelSignal | None = None,
    before_call: AsyncBeforeCall | None = None,
    after_call: AsyncAfterCall | None = None,
    on_action: AsyncOnAction | None = None,
    save: Save | None = None,
) -> AsyncGenerator[RunEvent, None]:
    """``stream_run`` for an async driver and an async toolkit: ``async for event in stream_run_async(...)``."""
    check_driver(driver, "stream_query")
    _check_toolkit(toolkit)
    state = RunState(toolkit, prompt, options, limits, window, signal)

    async def ask(messages: Sequence[ChatMessage], options: QueryOptions) -> AsyncGenerator[AnswerEvent, None]:
        waiting = driver.stream_query(messages, options)
        if not inspect.isawaitable(waiting):
            raise _not_async(driver)
        stream = await await_answer(waiting, state)
        async with aclosing(await_events(stream, state)) as events:
            async for event in events:
                yield event

    trace = trace_run(toolkit, driver)
    return _take_turns(state, ask, toolkit, AsyncHooks(before_call, after_call, on_action, save), trace)


# -- taking turns --------------------------------------------------------------------------------------------------------


async def _take_turns(
    state: RunState, ask: AsyncAsk, toolkit: AsyncRunner, hooks: AsyncHooks, trace: RunTrace
) -> AsyncGenerator[RunEvent, None]:
    """Takes turns with the model until the conversation has ended."""
    with trace.run():
        try:
            async with aclosing(_turns(state, ask, toolkit, hooks, trace)) as events:
                async for event in events:
                    yield event
        finally:
            trace.end(state.conversation)


async def _turns(
    state: RunState, ask: AsyncAsk, toolkit: AsyncRunner, hooks: AsyncHooks, trace: RunTrace
) -> AsyncGenerator[RunEvent, None]:
    while not state.is_over:
        state.check()
        calls, answered = state.waiting_calls(), list[CallAnswered]()
        if calls:
            view = toolkit.with_options(**state.call_options())
            with trace.calls():
                results = await _run_calls(view, calls, hooks)
            state.add_results(calls, results)
            answered.extend(map(CallAnswered, calls, results))
        elif (action := state.waiting_action()) is not None:
            state.add_action(action, await _wait(hooks.on_action(action)) if hooks.on_action else ())
        else:
            messages, options = await _next_query(state)
            async with aclosing(trace.query_async(ask(messages, options), options)) as events:
                async for event in events:
                    yield event
                    if isinstance(event, AnswerEnded):
                        state.add_answer(event.result)
        if hooks.save is not None:
            await _wait(hooks.save(state.conversation))
        for one in answered:
            yield one
    yield RunEnded(state.conversation)


async def _next_query(state: RunState) -> tuple[Sequence[ChatMessage], QueryOptions]:
    """The next request. With a window, outputs are kept for it, which may wait for a store."""
    if not state.keeps_outputs:
        return state.next_query()
    import asyncio

    from toolkit.runtime.stores.waiting import start_store

    return await asyncio.wrap_future(start_store(state.next_query))


async def _run_calls(toolkit: AsyncRunner, calls: Sequence[ToolCall], hooks: AsyncHooks) -> list[ToolResult]:
    """The results of calls, in their order."""
    before_call, after_call = hooks.before_call, hooks.after_call
    instead = [None if before_call is None else await _wait(before_call(call)) for call in calls]
    pairs = list(zip(calls, instead, strict=True))
    ran = iter(await toolkit.call_all([call for call, found in pairs if found is None]))
    results = [next(ran) if found is None else as_result_of(call, found) for call, found in pairs]
    if after_call is None:
        return results
    hooked = [
        (call, result, await _wait(after_call(call, result))) for call, result in zip(calls, results, strict=True)
    ]
    return [as_result_of(call, found or result) for call, result, found in hooked]


async def _wait(value: T | Awaitable[T]) -> T:
    """What a hook returned, or what it resolves to."""
    return await value if inspect.isawaitable(value) else value


def _check_toolkit(toolkit: AsyncRunner) -> None:
    if not isinstance(toolkit, AsyncRunner):
        raise SetupError(f"{type(toolkit).__name__} is not an async toolkit; use run or stream_run")


def _not_async(driver: AsyncDriver) -> SetupError:
    return SetupError(f"{type(driver).__name__} is not an async driver; use run or stream_run")


# -- waiting for a driver, not longer than the run may last --------------------------------------------------------------


async def await_answer(answer: Awaitable[T], state: RunState) -> T:
    """A driver's answer, awaited in this task: a driver may leave in a later step what it has entered in this one."""
    loop, caller = asyncio.get_running_loop(), state.signal.caller

    def end() -> None:
        with suppress(RuntimeError):  # the answer has just come
            scope.reschedule(loop.time())

    def tell_loop() -> None:
        # The caller may cancel from another thread.
        loop.call_soon_threadsafe(end)

    try:
        async with asyncio.timeout(state.signal.remaining) as scope:
            forget = caller.listen(tell_loop) if caller else None
            try:
                return await answer
            finally:
                if forget is not None:
                    forget()
    except TimeoutError:
        if not scope.expired():
            raise  # an error of the driver
        error = state.signal.error() or ToolTimeout("the time of the run is over")
        raise state.ended_by(error) from None


async def await_events(stream: AsyncStreamResult, state: RunState) -> AsyncGenerator[AnswerEvent, None]:
    """The events of a stream, which is closed at the end."""
    async with aclosing(stream.events) as events:
        while (event := await await_answer(anext(events, None), state)) is not None:
            yield event
            state.check()
