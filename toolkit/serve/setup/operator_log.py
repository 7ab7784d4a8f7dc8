"""What a server says to whoever started it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import Full, Queue
from typing import Final

_MAX_LINES: Final = 1000
_LAST_SECONDS: Final = 5.0
"""How long the end waits for a reader."""


class OperatorLog(logging.Handler):
    """Lines for people, and warnings of every logger. A thread of its own writes them: a client that starts a server need not
    read what it says, and a full pipe must not stop it. What finds no room meanwhile is dropped and counted."""

    def __init__(self, write: Callable[[str], None]) -> None:
        """``write`` writes one line, and may wait as long as it likes."""
        super().__init__(logging.WARNING)
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        self._write: Final = write
        self._lines: Final[Queue[str | None]] = Queue(_MAX_LINES)
        self._dropped = 0
        self._thread: Final = threading.Thread(target=self._write_all, name="toolkit-operator-log", daemon=True)

    def __enter__(self) -> OperatorLog:
        logging.getLogger().addHandler(self)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        logging.getLogger().removeHandler(self)
        try:
            self._lines.put(None, timeout=_LAST_SECONDS)
        except Full:
            return
        self._thread.join(_LAST_SECONDS)

    def tell(self, line: str) -> None:
        """Says one line. Never waits."""
        try:
            self._lines.put_nowait(line)
        except Full:
            self._dropped += 1

    def emit(self, record: logging.LogRecord) -> None:
        for line in self.format(record).splitlines():
            self.tell(line)

    def _write_all(self) -> None:
        while (line := self._lines.get()) is not None:
            self._write(line)
            dropped, self._dropped = self._dropped, 0
            if dropped:
                self._write(f"[{dropped} lines were dropped, because nobody read them]")
