"""The audit log in a file, written in batches: records are handed over, and a thread writes them together.

Promise: a record is handed over before its call runs, and written at latest after ``batch_seconds``, after ``MAX_LINES``
records, when the toolkit is closed and when the program ends. If a batch cannot be written, calls are refused until it is.
A process that is killed loses what was not written yet.
"""

from __future__ import annotations

import logging
import os
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from toolkit.errors import ToolCancelled, ToolTimeout
from toolkit.runtime.audit.background import register, write_later
from toolkit.runtime.audit.file import FileSink
from toolkit.runtime.audit.lines import write_record
from toolkit.runtime.audit.sink import Check, MustWait

UnwrittenLine: TypeAlias = tuple[Callable[[Any], bytes], *tuple[Any, ...]]
"""A record for which nothing was written yet: a function that writes this tuple as a line, and what it needs."""

logger: Final = logging.getLogger("toolkit")

MAX_LINES: Final = 1000
"""How many records wait at most for the time at which they are written."""
_MAX_WAITING: Final = 10 * MAX_LINES
"""How many records wait at most for a thread that writes too slowly; then the callers write."""
_RETRY_SECONDS: Final = 1.0


class BatchedSink:
    """An open log that is written in batches."""

    blocking: Final = False

    def __init__(self, file: FileSink, seconds: float) -> None:
        self._file: Final = file
        self._seconds: Final = seconds
        self.waiting: deque[Mapping[str, Any] | UnwrittenLine] = deque()
        self._taken: list[bytes] = []
        """The batch that is being written, or could not be written."""
        self.is_stuck = False
        """Whether the last batch could not be written: nothing more may be handed over before it is."""
        self.is_due = False
        """Whether somebody will write what waits."""
        self._hurries = False
        _open_sinks.add(self)
        register(self)

    @property
    def unwritten(self) -> int:
        """How many records were handed over, but not written yet."""
        return len(self.waiting) + len(self._taken)

    def append(self, record: Mapping[str, Any], check: Check, /) -> None:
        if self.is_stuck or self.is_full():
            self._write(check)
        self.waiting.append(record)
        if not self.is_due:
            self.write_soon()

    def is_full(self) -> bool:
        """Whether who hands a record over must write first. If there are many, they are written at once."""
        count = len(self.waiting)
        if count >= MAX_LINES and not self._hurries:
            self._hurries = True
            write_later(self, 0)
        return count >= _MAX_WAITING

    def write_soon(self) -> None:
        """Asks for a batch in time: called by who hands a record over and finds that none is due."""
        self.is_due = True
        if not write_later(self, self._seconds):
            self.write_pending()

    def flush(self) -> None:
        self._write(_wait)

    def write_pending(self) -> None:
        self.is_due = self._hurries = False  # first: who hands a record over from now on asks for another batch
        try:
            self._write(_wait)
        except Exception as error:
            logger.error("audit records could not be written; calls are refused until they are", exc_info=error)
            self.is_due = True
            write_later(self, _RETRY_SECONDS)

    def close(self) -> None:
        try:
            self._write(_wait)
        except Exception as error:
            logger.critical("%d records are missing in the audit log", self.unwritten, exc_info=error)
        finally:
            self._file.close()

    def start_again_in_child(self) -> None:
        """In a forked child: what waits is written by the parent."""
        self.waiting.clear()
        self._taken = []
        self.is_stuck = self.is_due = self._hurries = False

    def _write(self, check: Check) -> None:
        """Writes what waits; raises if that is not possible, and nothing is lost."""
        if self.waiting or self._taken:
            try:
                self._file.write(self._take, check, self._forget_taken)
            except (MustWait, ToolTimeout, ToolCancelled):
                raise  # nothing is wrong with the file
            except Exception:
                self.is_stuck = True
                raise
        self.is_stuck = False

    def _take(self) -> Sequence[bytes]:
        taken, waiting = self._taken, self.waiting
        for _ in range(len(waiting)):
            record = waiting[0]
            taken.append(record[0](record) if type(record) is tuple else write_record(record))  # type: ignore[arg-type]
            waiting.popleft()  # not before: a record for which no line can be made is not lost
        return taken

    def _forget_taken(self) -> None:
        self._taken = []


def _wait() -> None:
    """Waits for other writers, as long as the file does."""


_open_sinks: Final[weakref.WeakSet[BatchedSink]] = weakref.WeakSet()


def _start_again_in_child() -> None:
    for sink in list(_open_sinks):
        sink.start_again_in_child()


os.register_at_fork(after_in_child=_start_again_in_child)
