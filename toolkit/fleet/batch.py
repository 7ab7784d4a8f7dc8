"""One batch: items are read as there is room for them, sent, and their results collected.

Everything happens in the thread that reads the results, when it asks for the next one. Only a cancellation comes from
elsewhere.

A worker that is gone, or later than ``grace``, is replaced. Its calls are sent again, each alone on a worker, so a call that
crashes workers is isolated. The new worker runs one only if the tool's spec says that it may be repeated.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from toolkit.errors import ToolCancelled, ToolFailed, ToolkitError, ToolTimeout
from toolkit.fleet.crew import Crew, CrewWorker, News
from toolkit.fleet.messages import (
    Assignment,
    FleetRun,
    OnItemProgress,
    ProgressEvent,
    Report,
    RunOutcome,
    SetupWriter,
    read_from_worker,
    write,
)
from toolkit.fleet.worker import UNKNOWN, effect_unknown, fail_item
from toolkit.runtime.signals import CancelSignal
from toolkit.wire.call import ToolCall, ToolResult

logger: Final = logging.getLogger("toolkit")
_TICK: Final = 0.25
"""How often calls are looked at that should have ended."""
_MAX_LOGGED: Final = 100
_keys: Final = itertools.count()


@dataclass(frozen=True, slots=True)
class Ended:
    """An item that has ended."""

    index: int
    outcome: ToolResult | RunOutcome


@dataclass(slots=True)
class BatchItem:
    """An item that was read and has not ended."""

    index: int
    work: ToolCall | FleetRun
    setup: object
    deadline: float | None
    key: int = -1
    """Names this attempt: a worker that was given up may still report an earlier one."""
    lost: int = 0
    next_event: int = 0
    worker: CrewWorker | None = None
    ends_by: float | None = None
    """When its worker is given up."""


class Batch:
    """The items of one ``map``, ``as_completed`` or ``run_all``."""

    def __init__(
        self,
        crew: Crew,
        items: Iterable[BatchItem],
        *,
        ahead: int,
        retries: int,
        grace: float,
        signal: CancelSignal | None,
        on_progress: OnItemProgress | None,
    ) -> None:
        self._crew: Final = crew
        self._items: Final = iter(items)
        self._ahead: Final = ahead
        self._retries: Final = retries
        self._grace: Final = grace
        self._signal: Final = CancelSignal() if signal is None else signal
        self._on_progress: Final = on_progress
        self._setups: Final = SetupWriter()
        self._lock: Final = threading.Lock()
        self._sent: Final[dict[int, BatchItem]] = {}
        self._again: Final[deque[BatchItem]] = deque()
        """Items whose workers died, to be sent again."""
        self._ended: Final[deque[Ended]] = deque()
        self._unread = 0
        """Items that were read and whose outcome the caller does not have yet."""
        self._failure: BaseException | None = None
        """What ended the reading of items."""
        self._is_exhausted = False
        self._look_at = 0.0
        self._late: frozenset[int] = frozenset()
        """Items that should have ended when they were last looked at."""
        self._logged: Final[set[str]] = set()

    def outcomes(self, *, in_order: bool) -> Iterator[Ended]:
        """The outcomes, in the order of the items or as they come. Closing the iterator cancels what runs."""
        forget = self._signal.listen(self._cancel_sent)
        waiting: dict[int, Ended] = {}
        following = 0
        try:
            while True:
                self._fill()
                while self._ended:
                    ended = self._ended.popleft()
                    if not in_order:
                        self._unread -= 1
                        yield ended
                        continue
                    waiting[ended.index] = ended
                    while following in waiting:
                        self._unread -= 1
                        following += 1
                        yield waiting.pop(following - 1)
                if not self._sent and not self._again and self._is_finished:
                    break
                self._collect()
        finally:
            forget()
            self._stop()
        if self._failure is not None:
            raise self._failure

    @property
    def _is_finished(self) -> bool:
        """Whether no further items are read."""
        return not self._ended and (self._is_exhausted or self._signal.cancelled)

    # -- sending -----------------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Sends what there is room for. Items that were on a dead worker come first, each on a worker of its own."""
        while self._again:
            worker = None if self._signal.cancelled else self._crew.find_room(alone=True)
            if self._signal.cancelled:
                self._end(
                    self._again.popleft(), ToolCancelled(f"{self._signal.reason}. A worker died with it. {UNKNOWN}")
                )
            elif worker is None:
                break
            else:
                self._send(self._again.popleft(), worker)
        while self._unread < self._ahead and not self._is_exhausted and not self._signal.cancelled:
            worker = self._crew.find_room()
            if worker is None:
                return
            try:
                item = next(self._items)
            except StopIteration:
                self._is_exhausted = True
                return
            except BaseException as error:  # of the caller's iterable: what was sent is delivered before it
                self._is_exhausted, self._failure = True, error
                return
            self._unread += 1
            self._send(item, worker)

    def _send(self, item: BatchItem, worker: CrewWorker) -> None:
        reports = self._on_progress is not None
        item.key = next(_keys)
        try:
            setup = self._setups.write(item.setup)
            data = write(Assignment(item.key, item.work, setup, item.deadline, reports, item.lost))
        except Exception as error:
            self._log(item, str(error))
            self._end(item, ToolFailed("NOT_CONFIGURED", "the item cannot be sent to a worker: see the log"))
            return
        item.worker, item.next_event = worker, 0
        item.ends_by = None if item.deadline is None else time.monotonic() + item.deadline + self._grace
        with self._lock:
            self._sent[item.key] = item
        self._crew.send(worker, item.key, data, alone=item.lost > 0)
        if reports:
            self._crew.ask_for_progress(worker)
        if self._signal.cancelled:  # perhaps before it was noted
            self._cancel_sent()

    # -- collecting --------------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        """Waits for news, and takes all that has come."""
        news = self._crew.next_news(_TICK)
        # No more than is there now: a flood of progress must not keep results back.
        for _ in range(self._crew.waiting_news):
            if news is not None:
                self._take(news)
            news = self._crew.next_news(0)
        if news is not None:
            self._take(news)
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _TICK
            self._give_up_late_workers()
            self._check_crew()

    def _take(self, news: News) -> None:
        worker = news.worker
        if worker is None or news.kind == "ready":
            return
        if news.error is not None and self._crew.is_loss(news.error):
            self._lose(worker)
        elif news.kind == "progress":
            worker.is_asked = False
            if news.error is None:
                self._report_progress(read_from_worker(news.data))
            if worker.keys and self._on_progress is not None:
                self._crew.ask_for_progress(worker)
        elif news.key in self._sent:
            self._take_report(news, self._sent[news.key], worker)
        else:
            self._crew.release(worker, news.key)  # of an earlier batch

    def _take_report(self, news: News, item: BatchItem, worker: CrewWorker) -> None:
        self._crew.release(worker, item.key)
        try:
            if news.error is not None:
                raise news.error
            report: Report = read_from_worker(news.data)
        except Exception as error:
            self._log(item, str(error))
            self._end(item, ToolFailed("INVALID_OUTPUT", "the worker's report of the call cannot be read: see the log"))
            return
        if report.problem is not None:
            self._log(item, report.problem)
        self._report_progress(report.events)
        self._forget(item)
        self._ended.append(Ended(item.index, report.outcome))

    def _report_progress(self, events: Iterable[ProgressEvent]) -> None:
        for event in events:
            item = self._sent.get(event.key)
            if item is None or event.number < item.next_event or self._on_progress is None:
                continue
            item.next_event = event.number + 1
            try:
                self._on_progress(item.index, event.progress)
            except Exception:
                logger.exception("on_progress failed")

    # -- when workers fail -------------------------------------------------------------------------------------------

    def _lose(self, worker: CrewWorker) -> None:
        """Replaces a worker that is gone, and decides about each item that it had."""
        self._crew.replace(worker)
        for key in list(worker.keys):
            item = self._sent.get(key)
            worker.keys.discard(key)
            if item is None:
                continue
            item.lost += 1
            error = self._why_not_again(item)
            if error is not None:
                self._end(item, error)
            else:
                self._forget(item)
                self._again.append(item)

    def _why_not_again(self, item: BatchItem) -> ToolkitError | None:
        if self._signal.cancelled:
            return ToolCancelled(f"{self._signal.reason}. The worker was ended. {UNKNOWN}")
        if item.ends_by is not None and time.monotonic() >= item.ends_by:
            return ToolTimeout(
                f"the worker did not answer {self._grace:g} s after the deadline and was ended. {UNKNOWN}"
            )
        if not isinstance(item.work, ToolCall):
            return effect_unknown()
        if item.lost > self._retries:
            message = f"{item.lost} workers died while they ran the call; perhaps it is what ends them. {UNKNOWN}"
            return ToolFailed("WORKER_DIED", message)
        return None  # the next worker knows whether the tool may be repeated

    def _give_up_late_workers(self) -> None:
        """Ends workers that should have reported. A report may have waited for a reader who paused: so each is looked at
        twice, and what came between is taken first."""
        now = time.monotonic()
        late = {key: item for key, item in self._sent.items() if item.ends_by is not None and now >= item.ends_by}
        for worker in {item.worker for key, item in late.items() if key in self._late}:
            if worker is not None:
                self._lose(worker)
        self._late = frozenset(late)

    def _check_crew(self) -> None:
        try:
            self._crew.check_starts()
        except BaseException as error:
            # What has ended is delivered first.
            self._is_exhausted, self._failure = True, error
            while self._again:
                self._end(self._again.popleft(), ToolFailed("WORKER_DIED", f"no worker can be started. {UNKNOWN}"))

    def _log(self, item: BatchItem, problem: str) -> None:
        """Logs a problem once: a mistake in a setup is that of every item."""
        if problem not in self._logged and len(self._logged) < _MAX_LOGGED:
            self._logged.add(problem)
            logger.error("item %d of a fleet: %s", item.index, problem)

    def _end(self, item: BatchItem, error: ToolkitError) -> None:
        self._forget(item)
        self._ended.append(Ended(item.index, fail_item(item.work, error)))

    def _forget(self, item: BatchItem) -> None:
        with self._lock:
            self._sent.pop(item.key, None)

    # -- ending ------------------------------------------------------------------------------------------------------

    def _cancel_sent(self) -> None:
        """Cancels what runs, from any thread; workers that do not answer are ended later."""
        with self._lock:
            items = list(self._sent.values())
            by_worker: dict[CrewWorker, list[int]] = {}
            for item in items:
                latest = time.monotonic() + self._grace
                item.ends_by = latest if item.ends_by is None else min(item.ends_by, latest)
                if item.worker is not None:
                    by_worker.setdefault(item.worker, []).append(item.key)
        for worker, keys in by_worker.items():
            worker.process.cancel(keys, self._signal.reason)
        self._crew.wake()

    def _stop(self) -> None:
        """Cancels what still runs, and waits for its end: the caller wants no more results."""
        if not self._sent:
            return
        self._is_exhausted = True
        with self._lock:
            keys = [(item.worker, item.key) for item in self._sent.values()]
        until = time.monotonic() + self._grace
        for worker, key in keys:
            if worker is not None:
                worker.process.cancel([key], "the caller closed the batch")
        for item in self._sent.values():
            item.ends_by = until
        while self._sent:
            self._collect()
            self._again.clear()
