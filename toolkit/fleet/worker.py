"""What runs in a worker process: toolkits are made here, calls and runs happen here."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Final

from toolkit.errors import RunError, SetupError, ToolCancelled, ToolFailed, ToolkitError, ToolTimeout
from toolkit.fleet.items import FleetRun
from toolkit.fleet.kept_toolkits import KeptToolkits, make_checked
from toolkit.fleet.messages import (
    Assignment,
    Report,
    RunOutcome,
    read_assignment,
    read_setup,
    without_output,
    without_outputs,
    write,
    write_report,
)
from toolkit.fleet.progress_outbox import ProgressOutbox
from toolkit.fleet.repeatable import is_repeatable
from toolkit.fleet.setup import load_factory
from toolkit.runtime.call.view import options_of
from toolkit.runtime.path import as_toolkit_error, error_result
from toolkit.runtime.progress import combine_listeners
from toolkit.runtime.signals import CancelSignal
from toolkit.runtime.sync import Runner
from toolkit.wire.call import ToolCall
from toolkit.wire.conversation import Conversation
from toolkit.wire.message import TextMessage
from toolkit.wire.result import ToolResult

UNKNOWN: Final = "It is unknown whether it had an effect: look before you repeat it"

_SHORT_PAUSE: Final = 0.01
_LONG_PAUSE: Final = 1.0
_REMEMBERED: Final = 10_000
"""Cancellations of items that have not arrived yet, or have ended already."""


class FleetWorker:
    """The worker's side of a fleet. It knows nothing about Ray, which calls its methods in several threads."""

    def __init__(self, make_toolkit: str, make_driver: str | None, max_result_bytes: int) -> None:
        self._make_toolkit = load_factory("the factory of toolkits", make_toolkit)
        self._make_driver = None if make_driver is None else load_factory("the factory of drivers", make_driver)
        self._max_result_bytes = max_result_bytes
        self._toolkits = KeptToolkits(self._make_toolkit)
        self._outbox = ProgressOutbox()
        self._lock = threading.Lock()
        self._signals: dict[int, CancelSignal] = {}
        self._cancelled: OrderedDict[int, str] = OrderedDict()

    def is_ready(self) -> bool:
        """The first answer of a worker: its factories could be imported."""
        return True

    def work(self, data: bytes) -> bytes:
        """Runs one item; returns its report, whatever happens."""
        item = read_assignment(data)
        work = item.work
        names = (work.name, work.id) if isinstance(work, ToolCall) else ("run", None)
        problem = None
        with self._signal_of(item.key) as signal:
            try:
                outcome = (
                    self._call(item, work, signal) if isinstance(work, ToolCall) else self._run(item, work, signal)
                )
            except Exception as error:  # of the factories
                outcome, problem = fail_item(work, _setup_failed(error)), f"{type(error).__name__}: {error}"
        events = self._outbox.take_rest(item.key, *names) if item.reports else []
        return write_report(Report(outcome, events, problem), self._max_result_bytes)

    def cancel(self, keys: list[int], reason: str) -> None:
        """Cancels items that run here; also those that have been sent and have not arrived yet."""
        with self._lock:
            found = [self._signals[key] for key in keys if key in self._signals]
            self._cancelled.update((key, reason) for key in keys if key not in self._signals)
            while len(self._cancelled) > _REMEMBERED:
                self._cancelled.popitem(last=False)
        for signal in found:
            signal.cancel(reason)

    def take_progress(self, seconds: float) -> bytes:
        """Events of all items here; waits for the first one."""
        return write(self._outbox.take(seconds))

    def close(self) -> None:
        self._outbox.close()
        self._toolkits.close()

    @contextmanager
    def _signal_of(self, key: int) -> Iterator[CancelSignal]:
        signal = CancelSignal()
        with self._lock:
            self._signals[key] = signal
            reason = self._cancelled.pop(key, None)
        if reason is not None:
            signal.cancel(reason)
        try:
            yield signal
        finally:
            with self._lock:
                del self._signals[key]

    def _call(self, item: Assignment, call: ToolCall, signal: CancelSignal) -> ToolResult:
        started = time.monotonic()  # the deadline also covers the factory
        with self._toolkits.use(item.setup) as toolkit:
            if item.lost and not is_repeatable(toolkit, call.name):
                return error_result(effect_unknown(), call.id, call.name)
            view = self._with_progress(toolkit, item)
            return without_output(call_when_free(view, call, item.deadline, started, signal))

    def _run(self, item: Assignment, wanted: FleetRun, signal: CancelSignal) -> RunOutcome:
        from toolkit.loop.sync import run

        if self._make_driver is None:
            raise SetupError("runs need a model: name its factory with Fleet(..., make_driver='module:function')")
        # Each run has a toolkit of its own, and so todos and a session of its own.
        with closing(make_checked(self._make_toolkit, item.setup)) as toolkit:
            driver, view = self._make_driver(read_setup(item.setup)), self._with_progress(toolkit, item)
            options, limits = wanted.options, wanted.limits
            try:
                said = run(driver, view, wanted.prompt, options=options, limits=limits, signal=signal)
                return RunOutcome(without_outputs(said), None)
            except RunError as error:
                said = without_outputs(error.conversation)
                vars(error)["conversation"] = said
                return RunOutcome(said, error)
            except Exception as error:  # of the driver's code
                return RunOutcome(as_conversation(wanted), as_toolkit_error(error, "run"))

    def _with_progress(self, toolkit: Runner, item: Assignment) -> Runner:
        if not item.reports:
            return toolkit
        options = options_of(toolkit)
        listener = combine_listeners(options.notify, partial(self._outbox.put, item.key))
        return toolkit._with(options._replace(notify=listener))


