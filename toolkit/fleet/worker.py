"""What runs in a worker process: it makes the toolkits, runs calls and whole runs, and reports their progress."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, Final

from toolkit.errors import RunError, SetupError, ToolCancelled, ToolFailed, ToolkitError, ToolTimeout
from toolkit.fleet.messages import (
    Assignment,
    FleetRun,
    ProgressEvent,
    Report,
    RunOutcome,
    read_assignment,
    read_from_worker,
    read_setup,
    without_output,
    without_outputs,
    write_for_driver,
    write_report,
)
from toolkit.fleet.setup import load_factory
from toolkit.runtime.path import as_toolkit_error, error_result
from toolkit.runtime.progress import Progress, combine_listeners
from toolkit.runtime.signals import CancelSignal
from toolkit.runtime.sync import Runner
from toolkit.runtime.toolkit import core_of, options_of
from toolkit.wire.call import ToolCall, ToolResult
from toolkit.wire.message import TextMessage
from toolkit.wire.query import Conversation

# ----------------------------------------------------------------------------------------------------------------------
# A worker's toolkits: one for each setup, kept for the next call.

KEPT: Final = 16
"""How many toolkits that nobody uses are kept open."""


def make_checked(make: Callable[[object], Any], setup: bytes) -> Runner:
    """The toolkit that the factory makes from a setup."""
    toolkit = make(read_setup(setup))
    if not isinstance(toolkit, Runner):
        raise SetupError(
            f"the factory returned a {type(toolkit).__name__}; a fleet needs a sync toolkit, as create_agent_toolkit makes it"
        )
    return toolkit


class KeptToolkits:
    """Opens toolkits at their first use, and closes those that were not used for longest."""

    def __init__(self, make: Callable[[object], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()

    @contextmanager
    def use(self, setup: bytes) -> Iterator[Runner]:
        """The toolkit of a setup, which is not closed meanwhile."""
        with self._lock:
            kept = self._kept.setdefault(setup, _Kept())
            self._kept.move_to_end(setup)
            kept.users += 1
        try:
            with kept.lock:  # a factory may take long; other setups do not wait for it
                if kept.toolkit is None:
                    kept.toolkit = make_checked(self._make, setup)
            yield kept.toolkit
        finally:
            with self._lock:
                kept.users -= 1
                surplus = self._take_surplus()
            for toolkit in surplus:
                toolkit.close()

    def close(self) -> None:
        with self._lock:
            kept = [one.toolkit for one in self._kept.values()]
            self._kept.clear()
        for toolkit in kept:
            if toolkit is not None:
                toolkit.close()

    def _take_surplus(self) -> list[Runner]:
        unused = [setup for setup, kept in self._kept.items() if not kept.users]
        # One whose factory failed is not kept: the next call tries again.
        failed = [setup for setup in unused if self._kept[setup].toolkit is None]
        oldest = [setup for setup in unused if setup not in failed][: max(0, len(unused) - len(failed) - KEPT)]
        taken = [self._kept.pop(setup).toolkit for setup in (*failed, *oldest)]
        return [toolkit for toolkit in taken if toolkit is not None]


class _Kept:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.toolkit: Runner | None = None


# ----------------------------------------------------------------------------------------------------------------------
# Progress events of a worker's items on their way to the driver.
#
# The driver asks for events and gets all that are there. A reply may still be on its way when the report of an item arrives,
# so the report repeats the events of its item that the last reply held; the driver knows them by their numbers.

MAX_WAITING: Final = 1000
"""Events that wait for the driver. What comes while there are as many is counted, and left out."""


class ProgressOutbox:
    """Filled by running tools, emptied by the driver."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[ProgressEvent] = []
        self._sent: list[ProgressEvent] = []
        self._numbers: dict[int, int] = {}
        self._left_out: dict[int, int] = {}
        self._is_closed = False

    def put(self, key: int, progress: Progress) -> None:
        try:
            read_from_worker(write_for_driver(progress))
        except Exception as error:
            note = f"{type(error).__name__}: the data of this event cannot be sent"
            progress = Progress(progress.tool_name, progress.call_id, progress.title, {"problem": note})
        with self._changed:
            if len(self._waiting) >= MAX_WAITING:
                self._left_out[key] = self._left_out.get(key, 0) + 1
                return
            self._append(key, progress)
            self._changed.notify()

    def take(self, seconds: float) -> list[ProgressEvent]:
        """The events that wait; waits for the first one. Asking again says that the last reply has arrived."""
        with self._changed:
            self._sent = []
            self._changed.wait_for(lambda: self._waiting or self._is_closed, seconds)
            self._sent, self._waiting = self._waiting, []
            return self._sent

    def take_rest(self, key: int, tool_name: str, call_id: str | None) -> list[ProgressEvent]:
        """The events of an item that has ended and that the driver may not have."""
        with self._changed:
            left_out = self._left_out.pop(key, 0)
            if left_out:
                self._append(
                    key, Progress(tool_name, call_id, f"{left_out} events were left out", {"left_out": left_out})
                )
            rest = [event for event in (*self._sent, *self._waiting) if event.key == key]
            self._waiting = [event for event in self._waiting if event.key != key]
            self._numbers.pop(key, None)
            return rest

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _append(self, key: int, progress: Progress) -> None:
        number = self._numbers.get(key, 0)
        self._numbers[key] = number + 1
        self._waiting.append(ProgressEvent(key, number, progress))


# ----------------------------------------------------------------------------------------------------------------------
# Which calls may be repeated if their worker dies.

_OWN_ORIGINS: Final = ("functions", "models")
"""Imports from code of the project itself."""


def is_repeatable(toolkit: Runner, name: str) -> bool:
    """Whether running a call of this tool twice is the same as running it once, as the project declares in its spec.

    That is so if its permissions are ``read`` alone, or if it declares ``idempotentHint: true``, or ``readOnlyHint: true``
    without any permission. A tool that declares ``readOnlyHint: false`` needs the ``idempotentHint``, and one that declares
    nothing is not repeated. What was imported from a server or a document declares what others wrote: there only the
    permissions count, which the project has chosen.

    >>> from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit
    >>> with create_agent_toolkit(ToolkitContext(".", SecurityPolicy())) as tk:
    ...     [is_repeatable(tk, name) for name in ("read_file", "write_file", "apply_patch", "bash", "no_such_tool")]
    [True, True, False, False, False]
    """
    catalog = core_of(toolkit).catalog
    info = catalog.tools.get(name)
    if info is None:
        return False
    annotations, origin = catalog.annotations(name), catalog.definitions[name].get("origin")
    is_own = origin is None or origin.get("kind") in _OWN_ORIGINS
    permissions, read_only = {*info.required, *info.optional}, annotations.get("readOnlyHint")
    if permissions == {"read"} and read_only is not False:
        return True
    return is_own and (annotations.get("idempotentHint") is True or not permissions and read_only is True)


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
        return write_for_driver(self._outbox.take(seconds))

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
