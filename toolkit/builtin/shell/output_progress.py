"""Telling who watches a call what its command writes, while it runs.

Without a clock: output is told line by line at first, and the more has been told, the more comes together before the next
piece goes out. So even a program that writes letter by letter makes a few hundred events of a megabyte.
"""

from __future__ import annotations

from typing import Final

from toolkit.builtin.shell.output_buffer import STREAMS, Stream
from toolkit.runtime.context.tool_context import ToolContext

PIECES: Final = 64
"""A piece is at least this part of what was told before it."""
MAX_PIECE: Final = 1 << 16
LONG_LINE: Final = 80
"""So much of a line is told before its end has come."""
MAX_TOLD: Final = 1 << 24
"""Past so many characters of a stream only their number is told, as who listens may be slower than the command."""
COUNT_EVERY: Final = 1 << 20


class Watcher:
    """Tells one call's listeners: ``stream`` and ``text``, or past a limit ``stream`` and how many ``characters`` came."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        self._streams = {name: _Told() for name in STREAMS}

    def tell(self, stream: Stream, text: str) -> None:
        told = self._streams[stream]
        told.characters += len(text)
        if told.sent >= MAX_TOLD:
            if told.characters - told.counted >= COUNT_EVERY:
                told.counted = told.characters
                self._ctx.progress(stream=stream, characters=told.characters)
            return
        told.waiting.append(text)
        waiting = told.characters - told.sent
        if waiting >= min(MAX_PIECE, told.sent // PIECES) and ("\n" in text or waiting >= LONG_LINE):
            self._send(stream)

    def finish(self) -> None:
        """Tells what is waiting."""
        for stream in STREAMS:
            self._send(stream)

    def _send(self, stream: Stream) -> None:
        told = self._streams[stream]
        if told.waiting:
            self._ctx.progress(stream=stream, text="".join(told.waiting))
            told.waiting.clear()
            told.sent = told.counted = told.characters


class _Told:
    """How far one stream has been told."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.characters = 0
        self.sent = 0
        self.counted = 0