def call_when_free(
    toolkit: Runner, call: ToolCall, deadline: float | None, started: float, signal: CancelSignal
) -> ToolResult:
    """The result of a call; waits while the toolkit is overloaded, until the deadline or the cancellation."""
    pause, stop = _SHORT_PAUSE, threading.Event()
    forget = signal.listen(stop.set)
    try:
        while True:
            left = None if deadline is None else deadline - (time.monotonic() - started)
            if left is not None and left <= 0:
                late = ToolTimeout(
                    f"the worker was overloaded until the deadline of {deadline:g} s; the call did not start"
                )
                return error_result(late, call.id, call.name)
            result = toolkit.with_options(deadline=left, signal=signal).call(call)
            if not _is_overloaded(result):
                return result
            if stop.wait(pause if left is None else min(pause, left)):
                return error_result(ToolCancelled(signal.reason), call.id, call.name)
            pause = min(2 * pause, _LONG_PAUSE)
    finally:
        forget()


def effect_unknown() -> ToolFailed:
    """Why a call that is not repeatable has no result."""
    message = f"the worker died while it ran the call. {UNKNOWN}. The tool does not declare that it may be repeated"
    return ToolFailed("WORKER_DIED", message)


def fail_item(work: ToolCall | FleetRun, error: ToolkitError) -> ToolResult | RunOutcome:
    """The outcome of an item that failed outside of its call or run."""
    if isinstance(work, ToolCall):
        return error_result(error, work.id, work.name)
    return RunOutcome(as_conversation(work), error)


def as_conversation(wanted: FleetRun) -> Conversation:
    """What a run starts with."""
    prompt = wanted.prompt
    if isinstance(prompt, Conversation):
        return prompt
    return Conversation([TextMessage("user", prompt)] if isinstance(prompt, str) else list(prompt))


def _is_overloaded(result: ToolResult) -> bool:
    return result.kind == "error" and isinstance(result.value, str) and result.value.startswith("OVERLOADED:")


def _setup_failed(error: Exception) -> ToolkitError:
    """Models may read this, so the text of the error, which may hold paths, goes to the driver's log only."""
    failed = ToolFailed("NOT_CONFIGURED", f"the worker could not make a toolkit ({type(error).__name__}): see the log")
    failed.__cause__ = error
    return failed
