"""What a handler streams its output into: a writer of the cache that can neither fail the call nor stop an event loop."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from toolkit.errors import Overloaded
from toolkit.runtime.stores.outputs import CountingWriter, OutputCache, OutputWriter
from toolkit.runtime.stores.waiting import (
    MAX_SECONDS,
    in_event_loop,
    seconds_for_store,
    start_store,
    too_slow,
    use_store,
    use_store_async,
)

if TYPE_CHECKING:
    from concurrent.futures import Future

logger: Final = logging.getLogger("toolkit.cache")

MAX_QUEUED_BYTES: Final = 32 * 1024 * 1024
"""How much may wait for a store that is slower than an async handler. Then the handler waits, too."""


class ContainedWriter(CountingWriter):
    """Passes an output on to the cache. Whatever the cache raises is logged, and costs the ref.

    What an async handler writes goes through a queue that a thread works off: writing may wait for a disk or a server.
    """

    def __init__(
        self, cache: Callable[[], OutputCache], session_id: str, tool: str, seconds_left: Callable[[], float | None]
    ) -> None:
        super().__init__()
        self._seconds_left: Final = seconds_left
        self._open_cache: Final = cache
        self._session_id: Final = session_id
        self._tool: Final = tool
        self._inner: OutputWriter | None = None
        self._is_open = True
        self._ref: str | None = None
        self.problem: str | None = None
        """Why the output is not kept, if it is not."""
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._changed: Final = threading.Condition()
        self._working: Future[None] | None = None

    def write(self, data: bytes) -> None:
        super().write(data)
        if self.problem is not None or not self._is_open:
            return
        if self._working is not None or in_event_loop():
            self._contain(lambda: self._enqueue(bytes(data)))
        else:
            self._pass_on(data)

    def finish(self) -> str | None:
        if self._is_open:
            self._is_open = False
            self._contain(lambda: use_store(self._complete, seconds_for_store(self._seconds_left())))
        return self._ref

    async def finish_async(self) -> None:
        """Keeps the output without stopping the event loop; ``finish`` then returns its ref."""
        if self._is_open:
            self._is_open = False
            try:
                await use_store_async(self._complete, seconds_for_store(self._seconds_left()))
            except Exception as error:
                self._lose(error)

    def discard(self) -> None:
        self._is_open = False
        if self._inner is None and self._working is None:
            return
        if in_event_loop():
            self._drop_later()
        else:
            self._drop()

    # -- with the cache ------------------------------------------------------------------------------------------------

    def _complete(self) -> None:
        self._wait_for_queue()
        if self.problem is None:
            self._ref = self._writer().finish()
            if self._ref is None:
                self.problem = NOT_KEPT

    def _pass_on(self, data: bytes) -> None:
        self._contain(lambda: self._writer().write(data))

    def _writer(self) -> OutputWriter:
        if self._inner is None:
            self._inner = self._open_cache().writer(self._session_id, tool=self._tool)
        return self._inner

    def _contain(self, act: Callable[[], object]) -> None:
        try:
            act()
        except Exception as error:
            self._lose(error)

    def _lose(self, error: Exception) -> None:
        self.problem = report_lost(self._tool, error)
        self._drop_later()  # a store that fails may also be slow

    def _drop_later(self) -> None:
        with suppress(Overloaded):
            start_store(self._drop)

    def _drop(self) -> None:
        try:
            self._wait_for_queue()
            inner, self._inner = self._inner, None
            if inner is not None:
                inner.discard()
        except Exception:
            logger.warning("an unfinished output of %r could not be removed", self._tool, exc_info=True)

    # -- the queue -----------------------------------------------------------------------------------------------------

    def _enqueue(self, data: bytes) -> None:
        with self._changed:
            self._queue.append(data)
            self._queued += len(data)
            if self._working is None or self._working.done():
                self._working = start_store(self._work_off)
            self._wait_until(lambda: self._queued <= MAX_QUEUED_BYTES)

    def _work_off(self) -> None:
        while True:
            with self._changed:
                if not self._queue or self.problem is not None:
                    self._queue.clear()
                    self._queued = 0
                    self._changed.notify_all()
                    return
                data = b"".join(self._queue)
                self._queue.clear()
            try:
                self._writer().write(data)
            except Exception as error:
                self.problem = report_lost(self._tool, error)
            with self._changed:
                self._queued -= len(data)
                self._changed.notify_all()

    def _wait_for_queue(self) -> None:
        with self._changed:
            self._wait_until(lambda: not self._queued)

    def _wait_until(self, is_so: Callable[[], bool]) -> None:
        if not self._changed.wait_for(lambda: is_so() or self.problem is not None, MAX_SECONDS):
            raise too_slow(MAX_SECONDS)


NOT_KEPT: Final = "the output cache did not keep it; the log of the cache says why"


def report_lost(tool: str, error: Exception) -> str:
    """Logs why an output is not kept; returns it as a line for the program. Its text may be foreign: models never see it."""
    logger.warning("an output of %r could not be stored", tool, exc_info=error)
    return f"the output cache failed: {type(error).__name__}: {error}"
