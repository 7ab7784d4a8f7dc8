"""The events of one call on their way to the page, which may read more slowly than the call reports."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final, TypeAlias

from pydantic_core import to_jsonable_python

from toolkit.runtime.progress import Progress

PageEvent: TypeAlias = dict[str, Any]

MAX_WAITING: Final = 64 * 1024
"""The most characters of progress that wait for the reader. Older ones are dropped, and counted."""
MAX_PIECES: Final = 500
_MAX_TITLE: Final = 1000
_MAX_DATA: Final = 50


class Outbox:
    """Keeps what the page has not read yet. Progress is joined and bounded; the other events of a call are few."""

    def __init__(self) -> None:
        self._events: Final[list[PageEvent | _Waiting]] = []
        self._changed: Final = asyncio.Event()
        self._closed = False

    def add(self, event: PageEvent) -> None:
        """Adds an event that must arrive."""
        self._events.append(event)
        self._changed.set()

    def add_progress(self, progress: Progress) -> None:
        """Adds progress. It joins the progress that waits already."""
        last = self._events[-1] if self._events else None
        waiting = last if isinstance(last, _Waiting) else None
        if waiting is None:
            waiting = _Waiting()
            self._events.append(waiting)
        waiting.add(progress)
        self._changed.set()

    def close(self) -> None:
        """After this, ``take`` returns None once everything was taken."""
        self._closed = True
        self._changed.set()

    async def take(self) -> list[PageEvent] | None:
        """Waits for events, and takes all of them; None at the end."""
        while not self._events:
            if self._closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        taken = [event.as_event() if isinstance(event, _Waiting) else event for event in self._events]
        self._events.clear()
        return taken


class _Waiting:
    """Progress that waits for the reader, as one event."""

    def __init__(self) -> None:
        self._title: str | None = None
        self._pieces: Final[deque[tuple[str, str]]] = deque()
        self._characters = 0
        self._dropped = 0
        self._data: dict[str, Any] = {}

    def add(self, progress: Progress) -> None:
        if progress.title is not None:
            self._title = progress.title[:_MAX_TITLE]
        data = dict(progress.data)
        text = data.pop("text", None)
        if isinstance(text, str):
            self._add_text(str(data.pop("stream", ""))[:_MAX_TITLE], text)
        for key, value in list(data.items())[:_MAX_DATA]:
            self._data[str(key)[:_MAX_TITLE]] = _plain(value)

    def _add_text(self, stream: str, text: str) -> None:
        self._characters += len(text)
        if self._pieces and self._pieces[-1][0] == stream:
            text = self._pieces.pop()[1] + text
        self._pieces.append((stream, text))
        while self._characters > MAX_WAITING or len(self._pieces) > MAX_PIECES:
            oldest, text = self._pieces.popleft()
            cut = len(text) if len(self._pieces) >= MAX_PIECES else min(len(text), self._characters - MAX_WAITING)
            self._characters -= cut
            self._dropped += cut
            if cut < len(text):
                self._pieces.appendleft((oldest, text[cut:]))

    def as_event(self) -> PageEvent:
        pieces = [{"stream": stream, "text": text} for stream, text in self._pieces]
        return {
            "event": "progress",
            "title": self._title,
            "pieces": pieces,
            "dropped": self._dropped,
            "data": self._data,
        }


def _plain(value: object) -> Any:
    """A value of a tool's progress as JSON; long ones are cut, because any tool can report anything."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else str(to_jsonable_python(value, fallback=repr))
    return text[:_MAX_TITLE]
