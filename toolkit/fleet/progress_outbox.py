"""Progress events of a worker's items on their way to the driver.

The driver asks for events and gets all that are there. A reply may still be on its way when the report of an item arrives,
so the report repeats the events of its item that the last reply held; the driver knows them by their numbers.
"""

from __future__ import annotations

import threading
from typing import Final

from toolkit.fleet.messages import ProgressEvent, read_from_worker, write
from toolkit.runtime.progress import Progress

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
            read_from_worker(write(progress))
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
