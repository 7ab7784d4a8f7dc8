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
from typing import Any, Final, TypeAlias, Unpack

from toolkit.errors import SetupError, ToolFailed
from toolkit.runtime.audit.background import register, write_later
from toolkit.runtime.audit.file import FileSink
from toolkit.runtime.audit.lines import write_record
from toolkit.runtime.audit.sink import Check, MustWait

UnwrittenLine: TypeAlias = tuple[Callable[[Any], bytes], Unpack[tuple[Any, ...]]]
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
        self._failed = False
        self._is_due = False
        _open_sinks.add(self)
        register(self)

    def append(self, record: Mapping[str, Any], check: Check, /) -> None:
        if self.is_stuck:
            self._write(check)
        self.hand_over(record, check)

    @property
    def is_stuck(self) -> bool:
        """Whether nothing more may be handed over before something is written."""
        return self._failed or len(self.waiting) >= _MAX_WAITING

    def hand_over(self, record: Mapping[str, Any] | UnwrittenLine, check: Check) -> None:
        """Takes a record, and sees to it that it is written in time."""
        waiting = self.waiting
        waiting.append(record)
        if not self._is_due:
            self._is_due = True
            if not write_later(self, self._seconds):
                self._write(check)
        elif len(waiting) == MAX_LINES:
            write_later(self, 0)

    def flush(self) -> None:
        self._write(_wait)

    def write_pending(self) -> None:
        self._is_due = False  # first: who hands a record over from now on asks for another batch
        try:
            self._write(_wait)
        except (OSError, SetupError, ToolFailed, MustWait) as error:
            logger.error("audit records could not be written; calls are refused until they are", exc_info=error)
            self._is_due = True
            write_later(self, _RETRY_SECONDS)

    def close(self) -> None:
        try:
            self._write(_wait)
        except (OSError, SetupError, ToolFailed, MustWait) as error:
            count = len(self._taken) + len(self.waiting)
            logger.critical("%d records are missing in the audit log", count, exc_info=error)
        finally:
            self._file.close()

    def start_again_in_child(self) -> None:
        """In a forked child: what waits is written by the parent."""
        self.waiting.clear()
        self._taken = []
        self._failed = self._is_due = False

    def _write(self, check: Check) -> None:
        """Writes what waits; raises if that is not possible, and nothing is lost."""
        if self.waiting or self._taken:
            try:
                self._file.write(self._take, check, self._forget_taken)
            except (OSError, SetupError, ToolFailed):
                self._failed = True
                raise
        self._failed = False

    def _take(self) -> Sequence[bytes]:
        taken, waiting = self._taken, self.waiting
        add, take = taken.append, waiting.popleft
        while waiting:
            record = take()
            add(record[0](record) if type(record) is tuple else write_record(record))  # type: ignore[arg-type]
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
