"""The workers of a fleet: who is ready, who has room, and who must be replaced."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from toolkit.errors import SetupError
from toolkit.fleet.ray_workers import OnReply, RayWorker, RayWorkers

NewsKind: TypeAlias = Literal["ready", "report", "progress", "wake"]

MAX_FAILED_STARTS: Final = 3
"""So many workers in a row that do not start, and none that works, end a batch."""
POLL_SECONDS: Final = 20.0
"""How long a question for progress may stay open in a worker."""


class News(NamedTuple):
    """Something that a worker replied."""

    kind: NewsKind
    worker: CrewWorker | None
    key: int = -1
    data: Any = None
    error: BaseException | None = None


class CrewWorker:
    """One worker, and the items it has."""

    def __init__(self) -> None:
        self.process: RayWorker
        self.keys: set[int] = set()
        self.is_ready = False
        self.is_lost = False
        self.works_alone = False
        """Whether it gets nothing else until it is finished: its item was on a worker that died."""
        self.is_asked = False
        """Whether a question for progress is open."""
        self.is_listed = False
        """Whether it is in the queue of workers with room."""


class Crew:
    """Keeps a number of workers running. All methods but ``wake`` belong to the thread that reads the results."""

    def __init__(self, workers: RayWorkers, size: int, calls_per_worker: int, start_seconds: float) -> None:
        self._workers: Final = workers
        self._calls_per_worker: Final = calls_per_worker
        self._start_seconds: Final = start_seconds
        self._news: SimpleQueue[News] = SimpleQueue()
        self._members: set[CrewWorker] = set()
        self._room: deque[CrewWorker] = deque()
        self._failed_starts = 0
        self._why_not = ""
        self._none_ready_since: float | None = time.monotonic()
        for _ in range(size):
            self._start_one()

    def __iter__(self) -> Iterator[CrewWorker]:
        return iter(list(self._members))

    def wake(self) -> None:
        """Ends the wait for news, from any thread."""
        self._news.put(News("wake", None))

    @property
    def waiting_news(self) -> int:
        return self._news.qsize()

    def next_news(self, seconds: float) -> News | None:
        """The next reply; None after this time."""
        try:
            news = self._news.get(timeout=seconds) if seconds else self._news.get_nowait()
        except Empty:
            return None
        worker = news.worker
        if news.kind == "ready" and worker is not None:
            if news.error is None:
                self._take_in(worker)
            elif not worker.is_lost:
                self._failed_starts += 1
                self._why_not = str(news.error).strip()
                self.replace(worker)
        return news

    def check_starts(self) -> None:
        """Raises if no worker can be started."""
        since = self._none_ready_since
        if since is None:
            return
        if self._failed_starts >= MAX_FAILED_STARTS:
            raise SetupError(f"no worker of the fleet can be started: {_last_line(self._why_not)}")
        if time.monotonic() - since > self._start_seconds:
            raise SetupError(
                f"no worker of the fleet started within {self._start_seconds:g} s: {self._workers.describe_free()}, "
                "and each worker needs what ray_options ask for (1 CPU if they do not say)"
            )

    def find_room(self, *, alone: bool = False) -> CrewWorker | None:
        """A worker that can take another item; with ``alone`` one that has none."""
        if alone:
            return next((one for one in self._members if one.is_ready and not one.keys), None)
        while self._room:
            worker = self._room[0]
            if self._has_room(worker):
                return worker
            self._room.popleft().is_listed = False
        return None

    def send(self, worker: CrewWorker, key: int, data: bytes, *, alone: bool) -> None:
        worker.keys.add(key)
        worker.works_alone = alone
        if self._room and self._room[0] is worker:  # the next item goes to another one
            self._room.popleft().is_listed = False
            self._list(worker)
        worker.process.send(data, self._note("report", worker, key))

    def release(self, worker: CrewWorker, key: int) -> None:
        """Notes that an item has left its worker."""
        worker.keys.discard(key)
        if not worker.keys:
            worker.works_alone = False
        self._list(worker)

    def ask_for_progress(self, worker: CrewWorker) -> None:
        if not worker.is_asked and not worker.is_lost:
            worker.is_asked = True
            worker.process.ask_for_progress(POLL_SECONDS, self._note("progress", worker))

    def is_loss(self, error: BaseException) -> bool:
        return self._workers.is_loss(error)

    def replace(self, worker: CrewWorker) -> None:
        """Starts another worker in the place of one that is gone."""
        if worker.is_lost:
            return
        self._leave(worker)
        worker.process.kill()  # it may be out of reach and still at work
        if self._failed_starts < MAX_FAILED_STARTS:
            self._start_one()

    def close(self, seconds: float) -> None:
        """Closes the toolkits of all workers, then ends the workers."""
        replies: SimpleQueue[None] = SimpleQueue()
        members, self._members = self._members, set()
        asked = [worker for worker in members if worker.is_ready]
        for worker in asked:
            worker.process.close(lambda data, error: replies.put(None))
        until = time.monotonic() + seconds
        for _ in asked:
            try:
                replies.get(timeout=max(0.0, until - time.monotonic()))
            except Empty:
                break
        for worker in members:
            worker.is_lost = True
            worker.process.kill()

    def _start_one(self) -> None:
        worker = CrewWorker()
        self._members.add(worker)
        worker.process = self._workers.start(self._note("ready", worker))

    def _take_in(self, worker: CrewWorker) -> None:
        self._failed_starts, self._none_ready_since = 0, None
        worker.is_ready = True
        self._list(worker)

    def _leave(self, worker: CrewWorker) -> None:
        worker.is_lost, worker.is_ready = True, False
        self._members.discard(worker)
        if self._none_ready_since is None and not any(one.is_ready for one in self._members):
            self._none_ready_since = time.monotonic()

    def _list(self, worker: CrewWorker) -> None:
        if not worker.is_listed and self._has_room(worker):
            worker.is_listed = True
            self._room.append(worker)

    def _has_room(self, worker: CrewWorker) -> bool:
        return worker.is_ready and not worker.works_alone and len(worker.keys) < self._calls_per_worker

    def _note(self, kind: NewsKind, worker: CrewWorker, key: int = -1) -> OnReply:
        news = self._news
        return lambda data, error: news.put(News(kind, worker, key, data, error))


def _last_line(text: str) -> str:
    """Ray puts a traceback before what was raised."""
    return text.splitlines()[-1] if text else "Ray gives no reason"
