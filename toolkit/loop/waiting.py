"""Waiting for a driver in a sync run: not longer than the run may last.

If the run can be ended from outside, the driver works in another thread. An SDK's client has no way to end a request, so
the thread of a query or stream that was given up ends with its request.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import closing
from typing import TypeVar

from toolkit.errors import ToolCancelled, ToolTimeout
from toolkit.loop.state import RunState
from toolkit.runtime.call.waiting.wait_for_handler import wait_for_handler
from toolkit.runtime.workers import Workers
from toolkit.wire.events import AnswerEvent
from toolkit.wire.streams import StreamResult

T = TypeVar("T")


def wait_for_answer(query: Callable[[], T], state: RunState) -> T:
    """What a query returns."""
    if not state.can_be_ended:
        return query()
    workers = Workers()
    answer = workers.submit(query)
    workers.close()
    return _wait(answer, state)


def wait_for_events(stream: StreamResult, state: RunState) -> Generator[AnswerEvent, None, None]:
    """The events of a stream; it is closed at the end, or when the event comes that nobody waits for any more."""
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
